"""Learning sequence by sequence: the loop over epochs, and the solver "sgd" that runs it."""

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from skstruct.blocks.rows import BlockRows, moved, without_blocks
from skstruct.blocks.visits import vectors_of, visit_rows
from skstruct.chain.dense import Dense
from skstruct.chain.forward_backward import forward_backward, subtract_agreeing
from skstruct.chain.listed import with_growing_edges
from skstruct.chain.protocol import add_edge, factors_of, finish, state_of
from skstruct.chain.scores import Rows, add_cost, path_score
from skstruct.chain.ties import first_largest
from skstruct.compiled.jit import jit
from skstruct.compiled.rows import sort_rows
from skstruct.decoding import list_transitions
from skstruct.input.constraints import WEIGHTS, forbid
from skstruct.learning.epoch import (
    N_PROGRESS,
    NORM,
    RATE,
    SCALE,
    SEEN,
    SMALLEST_SCALE,
    SMALLEST_WITH_VECTORS,
    TOTAL,
    EpochResult,
    OnlineState,
    Schedule,
    online_epoch,
    rule,
    subtract_lag,
)
from skstruct.learning.mixing import Mixture
from skstruct.learning.monitor import token_accuracy
from skstruct.learning.solver import Notice, Solution
from skstruct.matrices import copied_arrays, pieces, read_only
from skstruct.utils.parallel import chain_work, count_shards, portions


def averaged(state, *, overwrite=False):
    """Chain of the averaged weights, or of the current ones where there is no average.

    Parameters
    ----------
    state : OnlineState
        State after any number of samples.
    overwrite : bool, default=False
        Reuse the arrays of the state for the result.

    Returns
    -------
    chain : Chain
    """
    progress = state.progress
    factor, lag_factor = progress[SCALE], 0.0
    target = state.chain
    if state.lag.weights.shape[0] > 0 and progress[SEEN] > 0:
        factor, lag_factor = progress[TOTAL] / progress[SEEN], 1 / progress[SEEN]
        target = state.lag
    forbidden = {name: np.isneginf(getattr(state.chain, name)) for name in WEIGHTS}
    parts = []
    for weights, lag, out in zip(state.chain, state.lag, target, strict=True):
        part = out if overwrite else np.empty_like(weights)
        subtract_lag(
            np.atleast_2d(weights), factor, np.atleast_2d(lag), lag_factor, np.atleast_2d(part)
        )
        parts.append(part)
    chain = type(state.chain)(*parts)
    for name, which in forbidden.items():
        # Mixing shards has multiplied these by zero.
        getattr(chain, name)[which] = -np.inf
    return chain


def without_features(chain):
    """The weights of transitions and biases."""
    return chain._replace(**{name: getattr(chain, name)[:0] for name in chain.of_features})


def undo_of(state, rows):
    """Function that restores the weights which a pass over some rows is going to change.

    Parameters
    ----------
    state : OnlineState
        State before the pass. The pass must keep the scale of the weights (see `may_rescale`).
    rows : Rows
        Rows of the pass.
    """
    progress = state.progress.copy()
    visited = {
        name: _distinct(part.indices, len(getattr(state.chain, name)), placed)
        for name, part, placed in zip(
            state.chain.of_features, rows.sets(), (rows.placed, ()), strict=False
        )
    }
    chains = [state.chain, *state[len(OnlineState._fields) :]]
    if len(state.lag.weights) > 0:
        chains.append(state.lag)
    # Rows of the features that occur, and all other weights.
    places = [
        (part, visited.get(name, ...)) for chain in chains for name, part in chain._asdict().items()
    ]
    kept = [part.copy() if which is ... else np.take(part, which, axis=0) for part, which in places]

    def undo():
        for (part, which), saved in zip(places, kept, strict=True):
            part[which] = saved
        state.progress[:] = progress

    return undo


def may_rescale(state, l2, n_samples, smallest=SMALLEST_SCALE):
    """Return True if a pass over so many samples may multiply the scale into all weights."""
    shrinkage = state.progress[RATE] * l2 / max(n_samples, 1)
    if shrinkage >= 1:
        return True
    # Half of it, to allow for rounding.
    least = np.log(state.progress[SCALE] / 2) + n_samples * np.log1p(-shrinkage)
    return least <= np.log(smallest)


