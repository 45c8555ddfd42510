"""Learning in parallel: iterative parameter mixing."""

import numpy as np

from skstruct.compiled.jit import jit
from skstruct.learning.epoch import NORM, RATE, SCALE, SEEN, TOTAL, EpochResult, OnlineState
from skstruct.utils.parallel import range_runner, run_tasks


class Mixture:
    """Learners that each have a shard of the training set (McDonald, Hall and Mann, 2010).

    The sequences are dealt out to shards once. In every epoch each shard learns alone, starting
    from the mean of the weights of all shards after the previous epoch. Nothing depends on which
    thread is faster, so the result is the same for the same number of shards. Every shard has its
    own weights, and with an average as many numbers again. Where weights have variances, the
    variances are averaged, too.

    Parameters
    ----------
    state : OnlineState
        State to start from.
    counting : ndarray of shape (n_counting,)
        Numbers of the sequences to learn from, dealt out like cards.
    n_shards : int
        Number of shards, at most one a sequence.
    n_jobs : int
        Number of threads, as far as the context of joblib allows.

    Attributes
    ----------
    state : OnlineState
        Weights after mixing, in the arrays of the first shard.
    """

    def __init__(self, state, counting, n_shards, n_jobs):
        self.n_jobs = n_jobs
        self.n_shards = n_shards
        self._shard_of = np.full(counting.max() + 1, -1)
        self._shard_of[counting] = np.arange(len(counting)) % n_shards
        kind = type(state.chain)
        self._weights = kind(*(np.repeat(part[None], n_shards, axis=0) for part in state.chain))
        self._lags = kind(*(np.zeros((n_shards, *part.shape)) for part in state.lag))
        # Variances, of learners that have them (see `ConfidentState`).
        more = state[len(OnlineState._fields) :]
        self._variances = [
            kind(*(np.repeat(part[None], n_shards, axis=0) for part in chain)) for chain in more
        ]
        first, *more = (_shard(chain, 0) for chain in (self._weights, *self._variances))
        self.state = type(state)(first, state.lag, state.progress, *more)

    def run_epoch(self, visit, samples, owner):
        """Let every shard visit its samples, and mix.

        Parameters
        ----------
        visit : callable
            ``visit(samples, owner, state)`` visits samples and changes the state.
        samples, owner : ndarray
            From `skstruct.learning.online.cut_sequences`, in the order of visit.

        Returns
        -------
        result : EpochResult
            Sum of the results of `visit`.
        """
        shard = np.full(len(owner), -1)
        known = owner < len(self._shard_of)
        shard[known] = self._shard_of[owner[known]]
        states = [self._shard_state(s) for s in range(self.n_shards)]

        def on_shard(s):
            return visit(samples[shard == s], owner[shard == s], states[s])

        results = run_tasks(on_shard, self.n_shards, self.n_jobs)
        self._mix(np.array([state.progress for state in states]))
        return EpochResult(*(sum(column) for column in zip(*results, strict=True)))

    def _shard_state(self, s):
        progress = np.zeros_like(self.state.progress)
        progress[[NORM, SCALE, RATE]] = self.state.progress[[NORM, SCALE, RATE]]
        chain, lag, *more = (
            _shard(chain, s) for chain in (self._weights, self._lags, *self._variances)
        )
        return type(self.state)(chain, lag, progress, *more)

    def _mix(self, progress):
        average = self.state.lag.weights.shape[0] > 0
        shares, totals = progress[:, SCALE] / self.n_shards, progress[:, TOTAL].copy()

        def mix_rows(shards, lags, lag, first, last):
            return mix(shards, lags, shares, totals, first, last, lag)

        names = self.state.chain._fields
        weights, *others = zip(self._weights, self._lags, self.state.lag, strict=True)
        norm_of = {}
        for name, (shards, lags, lag) in zip(names[1:], others, strict=True):
            if lag.ndim == 1:
                shards, lags, lag = shards[:, None], lags[:, None], lag[None]
            lags = lags if average else lags[:, :0]
            norm_of[name] = mix_rows(shards, lags, lag, 0, shards.shape[1])
        every_row = np.arange(self._weights.weights.shape[1] + 1)
        with range_runner(every_row, self.n_jobs) as run:
            norms = run(lambda _, first, last: mix_rows(*weights, first, last))
        for chain in self._variances:
            for part in chain:
                part[:] = part.mean(axis=0)
        now = self.state.progress
        norms += [norm_of[name] for name in self.state.chain.of_features[1:]]
        now[NORM], now[SCALE], now[TOTAL] = sum(norms), 1.0, 0.0
        now[RATE] = progress[:, RATE].mean()
        now[SEEN] += progress[:, SEEN].sum()


def _shard(chain, s):
    """Views of the weights of one shard."""
    return type(chain)(*(part[s] for part in chain))


@jit
def mix(shards, lags, shares, totals, first, last, lag):
    """Replace the weights of all shards by their mixture, and collect their sums for the average.

    Only the rows ``first:last`` are mixed, so ranges may run in parallel.

    Parameters
    ----------
    shards : ndarray of shape (n_shards, n_rows, n_columns)
        Weights of each shard, divided by its scale; all become the mixture.
    lags : ndarray of shape (n_shards, n_rows, n_columns)
        Lags of the average of each shard (see `OnlineState`), which become zero. Without rows there
        is no average.
    shares : ndarray of shape (n_shards,)
        Scale of each shard times its share of the mixture.
    totals : ndarray of shape (n_shards,)
        Sum of the scales of each shard after each of its samples.
    lag : ndarray of shape (n_rows, n_columns)
        Sums of the weights after each sample are subtracted from here.

    Returns
    -------
    norm : float
        Squared norm of these rows of the mixture.
    """
    n_shards, _, n_columns = shards.shape
    average = lags.shape[1] > 0
    mixture = np.empty(n_columns)
    norm = 0.0
    for i in range(first, last):
        for j in range(n_columns):
            mixture[j] = 0.0
        for s in range(n_shards):
            row = shards[s, i]
            for j in range(n_columns):
                mixture[j] += shares[s] * row[j]
            if average:
                behind = lags[s, i]
                for j in range(n_columns):
                    lag[i, j] += behind[j] - totals[s] * row[j]
                    behind[j] = 0.0
        for j in range(n_columns):
            norm += mixture[j] * mixture[j]
        for s in range(n_shards):
            for j in range(n_columns):
                shards[s, i, j] = mixture[j]
    return norm
