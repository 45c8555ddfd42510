"""Learning from streams: the same bits as a loop by hand, whatever ends or interrupts it."""

import copy
import io
import os
import tracemalloc
import zipfile
from functools import partial
from itertools import chain

import numpy as np
import pytest
import skops.io
from helpers.seeds import global_seed
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone

from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    EmbeddingVectorizer,
    HashingTemplateVectorizer,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceUnion,
    TemplateVectorizer,
)
from skstruct.inspection import TrainingCurveDisplay
from skstruct.metrics import chunk_f1_score, chunk_f1_scorer
from skstruct.streams import fit_stream, iter_batches
from skstruct.taggers.prediction import LEARNT
from skstruct.utils import memory

# What a stream keeps of a learner on its way: sums of weights, variances, a scale.
LEARNERS = [PerceptronTagger(), AROWTagger(), CRFTagger(solver="sgd", l2=0.1)]
OTHERS = [PerceptronTagger(average=False), MIRATagger(), SAPOTagger(l2=0.1)]
SLOW = [pytest.param(learner, marks=pytest.mark.slow) for learner in OTHERS]
CLASSES = ["B-X", "I-X", "O"]
VECTORIZER = HashingTemplateVectorizer(["U0:%x[0,0]", "U1:%x[-1,0]"], n_features=64)


@pytest.fixture(params=[*LEARNERS, *SLOW], ids=lambda learner: repr(learner).replace(" ", ""))
def learner(request):
    return clone(request.param).set_params(random_state=0)


