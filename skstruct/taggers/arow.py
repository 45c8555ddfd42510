"""Updates in which every weight has a variance: adaptive regularisation of weights, AROW.

The algorithm is due to Crammer, Kulesza and Dredze (2009), with a diagonal covariance, applied to
the difference between the features of the gold labelling and of the best one. A weight
changes in proportion to its variance, and every change reduces the variance. With variances that
stay at one or zero the same update is the passive-aggressive one, or the perceptron's, of a
model that has only some of the weights.

The square of a difference is not the sum of the squares at each token. So the epoch first adds up
the differences of a sample, weight by weight, and then changes the weights.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from skstruct.blocks.visits import read_blocks, sum_panel, write_blocks
from skstruct.chain.dense import Chain
from skstruct.chain.family import family
from skstruct.chain.listed import GrowingList
from skstruct.chain.per_token import PerToken, TransitionChain
from skstruct.chain.protocol import creating
from skstruct.chain.scores import path_score, value_of
from skstruct.chain.second_order import SecondOrder
from skstruct.chain.viterbi import viterbi
from skstruct.compiled.jit import inline_lean_jit, inner_jit, inner_lean_jit
from skstruct.compiled.lanes import LANES
from skstruct.learning.epoch import (
    NORM,
    TOTAL,
    add_contrast,
    buffers_for,
    change,
    change_matrix,
    change_row,
    change_token_features,
    clear_difference,
    count_wrong,
    empty_buffer,
    learn,
    most_changed,
    rule,
    settle_counts,
)
from skstruct.learning.products import claim_slot
from skstruct.taggers.online import LearnerState, OnlineTagger
from skstruct.utils.declared import Maybe
from skstruct.utils.persistence import set_module

# Finite, so that a rate times a difference that vanishes is no NaN.
_LARGEST_RATE = 1e300


@inline_lean_jit
def adapt(difference, variance, multiplier, shrinkage):
    """Change of a weight, and its variance afterwards (Crammer, Kulesza and Dredze, 2009)."""
    change = multiplier * variance * difference
    return change, variance / (1.0 + shrinkage * variance * difference * difference)


@inline_lean_jit
def step_size(cost, weight, spread, settings):
    """Multiplier of the difference, and the rate at which variances shrink."""
    if settings.learns_variance:
        slack = settings.slack / weight
        return min(cost / (slack + spread), settings.cap), min(1.0 / slack, _LARGEST_RATE)
    multiplier = 1.0
    if settings.cost != SHARE:
        total = settings.slack + spread
        multiplier = min(cost / total, settings.cap) if total > 0.0 else 0.0
    return multiplier * weight, 0.0


# Losses of a wrong labelling (`Adaptive.cost`). The first three are the excess of its score over
# the gold one's plus the number of wrong tokens, its square root, or one. The last is the share of
# wrong tokens, with steps of size one.
HAMMING, ROOT, ONE, SHARE = range(4)


class ConfidentState(NamedTuple):
    """Weights during training, with their variances; the first fields as in `OnlineState`.

    Nothing shrinks the weights, so their scale is one.
    """

    chain: Chain
    lag: Chain
    progress: np.ndarray
    variance: Chain  # of each weight; zero for one that does not change


class Adaptive(NamedTuple):
    """Parameters of the update, and workspace."""

    cost: int  # HAMMING, ROOT, ONE or SHARE
    slack: float  # added to the variance of the margin
    cap: float  # largest multiplier
    learns_variance: bool  # variances shrink, by an amount that is inverse to the slack
    slots: np.ndarray  # -1 between samples, (max(n_features, n_transition_features),)
    columns: np.ndarray  # -1 between samples, (n_labels or n_labels ** 2,)


@set_module("skstruct")
class AROWTagger(OnlineTagger):
    r"""Adaptive regularisation of weights (Crammer, Kulesza and Dredze, 2009).

    Every weight has a variance. Where the best labelling of a sequence is wrong, each weight
    changes in proportion to its variance, and the variances of these weights shrink. So weights of
    frequent features settle early, and rare ones can still change much: AROW takes few epochs.

    Parameters
    ----------
    variance : float, default=1.0
        Variance of every weight at first, at most 1e100. Only its ratio to `gamma` matters.
    gamma : float, default=10.0
        Strength of the regularisation: the larger, the smaller the changes, of weights and of
        variances.
    average : bool, default=True
        Predict with the average of the weights after each sequence, which usually labels better.
        False predicts with those after the last one, as in the paper.
    fit_intercept : bool, default=True
        Learn a bias for each label, and for each label at the first and at the last token.
    order : {1, 2}, default=1
        Order of the chain. With 2, a label's score depends on the two labels before it: each triple
        of neighbouring labels has a weight beside its last pair's. Time and memory grow with
        the cube of the number of labels. Not with transition features.
    constraint : str or array-like of bool of shape (n_classes, n_classes), default=None
        Labellings that are allowed. A scheme, "IOB1", "IOB2" (or "BIO"), "IOE1", "IOE2", "IOBES"
        (or "BIOES"), "BILOU" or "BMES", allows its valid labellings, and "runs" all. An array, with
        rows and columns in the order of ``classes_``, allows transitions from row to column where
        it is True. Other labellings have probability zero, in learning and in prediction, and
        weights of minus infinity.
    learn_scheme : {"IOBES", "BIOES", "BILOU", "BMES"} or None, default=None
        Learn labels of this scheme in place of y's, which must be of IOB2, IOE2 or a scheme like
        this one; answers are in y's. Implies the constraint of y's scheme.
    structure_alpha : float, default=1.0
        Structure regularisation: each epoch cuts each sequence anew at random, into this many
        pieces on average, of about equal length. 1 cuts nothing.
    mini_length : float, default=None
        Length of the pieces, in place of their number, `structure_alpha`. 5.5 is a mixture of
        lengths 5 and 6. The rest of a sequence is a shorter piece, so that the mean is lower.
    max_iter : int, default=100
        Largest number of epochs, passes over the training set.
    tol : float or None, default=1e-3
        Stop when the loss has not improved by more than this fraction for `n_iter_no_change`
        epochs, or with `early_stopping` the score on the validation set by more than this. None
        runs for `max_iter` epochs.
    shuffle : bool, default=True
        Visit the sequences in a new random order in every epoch.
    random_state : int, RandomState instance or None, default=None
        Source of the order of the sequences, and of the held-out set.
    early_stopping : bool, default=False
        Monitor the score on a validation set, stop when it no longer improves, and keep the
        weights of the best epoch. The validation set is the one passed to `fit`, or else held out
        from the training set.
    scoring : str, callable or None, default=None
        Score on the validation set: a scorer of :mod:`skstruct.metrics`, any other scorer or its
        name, or a callable ``scoring(estimator, X, y)``, which gets X as a `SequenceBatch`. None is
        token accuracy.
    validation_fraction : float, default=0.1
        Fraction of the sequences that `early_stopping` holds out.
    n_iter_no_change : int, default=5
        Epochs to wait for an improvement.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, 1 where not given. The weight of a sequence is its
        ``sample_weight`` times the mean class weight of its tokens. "balanced" weights a class by
        ``n_tokens / (n_classes * count)``; not supported by `partial_fit`.
    n_jobs : int, default=None
        Number of threads; -1 means all processors. Prediction gives the same result for any
        number (None means 1 unless in a `joblib.parallel_config` context). Learning does not. With
        None or 1, `fit` visits one sequence after the other. With more, it deals the sequences out
        to as many shards, which learn in parallel, each on its own copy of the weights and
        variances, and average both after every epoch. `partial_fit` always visits one sequence
        after the other.
    warm_start : bool, default=False
        Start `fit` from the weights of the previous call, and keep its classes and features. The
        variances start anew.
    verbose : int, default=0
        1 prints a line for each epoch with the time left, 2 the numbers of ``history_``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    learned_classes_ : ndarray of shape (n_learned_classes,)
        Labels in the order of the weights: ``classes_``, unless `learn_scheme` has others.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights of features.
    transition_ : ndarray of shape (n_classes, n_classes)
        Weights of transitions, from row to column.
    transition_coef_ : ndarray of shape (n_classes, n_classes, n_transition_features)
        Weights of transition features, from row to column, if X has a ``transition_X``.
    transition2_ : ndarray of shape (n_classes, n_classes, n_classes)
        Weights of label triples in the order of their tokens, if `order` is 2: of the last label,
        the third axis, after the two before it. They add to the weights of pairs.
    intercept_, start_, end_ : ndarray of shape (n_classes,)
        Biases at all, first and last tokens.
    n_iter_ : int
        Number of epochs.
    history_ : dict of ndarray
        For each epoch ``"epoch"``, ``"time"`` (seconds), ``"mistakes"`` (fraction of tokens
        labelled wrongly during the epoch), ``"loss"`` (violations of the margins during the epoch),
        ``"weight_norm"`` (of the weights of features), and with a validation set
        ``"validation_score"``.
    n_features_in_ : int
        Number of features.
    n_transition_features_in_ : int
        Number of transition features, if X has a ``transition_X``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has them.
    vectorizer_ : SequenceVectorizer
        Vectoriser fitted on X, if X was given as feature dicts or attribute strings.

    See Also
    --------
    MIRATagger : Makes the same steps with variances that stay at one.

    Notes
    -----
    The margin of a wrong labelling is the number of its wrong tokens. Let :math:`d` be the
    difference between the features of the gold labelling and of the best one, :math:`\ell`
    the amount by which the margin is violated, and :math:`v` the variances. Then, for each weight
    :math:`j`,

    .. math::

       w_j \leftarrow w_j + \frac{\ell \, v_j \, d_j}{\gamma + \sum_m v_m d_m^2}

       \frac{1}{v_j} \leftarrow \frac{1}{v_j} + \frac{d_j^2}{\gamma}

    The second is the paper's update of the covariance, with the covariance kept diagonal. A
    sequence with the weight :math:`s` divides `gamma` by :math:`s`.

    `fit` does not keep the variances, which are as many numbers as the weights. `partial_fit` does,
    from one call to the next.

    References
    ----------
    Koby Crammer, Alex Kulesza and Mark Dredze: Adaptive regularization of weight vectors. Advances
    in Neural Information Processing Systems 22, 2009.

    Examples
    --------
    >>> from skstruct import AROWTagger
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> tagger = AROWTagger(random_state=0).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}]])
    array([list(['DET', 'NOUN'])], dtype=object)
    """

    _parameter_constraints: dict = {
        **OnlineTagger._parameter_constraints,
        # The variance of a score, which is a sum of squares, has to be finite.
        "variance": [Interval(Real, 0, 1e100, closed="right")],
        "gamma": [Interval(Real, 0, None, closed="neither")],
    }

    _stored = {"_state": Maybe(LearnerState(ConfidentState))}

    def __init__(
        self,
        *,
        variance=1.0,
        gamma=10.0,
        average=True,
        fit_intercept=True,
        order=1,
        constraint=None,
        learn_scheme=None,
        structure_alpha=1.0,
        mini_length=None,
        max_iter=100,
        tol=1e-3,
        shuffle=True,
        random_state=None,
        early_stopping=False,
        scoring=None,
        validation_fraction=0.1,
        n_iter_no_change=5,
        class_weight=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ) -> None:
        self.variance = variance
        self.gamma = gamma
        self.average = average
        self.fit_intercept = fit_intercept
        self.order = order
        self.constraint = constraint
        self.learn_scheme = learn_scheme
        self.structure_alpha = structure_alpha
        self.mini_length = mini_length
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def _learner(self, model):
        return self._online_learner(
            model,
            lambda _: Adaptive(HAMMING, float(self.gamma), np.inf, True, *workspace(model)),
            start=lambda state, _: with_variance(state, float(self.variance)),
            lists=True,
        )


def workspace(model):
    """Workspace of the rule for a model of this size, the last fields of `Adaptive`."""
    n_slots = max(model.n_features, model.n_transition_features or 0)
    n_columns = model.n_labels**2 if model.has_transition_features else model.n_labels
    return np.full(n_slots, -1, np.int32), np.full(n_columns, -1, np.int32)


def with_variance(state, variance):
    """State in which all weights have the same variance."""
    chain = state.chain
    return ConfidentState(*state, type(chain)(*(np.full(part.shape, variance) for part in chain)))


@rule.of(Adaptive)
def arow_rule(settings, rows, sample, scores, edges, gold, difference, counts):
    """Write the gold labelling less the predicted one; return the cost as the loss."""
    length = gold.shape[0]
    found = np.empty(length, np.int32)
    # Viterbi overwrites the scores.
    excess = -path_score(scores, length, edges, gold)
    excess += viterbi(scores, length, edges, found)
    wrong = count_wrong(gold, found)
    if wrong == 0:
        return 0, 0.0
    clear_difference(length, difference)
    add_contrast(edges, gold, found, 1.0, difference, counts)
    return wrong, cost_of(excess, wrong, length, settings)


@inner_lean_jit
def cost_of(excess, wrong, length, settings):
    """Loss of a labelling with so many wrong tokens and a score so far above the gold one's."""
    if settings.cost == HAMMING:
        return excess + wrong
    if settings.cost == ROOT:
        return excess + np.sqrt(wrong)
    return excess + 1.0 if settings.cost == ONE else wrong / length