def _distinct(indices, n, placed):
    occurs = np.zeros(n, bool)
    occurs[indices] = True
    for one in placed:
        occurs[one.columns] = True
    return np.flatnonzero(occurs)


class Settings(NamedTuple):
    """Parameters of the loop, with values for estimators that do not have them."""

    max_iter: int = 100
    tol: float | None = 1e-3
    average: bool = False
    fit_intercept: bool = True
    structure_alpha: float = 1.0
    mini_length: float | None = None
    shuffle: bool = True
    random_state: object = None
    n_jobs: int | None = None
    learning_rate: float = 1.0
    decay: float = 1.0
    l2: float = 0.0


class OnlineLearner:
    """Learner that changes its weights after every sequence.

    Parameters
    ----------
    settings : Settings
        Parameters of the loop.
    model : Model
        Size of the model, and its constraint.
    rule : callable
        ``rule(training_set)`` returns the NamedTuple that the compiled rule reads, and whose class
        says which rule it is (see `skstruct.learning.epoch.rule`). Called for each shard and epoch.
    start : callable, default=None
        ``start(state, training_set)`` returns the state before the first sample, from an
        `OnlineState`. By default, the same.
    merit : callable, default=None
        ``merit(history)`` returns the figure that is to grow by more than `tol`. By default, minus
        the logarithm of the loss.
    is_over : callable, default=None
        ``is_over(history, n_sequences)`` returns True if an epoch was the last. By default, the
        learner stops where there are no mistakes left.
    notes : callable, default=None
        ``notes(rules, n_visited)`` returns more columns of the history, from what `rule` returned
        for each shard.
    lists : bool, default=False
        The rule learns the same, and sooner, where the transitions of large label sets are listed.
    work : float, default=1.0
        Work of an update; a search for the best labelling is 1.
    """

    def __init__(
        self,
        settings,
        model,
        rule,
        *,
        start=None,
        merit=None,
        is_over=None,
        notes=None,
        lists=False,
        work=1.0,
    ):
        self.settings, self.rule, self.notes = settings, rule, notes or (lambda *_: {})
        self._model, self._lists, self._work = model, lists, work
        self._start, self._merit, self._is_over = start, merit or _minus_log_loss, is_over
        self._read = None

    def fit(self, training_set, start, monitor):
        """Learn for up to `max_iter` epochs; takes and returns what a solver does."""
        random_state = check_random_state(self.settings.random_state)
        # Neighbours in the text become neighbours in memory. Others need not know.
        rank = by_appearance(training_set.rows.sets()[0], self._model.n_features)
        training_set = monitor.hold_out(training_set, random_state)
        training_set = training_set._replace(rows=renumbered(training_set.rows, rank))
        state = self.new_state(training_set, start)
        if start is not None:
            reorder(state.chain.weights, np.argsort(rank).astype(rank.dtype))
        return self.run_epochs(_Epochs(self, training_set, state, random_state, rank), monitor)

    def run_epochs(self, epochs, monitor):
        """Run epochs until the learner has converged, or for as many as there may be.

        Parameters
        ----------
        epochs : object
            ``run(monitor, number)`` visits every sample, and adds an entry to the history.
            ``chain(overwrite=False)`` returns the weights that predict; with `overwrite` they may
            take the place of others, which are no longer needed. ``accuracy()`` is theirs on the
            training set, of ``n_sequences``.
        monitor : Monitor
            Says when to stop.

        Returns
        -------
        solution : Solution
        """
        settings, notice, epoch = self.settings, None, 0
        monitor.start_clock()
        for epoch in range(1, settings.max_iter + 1):
            epochs.run(monitor, epoch)
            stop = monitor.visit(epochs.chain, self._merit(monitor.history))
            if stop or self._was_last(monitor.history, epochs):
                break
        else:
            if settings.tol is not None:
                notice = Notice(f"Still improving after max_iter={settings.max_iter} epochs.")
        found = monitor.best or epochs.chain(overwrite=True)
        return Solution(found, monitor.arrays(), epoch, notice=notice)

    def _was_last(self, history, epochs):
        """Return True if the rule says so, or if there are no mistakes left.

        An epoch makes none, and neither do the weights that predict: the average lags behind the
        current weights, and pieces say nothing about whole sequences.
        """
        if self._is_over is not None:
            return self._is_over(history, epochs.n_sequences)
        if history["mistakes"][-1] > 0 or history["loss"][-1] > 0:
            return False
        return epochs.accuracy() == 1.0

    def new_state(self, training_set, start=None):
        """State before the first sample, with copies of the weights of a chain, or zero."""
        model, progress = self._model, np.zeros(N_PROGRESS)
        if start is None:
            chain = model.zero_chain()
        else:
            chain = forbid(copied_arrays(start), model.possible)
            squares = (np.square(getattr(chain, name)).sum() for name in chain.of_features)
            progress[NORM] = sum(squares)
        progress[SCALE], progress[RATE] = 1.0, self.settings.learning_rate
        averages = model._replace(possible=None)
        if not self.settings.average:
            averages = averages.without_features()
        state = OnlineState(chain, averages.zero_chain(), progress)
        return state if self._start is None else self._start(state, training_set)

    def protect(self, state, training_set, undo):
        """Make sure that a pass that fails can be undone.

        Parameters
        ----------
        state : OnlineState
            State before the pass.
        training_set : TrainingSet
            Sequences of the pass.
        undo : list of callable
            Gets the function that undoes the pass.

        Returns
        -------
        state : OnlineState
            The same, or a copy if the pass may touch all weights.
        """
        n_samples = np.count_nonzero(np.diff(training_set.offsets))
        has_vectors = bool(training_set.rows.placed)
        smallest = SMALLEST_WITH_VECTORS if has_vectors else SMALLEST_SCALE
        if may_rescale(state, self.settings.l2, n_samples, smallest):
            return copied_arrays(state)
        undo.append(undo_of(state, training_set.rows))
        return state

    def run_epoch(self, training_set, state, random_state, monitor, number, mixture=None):
        """Visit every sample once, and note the result.

        Parameters
        ----------
        training_set : TrainingSet
            Sequences to learn from.
        state : OnlineState
            Updated.
        random_state : RandomState instance
            Source of the order and of the cuts.
        monitor : Monitor
            Gets an entry of the history.
        number : int
            Number of the epoch.
        mixture : Mixture, default=None
            Shards that learn side by side; by default, there is one.
        """
        samples, owner = self.draw_samples(training_set.offsets, random_state)
        # Before threads ask for them.
        self._readable(training_set.rows)
        rules = []

        def visit(samples_, owner_, state_):
            rules.append(self.rule(training_set))
            return self.visit(training_set, samples_, owner_, state_, rules[-1], len(samples))

        if mixture is None:
            result = EpochResult(*visit(samples, owner, state))
        else:
            result = mixture.run_epoch(visit, samples, owner)
        lengths = samples[:, 1] - samples[:, 0]
        n_visited = np.count_nonzero((lengths > 0) & (training_set.sample_weight[owner] > 0))
        notes = self.notes(rules, n_visited)
        n_labelled = np.count_nonzero(training_set.labels >= 0)
        note_epoch(monitor, number, result, n_labelled, state.progress, notes)

    def visit(self, training_set, samples, owner, state, rule, n_samples):
        """Visit samples one after the other.

        Parameters
        ----------
        training_set : TrainingSet
            Their sequences.
        samples, owner : ndarray
            From `draw_samples`, in the order of visit.
        state : OnlineState
            Updated.
        rule : NamedTuple
            What the compiled rule reads.
        n_samples : int
            Number of all samples of the epoch, among which the penalty is divided.

        Returns
        -------
        result : tuple
            Fields of `EpochResult`.
        """
        state, work_per_row = self._list_transitions(state)
        weight = training_set.sample_weight[owner]
        schedule = self._schedule(len(samples), n_samples)
        lengths, n_labels = samples[:, 1] - samples[:, 0], self._model.n_labels
        rows = visit_rows(*self._readable(training_set.rows), lengths.max(initial=0), n_labels)
        results = [
            online_epoch(
                rows,
                training_set.labels,
                samples[part],
                weight[part],
                schedule,
                rule,
                state,
            )
            for part in portions(lengths, self._work * work_per_row)
        ]
        return tuple(sum(column) for column in zip(*results, strict=True))

    def _readable(self, rows):
        """Rows and vectors for visits, which are kept for the next epoch.

        Vectors that single precision cannot multiply become sparse columns.
        """
        if self._read is None or self._read[0] is not rows:
            moderate = all(block.may_be_single() for _, block in rows.placed)
            found = rows if moderate else without_blocks(rows)
            self._read = rows, (found, vectors_of(found))
        return self._read[1]

    def _list_transitions(self, state):
        """State of a pass, with listed transitions if that pays, and its work."""
        transition = state.chain.transition
        edges = Dense(transition)
        if self._lists and state.chain.may_list:
            edges = list_transitions(transition, "online")
        work_per_row = chain_work(len(transition), self._model.order)
        work_per_row += edges.n_scores - transition.size
        return state._replace(chain=with_growing_edges(edges, state.chain)), work_per_row

    def draw_samples(self, offsets, random_state):
        """Draw the samples of an epoch in their order, and the sequence that each belongs to."""
        samples, owner = cut_sequences(
            offsets,
            random_state,
            mini_length=self.settings.mini_length,
            structure_alpha=self.settings.structure_alpha,
        )
        if self.settings.shuffle:
            order = np.arange(len(samples))
            random_state.shuffle(order)
            samples, owner = samples[order], owner[order]
        return samples, owner

    def _schedule(self, n_visits, n_samples):
        """Step sizes and penalty of a learner that visits some of the samples."""
        settings = self.settings
        penalty = settings.l2 / n_samples
        if settings.learning_rate * penalty >= 1:
            raise ValueError(
                f"learning_rate={settings.learning_rate} times l2={settings.l2} must be less than "
                f"the number of samples, {n_samples}."
            )
        decay = settings.decay ** (1 / n_visits)
        return Schedule(float(decay), float(penalty), settings.fit_intercept)


