"""Every programme on every kind of chain, against sums and maxima over all labellings.

A kind of chain that is made here, with the members that are needed and no other, shows that no
programme knows the kinds.
"""

import itertools
import os
import subprocess
import sys
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from helpers.marks import compiled

from skstruct.chain.astar import astar_nbest
from skstruct.chain.beam import beam_nbest
from skstruct.chain.dense import Dense
from skstruct.chain.forward_backward import forward_backward, subtract_agreeing
from skstruct.chain.listed import GrowingList, Leaving, Listed, collect_transitions
from skstruct.chain.per_token import PerToken
from skstruct.chain.protocol import (
    factors_of,
    finish,
    have_states,
    label_of,
    score,
    sources,
    state_rows,
    width,
    zero_counts,
)
from skstruct.chain.second_order import PairCounts, Pairs, SecondOrder, list_pairs
from skstruct.chain.viterbi import viterbi


class Ladder(NamedTuple):
    """A kind of chain with three members: labels go up by one step at most, or stay."""

    up: np.ndarray  # (n_labels,), score of the step up into each label
    stay: np.ndarray  # (n_labels,)


@width.of(Ladder)
def ladder_width(edges, t):
    return edges.up.shape[0]


@sources.of(Ladder)
def ladder_sources(edges, t, s):
    return max(s - 1, 0), s + 1


@score.of(Ladder)
def ladder_score(edges, t, i, s):
    return edges.stay[s] if i == s else edges.up[s]


class Patient(NamedTuple):
    """A kind of chain whose states are not labels: a label stays for two tokens at least.

    State ``label`` is new, state ``n_labels + label`` goes on.
    """

    log: np.ndarray


@width.of(Patient)
def patient_width(edges, t):
    return 2 * edges.log.shape[0] if t > 0 else edges.log.shape[0]


@sources.of(Patient)
def patient_sources(edges, t, s):
    k = edges.log.shape[0]
    # What goes on comes from the same label, new or not; all between them are forbidden.
    if s >= k:
        return (s - k, s + 1) if t > 1 else (s - k, s - k + 1)
    return (k, 2 * k) if t > 1 else (0, 0)


@score.of(Patient)
def patient_score(edges, t, i, s):
    k = edges.log.shape[0]
    if s < k:
        return edges.log[i % k, s]
    return 0.0 if i % k == s - k else -np.inf


have_states(Patient)


@label_of.of(Patient)
def patient_label_of(edges, t, s):
    return s % edges.log.shape[0]


# Sizes of weights: each array of scores has one of its own where none is given.
SCALES = 1.0, 30.0, 100.0, 200.0, 350.0, 1000.0
KINDS = ("dense", "per token", "listed", "growing", "second order", "ladder", "patient")


def make(kind, rng, length, k, draw):
    """Edges of a kind, and a function for the sum of the transition scores of a labelling."""

    def of_pairs(score_of):
        return lambda y: sum(score_of(t, y[t - 1], y[t]) for t in range(1, length))

    if kind == "per token":
        each = draw(length, k, k)
        return PerToken(each), of_pairs(lambda t, i, j: each[t, i, j])
    if kind == "second order":
        first, third = draw(k, k), draw(k, k, k) + draw(k, k)
        pairs = Pairs(*list_pairs(first))
        # Pairs that stand where none is possible are forbidden as all others are.
        log = np.where(first.ravel()[pairs.last] > -np.inf, third.ravel()[pairs.triple], -np.inf)

        def of_triples(y):
            if any(first[i, j] == -np.inf for i, j in itertools.pairwise(y)):
                return -np.inf
            later = sum(third[y[t - 2], y[t - 1], y[t]] for t in range(2, length))
            return later + (first[y[0], y[1]] if length > 1 else 0.0)

        return SecondOrder(first, log, pairs), of_triples
    if kind == "ladder":
        up, stay = draw(k), draw(k)
        steps = {0: stay, 1: up}

        def of_steps(t, i, j):
            return steps[j - i][j] if j - i in steps else -np.inf

        return Ladder(up, stay), of_pairs(of_steps)
    matrix = draw(k, k)
    if kind == "dense":
        return Dense(matrix), of_pairs(lambda t, i, j: matrix[i, j])
    if kind == "patient":

        def of_segments(y):
            lengths = [len(list(group)) for _, group in itertools.groupby(y)]
            if min(lengths[:-1], default=2) < 2:
                return -np.inf
            return sum(matrix[i, j] for i, j in itertools.pairwise(y) if i != j)

        np.fill_diagonal(matrix, -np.inf)
        return Patient(matrix), of_segments
    *into, leaving = collect_transitions(matrix, np.empty((0, 0), bool), matrix.size)
    edges = Listed(*into, Leaving(*leaving)) if kind == "listed" else GrowingList(*into)
    return edges, of_pairs(lambda t, i, j: matrix[i, j])


