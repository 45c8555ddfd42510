"""A linear layer and the layer of pytorch-crf in place of `CRFTagger`, for the same objective.

Both learn from dense vectors, in one thread. Tokens that are padding take part in no product, and
sentences of about the same length are together. The time to evaluate the objective is not counted
where an optimiser does not need it.
"""

import warnings
from contextlib import suppress
from functools import partial
from time import perf_counter, process_time

import numpy as np

from benchmarks.common.processes import seconds_of
from skstruct import CRFTagger

# Above the optimum, as parts of it.
GAPS = (0.01, 0.001)
LBFGS_RATES, ADAM_RATES, DECAY = (1.0, 0.1), (0.1, 0.3, 1.0), 0.95
# Sentences at a time: of L-BFGS the numbers that are tried, of Adam those of a step.
BUCKETS, BATCH = (64, 256, 1024), 32
FOREVER, N_TRIES = 10**6, 3


class Layers:
    """Linear layer and CRF, with batches of sentences that have about the same length."""

    def __init__(self, X, y, n_labels):
        import torch
        from torchcrf import CRF

        torch.manual_seed(0)
        self._X, self._y = list(map(torch.from_numpy, X)), list(map(torch.from_numpy, y))
        self.linear, self.crf = torch.nn.Linear(X[0].shape[1], n_labels), CRF(n_labels)
        self.parameters = [*self.linear.parameters(), *self.crf.parameters()]
        for values in self.parameters:
            torch.nn.init.zeros_(values)
        self.n = len(X)

    def batches(self, size, rng=None):
        """Vectors, places in the padded matrix, labels and mask; with `rng` in a random order."""
        import torch

        lengths = np.array(list(map(len, self._X)))
        # Equal lengths in an order of their own in each epoch.
        ties = np.arange(self.n) if rng is None else rng.permutation(self.n)
        order = np.lexsort((ties, lengths))
        cuts = [order[start : start + size] for start in range(0, self.n, size)]
        for i in range(len(cuts)) if rng is None else rng.permutation(len(cuts)):
            some = cuts[i]
            tags = torch.nn.utils.rnn.pad_sequence([self._y[i] for i in some])
            steps = torch.arange(len(tags))[:, None]
            mask = steps < torch.from_numpy(lengths[some])
            # By sentence, as the vectors are.
            places = mask.T.nonzero().T.flip(0)
            yield torch.cat([self._X[i] for i in some]), tuple(places), tags, mask

    def loss(self, batch):
        """Negative log-likelihood of a batch."""
        vectors, places, tags, mask = batch
        scores = vectors.new_zeros((*tags.shape, self.crf.num_tags))
        return -self.crf(scores.index_put(places, self.linear(vectors)), tags, mask)

    def penalty(self):
        """Half the sum of the squares of all weights."""
        return sum(values.square().sum() for values in self.parameters) / 2

    def objective(self, batches):
        """Objective, and its gradient in the parameters."""
        for values in self.parameters:
            values.grad = None
        penalty = self.penalty()
        penalty.backward()
        total = penalty.item()
        for batch in batches:
            loss = self.loss(batch)
            loss.backward()
            total += loss.item()
        return total

    def set(self, tagger):
        """Take the weights of a tagger."""
        import torch

        given = (tagger.coef_, tagger.intercept_, tagger.start_, tagger.end_, tagger.transition_)
        with torch.no_grad():
            for values, found in zip(self.parameters, given, strict=True):
                values.copy_(torch.from_numpy(np.asarray(found)))


class Watch:
    """Seconds of processor and of time until an objective is near the optimum."""

    def __init__(self, optimum, limit):
        self.optimum, self._targets = optimum, [optimum * (1 + gap) for gap in GAPS]
        self._limit, self._paused = limit, np.zeros(2)
        self.found, self.n_passes, self.least = [], 0, np.inf
        self._start = self._now()

    def _now(self):
        return np.array([process_time(), perf_counter()])

    def pause(self, compute):
        """Result of a call that is not counted."""
        start = self._now()
        result = compute()
        self._paused += self._now() - start
        return result

    @property
    def near(self):
        """Whether the last target was met."""
        return len(self.found) == len(GAPS)

    def see(self, objective):
        """Note an objective after one more pass; true if there is nothing to wait for."""
        self.n_passes, self.least = self.n_passes + 1, min(self.least, objective)
        taken = self._now() - self._start - self._paused
        while len(self.found) < len(GAPS) and objective <= self._targets[len(self.found)]:
            self.found.append((*taken, self.n_passes))
        return self.near or taken[0] > self._limit


def watched(run, make, optimum, limit):
    """What was seen of a run that begins with weights of zero."""
    layers, watch = make(), Watch(optimum, limit)
    run(layers, watch)
    return watch


class Reached(Exception):
    """The optimum is near, or too much time is over."""


