"""Conditional random fields."""

from __future__ import annotations

import warnings
from numbers import Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from skstruct.crfsuite.solver import train_with_crfsuite
from skstruct.kernels.likelihood.lbfgs import dot
from skstruct.kernels.online.partial import partial_crf_epoch
from skstruct.kernels.online.sgd import crf_epoch
from skstruct.solvers.lbfgs import minimize_lbfgs
from skstruct.solvers.objective import CRFObjective
from skstruct.solvers.owlqn import minimize_owlqn
from skstruct.taggers.early_stopping import BestIterate
from skstruct.taggers.online import OnlineTagger
from skstruct.utils.history import History
from skstruct.utils.parallel import range_runner
from skstruct.utils.public_paths import set_module

__all__ = ["CRFTagger"]

# With at least so many tokens, some epochs of stochastic ascent come before L-BFGS; with fewer,
# all of a fit takes less time than to compile them once.
_MANY_TOKENS = 10_000
# Steps of L-BFGS from zero before the curvature says anything.
_BLIND_STEPS = 15
# Parameters that not all solvers can do justice to, and the values that ask for nothing.
_SOLVERS_OF = {
    "l1": (("lbfgs", "crfsuite"), 0),
    "warm_start": (("lbfgs", "sgd", "sag", "crfsuite"), False),
    "min_freq": (("lbfgs", "crfsuite"), 0),
    "average": (("sgd",), False),
    "structure_alpha": (("sgd",), 1),
    "mini_length": (("sgd",), None),
    "early_stopping": (("lbfgs", "sgd"), False),
}


def _learns_online(tagger):
    if tagger.solver != "sgd":
        raise AttributeError(f"partial_fit needs solver='sgd', and it is {tagger.solver!r}.")
    return True


