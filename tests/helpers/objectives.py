"""Training sets and objectives of conditional random fields."""

from itertools import product

import naive
import numpy as np
from hypothesis import strategies as st
from strategies import lengths

from skstruct import SequenceBatch
from skstruct.chain.dense import Chain
from skstruct.input.costs import NO_COST
from skstruct.input.training_set import TrainingSet, batch_rows
from skstruct.learning.objective import CRFObjective
from skstruct.learning.solver import Model
from skstruct.matrices import read_only
from skstruct.utils.parallel import range_runner

VALUES = ("ones", "real")
# min_freq, all_possible_states, all_possible_transitions, fit_intercept
OPTIONS = list(product([0, 1.5], [False, True], [False, True], [False, True]))


def random_data(rng, lengths, n_labels, n_features, values):
    """Dense matrices and label lists of sequences, and positive sample weights."""
    shape = (sum(lengths), n_features)
    X = {"ones": np.ones(shape), "real": rng.normal(size=shape)}[values]
    # Some features are frequent, some rare, and some do not occur at all.
    X = X * (rng.random(shape) < np.linspace(0, 1, n_features) ** 2)
    y = rng.integers(n_labels, size=len(X))
    cuts = np.cumsum(lengths)[:-1]
    return np.split(X, cuts), [part.tolist() for part in np.split(y, cuts)]


def learnable_data(lengths, n_labels=3, n_features=4, seed=0):
    """Matrices, and labels that depend on the first features."""
    rng = np.random.default_rng(seed)
    shape = sum(lengths), n_features
    X = rng.normal(size=shape) * (rng.random(shape) < 0.6)
    y = np.argmax(X[:, :n_labels] + rng.normal(size=(len(X), n_labels)), axis=1)
    cuts = np.cumsum(lengths)[:-1]
    return np.split(X, cuts), [part.tolist() for part in np.split(y, cuts)]


def training_set(X, y, sample_weight=None, transition_X=None):
    """A training set of matrices or a batch, with None for labels that are not known."""
    if not isinstance(X, SequenceBatch):
        lengths = [len(x) for x in X]
        X = SequenceBatch.from_lengths(np.concatenate(X), lengths, transition_X=transition_X)
    labels = [-1 if label is None else label for sequence in y for label in sequence]
    sample_weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
    return packed_set(batch_rows(X), X.offsets, np.array(labels, np.int32), sample_weight)


def packed_set(rows, offsets, labels, sample_weight):
    """A training set as estimators make it, for which kernels need not be compiled once more."""
    return TrainingSet(rows, read_only(offsets), labels, read_only(sample_weight))


def crf_objective(
    data, n_features, n_labels, n_edges=None, *, possible=None, order=1, cost=NO_COST, **settings
):
    """The objective of a CRF of this size; `n_edges` is the number of transition features."""
    model = Model(n_features, n_labels, n_edges, possible, order, cost)
    return CRFObjective(data, model, **settings)


def make_objective(data, n_features, n_labels, options=(0, False, False, True), l2=0.5):
    """The objective of a CRF with one of `OPTIONS`."""
    min_freq, all_states, all_transitions, fit_intercept = options
    return crf_objective(
        data,
        n_features,
        n_labels,
        l2=l2,
        min_freq=min_freq,
        all_possible_states=all_states,
        all_possible_transitions=all_transitions,
        fit_intercept=fit_intercept,
    )


def evaluate(objective, theta, n_jobs=1):
    """Value and gradient of an objective."""
    gradient = np.full(objective.size, np.nan)
    with range_runner(objective.offsets, n_jobs) as run:
        return objective.value_and_gradient(theta, gradient, run), gradient


def random_theta(rng, objective, scale=1.0):
    """A parameter vector that is zero where the model has no weight."""
    k = objective.n_labels
    weights = scale * rng.normal(size=(objective.n_features, k))
    return objective.pack(Chain(weights, scale * rng.normal(size=(k, k)), *rng.normal(size=(3, k))))


def as_weights(chain):
    """A chain as the twins take it."""
    return naive.Weights(chain.weights.T, *chain[1:])


@st.composite
def objective_problems(draw):
    """A random generator, sizes, data and sample weights."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_labels, n_features = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    X, y = random_data(
        rng, draw(lengths(min_tokens=1)), n_labels, n_features, draw(st.sampled_from(VALUES))
    )
    weighted = draw(st.booleans())
    sample_weight = rng.choice([0.5, 1.0, 3.0], len(X)) if weighted else np.ones(len(X))
    return rng, X, y, n_labels, n_features, sample_weight
