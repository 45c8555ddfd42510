"""Scores of tokens from the rows of weights of their features, and gradients in these rows."""

import numpy as np

from skstruct.chain.scores import value_of
from skstruct.compiled.jit import jit, lean_jit
from skstruct.compiled.lanes import (
    AHEAD,
    LANES,
    prefetch,
    scatter_block,
    scatter_unit_block,
    sum_shrunk_block,
)
from skstruct.compiled.rows import sum_rows
from skstruct.learning.layout import last_bit


@lean_jit
def end_of_full_rows(features, first, last):
    """First of some occurrences whose row is short."""
    k = first
    while k < last and features.places[k] >= features.full_from:
        k += 1
    return k


@jit
def state_scores(features, theta, n_labels, first, last, out):
    """Write the scores of the rows ``first:last``, without biases, into ``out``."""
    unit = features.data.shape[0] == 0
    places, data = features.places, features.data
    zero, final = np.zeros(n_labels), last_bit(features.labels)
    end = features.indptr[last]
    for t in range(first, last):
        score = out[t - first]
        a, b = features.indptr[t], features.indptr[t + 1]
        for k in range(a + AHEAD, min(b + AHEAD, end)):
            prefetch(theta, places[k])
        if n_labels < LANES:
            for j in range(n_labels):
                score[j] = 0.0
        else:
            c = end_of_full_rows(features, a, b)
            if unit:
                sum_rows(zero, theta, places, None, a, c, score)
            else:
                sum_rows(zero, theta, places, data, a, c, score)
            a = c
        for k in range(a, b):
            x = value_of(data, k)
            p = places[k]
            if p >= features.full_from:
                for j in range(n_labels):
                    score[j] += x * theta[p + j]
            else:
                code = 0
                while code < final:
                    code = np.int64(features.labels[p])
                    score[code & (final - 1)] += x * theta[p]
                    p += 1


@lean_jit
def shrunk_state_scores(features, vector, threshold, n_labels, first, last, out):
    """Do the same with the weights that are the entries of a vector, shrunk."""
    unit = features.data.shape[0] == 0
    places, data = features.places, features.data
    final, end = last_bit(features.labels), features.indptr[last]
    for t in range(first, last):
        score = out[t - first]
        a, b = features.indptr[t], features.indptr[t + 1]
        for k in range(a + AHEAD, min(b + AHEAD, end)):
            prefetch(vector, places[k])
        if n_labels < LANES:
            for j in range(n_labels):
                score[j] = 0.0
        else:
            c = end_of_full_rows(features, a, b)
            for j in range(0, n_labels, LANES):
                at = min(j, n_labels - LANES)
                if unit:
                    sum_shrunk_block(vector, places, None, a, c, at, threshold, score)
                else:
                    sum_shrunk_block(vector, places, data, a, c, at, threshold, score)
            a = c
        for k in range(a, b):
            x = value_of(data, k)
            p = places[k]
            if p >= features.full_from:
                for j in range(n_labels):
                    score[j] += x * shrink(vector[p + j], threshold)
            else:
                code = 0
                while code < final:
                    code = np.int64(features.labels[p])
                    score[code & (final - 1)] += x * shrink(vector[p], threshold)
                    p += 1


@lean_jit
def add_state_gradient(features, difference, n_labels, first, last, gradient):
    """Add the ``difference`` of each token to the rows of its features."""
    unit, final = features.data.shape[0] == 0, last_bit(features.labels)
    places, data = features.places, features.data
    for t in range(first, last):
        d = difference[t - first]
        a, b = features.indptr[t], features.indptr[t + 1]
        if n_labels >= LANES:
            c = end_of_full_rows(features, a, b)
            for j in range(0, n_labels, LANES):
                at = min(j, n_labels - LANES)
                if unit:
                    scatter_unit_block(d, places, a, c, at, j - at, gradient)
                else:
                    scatter_block(d, data, places, a, c, at, j - at, gradient)
            a = c
        for k in range(a, b):
            x = value_of(data, k)
            p = places[k]
            if p >= features.full_from:
                for j in range(n_labels):
                    gradient[p + j] += x * d[j]
            else:
                code = 0
                while code < final:
                    code = np.int64(features.labels[p])
                    gradient[p] += x * d[code & (final - 1)]
                    p += 1


@lean_jit
def squared_feature_norm(features, t):
    """Squared norm of the features of a token."""
    a, b = features.indptr[t], features.indptr[t + 1]
    if features.data.shape[0] == 0:
        return np.float64(b - a)
    total = 0.0
    for k in range(a, b):
        total += features.data[k] * features.data[k]
    return total


@lean_jit
def shrink(value, threshold):
    """Move a number towards zero; minus infinity stays."""
    return value - min(max(value, -threshold), threshold)


@lean_jit
def shrink_states(features, n_labels, first, last, vector, threshold, out):
    """Shrink the rows of all features of some tokens."""
    final = last_bit(features.labels)
    for k in range(features.indptr[first], features.indptr[last]):
        p = features.places[k]
        if p >= features.full_from:
            for j in range(p, p + n_labels):
                out[j] = shrink(vector[j], threshold)
        else:
            code = 0
            while code < final:
                code = np.int64(features.labels[p])
                out[p] = shrink(vector[p], threshold)
                p += 1