class Sums(NamedTuple):
    """Differences of one sample, added up by feature and label (or transition)."""

    values: np.ndarray  # one after the other, feature by feature
    features: np.ndarray  # feature of each row
    labels: np.ndarray  # label of each column
    counts: np.ndarray  # (2,), numbers of rows and of columns


class Buffers(NamedTuple):
    """Parameters of the update, and workspace for the differences of one sample."""

    settings: Adaptive
    total: Chain  # of biases, and of transitions with features; label pairs are empty
    features: Sums
    transitions: Sums  # of the features of transitions
    codes: np.ndarray  # of listed transitions that change (see `find_changed_transitions`)
    # Of the weights of vectors, as their panel has these: (n_blocks, n_columns, LANES).
    variance: np.ndarray
    lanes: np.ndarray  # (LANES,), sums that the compiler adds up side by side


class ConfidentStep(NamedTuple):
    """Change of weights in proportion to their variances (see `Step`)."""

    multiplier: float
    shrinkage: float  # rate at which variances shrink
    chain: Chain
    lag: Chain
    variance: Chain
    progress: np.ndarray
    codes: np.ndarray
    buffers: Buffers


@buffers_for.of(ConfidentState)
def all_buffers(state, settings, edges, rows, samples):
    chain, k = state.chain, state.chain.intercept.shape[0]
    variances, kept = state.variance.weights, np.zeros(rows.panel.exact.shape)
    read_blocks(rows.vectors.columns, k, variances.reshape(variances.size), k, kept)
    return Buffers(
        settings,
        Chain(np.empty((0, k)), np.zeros((k, k)), np.zeros(k), np.zeros(k), np.zeros(k)),
        sums_buffer(rows, samples, k),
        transitions_buffer(chain, rows, samples),
        np.empty(most_changed(chain), np.int64),
        kept,
        np.empty(LANES),
    )


