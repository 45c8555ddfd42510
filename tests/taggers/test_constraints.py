"""Hard constraints: decoding and learning against the list of the labellings that are possible."""

import io
import pickle
import re
import warnings
from itertools import islice, product

import naive
import numpy as np
import pytest
from helpers.constraints import (
    LETTERS,
    allows,
    possible_labellings,
    random_possible,
    random_sequences,
    scheme_data,
    with_weights,
)
from helpers.marks import compiled
from helpers.objectives import crf_objective, training_set
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from strategies import score_arrays

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceBatch,
)
from skstruct.chain.beam import beam_nbest, forbid_dead_ends
from skstruct.chain.dense import Dense
from skstruct.chain.search import SEARCHES, search_nbest
from skstruct.datasets import convert_labels
from skstruct.decoding import make_search
from skstruct.input.constraints import check_labelling, read_constraint
from skstruct.learning.ascent import draw_order
from skstruct.learning.start import dual_free_epochs
from skstruct.metrics import extract_chunks
from skstruct.utils.parallel import range_runner

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

ONLINE = {
    "perceptron": PerceptronTagger(max_iter=3, tol=None, random_state=0),
    "mira": MIRATagger(n_best=3, max_iter=3, tol=None, random_state=0),
    "arow": AROWTagger(max_iter=3, tol=None, random_state=0),
    "sapo": SAPOTagger(max_iter=3, tol=None, random_state=0),
    "sapo-beam": SAPOTagger(
        search="beam", beam_width=1, n_best=1, max_iter=3, tol=None, random_state=0
    ),
    "sgd": CRFTagger(solver="sgd", max_iter=3, tol=None, random_state=0),
}
TAGGERS = {
    **ONLINE,
    "lbfgs": CRFTagger(all_possible_transitions=True),
    "l1": CRFTagger(l1=0.1),
    "sag": CRFTagger(solver="sag", random_state=0),
    "sdca": SDCACRF(random_state=0),
}
every_tagger = pytest.mark.parametrize("name", TAGGERS)
every_online_tagger = pytest.mark.parametrize("name", ONLINE)
WEIGHTS = ("coef_", "transition_", "intercept_", "start_", "end_")