class _Epochs:
    """Epochs over a training set in one process, in shards that learn side by side or without.

    Its features are numbered by ``rank``.
    """

    def __init__(self, learner, training_set, state, random_state, rank):
        self._learner, self._training_set, self._rank = learner, training_set, rank
        self._random_state, self._n_jobs = random_state, learner.settings.n_jobs
        self.n_sequences = len(training_set.offsets) - 1
        counting = training_set.counting()
        n_shards = min(count_shards(self._n_jobs), len(counting))
        several = (state, counting, n_shards, self._n_jobs)
        self._mixture = Mixture(*several) if n_shards > 1 else None
        self._state = state if self._mixture is None else self._mixture.state

    def run(self, monitor, number):
        """Visit every sample."""
        data = self._training_set, self._state, self._random_state, monitor, number
        self._learner.run_epoch(*data, self._mixture)

    def chain(self, overwrite=False):
        """Return the weights that predict, in the order of the estimator's features."""
        chain = averaged(self._state, overwrite=overwrite and self._mixture is None)
        if not overwrite:
            return chain._replace(weights=np.take(chain.weights, self._rank, axis=0))
        # At the end of a fit, memory counts more than time.
        reorder(chain.weights, self._rank)
        return chain

    def accuracy(self):
        return token_accuracy(averaged(self._state), self._training_set, self._n_jobs)