@empty_buffer.of(Buffers)
def empty_buffers(buffers, rows, state):
    """Copy back the variances of the weights of vectors."""
    variances, k = state.variance.weights, state.chain.intercept.shape[0]
    flat = variances.reshape(variances.size)
    write_blocks(rows.vectors.columns, k, buffers.variance, k, flat)


@learn.of(ConfidentState)
def learn_by_variance(state, edges, rows, sample, gold, difference, counts, sizes, buffers):
    """Change each weight in proportion to its variance, and the variances."""
    settings, (cost, weight, fit_intercept) = buffers.settings, sizes
    chain, lag, variance, progress = state.chain, state.lag, state.variance, state.progress
    sum_features(rows, sample, difference, settings, buffers.features)
    n_changing = 0
    if rows.vectors.columns.shape[0] > 0:
        n_changing = sum_panel(rows.panel, sample[1] - sample[0], difference)
    sum_biases(sample, difference, fit_intercept, buffers.total)
    sum_transitions(edges, rows, sample, counts, buffers)
    codes = buffers.codes[: settle_counts(edges, gold, difference, counts, buffers.codes)]
    spread = spread_of_sums(buffers.features, variance.weights)
    spread = add_spread(edges, counts, spread, variance, buffers, codes)
    spread += spread_of_vectors(rows.panel, n_changing, buffers)
    multiplier, shrinkage = step_size(cost, weight, spread, settings)
    step = ConfidentStep(multiplier, shrinkage, chain, lag, variance, progress, codes, buffers)
    change_sums(step, buffers.features, chain.weights, lag.weights, variance.weights)
    change_vectors_by_variance(step, rows.panel, n_changing)
    total = buffers.total
    change_row(step, total.intercept, chain.intercept, lag.intercept, variance.intercept)
    change_row(step, total.start, chain.start, lag.start, variance.start)
    change_row(step, total.end, chain.end, lag.end, variance.end)
    change(edges, counts, step)