def fit(tagger, X, y, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return clone(tagger).set_params(**params).fit(X, y)


# -------------------------------------------------------------------------------------- the schemes


@pytest.mark.parametrize("scheme", LETTERS)
@pytest.mark.parametrize("kinds", ["XY", [""]])
def test_possible_is_what_the_strict_reading_leaves_nothing_out_of(scheme, kinds):
    """Every token but O belongs to a valid chunk."""
    names = [letter + ("-" + kind if kind else "") for kind in kinds for letter in LETTERS[scheme]]
    classes = np.array(sorted(["O", *names]))
    possible = read_constraint(scheme, classes)
    for length in (1, 2, 3):
        for labels in naive.labellings(length, len(classes)):
            chunks = extract_chunks(classes[list(labels)].tolist(), scheme=scheme)
            covered = sum(stop - start for start, stop, _ in chunks)
            valid = covered == sum(classes[j] != "O" for j in labels)
            assert allows(possible, labels) == valid


def test_runs_allow_everything():
    assert read_constraint("runs", np.array(["author", "title"])) is None


@pytest.mark.parametrize("bad", ["X-NP", "BI-NP", "NP", "", "O-NP", "E-NP", 3])
def test_labels_that_do_not_fit_the_scheme_are_named(bad):
    classes = np.array(["B-NP", "O", bad], dtype=object)
    with pytest.raises(ValueError, match=rf"Class {bad!r} does not fit constraint='IOB2'"):
        read_constraint("IOB2", classes)


@pytest.mark.parametrize(
    "bad", [np.ones((2, 2), bool), np.ones((3, 3)), np.ones(3, bool), [[True] * 3] * 2]
)
def test_arrays_must_be_square_and_boolean(bad):
    with pytest.raises(ValueError, match=r"must be a boolean array of shape \(3, 3\)"):
        CRFTagger(constraint=bad).fit(np.eye(3), [0, 1, 2])


@every_tagger
@pytest.mark.parametrize("bad", ["IOB", 3, "iob2"])
def test_other_schemes_are_refused(name, bad):
    with pytest.raises(ValueError, match="The 'constraint' parameter of"):
        clone(TAGGERS[name]).set_params(constraint=bad).fit(np.eye(3), [0, 1, 2])


@pytest.mark.parametrize(
    ("scheme", "classes", "says"),
    [
        ("IOB2", ["B-A", "E-A", "O", "S-A"], "2 of 4 classes do not fit: 'E-A'; 'S-A'. All are "),
        (
            "IOB2",
            ["B-A", "E-A", "O", "S-A"],
            "labels of constraint='IOBES': pass it, or leave out con",
        ),
        ("IOBES", ["L-A", "U-A"], "2 of 2 classes do not fit: 'L-A'; 'U-A'. All are labels of con"),
        ("IOBES", ["L-A", "U-A"], "constraint='BILOU'"),
        (
            "IOB1",
            list("acdefgh"),
            "7 of 7 classes do not fit: 'a'; 'c'; 'd'; 'e'; 'f' and 2 more. ",
        ),
        (
            "IOB1",
            ["X-A", "O"],
            "1 of 2 classes do not fit: 'X-A'. Correct them, or leave out const",
        ),
    ],
)
def test_all_classes_that_do_not_fit_the_scheme(scheme, classes, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        read_constraint(scheme, np.array(classes))


# ----------------------------------------------------------------------------------------- training


def faults(labels, scheme):
    """Tokens of a sequence that are part of no valid chunk because they begin or end it wrongly."""
    pairs, found = {"IOB1": "BI", "IOB2": "BI"}.get(scheme, "BIES"), []
    for t, label in enumerate(labels):
        before = labels[t - 1] if t else "O"
        follows = before[2:] == label[2:] and before[0] in "BI"
        goes_on = label[0] in ("B" if scheme == "IOB1" else "IE" if "E" in pairs else "I")
        unfinished = t > 0 and before[0] in "BI" and "E" in pairs and label[0] not in "IE"
        is_last = t == len(labels) - 1 and "E" in pairs and label[0] in "BI"
        if (goes_on and not follows) or unfinished or is_last:
            found.append(t)
    return found


def is_valid(labels, scheme):
    """Whether every token but O is in a chunk of the strict reading."""
    chunks = extract_chunks(labels, scheme=scheme)
    return sum(b - a for a, b, _ in chunks) == sum(label != "O" for label in labels)


@pytest.mark.parametrize(("scheme", "letters"), [("IOB1", "BI"), ("IOB2", "BI"), ("IOBES", "BIES")])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_all_violations_are_counted(scheme, letters, data):
    labels = st.sampled_from(["O", *(f"{x}-{kind}" for x in letters for kind in "pq")])
    y = data.draw(st.lists(st.lists(labels, max_size=6), min_size=1, max_size=12))
    classes = np.unique(["O", *(label for row in y for label in row)])
    codes = np.searchsorted(classes, [label for row in y for label in row])
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in y])])
    wrong = [(i, t) for i, row in enumerate(y) for t in faults(row, scheme)]
    possible = read_constraint(scheme, classes)
    if not wrong:
        check_labelling(codes, offsets, classes, possible)
        return
    n_sequences = len({i for i, _ in wrong})
    places = "; ".join(f"sequence {i}, token {t}" for i, t in wrong[:5])
    more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
    says = (
        f"Labels that break it: {len(wrong)} of {len(codes)}, in {n_sequences} of {len(y)} "
        f"sequences: {places}{more}. "
    )
    with pytest.raises(ValueError, match=re.escape(says)) as raised:
        check_labelling(codes, offsets, classes, possible)
    message = str(raised.value)
    assert message.startswith("Sequence {}, token {}: ".format(*wrong[0]))
    found = set("".join(label[0] for label in classes)) - {"O"}
    fitting = [
        other
        for other in ("IOB1", "IOB2", "IOE1", "IOE2", "IOBES")
        if found <= set(LETTERS[other]) and all(is_valid(row, other) for row in y)
    ]
    if fitting:
        assert f"All labels fit constraint={fitting[0]!r}: pass it" in message
    else:
        assert "No scheme fits all labels: " in message
        assert "convert_labels" in message
    assert message.endswith("or leave out constraint.")


