"""Conditional random fields."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real

from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from skstruct.solvers.base import settings_of
from skstruct.solvers.registry import SOLVERS, check_parameters, load, require
from skstruct.taggers.base import BaseTagger
from skstruct.taggers.partial_fit import PartialFitMixin
from skstruct.taggers.prediction import LEARNT
from skstruct.utils.public_paths import set_module

__all__ = ["CRFTagger"]

# Attributes that not every solver sets.
_OF_SOLVERS = ("n_weights_", "suboptimality_bound_")


def _learns_online(tagger):
    if "partial_fit" not in SOLVERS[tagger.solver].supports:
        raise AttributeError(f"partial_fit needs solver='sgd', not {tagger.solver!r}.")
    return True


@set_module("skstruct")
class CRFTagger(PartialFitMixin, BaseTagger):
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
        **BaseTagger._parameter_constraints,
        "average": ["boolean"],
        "mini_length": [Interval(Real, 1, None, closed="left"), None],
        "structure_alpha": [Interval(Real, 1, None, closed="left")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        "solver": [StrOptions(set(SOLVERS))],
        "l2": [Interval(Real, 0, None, closed="left")],
        "l1": [Interval(Real, 0, None, closed="left")],
        "min_freq": [Interval(Real, 0, None, closed="left")],
        "all_possible_states": ["boolean"],
        "all_possible_transitions": ["boolean"],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "decay": [Interval(Real, 0, 1, closed="right")],
    }

    _learns_transition_features = True
    _learnt = (*LEARNT, *_OF_SOLVERS)

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

    partial_fit = available_if(_learns_online)(PartialFitMixin.partial_fit)

    def _check_params(self):
        check_parameters(self.solver, self.get_params(deep=False))

    def _solver(self):
        solver = load(self.solver)
        return partial(solver.solve, settings=settings_of(solver.Settings, self))

    def _learner(self, model):
        solver = load(self.solver)
        return solver.learner(model, settings_of(solver.Settings, self))

    def _learns_partial_labels(self):
        return "partial_labels" in SOLVERS[self.solver].supports

    def _model(self):
        model = super()._model()
        if model.n_transition_features is not None:
            require(self.solver, "transition_features", "X with transition features (transition_X)")
        return model

    def _watcher(self, validation, on_prediction):
        if any(part is not None for part in validation):
            require(self.solver, "validation_set", "X_val and y_val")
        return super()._watcher(validation, on_prediction)

    def _keep(self, solution):
        self._forget(*_OF_SOLVERS)
        super()._keep(solution)
        for name, value in zip(_OF_SOLVERS, (solution.n_weights, solution.bound), strict=True):
            if value is not None:
                setattr(self, name, value)