@inner_lean_jit
def change_sums(step, sums, weights, lag, variance):
    """Change the weights of the features of a sample, and their variances."""
    n_columns, growth = sums.counts[1], 0.0
    average, so_far = lag.shape[0] > 0, step.progress[TOTAL]
    for r in range(sums.counts[0]):
        f = sums.features[r]
        for c in range(n_columns):
            d, j = sums.values[r * n_columns + c], sums.labels[c]
            if d == 0.0:
                continue
            before = weights[f, j]
            change, variance[f, j] = adapt(d, variance[f, j], step.multiplier, step.shrinkage)
            weights[f, j] = before + change
            growth += change * (before + weights[f, j])
            if average:
                lag[f, j] += so_far * change
    step.progress[NORM] += growth


@change_row.of(ConfidentStep)
def change_row_by_variance(step, d, weights, lag, variance):
    average, so_far = step.lag.weights.shape[0] > 0, step.progress[TOTAL]
    for j in range(d.shape[0]):
        if d[j] != 0.0:
            change, variance[j] = adapt(d[j], variance[j], step.multiplier, step.shrinkage)
            weights[j] += change
            if average:
                lag[j] += so_far * change


@change_token_features.of(ConfidentStep)
def change_token_features_by_variance(step, counts):
    """Change the weights of transition features by sums over all tokens, and the matrix."""
    change_sums(
        step,
        step.buffers.transitions,
        step.chain.transition_weights,
        step.lag.transition_weights,
        step.variance.transition_weights,
    )
    change_matrix(step, step.buffers.total.transition)


