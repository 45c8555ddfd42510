"""Online learners on shards, whose weights the driver mixes after every epoch.

This is iterative parameter mixing (McDonald, Hall and Mann, 2010). Threads take the mean of all
weights (`skstruct.learning.mixing`). Here the changes of a feature's weights are divided by about
the number of shards that made any: most features occur in few of many shards, and would hardly move
otherwise. A shard has the weights of its own features alone, and sends those that it has changed.
The penalty is a factor that all weights of a shard share.
"""

from copy import copy
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from skstruct.blocks.rows import scored
from skstruct.chain.dense import Chain
from skstruct.compiled.rows import dot
from skstruct.dask.shard import own_arrays
from skstruct.decoding import best_labels
from skstruct.learning.epoch import NORM, RATE, SCALE, SEEN, TOTAL, EpochResult
from skstruct.learning.online import averaged, note_epoch
from skstruct.learning.solver import Model
from skstruct.matrices import read_only
from skstruct.utils.progress import without_callbacks


def fit_online(tagger, workers, training_sets, numbers, model, start, monitor):
    """Learn the weights of an online learner.

    Parameters
    ----------
    tagger : PerceptronTagger, MIRATagger, SAPOTagger or CRFTagger
        With labels and features.
    workers : Cluster
        Where the shards are; anything with its `map` and `iterate`.
    training_sets, numbers : list
        From `skstruct.dask.learning.read_shards`, as the model.
    model : Model
    start : Chain or None
        Weights to start from.
    monitor : Monitor
        Says when to stop.

    Returns
    -------
    solution : Solution
    """
    learner = tagger._learner(model)
    sizes = workers.map(count_labels, [(part,) for part in training_sets])
    shards = zip(training_sets, numbers, sizes, strict=True)
    # Without tokens there is nothing to learn.
    shards = [(part, own, size) for part, own, size in shards if size[0]]
    if not any(n_labelled for *_, (_, n_labelled) in shards):
        raise ValueError("Sample weights must contain at least one non-zero number.")
    epochs = _Epochs(tagger, model, learner, workers, *zip(*shards, strict=True), start)
    return learner.run_epochs(epochs, monitor)


class _Epochs:
    """Weights of all features on the driver, and the epochs that change them."""

    def __init__(self, tagger, model, learner, workers, training_sets, numbers, sizes, start):
        self._workers, self._training_sets, self._numbers = workers, training_sets, numbers
        self.n_sequences, self._n_labelled = map(sum, zip(*sizes, strict=True))
        self._state = learner.new_state(None, start)
        seed = check_random_state(tagger.random_state).randint(2**31)
        sent = without_callbacks(tagger)
        # Workers have no use for the names of features.
        for name in vars(sent).keys() & {"vectorizer_", "feature_names_in_"}:
            delattr(sent, name)
        self._epoch = _Epoch(sent, model, seed, self.n_sequences, self._state.progress)

    def run(self, monitor, number):
        """Let all shards learn for an epoch, and mix."""
        epoch = self._epoch._replace(number=number)
        mixture = _Mixture(self._state)
        shards = self._shards(self._state.chain, range(len(self._numbers)))
        learnt = self._workers.iterate(learn_alone, shards, epoch)
        for own, result in zip(self._numbers, learnt, strict=True):
            mixture.add(own, result)
        mixture.finish()
        total, notes = mixture.total(), mixture.notes()
        note_epoch(monitor, number, total, self._n_labelled, self._state.progress, notes)

    def chain(self, overwrite=False):
        """Return the weights that predict."""
        return averaged(self._state, overwrite=overwrite)

    def accuracy(self):
        """Share of the labelled tokens of all shards that the weights label correctly."""
        hits = self._workers.iterate(count_right, self._shards(self.chain()))
        return sum(hits) / self._n_labelled

    def _shards(self, chain, *columns):
        """Yield the training set, the weights of its own features, and more of each shard."""
        for training_set, own, *more in zip(
            self._training_sets, self._numbers, *columns, strict=True
        ):
            yield training_set, chain._replace(weights=chain.weights[own]), *more


