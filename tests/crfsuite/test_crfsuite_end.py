"""Where a fit of the drop-in ends with few iterations, beside CRFsuite, and what it says of it."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skstruct import CRFTagger
from skstruct.crfsuite import CRF, BaseTrainer, Trainer
from skstruct.datasets import fetch_conll2002, load_addresses
from skstruct.learning.start import dual_free_epochs

SETTLED = "L-BFGS terminated as the objective has settled"
LIMIT = "L-BFGS terminated with the maximum number of iterations"
CRITERIA = "L-BFGS terminated with the stopping criteria"
LINE = {"c1": 0.1, "c2": 0.1, "max_iterations": 100, "all_possible_transitions": True}
needs_data = pytest.mark.skipif("SKSTRUCT_DATA" not in os.environ, reason="needs the corpora")


def features(words):
    """Features as in sklearn-crfsuite's tutorial, of words alone: many of them are False."""
    padded = ["", *words, ""]
    return [
        {
            "bias": 1.0,
            "lower": word.lower(),
            "suffix3": word[-3:],
            "suffix2": word[-2:],
            "upper": word.isupper(),
            "title": word.istitle(),
            "digit": word.isdigit(),
            "-1:lower": before.lower(),
            "-1:title": before.istitle(),
            "+1:lower": after.lower(),
            "+1:title": after.istitle(),
        }
        for before, word, after in zip(padded, words, padded[2:], strict=False)
    ]


@pytest.fixture(scope="module")
def addresses():
    X, y = load_addresses(return_X_y=True)
    return [features(words) for words in X], [list(labels) for labels in y]


@pytest.fixture(scope="module")
def dutch():
    X, y = fetch_conll2002(language="ned", subset="train", return_X_y=True)
    return [features([token[0] for token in x]) for x in X[:700]], [list(y) for y in y[:700]]


def objective_of_crfsuite(X, y, params):
    peer = pytest.importorskip("sklearn_crfsuite")
    return peer.CRF(algorithm="lbfgs", **params).fit(X, y).training_log_.last_iteration["loss"]


@pytest.mark.parametrize(
    ("c1", "c2", "max_iterations"),
    [(0.1, 0.1, 20), (0.1, 0.1, 100), (0.3, 0.1, 50), (0.1, 0.07, 100)],
)
def test_the_objective_is_no_higher_than_crfsuites(addresses, c1, c2, max_iterations):
    params = {**LINE, "c1": c1, "c2": c2, "max_iterations": max_iterations}
    log = CRF(**params).fit(*addresses).training_log_
    assert log.stop_reason == SETTLED
    # Its own objective, in full.
    assert log.last_iteration["loss"] <= objective_of_crfsuite(*addresses, params)


@needs_data
def test_the_objective_is_no_higher_on_a_corpus(dutch):
    log = CRF(**LINE).fit(*dutch).training_log_
    assert log.stop_reason == SETTLED
    assert log.last_iteration["loss"] <= objective_of_crfsuite(*dutch, LINE)


def test_with_few_labels(addresses):
    X, y = addresses
    y = [[label[:1] for label in labels] for labels in y]
    assert len({label for labels in y for label in labels}) < 8
    log = CRF(**LINE).fit(X, y).training_log_
    assert log.last_iteration["loss"] <= objective_of_crfsuite(X, y, LINE)


def check_logged_objective(crf, X, y):
    """The last objective of the log is that of the weights, with the penalties of `LINE`."""
    weights = [*crf.state_features_.values(), *crf.transition_features_.values()]
    penalty = 0.1 * np.abs(weights).sum() + 0.1 * np.square(weights).sum()
    likelihood = 0
    tagger = crf.tagger_
    for x, labels in zip(X, y, strict=True):
        tagger.set(x)
        likelihood -= np.log(tagger.probability(labels))
    assert crf.training_log_.last_iteration["loss"] == pytest.approx(likelihood + penalty, rel=1e-6)


def test_the_logged_objective_is_that_of_the_weights(addresses):
    check_logged_objective(CRF(**LINE).fit(*addresses), *addresses)