# ----------------------------------------------------------------- features, by feature and label


@inner_jit
def sums_buffer(rows, samples, n_codes):
    """Workspace for the sums of any sample, where a token has one of `n_codes` labels."""
    n_features, n_sums, width = 0, 0, 0
    for s in range(samples.shape[0]):
        n = rows.indptr[samples[s, 1]] - rows.indptr[samples[s, 0]]
        columns = min(2 * (samples[s, 1] - samples[s, 0]), n_codes)
        n_features, width = max(n_features, n), max(width, columns)
        n_sums = max(n_sums, n * columns)
    return Sums(
        np.empty(n_sums),
        np.empty(n_features, np.int64),
        np.empty(width, np.int64),
        np.zeros(2, np.int64),
    )


@inner_lean_jit
def sum_features(rows, sample, difference, settings, sums):
    """Add up the differences of the features of a sample, by feature and label."""
    length = sample[1] - sample[0]
    n_rows, n_columns = 0, 0
    for t in range(length):
        for j in range(difference.shape[1]):
            if difference[t, j] != 0.0 and settings.columns[j] < 0:
                sums.labels[n_columns] = j
                n_columns = claim_slot(j, settings.columns, n_columns)
    for t in range(length):
        if not any_change(difference, t):
            continue
        for k in range(rows.indptr[sample[0] + t], rows.indptr[sample[0] + t + 1]):
            f = rows.indices[k]
            if settings.slots[f] < 0:
                sums.features[n_rows] = f
                for c in range(n_columns):
                    sums.values[n_rows * n_columns + c] = 0.0
                n_rows = claim_slot(f, settings.slots, n_rows)
            first, x = settings.slots[f] * n_columns, value_of(rows.data, k)
            for c in range(n_columns):
                sums.values[first + c] += x * difference[t, sums.labels[c]]
    for r in range(n_rows):
        settings.slots[sums.features[r]] = -1
    for c in range(n_columns):
        settings.columns[sums.labels[c]] = -1
    sums.counts[0], sums.counts[1] = n_rows, n_columns


