"""Conditional random fields."""

from numbers import Real

from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from skstruct.learning import lbfgs, oeg, sag  # noqa: F401  (`load` finds them by name)
from skstruct.learning.solver import SOLVERS, check_parameters, load, require, settings_of
from skstruct.taggers.online import OnlineTagger
from skstruct.taggers.prediction import LEARNT
from skstruct.utils.declared import Choice, Numbers
from skstruct.utils.persistence import set_module

# Attributes that not every solver sets.
_OF_SOLVERS = ("n_weights_", "suboptimality_bound_")


def _learns_online(tagger):
    if "partial_fit" not in SOLVERS[tagger.solver].supports:
        raise AttributeError(f"partial_fit needs solver='sgd', not {tagger.solver!r}.")
    return True


@set_module("skstruct")
class CRFTagger(OnlineTagger):
    r"""Linear-chain conditional random field (Lafferty, McCallum and Pereira, 2001).

    Tags sequences with the most probable labels, and gives the exact probability of any labelling,
    label or chunk. The result depends on no seed with the default solver. A search for `l2` is what
    gains most; the other defaults fit most data.

    `fit` minimises

    .. math::

       \sum_i s_i \left( -\log p_w(y_i \mid x_i) \right) + l_1 \lVert w \rVert_1
       + \frac{l_2}{2} \, \lVert w \rVert^2

    over the weights :math:`w` of features, transitions and biases. The sequence :math:`x_i` has the
    labels :math:`y_i` and the sample weight :math:`s_i`; `label_cost` adds costs of wrong labels.
    With the defaults of `min_freq`, `all_possible_states`, `all_possible_transitions` and
    ``fit_intercept=False`` the model is CRFsuite's, with ``c1 = l1`` and ``c2 = l2 / 2``. On
    sequences of length one it is multinomial logistic regression, with ``C = 1 / l2``.

    The parameters, by what they are about:

    - the objective: `l2`, `l1`, `label_cost`, `class_weight`;
    - the weights that there are: `constraint`, `order`, `fit_intercept`, `min_freq`,
      `all_possible_states`, `all_possible_transitions`;
    - every solver: `max_iter`, `tol`, `n_jobs`, `random_state`, `warm_start`, `verbose`;
    - "lbfgs" and "sgd": `early_stopping`, `validation_fraction`, `n_iter_no_change`;
    - "lbfgs" with `l1`: `stop_when_settled`;
    - "sgd": `learning_rate`, `decay`, `average`, `structure_alpha`, `mini_length`, `shuffle`.

    Parameters
    ----------
    solver : {"lbfgs", "sag", "oeg", "sgd", "crfsuite"}, default="lbfgs"
        Algorithm that minimises the objective. "lbfgs": limited-memory BFGS on the whole
        objective, computed in `n_jobs` threads. Training sets of 1,000 tokens or more start from
        up to a dozen epochs of dual-free coordinate ascent (Shalev-Shwartz, 2016). With `l1` these
        epochs go on for as long as they gain, four to an iteration; with little `l2` they are steps
        of the proximal point method (Rockafellar, 1976). Then, and on small training sets, comes
        the proximal quasi-Newton method (Zhong et al., 2014), with the curvature of L-BFGS.
        "sag": stochastic average gradient with non-uniform sampling (Schmidt et al., 2015). "oeg":
        online exponentiated gradient (Collins et al., 2008). Both visit one sequence at a time and
        converge to the minimum. "sgd": stochastic gradient descent, which comes close to the
        minimum in a few epochs, without a bound on the distance. "crfsuite": CRFsuite's own
        L-BFGS, through the package python-crfsuite, for comparison.
    l2 : float, default=1.0
        Strength of the L2 penalty, on all weights including biases. Not negative; positive with
        "oeg".
    l1 : float, default=0.0
        Strength of the L1 penalty, which makes weights exactly zero. Only "lbfgs" and "crfsuite".
    min_freq : float, default=0
        Frequency below which a combination of a feature or label with a label has no weight. The
        frequency of a feature is the sum of its absolute values. With `order` 2 also of a pair
        of labels with the next. Only "lbfgs" and "crfsuite".
    all_possible_states : bool, default=False
        Give every feature a weight for every label, not only for those that it occurs with.
        Always so with "sag", "oeg" and "sgd".
    all_possible_transitions : bool, default=False
        Give every transition a weight, not only those that occur; likewise for its combinations
        with transition features, and for label triples. Always so with "sag", "oeg" and "sgd".
    fit_intercept : bool, default=True
        Learn a bias for each label, and for each label at the first and at the last token.
    order : {1, 2}, default=1
        Order of the chain. With 2, a label's score depends on the two labels before it: each triple
        of neighbouring labels has a weight beside its last pair's, so that a labelling
        scores as with order 1, plus a weight for each label from the third on. Triples have
        weights where they occur, as transitions have (see `min_freq` and
        `all_possible_transitions`). Time and memory grow with the cube of the number of labels.
        Only "lbfgs" and "sgd", without transition features.
    constraint : str or array-like of bool of shape (n_classes, n_classes), default=None
        Labellings that are allowed. A scheme, "IOB1", "IOB2" (or "BIO"), "IOE1", "IOE2", "IOBES"
        (or "BIOES"), "BILOU" or "BMES", allows its valid labellings, and "runs" all. An array, with
        rows and columns in the order of ``classes_``, allows transitions from row to column where
        it is True. Other labellings have probability zero, in learning and in prediction, and
        weights of minus infinity. Not supported by "oeg" and "crfsuite".
    learn_scheme : {"IOBES", "BIOES", "BILOU", "BMES"} or None, default=None
        Learn labels of this scheme in place of y's, which must be of IOB2, IOE2 or a scheme like
        this one; answers are in y's. Implies the constraint of y's scheme. Not supported by "oeg"
        and "crfsuite", nor with labels that are None.
    label_cost : array-like of shape (n_classes, n_classes) or dict, default=None
        Costs of wrong labels, which are added to their scores while learning (softmax-margin), so
        that the right label has to win by as much: an array from right label, the row, to predicted
        one, in the order of ``classes_``; a dict of numbers by pairs ``(right, predicted)``, zero
        where not given; or ``{"missed": 2}`` for "O" in place of any other label, which finds more
        names. Not negative. Tokens without a label have no cost. Only
        "lbfgs" and "sgd".
    max_iter : int, default=1000
        Largest number of iterations of "lbfgs", or of epochs of the others. With `l1`, "lbfgs"
        begins with a dual ascent, whose passes over the data count as iterations.
    tol : float or None, default=1e-4
        Relative tolerance. "lbfgs" stops when the bound on the distance of the objective from its
        minimum, :math:`\lVert g \rVert^2 / (2 \, l_2)` with the gradient :math:`g`, is at most this
        fraction of the objective, or when ten iterations gained less than a hundredth of it. With
        `l1` the bound is the duality gap, which is verified but closes late, and never without
        `l2`. Most fits end by an estimate: ten iterations gained less than a third of this
        fraction, which is CRFsuite's criterion with ``delta = tol / 3``. The objective is then
        usually within `tol` of its minimum, but ``suboptimality_bound_`` does not say so. "sag" and
        "oeg" stop likewise, "oeg" also by its duality gap, or when the objective has hardly changed
        in twenty epochs. They compute the objective, which takes a third to a half of the time of
        an epoch, after the first epoch, after every tenth, and when an estimate suggests
        convergence, at most every third. "sgd" stops when the loss has not improved by more than
        this fraction for `n_iter_no_change` epochs; None runs for `max_iter` epochs. With
        `early_stopping`, "lbfgs" and "sgd" stop when the accuracy on the validation set has not
        grown by more than this for `n_iter_no_change` iterations or epochs.
    stop_when_settled : bool, default=False
        With `l1`, stop "lbfgs" near the minimum, when the epochs of dual-free coordinate ascent
        have settled: the last one has changed the weights and the objective little. Takes a third
        of the time or less, and ends up to 1 % above the minimum. CRFsuite is usually further away
        after 100 iterations. Without effect where that is not so: without `l1`, with
        ``l1 < 0.1 * l2``, with ``l2 < 0.3 * sqrt(l1)``, with fewer than 25,000 tokens times `l2`,
        or with values other than 0 and 1.
    learning_rate : float, default=0.1
        Step size of "sgd" at the first sequence.
    decay : float, default=0.9
        Factor of the step size of "sgd" per epoch, applied gradually; 1 keeps the step size.
    average : bool, default=False
        Predict with the average of the weights after every sequence, not with the last ones. Only
        "sgd".
    structure_alpha : float, default=1.0
        Structure regularisation: each epoch cuts each sequence anew at random, into this many
        pieces on average, of about equal length. 1 cuts nothing. Only "sgd".
    mini_length : float, default=None
        Length of the pieces, in place of their number, `structure_alpha`. 5.5 is a mixture of
        lengths 5 and 6. The rest of a sequence is a shorter piece, so that the mean is lower.
        Only "sgd".
    shuffle : bool, default=True
        Visit the sequences in a new random order in every epoch of "sgd".
    random_state : int, RandomState instance or None, default=None
        Source of the order of the sequences in "sag", "oeg" and "sgd", and of the held-out set.
    early_stopping : bool, default=False
        Monitor the accuracy on a validation set, stop when it no longer improves, and keep the
        weights of the best epoch (or iteration). The validation set is the one passed to `fit`, or
        else held out from the training set. Only "lbfgs" and "sgd".
    validation_fraction : float, default=0.1
        Fraction of the sequences that `early_stopping` holds out.
    n_iter_no_change : int, default=5
        Epochs of "sgd" to wait for an improvement; with `early_stopping`, also iterations of
        "lbfgs".
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, 1 where not given. The weight of a sequence is its
        ``sample_weight`` times the mean class weight of its tokens. "balanced" weights a class by
        ``n_tokens / (n_classes * count)``; not supported by `partial_fit`.
    n_jobs : int, default=None
        Number of threads; -1 means all processors. Prediction gives the same result for any
        number (None means 1 unless in a `joblib.parallel_config` context); learning gives the same
        bits for the same number. "lbfgs" divides the sums among the threads, "sag" and "oeg" only
        those of the objective. "sgd" visits one sequence after the other with None or 1. With more,
        it deals the sequences out to as many shards, which learn in parallel, each on its own copy
        of the weights, and average them after every epoch. `partial_fit` always visits one
        sequence after the other.
    warm_start : bool, default=False
        Start `fit` from the weights of the previous call, and keep its classes and features. Not
        supported by "oeg".
    verbose : int, default=0
        1 prints a line for each iteration or epoch with the time left, 2 the
        numbers of ``history_``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    learned_classes_ : ndarray of shape (n_learned_classes,)
        Labels in the order of the weights: ``classes_``, unless `learn_scheme` has others.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights of features.
    transition_ : ndarray of shape (n_classes, n_classes)
        Weights of transitions, from row to column.
    transition_coef_ : ndarray of shape (n_classes, n_classes, n_transition_features)
        Weights of transition features, from row to column, if X has a ``transition_X``.
    transition2_ : ndarray of shape (n_classes, n_classes, n_classes)
        Weights of label triples in the order of their tokens, if `order` is 2: of the last label,
        the third axis, after the two before it. They add to the weights of pairs.
    intercept_, start_, end_ : ndarray of shape (n_classes,)
        Biases at all, first and last tokens.
    n_iter_ : int
        Number of iterations or epochs.
    n_weights_ : int
        Number of weights of the model. Not with "sgd".
    suboptimality_bound_ : float
        Upper bound on the distance of the objective from its minimum, in the objective's unit.
        With `early_stopping`, the objective without the held-out set. Only "lbfgs", "sag" and
        "oeg".
    history_ : dict of ndarray
        Columns with an entry for each iteration or epoch. All solvers: ``"epoch"`` and ``"time"``
        (seconds since the optimisation began). "lbfgs", from 0 for the start: ``"objective"``,
        ``"bound"`` (on the distance from the minimum), ``"gradient_norm"`` and ``"weight_norm"``;
        after most passes of the dual ascent the objective is an estimate from the losses of the
        sequences during the pass, the bound infinite and the norm of the gradient NaN.
        "sag" and "oeg": ``"objective"`` and ``"bound"`` (NaN where not computed),
        ``"gradient_norm"`` ("sag"; from the gradient of each sequence at its last visit) or
        ``"dual"`` ("oeg"; the lower bound), ``"updates"`` and ``"oracle_calls"`` (so far). "sgd":
        ``"mistakes"`` (fraction of tokens with another label more probable during the epoch),
        ``"loss"`` (negative log-likelihood during the epoch) and ``"weight_norm"`` (of the weights
        of features). With a validation set also ``"validation_score"``. Only this one is without
        `label_cost`.
    n_features_in_ : int
        Number of features.
    n_transition_features_in_ : int
        Number of transition features, if X has a ``transition_X``.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has them.
    vectorizer_ : SequenceVectorizer
        Vectoriser fitted on X, if X was given as feature dicts or attribute strings.

    See Also
    --------
    PerceptronTagger : Learns much faster, without probabilities.
    SAPOTagger : Learns as "sgd" does, from the n best labellings in place of all.
    SDCACRF : The same minimum by the dual, with a certificate that says more.

    References
    ----------
    M. Schmidt et al. Non-uniform stochastic average gradient method for training conditional random
    fields. AISTATS 2015.

    S. Shalev-Shwartz. SDCA without duality, regularization, and individual convexity. ICML 2016.

    R. T. Rockafellar. Monotone operators and the proximal point algorithm. SIAM Journal on Control
    and Optimization, 1976.

    K. Zhong et al. Proximal quasi-Newton for computationally intensive l1-regularized M-estimators.
    NeurIPS 2014.

    K. Gimpel and N. A. Smith. Softmax-margin CRFs: training log-linear models with cost functions.
    NAACL 2010.

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
        "solver": [StrOptions(set(SOLVERS))],
        "l1": [Interval(Real, 0, None, closed="left")],
        "stop_when_settled": ["boolean"],
        "min_freq": [Interval(Real, 0, None, closed="left")],
        "all_possible_states": ["boolean"],
        "all_possible_transitions": ["boolean"],
    }

    _learnt = (*LEARNT, *_OF_SOLVERS)
    # L1 and L2 penalty of the last fit.
    _penalties = None
    # Reason why the last fit ended, for the drop-in.
    _reason = None
    _stored = {
        "_penalties": Numbers(2),
        "_reason": Choice("bound", "gain", "monitor", "settled", "max_iter", None),
    }

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
        order=1,
        constraint=None,
        learn_scheme=None,
        label_cost=None,
        max_iter=1000,
        tol=1e-4,
        stop_when_settled=False,
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
    ) -> None:
        self.solver = solver
        self.l2 = l2
        self.l1 = l1
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.fit_intercept = fit_intercept
        self.order = order
        self.constraint = constraint
        self.learn_scheme = learn_scheme
        self.label_cost = label_cost
        self.max_iter = max_iter
        self.tol = tol
        self.stop_when_settled = stop_when_settled
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
        check_parameters(self.solver, self.get_params(deep=False))

    def _solver(self):
        solver = load(self.solver)
        return solver.solve, settings_of(solver.Settings, self)

    def _learner(self, model):
        solver = load(self.solver)
        return solver.learner(model, settings_of(solver.Settings, self))

    def _learns_partial_labels(self):
        return "partial_labels" in SOLVERS[self.solver].supports

    @property
    def _learns_costs(self):
        return "label_cost" in SOLVERS[self.solver].supports

    def _model(self):
        model = super()._model()
        if model.has_transition_features:
            require(self.solver, "transition_features", "X with transition features (transition_X)")
        return model

    def _initial_chain(self):
        if self.l1 > 0 and self._penalties not in (None, (self.l1, self.l2)):
            # Starting from the minimum for other penalties takes longer than starting from zero.
            return None
        return super()._initial_chain()

    def _watch(self, monitor, validation, **options):
        if any(part is not None for part in validation):
            require(self.solver, "validation_set", "X_val and y_val")
        return super()._watch(monitor, validation, **options)

    def _keep(self, solution):
        self._forget(*_OF_SOLVERS)
        super()._keep(solution)
        self._penalties = float(self.l1), float(self.l2)
        self._reason = solution.reason
        for name, value in zip(_OF_SOLVERS, (solution.n_weights, solution.bound), strict=True):
            if value is not None:
                setattr(self, name, value)
