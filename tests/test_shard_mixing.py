"""Online learners on shards, without a cluster: what threads with the same shards learn."""

from functools import partial

import numpy as np
import pytest
from helpers.learners import labelled_sequences
from helpers.shards import OneProcess, cut
from helpers.taggers import assert_same_weights
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skstruct import CRFTagger, MIRATagger, PerceptronTagger, SAPOTagger
from skstruct.dask.learning import learn
from skstruct.solvers.base import settings_of
from skstruct.solvers.watcher import Stopping, Watcher

LEARNERS = {
    "perceptron": PerceptronTagger,
    "naive perceptron": partial(PerceptronTagger, average=False),
    "MIRA": MIRATagger,
    "3-best MIRA": partial(MIRATagger, n_best=3, average=False),
    "SAPO": partial(SAPOTagger, n_best=3, l2=2.0),
    "SAPO, beam": partial(SAPOTagger, search="beam", beam_width=2, n_best=2),
    "SGD": partial(CRFTagger, solver="sgd", l2=2.0),
    "averaged SGD": partial(CRFTagger, solver="sgd", average=True),
}
X, Y = labelled_sequences(40)


def learn_from_shards(tagger, parts):
    """Tagger that has learnt from pairs of X and y."""
    tagger = clone(tagger)

    def watcher():
        return Watcher(settings_of(Stopping, tagger))

    tagger._keep(learn(tagger, OneProcess(), parts, None, None, watcher, "float64"))
    return tagger


def dealt(X, y, n_shards):
    """Sequences dealt out like cards, as threads get them."""
    return [(X[s::n_shards], y[s::n_shards]) for s in range(n_shards)]


@pytest.fixture(params=LEARNERS)
def learner(request):
    return partial(LEARNERS[request.param], max_iter=4, tol=None, random_state=0)


@pytest.mark.parametrize("n_shards", [2, 5])
def test_weights_are_those_of_threads(learner, n_shards):
    tagger = learner(shuffle=False, n_jobs=n_shards)
    found, expected = learn_from_shards(tagger, dealt(X, Y, n_shards)), tagger.fit(X, Y)
    assert_same_weights(found, expected, rtol=1e-9, atol=1e-12)
    assert found.history_.keys() == expected.history_.keys()
    for name in found.history_.keys() - {"time"}:
        assert_allclose(found.history_[name], expected.history_[name], rtol=1e-9, err_msg=name)


def test_orders_follow_from_the_seed(learner):
    parts = cut(X, Y, 3)
    found = [learn_from_shards(learner(), parts) for _ in range(2)]
    assert_array_equal(found[0].coef_, found[1].coef_)
    other = learn_from_shards(learner(random_state=1), parts)
    assert not np.allclose(found[0].coef_, other.coef_)
    # The order within a shard changes from epoch to epoch.
    ordered = learn_from_shards(learner(shuffle=False), parts)
    assert not np.allclose(found[0].coef_, ordered.coef_)


def test_learning_ends_without_mistakes():
    x = [[{"word": word} for word in "abca"[:n]] for n in (2, 3, 4, 3, 2, 4)]
    y = [[token["word"].upper() for token in tokens] for tokens in x]
    tagger = learn_from_shards(PerceptronTagger(random_state=0), cut(x, y, 2))
    assert tagger.n_iter_ < 100
    assert tagger.history_["mistakes"][-1] == 0
    assert tagger.predict(x).tolist() == y


def test_learning_ends_when_nothing_improves():
    tagger = learn_from_shards(
        PerceptronTagger(random_state=0, n_iter_no_change=2, tol=0.5), cut(X, Y, 2)
    )
    assert tagger.n_iter_ == 3


@pytest.mark.parametrize("params", [{"structure_alpha": 2.5}, {"mini_length": 2}])
def test_pieces(params):
    tagger = CRFTagger(solver="sgd", max_iter=3, tol=None, random_state=0)
    found = [learn_from_shards(tagger.set_params(**more), cut(X, Y, 2)) for more in ({}, params)]
    assert not np.allclose(found[0].transition_, found[1].transition_)


def test_a_constraint(addresses):
    X, y = (part[:60] for part in addresses)
    tagger = PerceptronTagger(constraint="IOB2", shuffle=False, max_iter=3, tol=None, n_jobs=2)
    found, expected = learn_from_shards(tagger, dealt(X, y, 2)), tagger.fit(X, y)
    assert_same_weights(found, expected, rtol=1e-9, atol=1e-12)
    assert np.isneginf(found.transition_).any()


def test_empty_partitions_do_not_count():
    parts = dealt(X, Y, 2)
    tagger = PerceptronTagger(max_iter=3, tol=None, shuffle=False)
    found = learn_from_shards(tagger, [([], []), parts[0], ([[]], [[]]), parts[1]])
    assert_same_weights(found, learn_from_shards(tagger, parts), atol=0)


def test_labels_that_are_unknown():
    y = [[None, *labels[1:]] for labels in Y]
    tagger = CRFTagger(solver="sgd", max_iter=3, tol=None, shuffle=False, n_jobs=2)
    keep = [i for i, labels in enumerate(y) if len(labels) > 1]
    x, y = [X[i] for i in keep], [y[i] for i in keep]
    found, expected = learn_from_shards(tagger, dealt(x, y, 2)), tagger.fit(x, y)
    assert_same_weights(found, expected, rtol=1e-9, atol=1e-12)
    message = "Partition 0: Sequence 0, token 0 has no label"
    with pytest.raises(ValueError, match=message):
        learn_from_shards(PerceptronTagger(), dealt(x, y, 2))


def test_weights_that_are_not_finite():
    x = [[{"a": 1e300}, {"b": 1e300}]] * 4
    with pytest.raises(ValueError, match="infinite or NaN in epoch"):
        learn_from_shards(
            CRFTagger(solver="sgd", learning_rate=1e10, l2=0), dealt(x, [["A", "B"]] * 4, 2)
        )
