"""Online learners on shards, without a cluster, beside threads and a twin in plain Python."""

from functools import partial

import naive
import numpy as np
import pytest
from helpers.learners import labelled_sequences
from helpers.shards import OneProcess, cut
from helpers.taggers import assert_same_weights
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from skstruct import CRFTagger, MIRATagger, PerceptronTagger, SAPOTagger
from skstruct.dask import mixing
from skstruct.dask.learning import learn
from skstruct.learning.monitor import Monitor, Stopping
from skstruct.learning.solver import settings_of

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


def weighed(X, *, own=False):
    """Tokens whose features have any value, so that no two labellings score the same.

    With `own`, they also have features that occur in few sequences.
    """
    rng = np.random.default_rng(1)
    return [
        [
            {f"{name}={value}": rng.uniform(0.5, 1.5) for name, value in token.items()}
            | ({f"own={i // 2}": rng.uniform(0.5, 1.5)} if own else {})
            for token in tokens
        ]
        for i, tokens in enumerate(X)
    ]


def learn_from_shards(tagger, parts):
    """Tagger that has learnt from pairs of X and y."""
    tagger = clone(tagger)

    def monitor():
        return Monitor(stopping=settings_of(Stopping, tagger))

    tagger._keep(learn(tagger, OneProcess(), parts, None, None, monitor, "float64"))
    return tagger


def dealt(X, y, n_shards):
    """Sequences dealt out like cards, as threads get them."""
    return [(X[s::n_shards], y[s::n_shards]) for s in range(n_shards)]


@pytest.fixture(params=LEARNERS)
def learner(request):
    return partial(LEARNERS[request.param], max_iter=4, tol=None, random_state=0)


@pytest.fixture
def plain(monkeypatch):
    """Take the mean of the weights of all shards, as threads do."""
    seen, finish = [], mixing._Mixture.finish

    def note(mixture):
        seen[:] = [len(mixture._seen)]
        finish(mixture)

    monkeypatch.setattr(mixing._Mixture, "finish", note)
    monkeypatch.setattr(mixing, "_gain", lambda n_changed: np.full(len(n_changed), 1 / seen[0]))


@pytest.mark.parametrize("n_shards", [1, 2, 5])
def test_the_mean_of_all_weights_is_that_of_threads(learner, n_shards, plain):
    tagger = learner(shuffle=False, n_jobs=n_shards)
    x = weighed(X)
    found, expected = learn_from_shards(tagger, dealt(x, Y, n_shards)), tagger.fit(x, Y)
    assert_same_weights(found, expected, rtol=1e-9, atol=1e-12)
    assert found.history_.keys() == expected.history_.keys()
    for name in found.history_.keys() - {"time"}:
        assert_allclose(found.history_[name], expected.history_[name], rtol=1e-9, err_msg=name)


def test_one_shard_is_one_process(learner):
    tagger = learner(shuffle=False)
    found, expected = learn_from_shards(tagger, [(X, Y)]), tagger.fit(X, Y)
    assert_same_weights(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["perceptron", "MIRA", "SGD"])
def test_shards_learn_with_costs(name):
    cost = {("A", "B"): 2.0, ("C", "A"): 0.5}
    tagger = LEARNERS[name](max_iter=4, tol=None, random_state=0, shuffle=False, label_cost=cost)
    found, expected = learn_from_shards(tagger, [(X, Y)]), tagger.fit(X, Y)
    assert_same_weights(found, expected, rtol=1e-9, atol=1e-12)
    plain = clone(tagger).set_params(label_cost=None).fit(X, Y)
    assert np.abs(plain.coef_ - expected.coef_).max() > 1e-3


# The rule, step by step


class Twin:
    """What a shard does in an epoch: weights after each of its samples, and their scale."""

    def __init__(self, tagger, X, y, n_sequences):
        self.tagger, self.X, self.y = tagger, X, y
        self.rate, self.n_sequences = getattr(tagger, "learning_rate", 1.0), n_sequences

    def epoch(self, weights):
        """Last weights, their sum over the samples, the last scale, and the sum of the scales."""
        order, tagger = range(len(self.X)), self.tagger
        if isinstance(tagger, PerceptronTagger):
            twin = naive.Perceptron(*weights.coef.shape, weights=weights)
            twin.epoch(self.X, self.y, order)
            return twin.weights, twin.total, 1.0, float(len(order))
        last, mean, _ = naive.sapo(
            *(self.X, self.y, np.ones(len(order)), [order]),
            weights=weights,
            n_found=tagger.n_best,
            l2=tagger.l2 * len(order) / self.n_sequences,
            rate=self.rate,
            decay=tagger.decay,
            intercept=tagger.fit_intercept,
        )
        scale = total = 0.0
        scale = 1.0
        for _ in order:
            scale *= 1 - self.rate * tagger.l2 / self.n_sequences
            total += scale
            self.rate *= tagger.decay ** (1 / len(order))
        return last, naive.Weights(*(len(order) * part for part in mean)), scale, total