@set_module("skstruct")
class CRFTagger(OnlineTagger):
    """Linear-chain conditional random field (Lafferty, McCallum and Pereira, 2001).

    Minimises ``sum_i s_i nll_i(w) + l1 |w|_1 + l2 / 2 |w|^2`` over the weights ``w`` of features,
    label pairs and biases, where ``nll_i`` is the negative log-likelihood of the labels of sequence
    ``i``. With the defaults of `min_freq`, `all_possible_states`, `all_possible_transitions` and
    ``fit_intercept=False`` the model is CRFsuite's, with ``c1 = l1`` and ``c2 = l2 / 2``. On
    sequences of length one it is multinomial logistic regression, with ``C = 1 / l2``.

    Parameters
    ----------
    solver : {"lbfgs", "sag", "oeg", "sgd", "crfsuite"}, default="lbfgs"
        How the minimum is found. "lbfgs": limited-memory BFGS on the whole objective, computed
        in `n_jobs` threads; sets of 10,000 tokens or more are started by a dozen epochs or fewer
        of dual-free coordinate ascent (Shalev-Shwartz, 2016). With `l1` it is orthant-wise L-BFGS
        (Andrew and Gao, 2007).
        "sag": stochastic average gradient with non-uniform sampling (Schmidt et al., 2015), and
        "oeg": online exponentiated gradient (Collins et al., 2008), two methods that go sequence
        by sequence and yet come to the minimum; they learn no features of transitions. "sgd":
        stochastic gradient descent, sequence by sequence, which comes near the minimum in a few
        epochs, but never tells how near. "crfsuite": L-BFGS of CRFsuite, by the package
        python-crfsuite, for comparison.
    l2 : float, default=1.0
        Strength of the squared penalty, not negative, and positive with "oeg". All weights are
        penalised, the biases too.
    l1 : float, default=0.0
        Strength of the penalty on absolute values, which makes weights exactly zero. Only "lbfgs"
        and "crfsuite".
    min_freq : float, default=0
        Combinations of a feature or label with a label that are less frequent than this have no
        weight. The frequency of a feature is the sum of its absolute values. Only "lbfgs" and
        "crfsuite".
    all_possible_states : bool, default=False
        Whether every feature has a weight for every label, and not only for those that it
        occurs with. With "sag", "oeg" and "sgd" it always has.
    all_possible_transitions : bool, default=False
        Whether every label pair has a weight, and not only those that occur; the same goes for
        its combinations with features of transitions. With "sag", "oeg" and "sgd" it always has.
    fit_intercept : bool, default=True
        Whether to learn a bias of each label, of first and of last tokens.
    constraint : str or array-like of bool of shape (n_classes, n_classes), default=None
        Which labellings are possible: those that are valid in the scheme "IOB1", "IOB2", "IOBES"
        (or "BIOES") or "BILOU"; or, of an array in the order of ``classes_``, those in which the
        label of a column follows that of a row only where it is true. All others have no
        probability, in learning and in prediction, and their weights are minus infinity. Not
        with "oeg" and "crfsuite".
    max_iter : int, default=1000
        Most iterations of "lbfgs", or epochs of the others.
    tol : float or None, default=1e-4
        With "lbfgs", stop when the objective is certainly within this share of its minimum, by
        the bound ``|gradient|^2 / (2 l2)``; or, as that says nothing of a model without penalty,
        when ten iterations brought it down by less than a hundredth of this share. With "sag" and
        "oeg" the same, by the smaller of that bound and the duality gap that "oeg" knows of; or
        when the objective has hardly changed in twenty epochs. They compute the objective after
        the first epoch, every tenth, and, at most every third, where an estimate says that it
        might be enough; this takes a third to a half of the time of an epoch. With "sgd",
        stop when the loss has not improved by more than this share of itself for
        `n_iter_no_change` epochs; None goes on for `max_iter` epochs. With `early_stopping`,
        "lbfgs" and "sgd" stop when the share of right tokens in the validation set has not grown
        by more than this for `n_iter_no_change` epochs or iterations.
    learning_rate : float, default=0.1
        How far "sgd" moves the weights at the first sequence.
    decay : float, default=0.9
        Factor of the learning rate of "sgd" after each epoch, applied little by little; 1 keeps it.
    average : bool, default=False
        Whether to predict with the average of the weights after every sequence, or with the last
        ones. Only "sgd".
    structure_alpha : float, default=1.0
        Structure regularisation: in every epoch each sequence is cut anew at random into this many
        pieces, on average. 1 cuts nothing. Only "sgd".
    mini_length : float, default=None
        The same by the mean length of the pieces, in place of `structure_alpha`; 5.5 is a mixture
        of lengths 5 and 6. Only "sgd".
    shuffle : bool, default=True
        Whether "sgd" visits the sequences in a new random order in every epoch.
    random_state : int, RandomState instance or None, default=None
        Source of the order of "sag", "oeg" and "sgd", and of the part held out. "lbfgs" draws
        nothing else.
    early_stopping : bool, default=False
        Whether to watch the accuracy on the validation set that `fit` was given, or else on a
        part of the sequences that is held out, and keep the weights of the best epoch (or
        iteration). Only "lbfgs" and "sgd".
    validation_fraction : float, default=0.1
        Share of the sequences that is held out with `early_stopping`.
    n_iter_no_change : int, default=5
        Epochs of "sgd", with `early_stopping` also iterations of "lbfgs", to wait for an
        improvement.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; classes without one have 1. A sequence counts ``sample_weight``
        times the mean class weight of its tokens. "balanced" weighs classes by
        ``n_tokens / (n_classes * count)``, not in `partial_fit`.
    n_jobs : int, default=None
        Number of threads, -1 means all processors. Prediction is the same for any number (None
        means 1 unless in a `joblib.parallel_config` context), and learning is for the same number.
        "lbfgs" divides the sums among the threads, "sag" and "oeg" only those of the objective.
        "sgd" visits one sequence after the other with
        None or 1; with more, the sequences are dealt out to as many shards, which learn side by
        side and mix their weights after every epoch; each has its own copy of the weights.
        `partial_fit` always visits one after the other.
    warm_start : bool, default=False
        Whether `fit` starts from the weights of the previous call, whose classes and features
        then stand. Not with "oeg", which has no weights to start from.
    verbose : int, default=0
        Whether to print the history of every iteration or epoch.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights of features.
    transition_ : ndarray of shape (n_classes, n_classes)
        Weights of label pairs, from row to column.
    transition_coef_ : ndarray of shape (n_classes, n_classes, n_transition_features)
        Weights of the features of transitions, where X has a ``transition_X``, from row to column.
    intercept_, start_, end_ : ndarray of shape (n_classes,)
        Biases of all, first and last tokens.
    n_iter_ : int
        Number of iterations, or epochs.
    n_weights_ : int
        Number of weights of the model. Not with "sgd".
    suboptimality_bound_ : float
        The objective is at most this far above its minimum, in its own unit; with
        `early_stopping`, the objective without the part held out. Only "lbfgs", "sag" and "oeg".
    history_ : dict of ndarray
        For each iteration of "lbfgs", from 0 for the start: ``"epoch"``, ``"time"`` (seconds since
        the start of `fit`'s optimisation), ``"objective"``, ``"bound"`` (on the distance from the
        minimum), ``"gradient_norm"`` and ``"weight_norm"``. For each epoch of "sag" and "oeg":
        ``"epoch"``, ``"time"``, ``"objective"`` and ``"bound"`` (nan where they were not computed),
        ``"gradient_norm"`` ("sag"; by what the gradients of the sequences were at their last visit)
        or ``"dual"`` ("oeg"; the lower bound), ``"updates"`` and ``"oracle_calls"`` (up to then).
        For each epoch of "sgd": ``"epoch"``,
        ``"time"``, ``"mistakes"`` (share of tokens for which another label was more probable, on
        the way), ``"loss"`` (negative log-likelihood, on the way) and ``"weight_norm"`` (of the
        weights of features); the objective itself would take another pass. With a validation set
        also ``"validation_score"``.
    n_features_in_ : int
        Number of features.
    n_transition_features_in_ : int
        Number of features of transitions, where X has a ``transition_X``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has them.
    vectorizer_ : SequenceVectorizer
        Where X was given as feature dicts or attribute strings, what made numbers of them.

    See Also
    --------
    PerceptronTagger : Learns much faster, without probabilities.
    SAPOTagger : Learns as "sgd" does, from the n best labellings in place of all.
    SDCACRF : The same minimum by the dual, with a certificate that says more.

    References
    ----------
    M. Schmidt et al. Non-uniform stochastic average gradient method for training conditional random
    fields. AISTATS 2015.

    M. Collins et al. Exponentiated gradient algorithms for conditional random fields and max-margin
    Markov networks. Journal of Machine Learning Research, 2008.

    Examples
    --------
    >>> from skstruct import CRFTagger
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> tagger = CRFTagger(l2=0.1).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}]])
    array([list(['DET', 'NOUN'])], dtype=object)
    """

    _parameter_constraints: dict = {
        **OnlineTagger._parameter_constraints,
        "solver": [StrOptions({"lbfgs", "sgd", "sag", "oeg", "crfsuite"})],
        "l2": [Interval(Real, 0, None, closed="left")],
        "l1": [Interval(Real, 0, None, closed="left")],
        "min_freq": [Interval(Real, 0, None, closed="left")],
        "all_possible_states": ["boolean"],
        "all_possible_transitions": ["boolean"],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "decay": [Interval(Real, 0, 1, closed="right")],
    }

    _epoch = staticmethod(crf_epoch)

    def __init__(
        self,
        *,
        solver="lbfgs",
        l2=1.0,
        l1=0.0,
        min_freq=0,
        all_possible_states=False,
        all_possible_transitions=False,
        fit_intercept=True,
        constraint=None,
        max_iter=1000,
        tol=1e-4,
        learning_rate=0.1,
        decay=0.9,
        average=False,
        structure_alpha=1.0,
        mini_length=None,
        shuffle=True,
        random_state=None,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=5,
        class_weight=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ):
        self.solver = solver
        self.l2 = l2
        self.l1 = l1
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.fit_intercept = fit_intercept
        self.constraint = constraint
        self.max_iter = max_iter
        self.tol = tol
        self.learning_rate = learning_rate
        self.decay = decay
        self.average = average
        self.structure_alpha = structure_alpha
        self.mini_length = mini_length
        self.shuffle = shuffle
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    partial_fit = available_if(_learns_online)(OnlineTagger.partial_fit)

    def _check_params(self):
        for name, (solvers, neutral) in _SOLVERS_OF.items():
            value = getattr(self, name)
            if self.solver not in solvers and value != neutral:
                raise ValueError(
                    f"{name}={value!r} needs solver={solvers[0]!r}, not {self.solver!r}."
                )
        if self.solver != "sgd" and self.tol is None:
            raise ValueError(f"tol=None needs solver='sgd', not {self.solver!r}.")
        if self.solver == "oeg" and self.l2 == 0:
            raise ValueError("l2=0 needs solver='lbfgs', not 'oeg': without penalty, no dual.")
        if self.solver in ("oeg", "crfsuite") and self.constraint is not None:
            raise ValueError(f"solver={self.solver!r} knows no constraint; use another solver.")

    def _new_state(self, *, warm):
        # What other solvers knew of their result is not known of what becomes of it.
        self._forget("n_weights_", "suboptimality_bound_")
        return super()._new_state(warm=warm)

    def _learns_partial_labels(self):
        return self.solver in ("lbfgs", "sgd")

    def _epoch_for(self, training_set):
        # Compiled only where it is needed.
        partial = training_set.labels.min(initial=0) < 0
        return partial_crf_epoch if partial else self._epoch

    def _forget(self, *names):
        for name in names:
            self.__dict__.pop(name, None)

    def _fit_with_crfsuite(self, training_set):
        self._forget("_state", "suboptimality_bound_")
        names = ("l1", "l2", "min_freq", "all_possible_states", "all_possible_transitions")
        names += ("fit_intercept", "max_iter", "tol", "verbose")
        learnt = train_with_crfsuite(
            training_set,
            self.n_features_in_,
            len(self.classes_),
            **{name: getattr(self, name) for name in names},
        )
        self._set_chain(learnt.chain)
        self.n_weights_, self.history_ = learnt.n_weights, learnt.history
        self.n_iter_ = len(learnt.history["epoch"])

    def _fit_stochastically(self, training_set):
        self._forget("_state")
        if hasattr(self, "n_transition_features_in_"):
            raise ValueError(
                f"solver={self.solver!r} does not learn features of transitions (transition_X); "
                "use solver='lbfgs' or 'sgd'."
            )
        # Imported where it is needed: other solvers never pay for it.
        from skstruct.solvers.stochastic import learn_stochastically

        warm = self.warm_start and hasattr(self, "coef_")
        names = ("l2", "fit_intercept", "tol", "max_iter", "n_jobs", "verbose")
        learnt = learn_stochastically(
            self.solver,
            training_set,
            self.n_features_in_,
            len(self.classes_),
            check_random_state(self.random_state),
            start=self._chain() if warm else None,
            possible=self._possible(),
            **{name: getattr(self, name) for name in names},
        )
        if not learnt.converged:
            self._warn(learnt.n_iter, "epochs")
        self.n_iter_, self.n_weights_ = learnt.n_iter, learnt.n_weights
        self.history_, self.suboptimality_bound_ = learnt.history, learnt.bound
        self._set_chain(learnt.chain)

    def _warn(self, n_iter, what):
        warnings.warn(
            f"The objective is not known to be within tol={self.tol} of its minimum after "
            f"{n_iter} {what}, of max_iter={self.max_iter}.",
            ConvergenceWarning,
            stacklevel=6,
        )

    def _fit(self, training_set, validation_set=None):
        self._check_params()
        if self.solver == "sgd":
            self._fit_online(training_set, validation_set)
            return
        if self.solver != "lbfgs" and validation_set is not None:
            raise ValueError(f"X_val and y_val need solver='lbfgs' or 'sgd', not {self.solver!r}.")
        if self.solver in ("sag", "oeg"):
            self._fit_stochastically(training_set)
            return
        if self.solver == "crfsuite":
            self._fit_with_crfsuite(training_set)
            return
        self._forget("_state")
        if self.early_stopping and validation_set is None:
            random_state = check_random_state(self.random_state)
            training_set, validation_set = self._hold_out(training_set, random_state)
        counting = np.flatnonzero(training_set.sample_weight > 0)
        if len(counting) < len(training_set.sample_weight):
            training_set = training_set.take(counting)
        objective = CRFObjective(
            training_set,
            self.n_features_in_,
            len(self.classes_),
            getattr(self, "n_transition_features_in_", 0),
            l2=self.l2,
            min_freq=self.min_freq,
            all_possible_states=self.all_possible_states,
            all_possible_transitions=self.all_possible_transitions,
            fit_intercept=self.fit_intercept,
            possible=self._possible(),
        )
        del training_set
        theta = self._minimize(objective, BestIterate(self, objective.unpack, validation_set))
        self.n_weights_ = objective.n_weights
        self._set_chain(objective.unpack(theta))

    def _starts(self, objective):
        """Where to start from, and after how many steps to ask for the curvature; at best first."""
        if self.warm_start and hasattr(self, "coef_"):
            yield objective.pack(self._chain()), 1
            return
        many = len(objective.labels) >= _MANY_TOKENS
        if many and not (self.l1 or objective.partial):
            theta = objective.stochastic_start()
            if theta is not None:
                yield theta, 1
        yield np.zeros(objective.size), _BLIND_STEPS

    def _iterates(self, objective, run):
        """Points on the way to the minimum, from the first start that is no worse than zero."""

        def value_and_gradient(x, out):
            return objective.value_and_gradient(x, out, run)

        def curvature(x, out):
            objective.curvature(x, out, run)

        for theta, ask_at in self._starts(objective):
            if self.l1:
                iterates = minimize_owlqn(value_and_gradient, theta, self.l1)
            else:
                iterates = minimize_lbfgs(
                    value_and_gradient, theta, curvature=curvature, ask_at=ask_at
                )
            first = next(iterates)
            # A stochastic start may be worse where features are of such different scale, or so few,
            # that it has not settled.
            if first.value <= objective.most_at_zero:
                break
        yield first
        yield from iterates

    def _minimize(self, objective, watched):
        history = History(self.verbose)
        with range_runner(objective.offsets, self.n_jobs) as run:
            iterates = self._iterates(objective, run)
            for iteration, point in enumerate(iterates):
                bound = objective.suboptimality_bound(point.gradient)
                history.add(
                    epoch=iteration,
                    objective=point.value,
                    bound=bound,
                    gradient_norm=np.sqrt(dot(point.gradient, point.gradient)),
                    weight_norm=np.sqrt(dot(point.x, point.x)),
                )
                converged = bound <= self.tol * point.value or _stalled(history, self.tol)
                stopped = watched.visit(point.x, bound, history)
                if converged or stopped or iteration == self.max_iter:
                    break
        if not (converged or stopped):
            self._warn(iteration, "iterations")
        self.n_iter_ = iteration
        self.history_ = history.arrays()
        theta, self.suboptimality_bound_ = watched.best(point.x, bound)
        return theta


def _stalled(history, tol, period=10):
    """Whether the last ten iterations brought next to nothing, or there is nowhere to go."""
    if history["gradient_norm"][-1] == 0:
        return True
    objective = history["objective"]
    if len(objective) <= period:
        return False
    return objective[-1 - period] - objective[-1] <= 0.01 * tol * abs(objective[-1])