class Case:
    """Scores of one sequence, and all of its labellings with theirs, best first."""

    def __init__(self, kind, seed, scale, forbidden):
        self.rng = np.random.default_rng(seed)
        self.length, self.k = self.rng.integers(1, 6), self.rng.integers(2, 4)

        def draw(*shape):
            size = self.rng.choice(SCALES) if scale is None else scale
            x = self.rng.normal(scale=size, size=shape)
            x[self.rng.random(shape) < 0.3] = 0.0
            x[self.rng.random(shape) < forbidden] = -np.inf
            return x

        self.edges, self.transitions = make(kind, self.rng, self.length, self.k, draw)
        size = self.rng.choice(SCALES) if scale is None else 1.0
        self.scores = np.round(self.rng.normal(scale=size, size=(self.length, self.k)), 1)
        self.paths = list(itertools.product(range(self.k), repeat=int(self.length)))
        self.scores_of_paths = np.array([self.score_of(path) for path in self.paths])

    def score_of(self, path):
        return self.scores[np.arange(self.length), path].sum() + self.transitions(path)

    def possible(self):
        return np.any(self.scores_of_paths > -np.inf)

    def probabilities(self, agreeing=None):
        scores = self.scores_of_paths.copy()
        if agreeing is not None:
            wrong = [np.any((agreeing >= 0) & (agreeing != path)) for path in self.paths]
            scores[wrong] = -np.inf
        high = scores.max()
        p = np.exp(scores - high)
        return high + np.log(p.sum()), p / p.sum()

    def marginals(self, p):
        node = np.zeros((self.length, self.k))
        for path, share in zip(self.paths, p, strict=True):
            node[np.arange(self.length), path] += share
        return node

    def run(self, edges, weight=1.0):
        factors, counts = factors_of(edges, self.length), zero_counts(edges, self.length)
        node, scale = np.empty((self.length, self.k)), np.empty(self.length)
        log_z = forward_backward(
            self.scores.copy(), self.length, factors, node, scale, weight, counts
        )
        return log_z, node, counts, factors


def check_best(case):
    labels = np.empty(case.length, np.int32)
    best = viterbi(case.scores.copy(), case.length, case.edges, labels)
    assert np.isclose(best, case.scores_of_paths.max()) or not case.possible()
    assert np.isclose(best, case.score_of(tuple(labels))) or not case.possible()


def check_searches(case, n_best=7):
    possible = np.sort(case.scores_of_paths[case.scores_of_paths > -np.inf])[::-1][:n_best]
    for search in ("astar", "beam"):
        labels, found = np.zeros((n_best, case.length), np.int32), np.empty(n_best)
        scores = case.scores.copy()
        if search == "astar":
            n = astar_nbest(scores, case.length, case.edges, n_best, labels, found)
        else:
            rows = state_rows(case.edges, scores, case.length)
            most = rows.shape[1] ** int(case.length)
            n = beam_nbest(rows, case.length, case.edges, most, n_best, labels, found)
        assert n == max(len(possible), 1)
        if case.possible():
            np.testing.assert_allclose(found[:n], possible, rtol=1e-12, atol=1e-12)
            assert len({tuple(row) for row in labels[:n].tolist()}) == n
            for row, score_of_row in zip(labels[:n].tolist(), found, strict=False):
                assert np.isclose(case.score_of(tuple(row)), score_of_row)


def check_sums(case):
    if not case.possible():
        return
    expected, p = case.probabilities()
    log_z, node, _, _ = case.run(case.edges)
    np.testing.assert_allclose(log_z, expected, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(node, case.marginals(p), atol=1e-10)


def check_known(case):
    if not case.possible():
        return
    path = case.paths[int(np.argmax(case.scores_of_paths))]
    known = np.where(case.rng.random(case.length) < 0.5, path, -1).astype(np.int32)
    _, node, counts, factors = case.run(case.edges, 2.0)
    got = subtract_agreeing(case.scores.copy(), known, factors, 2.0, node, counts)
    expected, p = case.probabilities(known)
    _, of_all = case.probabilities()
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-10)
    difference = 2.0 * (case.marginals(of_all) - case.marginals(p))
    np.testing.assert_allclose(node, difference, atol=1e-9)