@pytest.mark.parametrize("own_rule", [{"delta": 1e-5}, {"period": 10}])
def test_the_switch_leaves_a_fit_to_crfsuites_rule(addresses, own_rule):
    crf = CRF(**LINE, **own_rule).fit(*addresses)
    assert crf.training_log_.stop_reason != SETTLED
    settled = CRF(**LINE).fit(*addresses)
    loss, early = (log.last_iteration["loss"] for log in (crf.training_log_, settled.training_log_))
    assert loss < early < 1.01 * loss
    assert len(settled.training_log_.iterations) < len(crf.training_log_.iterations)


@pytest.mark.parametrize(
    "changed",
    [
        {"max_iterations": None},
        {"max_iterations": 0},
        {"max_iterations": 101},
        {"c1": 0.0},
        # CRFsuite comes too near the minimum, or the start is too slow.
        {"c2": 1.0},
        {"c1": 0.01},
        {"c1": 1.0, "c2": 0.01},
    ],
)
def test_other_lines_go_on(addresses, changed):
    line = {**LINE, **changed}
    crf = CRF(**line).fit(*addresses)
    assert crf.training_log_.stop_reason != SETTLED
    switched = CRF(**line, delta=1e-5).fit(*addresses)
    assert_array_equal(crf.estimator_.coef_, switched.estimator_.coef_)


def test_reasons_of_the_end(addresses):
    X, y = addresses[0][:60], addresses[1][:60]
    # Under 1,000 tokens there is no ascent.
    assert sum(map(len, X)) < 1000

    def reason(**params):
        return CRF(**params).fit(X, y).training_log_.stop_reason

    assert reason(**{**LINE, "max_iterations": 3}) == LIMIT
    assert reason(**LINE, epsilon=1e9) == CRITERIA
    assert reason(c2=1.0, delta=1e-2) == "L-BFGS resulted in convergence"
    assert reason(algorithm="ap", max_iterations=2) == ""


def test_messages_tell_the_reason(addresses, capsys):
    X, y = addresses
    CRF(**LINE, verbose=True).fit(X, y)
    assert SETTLED in capsys.readouterr().out.splitlines()
    names = {"all_possible_transitions": "feature.possible_transitions"}
    params = {names.get(name, name): value for name, value in LINE.items()}
    found = []

    class Listener(BaseTrainer):
        def message(self, message):
            found.append(message)

    for kind in (Trainer, Listener):
        trainer = kind("lbfgs", params)
        for x, labels in zip(X, y, strict=True):
            trainer.append(x, labels)
        trainer.train("")
    assert SETTLED in capsys.readouterr().out.splitlines()
    assert found[found.index(f"{SETTLED}\n") + 1].startswith("Total seconds required for training")


def test_a_settled_start_is_the_mean_of_its_last_two_epochs(monkeypatch, addresses):
    found = []

    def noted(objective, *args, **options):
        for theta, *rest in dual_free_epochs(objective, *args, **options):
            found.append(objective.unpack(theta).transition.copy())
            yield theta, *rest

    monkeypatch.setattr("skstruct.learning.proximal.dual_free_epochs", noted)
    crf = CRF(**LINE).fit(*addresses)
    assert crf.training_log_.stop_reason == SETTLED
    assert_allclose(crf.estimator_.transition_, (found[-1] + found[-2]) / 2, rtol=1e-12)


def test_option_of_the_tagger(addresses):
    params = {"l1": 0.1, "l2": 0.2, "fit_intercept": False, "all_possible_transitions": True}
    early = CRFTagger(stop_when_settled=True, n_jobs=2, **params).fit(*addresses)
    dropped_in = CRF(**LINE).fit(*addresses)
    assert_array_equal(early.coef_, dropped_in.estimator_.coef_)
    plain = CRFTagger(n_jobs=2, **params).fit(*addresses)
    assert plain.history_["objective"][-1] < early.history_["objective"][-1]
    with pytest.raises(ValueError, match="stop_when_settled"):
        CRFTagger(solver="sgd", stop_when_settled=True).fit(*addresses)


# ------------------------------------------------------------------------------- passes are counted


@pytest.fixture
def passes(monkeypatch):
    """List that grows by the estimated objective of each pass of the dual ascent."""
    found = []

    def noted(objective, *args, **options):
        for theta, estimate, distance in dual_free_epochs(objective, *args, **options):
            found.append(estimate)
            yield theta, estimate, distance

    monkeypatch.setattr("skstruct.learning.proximal.dual_free_epochs", noted)
    return found