def run_lbfgs(layers, watch, rate, size):
    """Full batches, with a line search that meets the strong Wolfe conditions."""
    import torch

    batches = list(layers.batches(size))
    optimiser = torch.optim.LBFGS(
        layers.parameters,
        lr=rate,
        max_iter=FOREVER,
        max_eval=FOREVER,
        tolerance_grad=0,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure():
        value = layers.objective(batches)
        if watch.see(value):
            raise Reached
        return torch.tensor(value)

    with suppress(Reached):
        optimiser.step(closure)


def run_adam(layers, watch, rate):
    """Steps by a few sentences; after each epoch the rate is lowered."""
    import torch

    optimiser, rng = torch.optim.Adam(layers.parameters, lr=rate), np.random.default_rng(0)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, DECAY)
    every = list(layers.batches(BUCKETS[1]))
    near = False
    while not near:
        for batch in layers.batches(BATCH, rng):
            optimiser.zero_grad()
            share = batch[2].shape[1] / layers.n
            (layers.loss(batch) / share + layers.penalty()).backward()
            optimiser.step()
        schedule.step()
        near = watch.see(watch.pause(lambda: layers.objective(every)))


def fit_tagger(X, y, **options):
    """A tagger with all weights that the layers have, and the seconds of its fit."""
    tagger = CRFTagger(all_possible_transitions=True, fit_intercept=True, **options)
    start = process_time(), perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tagger.fit(X, y)
    return tagger, (process_time() - start[0], perf_counter() - start[1])


def evaluate(layers, size):
    """Objective and gradient by batches of a size."""
    return layers.objective(layers.batches(size))


def show(taken):
    """Seconds of the processor and, in brackets, of time."""
    return f"{taken[0]:.1f} ({taken[1]:.1f})"


def row_of(title, watch, ours):
    """Row of a run: seconds, passes over the sentences, and how many times ours it took."""
    cells = [show(found) for found in watch.found]
    cells += [f"{watch.least / watch.optimum - 1:.1%} at best"] * (len(GAPS) - len(cells))
    times = f"{watch.found[-1][0] / ours:.1f}" if watch.near else ""
    return [title, *cells, watch.n_passes, times]


def turns_of(X, y, runs, targets, repeat):
    """What each fit of ours took, and what was seen of each run of the network, in turn.

    A run that does not come near the optimum is made once.
    """
    ours, seen = {"whole": [fit_tagger(X, y)]}, {title: [] for title in runs}
    objectives = ours["whole"][0][0].history_["objective"]
    enough = {t: max(1, int(np.argmax(objectives <= t))) for t in targets}
    for turn in range(repeat):
        if turn > 0:
            ours["whole"].append(fit_tagger(X, y))
        for target, n in enough.items():
            ours.setdefault(target, []).append(fit_tagger(X, y, max_iter=n))
        for title, run in runs.items():
            if turn == 0 or seen[title][-1].near:
                seen[title].append(run())
                print(title, seen[title][-1].found, flush=True)
    return ours, seen


def measure_network(X, y, repeat, limit):
    """Rows of seconds until the objective is near the optimum, and a note.

    X is a list of matrices. A run ends after `limit` seconds of the processor.
    """
    import torch

    torch.set_num_threads(1)
    best, _ = fit_tagger(X, y, tol=1e-7)
    optimum = float(best.history_["objective"][-1])
    codes = [np.searchsorted(best.classes_, labels) for labels in y]
    make = partial(Layers, X, codes, len(best.classes_))
    layers = make()
    layers.set(best)
    same = layers.objective(layers.batches(BUCKETS[1]))
    if not np.isclose(same, optimum, rtol=1e-5):
        raise AssertionError(f"The objectives differ: {same} and {optimum}.")
    # The first steps load a part of the library.
    run_lbfgs(layers, Watch(optimum, 0), 1.0, BUCKETS[1])
    size = min(
        BUCKETS, key=lambda n: seconds_of(partial(evaluate, layers, n), N_TRIES, process_time)
    )
    ways = {f"L-BFGS, rate {r:g}": partial(run_lbfgs, rate=r, size=size) for r in LBFGS_RATES}
    ways |= {f"Adam, rate {r:g}": partial(run_adam, rate=r) for r in ADAM_RATES}
    runs = {title: partial(watched, way, make, optimum, limit) for title, way in ways.items()}
    ours, seen = turns_of(X, y, runs, [optimum * (1 + gap) for gap in GAPS], repeat)
    (tagger, taken), *early = (min(fits, key=lambda fit: fit[1][0]) for fits in ours.values())
    passes = [one.n_iter_ for one, _ in early]
    cells = [show(seconds) for _, seconds in early]
    times = f"{early[-1][1][0] / taken[0]:.1f}"
    rows = [
        ["`CRFTagger()`, whole fit", *[show(taken)] * len(GAPS), tagger.n_iter_, ""],
        ["`CRFTagger()`, stopped there", *cells, passes[-1], times],
    ]
    for title, watches in seen.items():
        best_of = min(watches, key=lambda watch: [seconds for seconds, *_ in watch.found[::-1]])
        rows.append(row_of(title, best_of, taken[0]))
    gap = float(tagger.history_["objective"][-1]) / optimum - 1
    note = (
        f"{len(X):,} sentences, {sum(map(len, X)):,} tokens, {X[0].shape[1]} numbers each, "
        f"{len(best.classes_)} labels. `CRFTagger()` ended {gap:.3%} above the optimum. "
        f"The least of {repeat} runs, in turn."
    )
    return rows, note