class _Mixture:
    """Mixture of the weights of all shards after an epoch, and the average of those before.

    Results of shards are added one after the other, and not kept.

    Parameters
    ----------
    state : OnlineState
        Weights from which all shards have started. `finish` changes them.
    """

    def __init__(self, state):
        self._state = state
        self._average = len(state.lag.weights) > 0
        # Sums over the shards of the chain, and of the lag of its average.
        self._chain, self._lag = (
            type(parts)(*map(np.zeros_like, parts)) for parts in (state.chain, state.lag)
        )
        self._n_changed = np.zeros(len(state.chain.weights))
        self._seen = []

    def add(self, own, learnt):
        """Add the result of a shard, whose features have the numbers `own`."""
        scale, total = learnt.progress[[SCALE, TOTAL]]
        rows = own[learnt.rows]
        self._n_changed[rows] += np.any(learnt.chain.weights, axis=1)
        for name, part, behind in zip(learnt.chain._fields, learnt.chain, learnt.lag, strict=True):
            # Rows are distinct, so that none is lost when they are added in place.
            where = rows if name == "weights" else ...
            getattr(self._chain, name)[where] += scale * part
            if self._average:
                getattr(self._lag, name)[where] += behind - total * part
        self._seen.append(learnt._replace(rows=None, chain=None, lag=None))

    def finish(self):
        """Replace the weights by the mixture, and add to the average."""
        progress = np.array([of_shard.progress for of_shard in self._seen])
        n, scales, totals = len(progress), progress[:, SCALE], progress[:, TOTAL]
        chain, lag = self._state.chain, self._state.lag
        for name in chain._fields[1:]:
            getattr(chain, name)[...] = getattr(self._chain, name) / n
            if self._average:
                getattr(lag, name)[...] += getattr(self._lag, name)
        # First what all weights have in common, changed or not: the penalty shrinks them.
        if self._average:
            lag.weights[...] -= sum(totals) * chain.weights
        chain.weights[...] *= sum(scales) / n
        factor = _gain(np.maximum(self._n_changed, 1))[:, None]
        chain.weights[...] += np.multiply(self._chain.weights, factor, out=self._chain.weights)
        if self._average:
            # Every shard counts its samples, and would see the whole change in all of them.
            factor *= n
            lag.weights[...] += np.multiply(self._lag.weights, factor, out=self._lag.weights)
        now, weights = self._state.progress, chain.weights.ravel()
        now[NORM] = dot(weights, weights)
        now[SCALE], now[TOTAL] = 1.0, 0.0
        now[RATE] = np.mean(progress[:, RATE])
        now[SEEN] += sum(progress[:, SEEN])

    def total(self):
        """Sum of the results of all shards."""
        results = (of_shard.result for of_shard in self._seen)
        return EpochResult(*map(sum, zip(*results, strict=True)))

    def notes(self):
        """Means of the notes over the samples."""
        n_visited = sum(of_shard.n_visited for of_shard in self._seen)
        noted = [of_shard.notes for of_shard in self._seen]
        return {name: sum(notes[name] for notes in noted) / n_visited for name in noted[0]}


def _gain(n_changed):
    """Factor of the sum of the changes that `n_changed` shards made to a feature's weights.

    A change that one shard alone has made counts as it is. Of several changes the mean moves too
    little where shards are small, and more than twice the mean would diverge where they are large.
    """
    return (1.75 - 0.75 / n_changed) / n_changed


# What workers do


class _Epoch(NamedTuple):
    """Settings of an epoch that all shards share."""

    tagger: object
    model: Model
    seed: int
    n_sequences: int
    progress: np.ndarray  # of the driver, which `_Mixture.finish` changes
    number: int = 0


class _Learnt(NamedTuple):
    """Result of an epoch of a shard.

    Of the weights of features, only the rows that changed are there: in `chain` their differences.
    """

    rows: np.ndarray  # features that changed, by the numbers of the shard
    chain: Chain
    lag: Chain
    progress: np.ndarray
    result: tuple  # fields of `EpochResult`
    notes: dict  # sums over the samples, for the history
    n_visited: int  # number of samples


def count_labels(training_set, _):
    """Numbers of the sequences with tokens of a shard, and of its tokens with a label."""
    effective = training_set.effective()
    return len(effective.sample_weight), int(np.count_nonzero(effective.labels >= 0))


def learn_alone(training_set, chain, shard, epoch):
    """Visit the sequences of a shard once, starting from the mixture."""
    training_set = own_arrays(training_set).effective()
    tagger = copy(epoch.tagger)
    tagger.n_features_in_ = len(chain.weights)
    learner = tagger._learner(epoch.model._replace(n_features=len(chain.weights)))
    state = learner.new_state(training_set, chain)
    state.progress[:] = epoch.progress
    # The driver adds up what the shards alone have seen.
    state.progress[[SEEN, TOTAL]] = 0.0
    # Seeded by shard and epoch, so that the result does not depend on the worker.
    random_state = np.random.RandomState(np.random.MT19937([epoch.seed, shard, epoch.number]))
    samples, owner = learner.draw_samples(training_set.offsets, random_state)
    # Samples are pieces of sequences; other shards are taken to have as many for each sequence.
    n_sequences = len(training_set.sample_weight)
    n_samples = round(len(samples) * epoch.n_sequences / n_sequences)
    rule = learner.rule(training_set)
    result = learner.visit(training_set, samples, owner, state, rule, n_samples)
    notes = learner.notes([rule], 1)
    return _Learnt(*_changes(state, chain.weights), result, notes, len(samples))


def _changes(state, before):
    """Fields of `_Learnt` of a state whose weights were `before`."""
    weights, lag = state.chain.weights, state.lag.weights
    changed = np.any(weights != before, axis=1)
    if len(lag):
        # A weight may have come back.
        changed |= np.any(lag != 0, axis=1)
    rows = np.flatnonzero(changed).astype(np.int32)
    chain = state.chain._replace(weights=weights[rows] - before[rows])
    lag = state.lag._replace(weights=lag[rows] if len(lag) else lag)
    return rows, chain, lag, state.progress


def count_right(training_set, chain, _):
    """Number of labelled tokens that a chain labels correctly."""
    training_set = own_arrays(training_set).effective()
    rows, chain = scored(training_set.rows, read_only(chain))
    predicted = best_labels(rows, training_set.offsets, chain, 1)
    return int(np.count_nonzero(predicted == training_set.labels))