@inline_lean_jit
def any_change(difference, t):
    found = False
    for j in range(difference.shape[1]):
        found |= difference[t, j] != 0.0
    return found


@inner_lean_jit
def spread_of_sums(sums, variance):
    """Variance of the score of the sums."""
    n_columns, spread = sums.counts[1], 0.0
    for r in range(sums.counts[0]):
        f = sums.features[r]
        for c in range(n_columns):
            d = sums.values[r * n_columns + c]
            if d != 0.0:
                spread += d * d * variance[f, sums.labels[c]]
    return spread


# ----------------------------------------------------------------- vectors, by blocks of labels


@inner_lean_jit
def spread_of_vectors(panel, n_changing, buffers):
    """Variance of the score of the sums in the panel."""
    lanes, spread = buffers.lanes, 0.0
    for lane in range(LANES):
        lanes[lane] = 0.0
    for i in range(n_changing):
        sums, variance = panel.sums[i], buffers.variance[panel.changing[i]]
        for f in range(sums.shape[0]):
            for lane in range(LANES):
                d = np.float64(sums[f, lane])
                lanes[lane] += d * d * variance[f, lane]
    for lane in range(LANES):
        spread += lanes[lane]
    return spread


@inner_lean_jit
def change_vectors_by_variance(step, panel, n_changing):
    """Change the weights in the panel, and their variances."""
    average, so_far = step.lag.weights.shape[0] > 0, step.progress[TOTAL]
    size = panel.exact[0].size
    for i in range(n_changing):
        b, sums = panel.changing[i], panel.sums[i].reshape(size)
        exact, weights = panel.exact[b].reshape(size), panel.weights[b].reshape(size)
        variance, lag = step.buffers.variance[b].reshape(size), panel.lag[b].reshape(size)
        for p in range(size):
            d = np.float64(sums[p])
            change, variance[p] = adapt(d, variance[p], step.multiplier, step.shrinkage)
            exact[p] += change
            weights[p] = exact[p]
            if average:
                lag[p] += so_far * change


# -------------------------------------------------------- transitions, for each kind of weights


@creating
def transitions_buffer(chain, rows, samples):
    """Workspace for the sums of transition features; empty where there are none."""
    return sums_buffer(rows, samples[:0], 0)


@transitions_buffer.of(TransitionChain)
def token_transitions_buffer(chain, rows, samples):
    """Workspace for the sums of transition features."""
    return sums_buffer(rows.transitions, samples, chain.transition.size)