def arrays_of(record):
    """Arrays of scores, or of counts, in the same order for both."""
    if isinstance(record, Listed):
        return [record.score]
    if isinstance(record, np.ndarray):
        return [record]
    if isinstance(record, (SecondOrder, PairCounts)):
        return [record.first, record.log]
    return list(record)


def check_counts(case):
    """Counts are the derivatives of the log-partition."""
    if not case.possible():
        return
    _, _, counts, factors = case.run(case.edges, 1.5)
    finish(factors, counts)
    for scores, counted in zip(arrays_of(case.edges), arrays_of(counts), strict=True):
        if isinstance(case.edges, Listed):
            counted = counted[case.edges.leaving.order]
        for place in np.ndindex(scores.shape):
            kept = scores[place]
            unused = isinstance(case.edges, PerToken) and place[0] == 0
            if kept == -np.inf or unused:
                continue
            values = []
            for change in (1e-5, -1e-5):
                scores[place] = kept + change
                values.append(case.run(case.edges, 0.0)[0])
            scores[place] = kept
            assert np.isclose(1.5 * (values[0] - values[1]) / 2e-5, counted[place], atol=1e-5)


def check_counts_of_states(case):
    """Where each transition is counted by itself, counts add up to marginals."""
    if not case.possible() or case.length == 1:
        return
    _, node, counts, factors = case.run(case.edges, 1.0)
    finish(factors, counts)
    totals = np.zeros((case.length, case.k))
    for t in range(1, case.length):
        for s in range(width(case.edges, t)):
            totals[t, label_of(case.edges, t, s)] += counts[t, :, s].sum()
    np.testing.assert_allclose(totals[1:], node[1:], atol=1e-10)


HARDNESS = [(1.0, 0.0), (5.0, 0.2), (400.0, 0.0), (400.0, 0.2), (None, 0.0), (None, 0.2)]


def check_all(kind, n_seeds):
    for seed, (scale, forbidden) in itertools.product(range(n_seeds), HARDNESS):
        case = Case(kind, seed, scale, forbidden)
        check_best(case)
        check_searches(case)
        check_sums(case)
        check_known(case)
        if kind in ("ladder", "patient"):
            check_counts_of_states(case)
        elif kind != "growing" and scale is not None and scale < 100:
            check_counts(case)


# What is made here is compiled anew by each process; "second order" has states that are pairs, too.
@pytest.mark.parametrize(
    "kind",
    [
        *("dense", "listed", "second order"),
        *map(compiled, ("per token", "growing", "ladder")),
    ],
)
def test_programmes_agree_with_the_enumeration(kind):
    check_all(kind, 25)


def test_pairs_that_are_lost_with_all_that_precede_them():
    """Weights of pairs that undo what underflows, under triples that are safe by themselves."""
    for seed in range(40):
        case = Case("second order", seed, 1.0, 0.0)
        edges, of_pairs = case.edges, case.rng.choice([-800.0, 0.0, 800.0], (case.k, case.k))
        log = edges.log + of_pairs.ravel()[edges.pairs.last]
        case.edges = edges._replace(first=edges.first + of_pairs, log=log)
        case.scores[:] += case.rng.choice([-700.0, 0.0, 700.0], case.scores.shape)
        case.scores_of_paths = np.array(
            [
                case.score_of(path) + sum(of_pairs[pair] for pair in pairwise(path))
                for path in case.paths
            ]
        )
        check_sums(case)
        check_known(case)


@pytest.mark.slow
def test_programmes_agree_in_plain_python():
    code = "import test_chain as t\nfor kind in t.KINDS: t.check_all(kind, 3)"
    paths = os.pathsep.join(sys.path)
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths}
    folder = os.path.dirname(__file__)
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=folder)


def test_a_class_without_a_needed_member_is_named():
    class Nothing(NamedTuple):
        log: np.ndarray

    with pytest.raises(TypeError, match="Nothing has no width"):
        width(Nothing(np.zeros((2, 2))), 0)
    with pytest.raises(TypeError, match="Nothing has no"):
        viterbi(np.zeros((2, 2)), 2, Nothing(np.zeros((2, 2))), np.empty(2, np.int32))
