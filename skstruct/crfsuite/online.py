"""CRFsuite's online algorithms, for models with the same weights as CRFsuite's."""

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skstruct.input.formats import label_array
from skstruct.learning.epoch import SEEN
from skstruct.learning.objective import transition_frequency
from skstruct.taggers.arow import (
    HAMMING,
    ONE,
    ROOT,
    SHARE,
    Adaptive,
    AROWTagger,
    with_variance,
    workspace,
)
from skstruct.utils.persistence import set_module


@set_module("skstruct.crfsuite")
class OnlineCRF(AROWTagger):
    """Averaged perceptron, passive-aggressive and AROW as CRFsuite has them.

    The estimator behind `CRF` and `Trainer` for these algorithms. `PerceptronTagger`, `MIRATagger`
    and `AROWTagger` have more options. Visiting the sequences in the same order, it learns the
    weights that CRFsuite learns.

    Parameters
    ----------
    rule : {"ap", "pa", "arow"}, default="ap"
        Averaged perceptron, passive-aggressive, or adaptive regularisation of weights.
    min_freq : float, default=0
        Minimum frequency of a weight's feature.
    all_possible_states : bool, default=False
        If True, every feature has a weight for every label, else for those that it occurs with.
    all_possible_transitions : bool, default=False
        If True, every label pair has a weight, else those that occur.
    pa_type : {0, 1, 2}, default=1
        Type of "pa": without slack, with a limit, or with squared slack.
    c : float, default=1.0
        Aggressiveness of "pa" of type 1 and 2.
    error_sensitive : bool, default=True
        The margin of "pa" is the square root of the number of wrong tokens, else 1.
    average : bool, default=True
        Predict with the average of the weights.
    variance : float, default=1.0
        Variance of every weight of "arow" at first.
    gamma : float, default=1.0
        Strength of the regularisation of "arow".
    epsilon : float, default=0.0
        Stop when the mean loss of a sequence in an epoch is less than this, for "arow" at most
        this. The loss of "ap" is the share of wrong tokens.
    max_iter : int, default=100
        Largest number of epochs.
    shuffle : bool, default=True
        Visit the sequences in a new random order in every epoch.
    random_state : int, RandomState instance or None, default=None
        Source of the order.
    fit_intercept : bool, default=False
        Learn biases, which CRFsuite does not have.
    tol : float or None, default=None
        As of `AROWTagger`.
    constraint : str or array-like of bool of shape (n_classes, n_classes), default=None
        As of `AROWTagger`.
    class_weight : dict, "balanced" or None, default=None
        As of `AROWTagger`.
    n_jobs : int, default=None
        As of `AROWTagger`.
    warm_start : bool, default=False
        As of `AROWTagger`.
    verbose : int, default=0
        1 prints a line for each epoch with the time left, 2 the numbers of ``history_``.

    See Also
    --------
    CRF : The estimator with the interface of sklearn-crfsuite.
    """

    _parameter_constraints: dict = {
        **AROWTagger._parameter_constraints,
        "max_iter": [Interval(Integral, 0, None, closed="left")],
        "rule": [StrOptions({"ap", "pa", "arow"})],
        "min_freq": [Interval(Real, None, None, closed="neither")],
        "all_possible_states": ["boolean"],
        "all_possible_transitions": ["boolean"],
        "pa_type": [Interval(Integral, 0, 2, closed="both")],
        "c": [Interval(Real, 0, None, closed="neither")],
        "error_sensitive": ["boolean"],
        "epsilon": [Interval(Real, None, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        rule="ap",
        min_freq=0,
        all_possible_states=False,
        all_possible_transitions=False,
        pa_type=1,
        c=1.0,
        error_sensitive=True,
        average=True,
        variance=1.0,
        gamma=1.0,
        epsilon=0.0,
        max_iter=100,
        shuffle=True,
        random_state=None,
        fit_intercept=False,
        tol=None,
        constraint=None,
        class_weight=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ):
        self.rule = rule
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.average = average
        self.variance = variance
        self.gamma = gamma
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.constraint = constraint
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def _learner(self, model):
        return self._online_learner(
            model,
            lambda _: self._rule(workspace(model)),
            start=self._start,
            is_over=self._is_over,
            lists=True,
        )

    def _rule(self, buffers):
        if self.rule == "arow":
            return Adaptive(HAMMING, float(self.gamma), np.inf, True, *buffers)
        if self.rule == "ap":
            return Adaptive(SHARE, 0.0, np.inf, False, *buffers)
        slack = 0.5 / self.c if self.pa_type == 2 else 0.0
        cap = float(self.c) if self.pa_type == 1 else np.inf
        return Adaptive(ROOT if self.error_sensitive else ONE, slack, cap, False, *buffers)

    def _start(self, state, training_set):
        """State with a variance for the weights of the model, and zero for all others."""
        # CRFsuite's average has one term more, the zero weights before the first sequence.
        state.progress[SEEN] = 1.0
        states, transitions = self._weights_of_the_model(training_set, state.chain)
        self._n_weights = np.count_nonzero(states) + np.count_nonzero(transitions)
        variance = float(self.variance) if self.rule == "arow" else 1.0
        state = with_variance(state, variance)
        state.variance.weights[~states] = 0.0
        state.variance.transition[~transitions] = 0.0
        return state

    def _weights_of_the_model(self, training_set, chain):
        """True for the pairs of feature and label, and for the label pairs, that have a weight."""
        shape, (rows, *_) = chain.weights.shape, training_set.rows.sets()
        labels = np.repeat(training_set.labels, np.diff(rows.indptr))
        pairs = rows.indices.astype(np.int64) * shape[1] + labels
        count = np.bincount(pairs, minlength=chain.weights.size).reshape(shape)
        frequency = count
        if rows.data.size:
            frequency = np.bincount(pairs, rows.data, chain.weights.size).reshape(shape)
        states = self._kept(frequency, count, self.all_possible_states)
        for vectors in training_set.rows.placed:
            # Each token has all of these columns.
            states[vectors.columns] = True
        frequency = transition_frequency(training_set, shape[1])
        return states, self._kept(frequency, frequency, self.all_possible_transitions)

    def _kept(self, frequency, count, every):
        """True where a pair has a weight."""
        return ((count > 0) | every) & (frequency >= self.min_freq)

    def _is_over(self, history, n_sequences):
        mean = history["loss"][-1] / max(n_sequences, 1)
        return mean < self.epsilon or (self.rule == "arow" and mean == self.epsilon)

    def _keep(self, solution):
        super()._keep(solution)
        self.n_weights_ = self._n_weights

    def name_classes(self, labels):
        """Replace the classes, which are the numbers of labels, by the labels.

        Parameters
        ----------
        labels : list of str
            Distinct labels.
        """
        order = sorted(range(len(labels)), key=labels.__getitem__)
        self.classes_ = label_array([labels[code] for code in order])
        # The weights of a feature stay contiguous.
        self.coef_ = self.coef_.T[:, order].T
        self.transition_ = self.transition_[order][:, order]
        for name in ("intercept_", "start_", "end_"):
            setattr(self, name, getattr(self, name)[order])