def _minus_log_loss(history):
    return -np.log(max(history["loss"][-1], np.finfo(float).tiny))


def note_epoch(monitor, number, result, n_labelled, progress, notes):
    """Add an entry of an epoch to the history.

    Parameters
    ----------
    monitor : Monitor
    number : int
        Number of the epoch.
    result : EpochResult
        Of all samples.
    n_labelled : int
        Number of tokens with a label.
    progress : ndarray
        That of the state after the epoch.
    notes : dict
        What else there is to note.
    """
    weight_norm = progress[SCALE] * np.sqrt(np.maximum(progress[NORM], 0.0))
    monitor.add(
        epoch=number,
        mistakes=result.mistakes / max(n_labelled, 1),
        loss=result.loss,
        weight_norm=weight_norm,
        **notes,
    )


def by_appearance(rows, n_features):
    """Rank features by first appearance; those that do not appear come last."""
    n, first = 0, np.full(n_features, len(rows.indices))
    for features in pieces(rows.indices):
        np.minimum.at(first, features, np.arange(n, n + len(features)))
        n += len(features)
    rank = np.empty(n_features, np.int32)
    rank[np.argsort(first, kind="stable")] = np.arange(n_features, dtype=np.int32)
    return rank


def renumbered(rows, rank):
    """Rows whose features are numbered by rank; those of a token are sorted."""
    if rows.placed:
        # Columns of blocks are in no row: they come last, side by side as before.
        return BlockRows(renumbered(rows.tokens, rank), moved(rows.placed, rank))
    first, *more = rows.sets()
    indices, data = rank[first.indices], first.data.copy()
    sort_rows(first.indptr.copy(), indices, data)
    return read_only(type(rows)(*Rows(first.indptr, indices, data), *more))