def mix(shards, weights):
    """Mixture after an epoch of all shards, and the sum of what it was at each sample.

    A sample sees the changes of its own shard, and of a feature as many times more as the mixture
    makes of the change of one shard.
    """
    results = [shard.epoch(weights) for shard in shards]
    n = len(results)
    mixture = [sum(last[p] for last, *_ in results) / n for p in range(5)]
    total = [sum(totals[p] for _, totals, *_ in results) for p in range(5)]
    for f in range(weights.coef.shape[1]):
        start = weights.coef[:, f]
        changes = [last.coef[:, f] - scale * start for last, _, scale, _ in results]
        k = max(sum(bool(np.any(np.abs(change) > 1e-12)) for change in changes), 1)
        times = (1.75 - 0.75 / k) / k
        scale = sum(scale for _, _, scale, _ in results) / n
        mixture[0][:, f] = scale * start + times * sum(changes)
        total[0][:, f] = sum(
            scales * start + n * times * (totals.coef[:, f] - scales * start)
            for _, totals, _, scales in results
        )
    return naive.Weights(*mixture), naive.Weights(*total)


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("n_shards", [2, 3, 7])
@pytest.mark.parametrize(
    "tagger",
    # All labellings of five tokens: at the start every two of them score the same.
    [PerceptronTagger(), SAPOTagger(n_best=243, l2=3.0, learning_rate=0.5)],
    ids=str,
)
def test_changes_are_divided_by_the_shards_that_made_them(tagger, n_shards, average):
    n_epochs = 3
    tagger = clone(tagger).set_params(
        average=average, max_iter=n_epochs, tol=None, shuffle=False, random_state=0
    )
    x = weighed(X, own=True)
    found = learn_from_shards(tagger, cut(x, Y, n_shards))
    batch = found.vectorizer_.transform(x)
    codes = {label: code for code, label in enumerate(found.classes_.tolist())}
    dense = [batch[i].toarray() for i in range(len(x))]
    y = [[codes[label] for label in labels] for labels in Y]
    shards = [Twin(tagger, *part, len(x)) for part in cut(dense, y, n_shards)]
    weights = naive.zero_weights(len(codes), batch.n_features)
    total = naive.zero_weights(len(codes), batch.n_features)
    for _ in range(n_epochs):
        weights, of_epoch = mix(shards, weights)
        total = naive.Weights(*(a + b for a, b in zip(total, of_epoch, strict=True)))
    if average:
        weights = naive.Weights(*(part / (n_epochs * len(x)) for part in total))
    for a, b in zip(naive.weights_of(found), weights, strict=True):
        assert_allclose(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("average", [True, False])
def test_shards_send_the_features_that_they_have_changed(average):
    sent = []

    class Watched(OneProcess):
        def iterate(self, function, shards, shared=None):
            shards = list(shards)
            results = list(super().iterate(function, shards, shared))
            if function is mixing.learn_alone:
                chains = [shard[1] for shard in shards]
                sent.extend(zip(chains, results, strict=True))
            return iter(results)

    tagger = PerceptronTagger(average=average, max_iter=2, random_state=0)
    x = weighed(X, own=True)
    learn(tagger, Watched(), cut(x, Y, 3), None, None, Monitor, "float64")
    assert len(sent) == 6
    for _, result in sent:
        assert len(result.chain.weights) == len(result.rows)
        change = np.any(result.chain.weights != 0, axis=1)
        if average:
            change |= np.any(result.lag.weights != 0, axis=1)
        assert change.all()
    assert all(len(result.rows) for _, result in sent)
    assert any(len(result.rows) < len(chain.weights) for chain, result in sent)


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


def test_a_constraint(addresses, plain):
    X, y = (part[:60] for part in addresses)
    tagger = PerceptronTagger(
        constraint="IOB2", shuffle=False, max_iter=3, tol=None, n_jobs=2, random_state=0
    )
    found, expected = learn_from_shards(tagger, dealt(X, y, 2)), tagger.fit(X, y)
    assert_same_weights(found, expected, rtol=1e-9, atol=1e-12)
    assert np.isneginf(found.transition_).any()


def test_empty_partitions_do_not_count():
    parts = dealt(X, Y, 2)
    tagger = PerceptronTagger(max_iter=3, tol=None, shuffle=False, random_state=0)
    found = learn_from_shards(tagger, [([], []), parts[0], ([[]], [[]]), parts[1]])
    assert_same_weights(found, learn_from_shards(tagger, parts), atol=0)


@pytest.mark.slow  # compiles SGD for them
def test_labels_that_are_unknown(plain):
    y = [[None, *labels[1:]] for labels in Y]
    tagger = CRFTagger(solver="sgd", max_iter=3, tol=None, shuffle=False, n_jobs=2, random_state=0)
    keep = [i for i, labels in enumerate(y) if len(labels) > 1]
    x, y = [X[i] for i in keep], [y[i] for i in keep]
    found, expected = learn_from_shards(tagger, dealt(x, y, 2)), tagger.fit(x, y)
    assert_same_weights(found, expected, rtol=1e-9, atol=1e-12)
    message = "Partition 0: Sequence 0, token 0 has no label"
    with pytest.raises(ValueError, match=message):
        learn_from_shards(PerceptronTagger(random_state=0), dealt(x, y, 2))


def test_weights_that_are_not_finite():
    x = [[{"a": 1}, {"b": 1}]] * 4
    with pytest.raises(ValueError, match="infinite or NaN in epoch"):
        learn_from_shards(
            CRFTagger(solver="sgd", learning_rate=1e300, l2=0, random_state=0),
            dealt(x, [["A", "B"]] * 4, 2),
        )