def test_the_log_counts_the_passes(addresses, passes, capsys):
    crf = CRF(**LINE, verbose=True).fit(*addresses)
    log = crf.training_log_
    assert log.stop_reason == SETTLED
    assert [entry["num"] for entry in log.iterations] == list(range(1, len(passes) + 1))
    assert [entry["loss"] for entry in log.iterations[:-1]] == passes[:-1]
    assert crf.estimator_.n_iter_ == len(passes)
    *lines, end, reason = capsys.readouterr().out.splitlines()
    counts = [int(line.split(" of ")[0].split()[-1]) for line in lines if " of " in line]
    assert counts == list(range(len(passes) + 1))
    assert {line.partition(" ")[0] for line in [*lines, end] if "ompil" not in line} == {"CRF:"}
    assert end.startswith(f"CRF: finished, {len(passes)} iterations in")
    assert reason == SETTLED


def test_passes_and_steps_are_numbered_together(addresses, passes):
    crf = CRF(**LINE, delta=1e-5).fit(*addresses)
    numbers = [entry["num"] for entry in crf.training_log_.iterations]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 4 < len(passes) < len(numbers) < 100
    # CRFsuite's names for the numbers of the steps, and none that is not known.
    known = ["error_norm" in entry for entry in crf.training_log_.iterations]
    assert not any(known[:3])
    assert all(known[len(passes) :])
    assert all(np.isfinite(entry["loss"]) for entry in crf.training_log_.iterations)


@pytest.mark.parametrize("most", [1, 3, 6])
def test_passes_count_towards_the_limit(addresses, passes, most):
    crf = CRF(**{**LINE, "max_iterations": most}).fit(*addresses)
    assert len(passes) == most
    assert crf.training_log_.stop_reason == LIMIT
    assert len(crf.training_log_.iterations) == most
    # The objective of the last one is no estimate.
    check_logged_objective(crf, *addresses)


def test_messages_name_the_class_that_was_called(addresses, caplog):
    X, y = addresses[0][:30], addresses[1][:30]
    caplog.set_level("INFO", "skstruct")

    class Mine(CRF):
        pass

    def names(act):
        caplog.clear()
        act()
        said = [record.getMessage() for record in caplog.records]
        return {text.partition(":")[0] for text in said if " in " in text and "finished" in text}

    for algorithm in ("lbfgs", "l2sgd", "ap"):
        crf = Mine(algorithm, max_iterations=2)
        assert names(lambda: crf.fit(X, y)) == {"Mine"}  # noqa: B023
        assert "_title" not in vars(crf.estimator_)
    trainer = Trainer("ap", {"max_iterations": 2}, verbose=False)
    for x, labels in zip(X, y, strict=True):
        trainer.append(x, labels)
    assert names(lambda: trainer.train("")) == {"Trainer"}


# ------------------------------------------------------ the user's own criterion on small sets


def small_set(scale):
    """Labelled sequences with a number of that scale among their features."""
    rng, X, y = np.random.RandomState(0), [], []
    for _ in range(120):
        labels = rng.choice(["O", "B-X", "I-X", "B-Y"], rng.randint(1, 12)).tolist()
        words = [
            f"{label}{rng.randint(8)}" if rng.rand() < 0.5 else f"n{rng.randint(30)}"
            for label in labels
        ]
        numbers = np.abs(rng.randn(len(labels))) * rng.choice([1, 1, scale], len(labels))
        X.append([{"w": w, "v": v} for w, v in zip(words, numbers.tolist(), strict=True)])
        y.append(labels)
    return X, y


@pytest.mark.parametrize("scale", [1, 50])
@pytest.mark.parametrize("penalties", [{"c2": 0.1}, {"c2": 1.0}, {"c1": 1.0, "c2": 0.01}])
@pytest.mark.parametrize(
    "rule", [{"period": p, "delta": d} for p in (1, 3, 10) for d in (1e-3, 0.01, 0.05, 0.3)]
)
def test_first_steps_are_not_taken_for_the_end(scale, penalties, rule):
    X, y = small_set(scale)
    params = {**penalties, **rule}
    loss = CRF(**params).fit(X, y).training_log_.last_iteration["loss"]
    assert loss < 1.03 * objective_of_crfsuite(X, y, params)