def reorder(weights, source):
    """Permute rows in place: row ``f`` becomes the old row ``source[f]``."""
    # A few columns at a time, whose copy is small.
    for columns in pieces(weights.T, 8):
        columns[:] = columns[:, source]


# Pieces of sequences, for structure regularisation (Sun, 2014)


def cut_sequences(offsets, random_state, *, mini_length=None, structure_alpha=1.0):
    """Cut every sequence at random into mini-samples (structure-regularization-2014, Algorithm 1).

    Parameters
    ----------
    offsets : ndarray of shape (n_sequences + 1,)
        Row number at which each sequence starts.
    random_state : RandomState
        Source of the cuts. Nothing is drawn where nothing is cut.
    mini_length : float, default=None
        Length of the pieces. If it is not an integer, lengths are a mixture of the two nearest
        integers: 5.5 is as often 5 as 6. The rest of a sequence is a shorter piece at either end,
        so that the mean length of all pieces is below `mini_length`.
    structure_alpha : float, default=1.0
        Mean number of pieces of each sequence, if `mini_length` is None; 1 cuts nothing. Numbers
        are a mixture of the two nearest integers. A sequence of fewer tokens is cut between all of
        them.

    Returns
    -------
    samples : ndarray of shape (n_samples, 4)
        First row and end of each piece, and flags that are 1 if it has the first and the last token
        of its sequence.
    owner : ndarray of shape (n_samples,)
        Number of the sequence that each piece belongs to.
    """
    lengths = np.diff(offsets)
    if mini_length is None and structure_alpha == 1:
        whole = np.ones_like(lengths)
        return np.column_stack([offsets[:-1], offsets[1:], whole, whole]), np.arange(len(lengths))
    longest = lengths.max(initial=1)
    if mini_length is None:
        structure_alpha = min(structure_alpha, longest)
        fewest = int(structure_alpha)
        one_more = random_state.uniform(size=len(lengths)) < structure_alpha - fewest
        n_pieces = np.minimum(fewest + one_more, lengths)
        return cut_evenly(offsets, n_pieces, random_state.uniform(size=n_pieces.sum()))
    mini_length = min(mini_length, longest)
    most = -(-lengths // int(mini_length))
    # One number for the end at which the short rest is left, and one for each length.
    n_draws = int(most.sum()) + len(lengths)
    return cut(offsets, float(mini_length), random_state.uniform(size=n_draws))


@jit
def cut(offsets, target, draws):
    """Cut sequences into pieces of a given length (see `cut_sequences`).

    Parameters
    ----------
    offsets : ndarray of shape (n_sequences + 1,)
        First row of each sequence.
    target : float
        Mean length of the pieces, the rests of sequences left out.
    draws : ndarray
        Random numbers between 0 and 1: one for each sequence and one for each of its pieces.
    """
    samples = np.empty((draws.shape[0], 4), np.int64)
    owner = np.empty(draws.shape[0], np.int64)
    n, drawn, shorter = 0, 0, np.int64(target)
    for i in range(offsets.shape[0] - 1):
        a, b = offsets[i], offsets[i + 1]
        from_end = draws[drawn] < 0.5
        drawn += 1
        left, right = a, b
        while left < right:
            length = shorter + (draws[drawn] < target - shorter)
            drawn += 1
            length = min(length, right - left)
            start = right - length if from_end else left
            samples[n, 0], samples[n, 1] = start, start + length
            samples[n, 2], samples[n, 3] = start == a, start + length == b
            owner[n] = i
            n += 1
            if from_end:
                right -= length
            else:
                left += length
    return samples[:n], owner[:n]


@jit
def cut_evenly(offsets, n_pieces, draws):
    """Cut each sequence into a number of pieces whose lengths differ by one at most.

    The longer pieces stand anywhere, all orders being equally likely.

    Parameters
    ----------
    offsets : ndarray of shape (n_sequences + 1,)
        First row of each sequence.
    n_pieces : ndarray of shape (n_sequences,)
        Number of pieces of each sequence, at most its length.
    draws : ndarray of shape (sum of n_pieces,)
        Random numbers between 0 and 1.
    """
    samples = np.empty((draws.shape[0], 4), np.int64)
    owner = np.empty(draws.shape[0], np.int64)
    n = 0
    for i in range(n_pieces.shape[0]):
        start, end = offsets[i], offsets[i + 1]
        for left in range(n_pieces[i], 0, -1):
            rows = end - start
            length = rows // left + (draws[n] * left < rows % left)
            samples[n, 0], samples[n, 1] = start, start + length
            samples[n, 2], samples[n, 3] = start == offsets[i], start + length == end
            owner[n] = i
            start += length
            n += 1
    return samples, owner


# The solver "sgd": stochastic gradient descent on the negative log-likelihood


class Likelihood(NamedTuple):
    """Parameters of descent on the likelihood."""

    label_cost: np.ndarray  # added to the scores (see `add_cost`)


class MarginalLikelihood(NamedTuple):
    """Parameters of descent where some tokens have no label.

    The marginal likelihood is the probability of all labellings that agree with the known labels.
    Its logarithm is a difference of two log-partitions, and its gradient one of two means.
    """

    label_cost: np.ndarray


def learner(model, settings):
    """Online learner of a conditional random field."""
    cost = read_only(model.cost)

    def descent(training_set):
        known = training_set.labels.min(initial=0) >= 0
        return Likelihood(cost) if known else MarginalLikelihood(cost)

    # Exponentials of all pairs of labels, forward and backward.
    return OnlineLearner(settings, model, descent, work=5.0)


def solve(training_set, model, settings, start, monitor):
    """Learn as `skstruct.learning.solver` says."""
    return learner(model, settings).fit(training_set, start, monitor)


@rule.of(Likelihood)
def crf_rule(settings, rows, sample, scores, edges, gold, difference, counts):
    """Gold labelling less the expectation over all labellings.

    This is minus the gradient of the loss, the negative log-likelihood. A token counts as wrong if
    another label than the gold label has the largest marginal. The scores include costs of labels.
    """
    add_cost(settings.label_cost, gold, scores)
    length, n_labels = gold.shape[0], scores.shape[1]
    gold_score = path_score(scores, length, edges, gold)
    factors, scale = factors_of(edges, length), np.empty(length)
    log_z = forward_backward(scores, length, factors, difference, scale, -1.0, counts)
    finish(factors, counts)
    wrong = 0
    for t in range(length):
        wrong += first_largest(difference[t], n_labels) != gold[t]
        for j in range(n_labels):
            difference[t, j] = -difference[t, j]
        difference[t, gold[t]] += 1.0
        if t > 0:
            before, after = state_of(edges, gold, t - 1), state_of(edges, gold, t)
            add_edge(edges, counts, t, before, after, 1.0)
    loss = log_z - gold_score
    return wrong, 0.0 if loss < 0.0 else loss


@rule.of(MarginalLikelihood)
def partial_crf_rule(settings, rows, sample, scores, edges, labels, difference, counts):
    """Expectation over the labellings that agree with the known labels, less that over all.

    This is minus the gradient of the loss. The scores include the costs of labels.
    """
    add_cost(settings.label_cost, labels, scores)
    length, n_labels = labels.shape[0], scores.shape[1]
    kept, scale = scores[:length].copy(), np.empty(length)
    factors = factors_of(edges, length)
    loss = forward_backward(scores, length, factors, difference, scale, -1.0, counts)
    wrong = 0
    for t in range(length):
        wrong += labels[t] >= 0 and first_largest(difference[t], n_labels) != labels[t]
    loss -= subtract_agreeing(kept, labels, factors, -1.0, difference, counts)
    finish(factors, counts)
    return wrong, 0.0 if loss < 0.0 else loss