@family
def sum_transitions(edges, rows, sample, counts, buffers):
    """Add up the counts of a sample's transitions, where they are counted at each token."""


@sum_transitions.of(PerToken)
def sum_token_transitions(edges, rows, sample, counts, buffers):
    """Move the differences of all tokens and of their features to the buffers."""
    length, k = sample[1] - sample[0], counts.shape[1]
    flat, total = counts.reshape(counts.shape[0], k * k), buffers.total.transition
    for i in range(k):
        for j in range(k):
            total[i, j] = 0.0
            for t in range(1, length):
                total[i, j] += counts[t, i, j]
    sum_features(rows.transitions, sample, flat, buffers.settings, buffers.transitions)
    for t in range(1, length):
        for p in range(k * k):
            flat[t, p] = 0.0


@family
def add_spread(edges, counts, spread, variance, buffers, codes):
    """Add the variance of the score of the differences of transitions and biases to a sum."""
    return spread + spread_of_biases(counts, buffers.total, variance)


@add_spread.of(PerToken)
def add_token_spread(edges, counts, spread, variance, buffers, codes):
    """Add the variance of the differences of transitions, their features, and biases."""
    spread += spread_of_sums(buffers.transitions, variance.transition_weights)
    return spread + spread_of_biases(buffers.total.transition, buffers.total, variance)


@add_spread.of(SecondOrder)
def add_pair_spread(edges, counts, spread, variance, buffers, codes):
    """Add the variance of the differences of pairs, triples and biases."""
    of_triples, where = variance.triple.reshape(variance.triple.size), edges.pairs.triple
    for q in range(where.shape[0]):
        spread += counts.log[q] * counts.log[q] * of_triples[where[q]]
    return spread + spread_of_biases(counts.first, buffers.total, variance)


@add_spread.of(GrowingList)
def add_listed_spread(edges, counts, spread, variance, buffers, codes):
    """Add the variance of the differences of changed transitions and biases."""
    return spread + spread_of_listed(counts, buffers.total, variance, codes)


# ------------------------------------------------------------------------------------------- biases


@inline_lean_jit
def sum_biases(sample, difference, fit_intercept, total):
    """Write the differences of the biases of a sample."""
    length = sample[1] - sample[0]
    for j in range(difference.shape[1]):
        total.intercept[j] = total.start[j] = total.end[j] = 0.0
        if not fit_intercept:
            continue
        for t in range(length):
            total.intercept[j] += difference[t, j]
        if sample[2]:
            total.start[j] = difference[0, j]
        if sample[3]:
            total.end[j] = difference[length - 1, j]


@inner_lean_jit
def spread_of_biases(counts, total, variance):
    """Variance of the score of the differences of transitions and biases."""
    spread = 0.0
    for j in range(total.intercept.shape[0]):
        for i in range(counts.shape[0]):
            spread += counts[i, j] * counts[i, j] * variance.transition[i, j]
        spread += total.intercept[j] * total.intercept[j] * variance.intercept[j]
        spread += total.start[j] * total.start[j] * variance.start[j]
        spread += total.end[j] * total.end[j] * variance.end[j]
    return spread


@inline_lean_jit
def spread_of_listed(counts, total, variance, codes):
    """Variance of the differences of biases and of the transitions with these codes."""
    n_labels = total.intercept.shape[0]
    spread, n = 0.0, 0
    for j in range(n_labels):
        while n < codes.shape[0] and codes[n] // n_labels == j:
            i = codes[n] % n_labels
            spread += counts[i, j] * counts[i, j] * variance.transition[i, j]
            n += 1
        spread += total.intercept[j] * total.intercept[j] * variance.intercept[j]
        spread += total.start[j] * total.start[j] * variance.start[j]
        spread += total.end[j] * total.end[j] * variance.end[j]
    return spread