def test_what_the_message_advises():
    X = [np.ones((3, 1))] * 3
    y = [["O", "I-p", "I-p"], ["I-q", "O", "O"], ["O", "O", "O"]]
    with pytest.raises(ValueError, match="All labels fit constraint='IOB1'"):
        CRFTagger(constraint="IOB2").fit(X, y)
    CRFTagger(constraint="IOB1").fit(X, y)
    y[2] = ["B-q", "I-q", "O"]
    with pytest.raises(
        ValueError, match=r"2 of 9, in 2 of 3 .*convert_labels with repair='conlleval'"
    ):
        CRFTagger(constraint="IOB2").fit(X, y)
    advised = {"source": "IOB2", "target": "IOB2", "repair": "conlleval"}
    converted = convert_labels(y, **advised).labels
    assert converted == [["O", "B-p", "I-p"], ["B-q", "O", "O"], ["B-q", "I-q", "O"]]
    CRFTagger(constraint="IOB2").fit(X, converted)
    with pytest.raises(
        ValueError, match="Correct the labels, change the array, or leave out const"
    ):
        CRFTagger(constraint=np.eye(4, dtype=bool)).fit(X, y)
    tagger = CRFTagger(constraint="IOB2").fit(X, converted)
    with pytest.raises(ValueError, match=r"1 of 2, in 1 of 3 .* pass None in their place"):
        tagger.predict(X, known=[[None] * 3, ["O", "I-q", None], [None] * 3])


@every_tagger
@pytest.mark.parametrize(
    ("scheme", "labels", "message"),
    [
        ("IOB2", ["O", "I-X"], "Sequence 1, token 1: 'I-X' may not follow 'O' under constraint="),
        ("IOB2", ["B-Y", "I-X"], "Sequence 1, token 1: 'I-X' may not follow 'B-Y' under"),
        ("IOB2", ["I-X"], "Sequence 1, token 0: 'I-X' may not come first under constraint='IOB2'."),
        ("IOBES", ["O", "B-X"], "Sequence 1, token 1: 'B-X' may not come last under"),
        ([[True, False], [True, True]], ["A", "B"], "'B' may not follow 'A' under the constraint."),
    ],
)
def test_wrong_training_labels_are_named(name, scheme, labels, message):
    y = [["O"], labels, ["O"]] if isinstance(scheme, str) else [["A"], labels]
    if scheme == "IOBES":
        y[0] = ["S-X", "O"]
    elif isinstance(scheme, str):
        y[0] = ["B-X", "B-Y", "I-Y"]
    X = [np.ones((len(sequence), 2)) for sequence in y]
    tagger = clone(TAGGERS[name]).set_params(constraint=scheme)
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        tagger.fit(X, y)
    assert not hasattr(tagger, "coef_")