def sentences(n, seed=0):
    """Words, and labels that depend on them in part."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        words = rng.integers(9, size=rng.integers(1, 6))
        labels = ["O" if w < 5 or rng.random() < 0.2 else "B-X" for w in words]
        found.append(([f"w{w}" for w in words], labels))
    return found


TRAIN, (X_VAL, Y_VAL) = sentences(95), zip(*sentences(40, seed=1), strict=True)
X_VAL, Y_VAL = list(X_VAL), list(Y_VAL)
N_BATCHES = 10  # of an epoch


def batches(epoch):
    return iter_batches(TRAIN, 10, block_size=40, random_state=epoch)


def learnt(tagger):
    return [np.array(getattr(tagger, name)) for name in LEARNT if hasattr(tagger, name)]


def assert_same(tagger, other):
    found, expected = learnt(tagger), learnt(other)
    assert len(found) == len(expected) >= 5
    for a, b in zip(found, expected, strict=True):
        assert_array_equal(a, b)
    # And whatever it learns next.
    X, y = next(batches(99))
    a, b = (copy.deepcopy(t).partial_fit(VECTORIZER.transform(X), y) for t in (tagger, other))
    assert_array_equal(a.coef_, b.coef_)
    assert tagger.n_iter_ == other.n_iter_


def by_hand(tagger, n_epochs, round_size=N_BATCHES, stop_at=None):
    """A copy of the tagger after each round of a plain loop."""
    states, n = [], 0
    for epoch in range(1, n_epochs + 1):
        for number, (X, y) in enumerate(batches(epoch), 1):
            if stop_at == n:
                return [*states, tagger]
            tagger.partial_fit(VECTORIZER.transform(X), y, classes=CLASSES)
            n += 1
            if number % round_size == 0 or number == N_BATCHES:
                states.append(copy.deepcopy(tagger))
    return states


def fit(tagger, given=batches, **options):
    options = {"vectorizer": VECTORIZER, "classes": CLASSES, "n_epochs": 3, **options}
    return fit_stream(tagger, given, **options)


@pytest.mark.parametrize("round_size", [1, 4, None])
def test_the_same_as_a_loop_by_hand(learner, round_size):
    expected = by_hand(clone(learner), 3, round_size or N_BATCHES)
    options = {"round_size": round_size, "X_val": X_VAL, "y_val": Y_VAL}
    found = fit(learner, **options)
    assert found is learner
    assert_same(learner, expected[-1])
    history = learner.history_
    assert_array_equal(history["batches"], [tagger.n_iter_ for tagger in expected])
    score = [tagger.score(VECTORIZER.transform(X_VAL), Y_VAL) for tagger in expected]
    assert_array_equal(history["validation_score"], score)
    per_epoch = -(-N_BATCHES // min(round_size or N_BATCHES, N_BATCHES))
    assert history["epoch"].tolist() == sorted(per_epoch * [1, 2, 3])
    assert history["tokens"][-1] == 3 * sum(len(labels) for _, labels in TRAIN)
    assert np.all(np.diff(history["time"]) >= 0)


def test_the_history_sums_up_rounds():
    notes, tagger = [], PerceptronTagger(random_state=0)
    for X, y in batches(1):
        tagger.partial_fit(VECTORIZER.transform(X), y, classes=CLASSES)
        n_tokens = sum(map(len, y))
        notes.append((tagger.history_["mistakes"][0] * n_tokens, tagger.history_["loss"][0]))
    found = fit(PerceptronTagger(random_state=0), n_epochs=1).history_
    mistakes, loss = np.sum(notes, axis=0)
    assert round(found["mistakes"][0] * found["tokens"][0]) == round(mistakes)
    assert found["loss"][0] == pytest.approx(loss)
    assert found["weight_norm"][0] == tagger.history_["weight_norm"][0]


@pytest.mark.parametrize(("patience", "scoring"), [(1, None), (2, chunk_f1_scorer), (4, None)])
def test_early_stopping_returns_the_best_state(learner, patience, scoring):
    batch = VECTORIZER.transform(X_VAL)
    states = by_hand(clone(learner), 8, 5)
    score = scoring or (lambda tagger, X, y: tagger.score(X, y))
    scores = [score(tagger, batch, Y_VAL) for tagger in states]
    best = [int(np.argmax(scores[: n + 1])) for n in range(len(scores))]
    last = next((n for n, b in enumerate(best) if n - b == patience), len(scores) - 1)
    options = {"X_val": X_VAL, "y_val": Y_VAL, "patience": patience, "scoring": scoring}
    fit(learner, n_epochs=8, round_size=5, **options)
    assert learner.history_["validation_score"].tolist() == scores[: last + 1]
    assert_same(learner, states[best[last]])


class Break(Exception):
    pass


def breaking(n, error):
    """Batches that end with an error after `n`, over all epochs; and how often they were read."""
    read = []

    def given(epoch):
        for batch in batches(epoch):
            if len(read) == n:
                raise error
            read.append(epoch)
            yield batch

    return given


@pytest.mark.parametrize(("stop_at", "patience"), [(0, None), (7, 3), (10, None), (19, 3)])
def test_a_checkpoint_goes_on_with_the_same_bits(tmp_path, learner, stop_at, patience):
    options = {"round_size": 5, "X_val": X_VAL, "y_val": Y_VAL, "patience": patience}
    whole = fit(clone(learner), **options)
    options["checkpoint"] = tmp_path / "checkpoint.skops"
    with pytest.raises(Break):
        fit(clone(learner), breaking(stop_at, Break()), **options)
    assert options["checkpoint"].exists() == (stop_at >= 5)
    again = fit(learner, **options)
    assert_same(again, whole)
    for name in ("epoch", "batches", "tokens", "mistakes", "loss", "validation_score"):
        assert_array_equal(again.history_[name], whole.history_[name])
    assert np.all(np.diff(again.history_["time"]) >= 0)

    # What is over is not learnt again.
    def none(epoch):
        return iter(batches(epoch)) if patience is None else pytest.fail("it was over")

    if patience is None or len(again.history_["epoch"]) < 6:
        assert_same(fit(clone(learner), none, **options), whole)


def test_more_epochs_than_before(tmp_path):
    tagger, path = PerceptronTagger(random_state=0), tmp_path / "c.skops"
    fit(clone(tagger), n_epochs=1, checkpoint=path)
    assert_same(fit(clone(tagger), n_epochs=3, checkpoint=str(path)), fit(tagger))


def test_patience_that_comes_later(tmp_path):
    """The state of the last round is the best one known."""
    path, options = tmp_path / "c.skops", {"X_val": X_VAL, "y_val": Y_VAL, "round_size": 1}
    first = fit(PerceptronTagger(random_state=0), n_epochs=1, checkpoint=path, **options)
    last = first.history_["validation_score"][-1]
    tagger = fit(PerceptronTagger(random_state=0), checkpoint=path, patience=4, **options)
    assert tagger.score(VECTORIZER.transform(X_VAL), Y_VAL) >= last
    scores = tagger.history_["validation_score"][N_BATCHES - 1 :]
    assert tagger.n_iter_ == N_BATCHES + np.argmax(scores)


def scores_in_turn(scores):
    """Score that is the next of some scores after each epoch."""
    return lambda tagger, X, y: scores[tagger.n_iter_ // N_BATCHES - 1]


def test_patience_that_goes(tmp_path):
    """Without patience the last state is kept, whatever the checkpoint has."""
    options = {"X_val": X_VAL, "y_val": Y_VAL, "scoring": scores_in_turn([0.9, 0.5, 0.4])}
    options["checkpoint"] = tmp_path / "c.skops"
    fit(PerceptronTagger(random_state=0), n_epochs=2, patience=5, **options)
    expected = by_hand(PerceptronTagger(random_state=0), 3)[-1]
    assert_same(fit(PerceptronTagger(random_state=0), **options), expected)


@pytest.mark.parametrize("scores", [[0.9, 0.5, 0.6, 0.55, 0.7, 0.65], [0.5, np.nan, 0.4, 0.3, 0.2]])
@pytest.mark.parametrize("later", [False, True])
def test_a_break_does_not_change_patience(tmp_path, scores, later):
    """Neither if patience came later, nor if a score is NaN."""
    path, options = tmp_path / "c.skops", {"X_val": X_VAL, "y_val": Y_VAL}
    options |= {"scoring": scores_in_turn(scores)}
    if later:
        fit(PerceptronTagger(random_state=0), n_epochs=2, checkpoint=path, **options)
    options |= {"n_epochs": len(scores), "patience": 3}
    copies = [tmp_path / "whole.skops", tmp_path / "broken.skops"]
    for other in copies:
        if later:
            other.write_bytes(path.read_bytes())
    whole = fit(PerceptronTagger(random_state=0), checkpoint=copies[0], **options)
    options["checkpoint"] = copies[1]
    with pytest.raises(Break):
        fit(PerceptronTagger(random_state=0), breaking(25, Break()), **options)
    again = fit(PerceptronTagger(random_state=0), **options)
    assert_same(again, whole)
    assert_array_equal(again.history_["batches"], whole.history_["batches"])


def test_the_state_of_a_generator_is_stored(tmp_path):
    def new():
        return PerceptronTagger(random_state=np.random.RandomState(3))

    path = tmp_path / "c.skops"
    fit(new(), n_epochs=1, checkpoint=path)
    assert_same(fit(new(), checkpoint=path), fit(new()))


def test_a_checkpoint_is_whole_or_not_there(tmp_path, monkeypatch):
    path = tmp_path / "c.skops"
    fit(PerceptronTagger(random_state=0), n_epochs=1, checkpoint=path)
    before = path.read_bytes()

    def fail(*paths):
        raise OSError("The disk is full.")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="full"):
        fit(PerceptronTagger(random_state=0), checkpoint=path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["c.skops"]


@pytest.mark.parametrize("error", [Break(), KeyboardInterrupt()])
@pytest.mark.parametrize("stop_at", [1, 13])
def test_what_fails_leaves_the_last_whole_batch(learner, error, stop_at):
    expected = by_hand(clone(learner), 3, stop_at=stop_at)[-1]
    with pytest.raises(type(error)):
        fit(learner, breaking(stop_at, error), X_val=X_VAL, y_val=Y_VAL, patience=1)
    assert_same(learner, expected)
    # It goes on from there.
    fit(learner, n_epochs=1)
    for X, y in batches(1):
        expected.partial_fit(VECTORIZER.transform(X), y)
    assert_same(learner, expected)


def test_a_bad_batch_is_named(learner):
    expected = by_hand(clone(learner), 1, stop_at=3)[-1]

    def given(epoch):
        good = list(batches(epoch))
        return [*good[:3], ([["w1"], ["w2", "w3"]], [["O"], ["O"]])]

    with pytest.raises(ValueError, match="Sequence 1 has 2 tokens, but 1 label") as raised:
        fit(learner, given)
    assert raised.value.__notes__ == ["This happened in batch 4 of epoch 1."]
    assert_same(learner, expected)


def test_an_interrupt_while_scoring(learner):
    expected = by_hand(clone(learner), 1)[-1]

    def interrupted(tagger, X, y):
        tagger.predict(X)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(learner, X_val=X_VAL, y_val=Y_VAL, scoring=interrupted)
    assert_same(learner, expected)


def test_estimators_may_take_batches_as_they_are():
    X, y = zip(*TRAIN, strict=True)
    batch, labels = VECTORIZER.transform(X), list(y)
    tagger = fit_stream(PerceptronTagger(random_state=0), lambda epoch: [(batch, labels)])
    assert_same(tagger, PerceptronTagger(random_state=0).partial_fit(batch, labels))


def test_labels_and_validation_sets_may_be_iterators():
    X, y = map(list, zip(*TRAIN, strict=True))
    histories = [
        fit(
            PerceptronTagger(random_state=0),
            lambda epoch, of=of: [(of(X), of(map(of, y)))],
            X_val=of(X_VAL),
            y_val=of(map(of, Y_VAL)),
        ).history_
        for of in (list, iter)
    ]
    for name in ("tokens", "mistakes", "validation_score"):
        assert_array_equal(histories[1][name], histories[0][name])


def test_memory_is_flat():
    """Four times the batches take hardly more memory, and they are not kept."""

    def stream(epoch, n_batches):
        for seed in range(n_batches):
            yield tuple(map(list, zip(*sentences(200, seed), strict=True)))

    def most_bytes(run, n_batches):
        tracemalloc.start()
        run(n_batches)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    def learn(n_batches):
        given = partial(stream, n_batches=n_batches)
        options = {"X_val": X_VAL, "y_val": Y_VAL, "patience": 9, "round_size": 5, "n_epochs": 1}
        fit(PerceptronTagger(random_state=0), given, **options)

    learn(5)
    of_batches = most_bytes(lambda n: list(stream(1, n)), 30)
    assert most_bytes(learn, 40) - most_bytes(learn, 10) < of_batches / 20


def test_progress(capsys):
    fit(PerceptronTagger(random_state=0), verbose=1)
    lines = capsys.readouterr().out.splitlines()
    lines = [line for line in lines if "ompil" not in line]
    assert [line.split("  ")[0] for line in lines[:3]] == [
        f"PerceptronTagger: epoch {epoch} of 3" for epoch in (1, 2, 3)
    ]
    assert lines[3].startswith("PerceptronTagger: finished, 3 epochs in ")
    fit(PerceptronTagger(random_state=0), round_size=5, verbose=2, X_val=X_VAL, y_val=Y_VAL)
    lines = capsys.readouterr().out.splitlines()
    assert len([line for line in lines if "batches" in line and "validation_score" in line]) == 6


def test_the_history_can_be_plotted():
    pytest.importorskip("matplotlib")
    tagger = fit(PerceptronTagger(random_state=0), X_val=X_VAL, y_val=Y_VAL)
    display = TrainingCurveDisplay.from_estimator(tagger, x="time", y="validation_score")
    (lines,) = display.lines_
    (line,) = lines.values()
    assert_array_equal(line.get_ydata(), tagger.history_["validation_score"])


@pytest.mark.parametrize(
    ("tagger", "options", "message"),
    [
        (SDCACRF(), {}, "needs a tagger with partial_fit, and SDCACRF is none"),
        (CRFTagger(), {}, "CRFTagger does not have with solver='lbfgs'"),
        (None, {"given": batches(1)}, "batches must be a function of the number of the epoch"),
        (None, {"given": lambda epoch: []}, r"batches\(1\) has no batch"),
        (None, {"patience": 2}, "patience needs a validation set"),
        (None, {"X_val": X_VAL}, "both X_val and y_val"),
        (None, {"given": lambda epoch: None}, r"batches\(1\) must return an iterable .* got None"),
        (
            None,
            {"given": lambda epoch: (X_VAL, Y_VAL)},
            r"batches\(1\) must yield pairs of X and y",
        ),
        (None, {"given": lambda epoch: [5]}, "pairs of X and y, but number 1 is 5"),
        (None, {"vectorizer": "x"}, "vectorizer needs a method transform, got 'x'"),
        (None, {"classes": ["O", None]}, "classes has None; expected all labels"),
        (None, {"n_epochs": 0}, "n_epochs must be a positive integer, got 0"),
        (None, {"round_size": 1.5}, "round_size must be None or a positive integer, got 1.5"),
        (None, {"patience": 0, "X_val": X_VAL, "y_val": Y_VAL}, "patience must be None or a pos"),
    ],
)
def test_invalid_arguments(tagger, options, message):
    with pytest.raises(ValueError, match=message):
        fit(tagger or PerceptronTagger(), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scoring": "chunk_f1"}, "'scoring' parameter"),
        ({"scoring": chunk_f1_score}, r"make_scorer\(chunk_f1_score\)"),
        ({"scoring": ["accuracy"]}, r"scoring must be a str or a callable, got \['accuracy'\]"),
        ({"y_val": Y_VAL[:-1]}, "X_val, y_val: X has 40 sequences, but y_val has labels for 39"),
        ({"y_val": [*Y_VAL[:-1], []]}, "X_val, y_val: Sequence 39 has . tokens, but 0 labels"),
    ],
)
def test_a_validation_set_is_checked_before_anything_is_learnt(options, message):
    given = {"X_val": X_VAL, "y_val": Y_VAL, **options}
    with pytest.raises(ValueError, match=message):
        fit(PerceptronTagger(), lambda epoch: pytest.fail("it learns"), **given)


def test_checkpoints_of_others_are_refused(tmp_path):
    path = tmp_path / "c.skops"
    fit(PerceptronTagger(random_state=0), checkpoint=path)
    with pytest.raises(ValueError, match="belongs to a PerceptronTagger, not to a MIRATagger"):
        fit(MIRATagger(random_state=0), checkpoint=path)
    with pytest.raises(ValueError, match="to an estimator with average=True, not False"):
        fit(PerceptronTagger(average=False, random_state=0), checkpoint=path)
    with pytest.raises(ValueError, match="was made without a validation set"):
        fit(PerceptronTagger(random_state=0), checkpoint=path, X_val=X_VAL, y_val=Y_VAL)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"c\.skops cannot be read"):
        fit(PerceptronTagger(random_state=0), checkpoint=path)
    skops.io.dump(PerceptronTagger(random_state=0), path)
    with pytest.raises(ValueError, match="no checkpoint of fit_stream"):
        fit(PerceptronTagger(random_state=0), checkpoint=path)


WORDS = [words for words, _ in TRAIN]


def other_vectorizers():
    """Pairs of a vectoriser and another one that makes as many features, and what differs."""
    hashing = partial(HashingTemplateVectorizer, n_features=64)
    yield hashing("U0:%x[0,0]"), hashing("U1:%x[0,0]"), "template="
    yield hashing("U0:%x[0,0]"), hashing("U0:%x[0,0]", dtype=np.float32), "dtype="
    functions = {"f": str.lower}, {"f": str.upper}
    yield *(hashing("U0:%x[0,0|f]", functions=f) for f in functions), "functions="
    yield hashing("U0:%x[0,0]"), None, "type="
    learnt = [TemplateVectorizer("U0:%x[0,0]").fit([[word]]) for word in ("w0", "w1")]
    yield hashing("U0:%x[0,0]"), learnt[0], "type="
    yield *learnt, "features="
    vectors = [{f"w{w}": np.full(2, w + n) for w in range(9)} for n in (0.0, 1.0)]
    yield *(EmbeddingVectorizer(v).fit(WORDS) for v in vectors), "vectors="
    unions = [
        SequenceUnion([("a", EmbeddingVectorizer(vectors[0])), ("b", hashing(template))])
        for template in ("U0:%x[0,0]", "U0:%x[-1,0]")
    ]
    yield *(union.fit(WORDS) for union in unions), "b__template="


@pytest.mark.parametrize("number", range(8))
def test_a_stream_goes_on_with_the_same_features(tmp_path, number):
    first, other, message = list(other_vectorizers())[number]
    path = tmp_path / "c.skops"
    fit(PerceptronTagger(random_state=0), vectorizer=first, n_epochs=1, checkpoint=path)
    with pytest.raises(ValueError, match=rf"c\.skops belongs to a vectorizer with {message}"):
        fit(PerceptronTagger(random_state=0), vectorizer=other, checkpoint=path)
    fit(PerceptronTagger(random_state=0), vectorizer=copy.deepcopy(first), checkpoint=path)


class OwnVectorizer:
    """Vectoriser with nothing but what is needed, and a memory."""

    def __init__(self, shift, function):
        self.shift, self.function, self._memory = shift, function, {}

    def transform(self, X):
        self._memory[len(self._memory)] = len(X)
        return VECTORIZER.transform(X) * self.shift


def test_vectorizers_of_ones_own_count_by_their_attributes(tmp_path):
    path, own = tmp_path / "c.skops", OwnVectorizer(2.0, lambda x: x)
    fit(PerceptronTagger(random_state=0), vectorizer=own, n_epochs=1, checkpoint=path)
    fit(PerceptronTagger(random_state=0), vectorizer=own, n_epochs=2, checkpoint=path)
    again = OwnVectorizer(2.0, lambda x: x)
    fit(PerceptronTagger(random_state=0), vectorizer=again, n_epochs=3, checkpoint=path)
    with pytest.raises(ValueError, match=r"a vectorizer with shift=2\.0, not 3\.0"):
        fit(PerceptronTagger(random_state=0), vectorizer=OwnVectorizer(3.0, abs), checkpoint=path)


def test_a_template_in_a_file_counts_by_its_lines(tmp_path):
    path, template = tmp_path / "c.skops", tmp_path / "template"
    template.write_text("U0:%x[0,0]")
    vectorizer = HashingTemplateVectorizer(template, n_features=64)
    fit(PerceptronTagger(random_state=0), vectorizer=vectorizer, n_epochs=1, checkpoint=path)
    template.write_text("U1:%x[0,0]")
    with pytest.raises(ValueError, match=r"a vectorizer with template=.*U0.*, not .*U1"):
        fit(PerceptronTagger(random_state=0), vectorizer=vectorizer, checkpoint=path)


@pytest.mark.parametrize("seeds", [(0, 1), (0, None), (None, 0), ("3", 0), ("3", "4")])
def test_a_stream_goes_on_with_the_same_random_state(tmp_path, seeds):
    path = tmp_path / "c.skops"
    first, other = (
        PerceptronTagger(random_state=np.random.RandomState(int(s)) if type(s) is str else s)
        for s in seeds
    )
    with global_seed():
        fit(first, n_epochs=1, checkpoint=path)
    with pytest.raises(ValueError, match=r"c\.skops belongs to an estimator with random_state="):
        fit(other, checkpoint=path)
    # What failed is as it was.
    assert not hasattr(other, "classes_")


def test_what_has_no_effect_may_change(tmp_path):
    path, whole = tmp_path / "c.skops", fit(PerceptronTagger(random_state=0))
    fit(PerceptronTagger(random_state=0), n_epochs=1, checkpoint=path)
    changes = {"n_jobs": 2, "max_iter": 7, "tol": None, "verbose": 1, "early_stopping": True}
    tagger = fit(PerceptronTagger(random_state=0, **changes), checkpoint=path, round_size=3)
    assert_same(tagger, whole)
    assert {name: getattr(tagger, name) for name in changes} == changes
    vectorizer = clone(VECTORIZER).set_params(n_jobs=2)
    fit(PerceptronTagger(random_state=0), vectorizer=vectorizer, n_epochs=4, checkpoint=path)


def test_other_classes_are_refused(tmp_path):
    path = tmp_path / "c.skops"
    fit(PerceptronTagger(random_state=0), n_epochs=1, checkpoint=path)
    with pytest.raises(ValueError, match=r"c\.skops has other classes"):
        fit(PerceptronTagger(random_state=0), classes=[*CLASSES, "B-Y"], checkpoint=path)
    fit(PerceptronTagger(random_state=0), classes=None, checkpoint=path)


def forged(good):
    """Contents of checkpoints that are no good."""
    values = None, -1, "x", {}, [1.5, 2], [None] * 3, CRFTagger()
    for key in good:
        yield {k: v for k, v in good.items() if k != key}
        yield from (good | {key: v} for v in values if not (key == "best" and v is None))
    for key, name in [
        *(("place", n) for n in good["place"]),
        *(("given", n) for n in good["given"]),
    ]:
        yield good | {key: {k: v for k, v in good[key].items() if k != name}}
        for value in (None, -1, 1.5, 2**70, {"type": None}):
            yield good | {key: good[key] | {name: value}}
    for name in ("epoch", "time", "batches", "tokens", "loss"):
        column = good["history"][name]
        yield good | {"history": {k: v for k, v in good["history"].items() if k != name}}
        for value in (None, column[:-1], column[None], column.astype(str)):
            yield good | {"history": good["history"] | {name: value}}
    for other in (PerceptronTagger(), fit(PerceptronTagger(random_state=0), n_epochs=2)):
        yield good | {"estimator": other}
        yield good | {"best": other}


def test_forged_checkpoints_are_refused(tmp_path):
    path = tmp_path / "c.skops"
    fit(PerceptronTagger(random_state=0), n_epochs=1, checkpoint=path)
    types = skops.io.get_untrusted_types(file=path)
    contents = list(forged(skops.io.load(path, trusted=types)))
    for content in contents:
        skops.io.dump(content, path)
        with pytest.raises(ValueError, match=r"^Checkpoint .*c\.skops "):
            fit(PerceptronTagger(random_state=0), checkpoint=path)
    assert len(contents) > 80


def test_a_checkpoint_that_unpacks_to_too_much_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "c.skops"
    fit(PerceptronTagger(random_state=0), n_epochs=1, checkpoint=path)
    with zipfile.ZipFile(path) as archive:
        size = sum(info.file_size for info in archive.infolist())
        name = next(name for name in archive.namelist() if name.endswith(".npy"))
    with monkeypatch.context() as patched:
        patched.setattr(memory, "usable_memory", lambda: size - 1)
        with pytest.raises(ValueError, match=r"c\.skops cannot be read: .* need .* KiB"):
            fit(PerceptronTagger(random_state=0), checkpoint=path)
    header = io.BytesIO()
    described = {"descr": "<f8", "fortran_order": False, "shape": (2**50,)}
    np.lib.format.write_array_header_1_0(header, described)
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(name, header.getvalue())
    with pytest.raises(ValueError, match=r"c\.skops cannot be read: an array .* has only"):
        fit(PerceptronTagger(random_state=0), checkpoint=path)


# Batches. -----------------------------------------------------------------------------------------


@given(st.integers(0, 30), st.integers(1, 12), st.none() | st.integers(1, 12), st.integers(0, 5))
def test_blocks_are_shuffled(n, batch_size, block_size, seed):
    pairs = [([f"w{i}"], [i]) for i in range(n)]
    found = list(iter_batches(iter(pairs), batch_size, block_size=block_size, random_state=seed))
    assert [len(X) for X, _ in found[:-1]] == [batch_size] * (len(found) - 1)
    flat = list(chain.from_iterable(zip(X, y, strict=True) for X, y in found))
    size = block_size or 1
    for start in range(0, n, size):
        assert sorted(flat[start : start + size], key=lambda p: p[1]) == pairs[start : start + size]
    again = iter_batches(pairs, batch_size, block_size=block_size, random_state=seed)
    assert list(again) == found


def test_orders_differ():
    pairs = [([f"w{i}"], [i]) for i in range(50)]
    orders = {
        str(list(iter_batches(pairs, 7, block_size=25, random_state=seed))) for seed in range(5)
    }
    assert len(orders) == 5


def test_a_block_is_read_when_it_is_needed():
    read = []
    pairs = (read.append(i) or ([f"w{i}"], [i]) for i in range(100))
    found = iter_batches(pairs, 5, block_size=20, random_state=0)
    next(found)
    assert len(read) == 20


@pytest.mark.parametrize("options", [{"batch_size": 0}, {"block_size": 0}, {"batch_size": None}])
def test_invalid_sizes(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        iter_batches(TRAIN, **options)


@pytest.mark.parametrize("odd", [(1, 2, 3), 5])
def test_what_is_no_pair_is_named(odd):
    with pytest.raises(ValueError, match="pairs of tokens and labels, but number 1 is "):
        list(iter_batches([TRAIN[0], odd], 2))