@every_tagger
@pytest.mark.parametrize("scheme", ["IOB2", "IOBES"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_nothing_impossible_is_ever_predicted(name, scheme, fit_intercept):
    X, y, classes, possible = scheme_data(scheme)
    params = {"fit_intercept": fit_intercept}
    plain = fit(TAGGERS[name], X, y, **params)
    tagger = fit(TAGGERS[name], X, y, constraint=scheme, **params)
    rng = np.random.default_rng(1)
    test = [3 * rng.normal(size=(n, 3)) for n in (1, 2, 3, 5) * 15]

    def n_wrong(tagger):
        coded = [np.searchsorted(classes, labels) for labels in tagger.predict(test)]
        return sum(not allows(possible, labels) for labels in coded)

    assert n_wrong(tagger) == 0 < n_wrong(plain)
    assert_array_equal(tagger.transition_ > -np.inf, possible.transition)
    assert_array_equal(tagger.start_ > -np.inf, possible.start)
    assert_array_equal(tagger.end_ > -np.inf, possible.end)
    assert np.isfinite(tagger.coef_).all()
    assert np.isfinite(tagger.intercept_).all()
    for part in tagger.history_.values():
        assert not np.isnan(part[-1])
    if not fit_intercept:
        assert_array_equal(tagger.start_[possible.start], 0)


@every_tagger
def test_what_forbids_nothing_changes_nothing(name):
    X, y, classes, _ = scheme_data()
    k = len(classes)
    plain = fit(TAGGERS[name], X, y)
    same = fit(TAGGERS[name], X, y, constraint=np.ones((k, k), bool))
    # SDCA begins in another way, if at the same point.
    for attribute in WEIGHTS:
        ours, theirs = getattr(same, attribute), getattr(plain, attribute)
        if name == "sdca":
            assert_allclose(ours, theirs, atol=1e-4)
        else:
            assert_array_equal(ours, theirs)


def log_partitions(X, weights, possible):
    """Logarithms of the sums over the possible labellings, one by one."""
    found = []
    for x in X:
        scores = naive.emission_scores(x, weights)
        paths = possible_labellings(possible, len(x))
        found.append(
            np.logaddexp.reduce([naive.path_score(scores, weights.transition, p) for p in paths])
        )
    return np.array(found)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_objective_and_gradient_are_those_of_the_possible_labellings(seed, intercept, all_pairs):
    rng = np.random.default_rng(seed)
    k, lengths = rng.integers(1, 5), rng.integers(1, 5, 4)
    possible = random_possible(rng, k)
    X, y = random_sequences(rng, possible, lengths, 2)
    data = training_set(X, y, rng.choice([0.5, 1.0, 2.0], 4))
    objective = crf_objective(
        data,
        2,
        k,
        l2=0.5,
        fit_intercept=intercept,
        all_possible_states=True,
        all_possible_transitions=all_pairs,
        possible=possible,
    )
    gradient = np.empty(objective.size)

    def value(theta, out):
        with range_runner(objective.offsets, 2) as run:
            return objective.value_and_gradient(theta, out, run)

    theta = rng.normal(size=objective.size)
    theta = objective.pack(objective.unpack(theta))
    assert np.isfinite(theta).all()
    found = value(theta, gradient)
    chain = objective.unpack(theta)
    weights = naive.Weights(chain.weights.T, *chain[1:])
    assert_array_equal(weights.transition == -np.inf, ~possible.transition)
    gold = [
        naive.path_score(naive.emission_scores(x, weights), weights.transition, labels)
        for x, labels in zip(X, y, strict=True)
    ]
    expected = data.sample_weight @ (log_partitions(X, weights, possible) - gold)
    assert_allclose(found, expected + 0.25 * theta @ theta, rtol=1e-12, atol=1e-12)
    spare, step = np.empty(objective.size), 1e-6
    moved = np.zeros(objective.size, bool)
    for i in np.flatnonzero(theta):
        up, down = theta.copy(), theta.copy()
        up[i] += step
        down[i] -= step
        slope = (value(up, spare) - value(down, spare)) / (2 * step)
        assert_allclose(gradient[i], slope, rtol=1e-5, atol=1e-6)
        moved[i] = True
    assert_array_equal(gradient[~moved], 0)
    assert objective.n_weights == moved.sum()


def test_dual_free_epochs_are_those_of_the_plain_twin():
    X, y, classes, possible = scheme_data(n_sequences=6)
    y = [np.searchsorted(classes, labels).tolist() for labels in y]
    data = training_set(X, y)
    objective = crf_objective(
        data, 3, 5, l2=1.0, all_possible_states=True, all_possible_transitions=True,
        possible=possible,
    )  # fmt: skip
    start = naive.zero_weights(5, 3)
    start.transition[~possible.transition] = -np.inf
    start.start[~possible.start] = -np.inf
    twin = naive.DualFree(X, y, np.ones(len(X)), start)
    memory, random_state = objective.new_memory(), np.random.RandomState(0)
    order = random_state.permutation(len(X))
    for theta, *_ in islice(dual_free_epochs(objective, memory), 4):
        assert np.isfinite(theta).all()
        twin.epoch(order)
        order = draw_order(memory.divergence, random_state)
    chain = objective.unpack(theta)
    for found, wanted in zip((chain.weights.T, *chain[1:]), twin.weights, strict=True):
        assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_many_sequences_have_a_stochastic_start(n_jobs):
    X, y, *_ = scheme_data(n_sequences=600)
    tagger = CRFTagger(constraint="IOB2", tol=1e-7, n_jobs=n_jobs).fit(X, y)
    other = SDCACRF(constraint="IOB2", tol=1e-7, random_state=0).fit(X, y)
    # Here all combinations occur that are possible.
    assert_allclose(tagger.history_["objective"][-1], other.history_["objective"][-1], rtol=2e-7)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("scheme", ["IOB2", "IOBES", None])
def test_all_optimisers_find_one_optimum(fit_intercept, scheme):
    X, y, classes, possible = scheme_data(scheme or "IOB2")
    constraint = scheme
    if scheme is None:
        constraint = possible.transition
        possible = possible._replace(start=np.ones(len(classes), bool))
    params = {"constraint": constraint, "fit_intercept": fit_intercept, "tol": 1e-8}
    every = {"all_possible_states": True, "all_possible_transitions": True}
    lbfgs = CRFTagger(**params, **every).fit(X, y)
    sdca = SDCACRF(**params, random_state=0).fit(X, y)
    sag = CRFTagger(solver="sag", **params, random_state=0).fit(X, y)
    descent = fit(
        CRFTagger(solver="sgd", random_state=0, decay=0.99), X, y, **params | {"tol": None}
    )
    coded = [np.searchsorted(classes, labels) for labels in y]

    def objective(tagger):
        """By the list of all labellings."""
        weights = naive.weights_of(tagger)
        gold = [
            naive.path_score(naive.emission_scores(x, weights), weights.transition, labels)
            for x, labels in zip(X, coded, strict=True)
        ]
        penalty = sum(np.square(part[part > -np.inf]).sum() for part in weights)
        return np.sum(log_partitions(X, weights, possible) - gold) + penalty / 2

    value = objective(sdca)
    assert_allclose(sdca.history_["objective"][-1], value, rtol=1e-12)
    assert_allclose(lbfgs.history_["objective"][-1], objective(lbfgs), rtol=1e-12)
    # The certificate holds: nothing is below the dual value.
    dual = sdca.history_["dual"][-1]
    assert value - dual <= sdca.duality_gap_ * (1 + 1e-9) + 1e-12
    assert objective(lbfgs) >= dual - 1e-9
    assert_allclose(objective(lbfgs), value, rtol=1e-7)
    assert_allclose(objective(sag), value, rtol=1e-7)
    assert objective(sag) >= dual - 1e-9
    assert value <= objective(descent) <= value * 1.01
    for attribute in WEIGHTS:
        assert_allclose(getattr(lbfgs, attribute), getattr(sdca, attribute), atol=1e-2)


def test_on_sequences_of_length_one_only_the_ends_count():
    """Labels that may not come first or last might as well not be there."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(2, size=40)
    y_scheme = np.array(["O", "S-X"])[y]
    known = [["B-X", "E-X"]]
    X_all = [*X[:, None], np.zeros((2, 3))]
    tagger = CRFTagger(constraint="IOBES", tol=1e-9, all_possible_states=True)
    tagger.fit(X_all, [*([label] for label in y_scheme), *known])
    proba = tagger.predict_proba(list(X[:, None]))
    plain = CRFTagger(tol=1e-9, all_possible_states=True).fit(X, y)
    impossible = [list(tagger.classes_).index(label) for label in ("B-X", "E-X")]
    assert all((p[:, impossible] == 0).all() for p in proba)
    kept = np.concatenate([p[:, [j for j in range(4) if j not in impossible]] for p in proba])
    # The sequence of two tokens without features pulls at the biases alone.
    assert_allclose(kept, plain.predict_proba(X), atol=0.02)


# ------------------------------------------------------------------------------------------- online


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 6),
    st.booleans(),
    st.booleans(),
    st.sampled_from([*SEARCHES, "sgd"]),
)
def test_every_step_is_the_twins(seed, n_best, average, intercept, search):
    rng = np.random.default_rng(seed)
    k = rng.integers(1, 4)
    possible = random_possible(rng, k, ends=False)
    lengths = rng.integers(1, 5, 4)
    X, y = random_sequences(rng, possible, lengths)
    # Where all labels tie rounding must not decide.
    X = [np.round(2 * x) for x in X]
    assume(len(set(np.concatenate(y))) == k)
    params = {"l2": 0.5, "learning_rate": 0.25, "decay": 0.8, "average": average}
    params |= {"fit_intercept": intercept, "shuffle": False, "max_iter": 3, "tol": None}
    params["constraint"] = possible.transition
    if search == "sgd":
        n_best, tagger = 4**5, CRFTagger(solver="sgd", **params)
    else:
        # A beam that wide is exact.
        tagger = SAPOTagger(n_best=n_best, search=search, beam_width=4**5, **params)
    tagger = fit(tagger, X, y)
    start = naive.zero_weights(k, 3)
    start.transition[~possible.transition] = -np.inf
    last, mean, loss = naive.sapo(
        X, y, np.ones(4), [range(4)] * 3, weights=start, n_found=n_best,
        l2=0.5, rate=0.25, decay=0.8, intercept=intercept,
    )  # fmt: skip
    for found, expected in zip(naive.weights_of(tagger), mean if average else last, strict=True):
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert_allclose(tagger.history_["loss"][-1], loss, rtol=1e-9, atol=1e-9)


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_perceptron_is_the_twins(seed, average):
    rng = np.random.default_rng(seed)
    k = rng.integers(2, 4)
    possible = random_possible(rng, k, ends=False)
    X, y = random_sequences(rng, possible, rng.integers(1, 5, 5))
    # Whole numbers, so that ties are ties.
    X = [np.round(2 * x) for x in X]
    assume(len(set(np.concatenate(y))) == k)
    params = {"shuffle": False, "max_iter": 3, "tol": None, "average": average}
    tagger = fit(PerceptronTagger(**params), X, y, constraint=possible.transition)
    start = naive.zero_weights(k, 3)
    start.transition[~possible.transition] = -np.inf
    twin = naive.Perceptron(k, 3, weights=start)
    for n in range(tagger.n_iter_):
        mistakes, _ = twin.epoch(X, y, range(len(X)))
        assert tagger.history_["mistakes"][n] == mistakes / sum(map(len, X))
    expected = twin.average() if average else twin.weights
    for found, wanted in zip(naive.weights_of(tagger), expected, strict=True):
        assert_allclose(found, wanted, atol=1e-12)


@pytest.mark.parametrize("scheme", ["IOB2", "IOBES"])
@pytest.mark.parametrize("mini_length", [1, 2, 100])
def test_pieces_are_constrained_at_the_ends_of_sequences_only(scheme, mini_length):
    """Weights that hardly move: the loss counts the labellings that are possible."""
    X, y, _, possible = scheme_data(scheme)
    X, y = [x for x in X if len(x) != 3], [labels for labels in y if len(labels) != 3]
    data = [(x, labels) for x, labels in zip(X, y, strict=True) if len(x) in (1, 2, 4)]
    full = [*data, *((x, s) for x, s in zip(*scheme_data(scheme)[:2], strict=True) if len(s) == 3)]
    X, y = zip(*full, strict=True)
    tagger = CRFTagger(
        solver="sgd", constraint=scheme, mini_length=mini_length, learning_rate=1e-12, l2=0,
        max_iter=1, tol=None, shuffle=False, random_state=3,
    ).fit(list(X), list(y))  # fmt: skip
    from skstruct.learning.online import cut_sequences

    offsets = np.concatenate([[0], np.cumsum([len(x) for x in X])])
    pieces, _ = cut_sequences(offsets, np.random.RandomState(3), mini_length=mini_length)
    anything = np.ones(len(possible.start), bool)
    expected = 0.0
    for first, last, is_first, is_last in pieces:
        bounded = possible._replace(
            start=possible.start if is_first else anything,
            end=possible.end if is_last else anything,
        )
        expected += np.log(len(possible_labellings(bounded, last - first)))
    assert_allclose(tagger.history_["loss"][0], expected, rtol=1e-9)


@every_online_tagger
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("early_stopping", [False, True])
def test_shards_pieces_and_early_stopping(name, average, early_stopping):
    X, y, _, possible = scheme_data()
    params = {} if name == "arow" else {"average": average}
    tagger = fit(
        TAGGERS[name], X, y, constraint="IOB2", n_jobs=3, structure_alpha=2,
        early_stopping=early_stopping, random_state=0, **params,
    )  # fmt: skip
    assert_array_equal(tagger.transition_ > -np.inf, possible.transition)
    assert_array_equal(tagger.start_ > -np.inf, possible.start)
    assert np.isfinite(tagger.coef_).all()
    assert np.isfinite(tagger.history_["loss"]).all()
    again = fit(
        TAGGERS[name], X, y, constraint="IOB2", n_jobs=3, structure_alpha=2,
        early_stopping=early_stopping, random_state=0, **params,
    )  # fmt: skip
    for attribute in WEIGHTS:
        assert_array_equal(getattr(again, attribute), getattr(tagger, attribute))


@every_online_tagger
def test_partial_fit_is_constrained_from_call_to_call(name):
    X, y, classes, possible = scheme_data()
    params = {"constraint": "IOB2", "shuffle": False, "max_iter": 2}
    whole = fit(TAGGERS[name], X, y, **params)
    tagger = clone(TAGGERS[name]).set_params(**params)
    tagger.partial_fit(X, y, classes=classes)
    tagger = pickle.loads(pickle.dumps(tagger))
    tagger.partial_fit(X, y)
    for attribute in WEIGHTS:
        assert_allclose(getattr(tagger, attribute), getattr(whole, attribute), atol=1e-12)
    tagger.set_params(constraint=None).partial_fit(X, y)
    assert np.isfinite(tagger.transition_).all()
    tagger.set_params(constraint="IOB2").partial_fit(X, y)
    assert_array_equal(tagger.transition_ > -np.inf, possible.transition)
    with pytest.raises(ValueError, match="Sequence 0, token 0: 'I-X' may not come first"):
        tagger.partial_fit([np.ones((1, 3))], [["I-X"]])


@every_tagger
def test_warm_start_with_another_constraint(name):
    X, y, _, possible = scheme_data()
    tagger = fit(TAGGERS[name], X, y, warm_start=True)
    tagger = fit_again(tagger.set_params(constraint="IOB2"), X, y)
    assert_array_equal(tagger.transition_ > -np.inf, possible.transition)
    tagger = fit_again(tagger.set_params(constraint=None), X, y)
    assert np.isfinite(tagger.transition_).all()
    assert np.isfinite(tagger.start_).all()
    if name in ("lbfgs", "sag", "sdca"):
        cold = fit(TAGGERS[name], X, y)
        expected = cold.history_["objective"][-1]
        assert_allclose(tagger.history_["objective"][-1], expected, rtol=2e-4)


def fit_again(tagger, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return tagger.fit(X, y)


# ----------------------------------------------------------------------------------------- decoding


@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from(list(SEARCHES)))
def test_decoding_knows_the_possible_labellings_only(seed, n_best, search):
    rng = np.random.default_rng(seed)
    possible = random_possible(rng, rng.integers(1, 5))
    tagger, weights = with_weights(rng, possible)
    X = [rng.normal(size=(n, 2)) for n in (1, 2, 5)]
    nbest = tagger.predict_nbest(X, n_best, search=search, beam_width=4**5)
    for x, labels, proba, best in zip(
        X, tagger.predict(X), tagger.predict_proba(X), nbest, strict=True
    ):
        scores = naive.emission_scores(x, weights)
        paths = possible_labellings(possible, len(x))
        path_scores = [naive.path_score(scores, weights.transition, path) for path in paths]
        order = np.argsort(path_scores)[::-1]
        assert tuple(labels) == paths[order[0]]
        assert [tuple(found.labels) for found in best] == [paths[i] for i in order[:n_best]]
        p = np.exp(path_scores - np.logaddexp.reduce(path_scores))
        assert_allclose([found.probability for found in best], p[order[:n_best]], atol=1e-12)
        expected = np.zeros_like(proba)
        for path, weight in zip(paths, p, strict=True):
            expected[np.arange(len(x)), list(path)] += weight
        assert_allclose(proba, expected, atol=1e-12)
        assert_array_equal(proba[expected == 0], 0)


@given(
    score_arrays(min_length=1, kinds=("ties", "moderate"), forbid_labels=True), st.integers(1, 4)
)
def test_a_beam_that_comes_to_a_dead_end_turns_back(case, width):
    scores, transition = case
    length = len(scores)
    labels, path_scores = np.full((1, length), -1, np.int32), np.full(1, np.nan)
    search = make_search(1, "beam", width, count_misses=True)
    edges = Dense(transition)
    assert search_nbest(search, scores.copy(), length, edges, labels, path_scores) == 1
    found = naive.path_score(scores, transition, labels[0])
    assert found > -np.inf
    assert_allclose(path_scores[0], found, rtol=1e-12, atol=1e-12)
    # What is cut away has no possible continuation, and the rest has one.
    cut = scores.copy()
    forbid_dead_ends(cut, length, edges)
    best = naive.n_best(scores, transition, 4**5)
    alive = np.zeros(scores.shape, bool)
    for t, j in product(range(length), range(scores.shape[1])):
        rest = scores[t:].copy()
        rest[0] = np.where(np.arange(len(rest[0])) == j, rest[0], -np.inf)
        alive[t, j] = len(naive.n_best(rest, transition, 1)) > 0
    assert_array_equal(cut > -np.inf, alive)
    assert naive.n_best(cut, transition, 4**5) == best


def test_a_narrow_beam_alone_would_find_nothing():
    """The only labelling that can end begins worst."""
    scores = np.array([[5.0, 0.0], [5.0, 0.0]])
    scores[1, 0] = -np.inf
    transition = np.array([[0.0, -np.inf], [0.0, 0.0]])
    labels, path_scores = np.zeros((1, 2), np.int32), np.zeros(1)
    edges = Dense(transition)
    beam_nbest(scores, 2, edges, 1, 1, labels, path_scores)
    assert path_scores[0] == -np.inf
    search_nbest(make_search(1, "beam", 1), scores, 2, edges, labels, path_scores)
    assert labels.tolist() == [[1, 1]]
    assert path_scores[0] == 0.0


@pytest.mark.parametrize("name", ["perceptron", "lbfgs", *map(compiled, ("sapo", "mira", "sgd"))])
def test_with_features_of_transitions(name):
    X, y, classes, possible = scheme_data()
    rng = np.random.default_rng(5)
    lengths = [len(x) for x in X]
    edges = rng.normal(size=(sum(lengths), 2))
    batch = SequenceBatch.from_lengths(np.concatenate(X), lengths, transition_X=edges)
    tagger = fit(TAGGERS[name], batch, y, constraint="IOB2")
    assert_array_equal(tagger.transition_ > -np.inf, possible.transition)
    assert_array_equal(tagger.transition_coef_[~possible.transition], 0)
    assert np.isfinite(tagger.transition_coef_).all()
    for labels, proba in zip(tagger.predict(batch), tagger.predict_proba(batch), strict=True):
        assert allows(possible, np.searchsorted(classes, labels))
        assert_allclose(proba.sum(axis=1), 1)
        assert_array_equal(proba[0, ~possible.start], 0)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_nbest"])
def test_sequences_without_a_possible_labelling_are_named(method):
    """A may be followed by B, and B by nothing."""
    X, y = [np.ones((2, 1)), np.ones((1, 1))], [["A", "B"], ["A"]]
    tagger = CRFTagger(constraint=[[False, True], [False, False]]).fit(X, y)
    assert len(getattr(tagger, method)(X)) == 2
    with pytest.raises(ValueError, match=r"Sequence 1 has no possible labelling under the constr"):
        getattr(tagger, method)([X[0], np.ones((3, 1)), X[1]])
    assert tagger.predict([np.ones((0, 1)), X[0]]).tolist() == [[], ["A", "B"]]


# ------------------------------------------------------------------------------------ round about


@pytest.mark.parametrize("solver", ["oeg", "crfsuite"])
def test_solvers_that_know_no_constraint_say_so(solver):
    X, y, *_ = scheme_data()
    with pytest.raises(ValueError, match=f"constraint='IOB2' needs solver=.* not '{solver}'"):
        CRFTagger(solver=solver, constraint="IOB2").fit(X, y)


@every_tagger
def test_a_model_survives_being_stored(name):
    sio = pytest.importorskip("skops.io")
    X, y, *_ = scheme_data()
    tagger = fit(TAGGERS[name], X, y, constraint="IOB2")
    stored = io.BytesIO()
    sio.dump(tagger, stored)
    stored.seek(0)
    unknown = sio.get_untrusted_types(file=stored)
    stored.seek(0)
    same = sio.load(stored, trusted=unknown)
    assert all(kind.startswith("skstruct.") for kind in unknown)
    assert same.predict(X).tolist() == tagger.predict(X).tolist()
    assert_array_equal(same.transition_, tagger.transition_)


@pytest.mark.parametrize("name", WEIGHTS)
@pytest.mark.parametrize("bad", [-np.inf, np.inf])
def test_only_what_may_be_forbidden_may_be_infinite(name, bad):
    X, y, *_ = scheme_data()
    tagger = CRFTagger(constraint="IOB2").fit(X, y)
    getattr(tagger, name)[0] = bad
    data = pickle.dumps(tagger)
    if bad < 0 and name in ("transition_", "start_", "end_"):
        assert_array_equal(getattr(pickle.loads(data), name)[0], bad)
    else:
        with pytest.raises(ValueError, match=f"damaged: a number of {name} is infinite"):
            pickle.loads(data)


def test_grid_search_over_constraints():
    X, y, _, possible = scheme_data(n_sequences=60)
    choices = [None, "IOB2", possible.transition]
    search = GridSearchCV(CRFTagger(), {"constraint": choices}, cv=2, error_score="raise")
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@every_online_tagger
@pytest.mark.usefixtures("values_without_limit")
def test_a_learner_that_diverges_says_so(name):
    X, y, *_ = scheme_data()
    X = [1e200 * x for x in X]
    tagger = clone(TAGGERS[name]).set_params(constraint="IOB2")
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="infinite or NaN in epoch"):
        tagger.fit(X, y)
    assert not hasattr(tagger, "coef_")
