"""Conditional random fields by stochastic dual coordinate ascent."""

from itertools import chain as chain_of
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skstruct.learning.sdca import Settings, marginals_nbytes, solve, storage_dtype
from skstruct.learning.solver import settings_of, solvers_with
from skstruct.taggers.base import BaseTagger
from skstruct.utils.persistence import set_module


@set_module("skstruct")
class SDCACRF(BaseTagger):
    r"""Conditional random field by stochastic dual coordinate ascent (Le Priol et al., 2018).

    Minimises what `CRFTagger` minimises, with a weight for every combination of features and
    labels:

    .. math::

       F(w) = \sum_i s_i \left( -\log p_w(y_i \mid x_i) \right)
       + \frac{l_2}{2} \, \lVert w \rVert^2

    It maximises the dual, whose variables are a distribution :math:`\alpha_i` over the labellings
    of each training sequence, and visits one sequence at a time:

    .. math::

       D(\alpha) = \sum_i s_i \, H(\alpha_i) - \frac{l_2}{2} \, \lVert w(\alpha) \rVert^2

       F(w(\alpha)) - \min F \;\le\; F(w(\alpha)) - D(\alpha)

    Here :math:`H` is the entropy. The right-hand side is the duality gap. It is verified at the
    end, and bounds the distance from the minimum.

    Parameters
    ----------
    l2 : float, default=1.0
        Strength of the L2 penalty, on all weights including biases. Positive.
    sampling : {"gap", "uniform", "importance", "gap_importance", "max"}, default="gap"
        Sampling scheme for the next sequence. "uniform": all equally. "importance": in proportion
        to a bound on the curvature. "gap": in proportion to the duality gap of the sequence at its
        last visit, so that converged sequences are rarely visited. "gap_importance": in proportion
        to both. "max": the sequence with the largest gap. The first epoch visits each sequence
        once.
    nonuniformity : float, default=0.8
        Probability of choosing by `sampling` instead of uniformly. Below 1, every sequence is
        visited occasionally, whatever its gap was.
    line_search_tol : float, default=1e-3
        Tolerance of the line search for the step size, between 0 and 1.
    fit_intercept : bool, default=True
        Learn a bias for each label, and for each label at the first and at the last token.
    order : {1, 2}, default=1
        Order of the chain. Second order is an error that names the taggers to take.
    constraint : str or array-like of bool of shape (n_classes, n_classes), default=None
        Labellings that are allowed. A scheme, "IOB1", "IOB2" (or "BIO"), "IOE1", "IOE2", "IOBES"
        (or "BIOES"), "BILOU" or "BMES", allows its valid labellings, and "runs" all. An array, with
        rows and columns in the order of ``classes_``, allows transitions from row to column where
        it is True. Other labellings have probability zero, in learning and in prediction, and
        weights of minus infinity.
    learn_scheme : {"IOBES", "BIOES", "BILOU", "BMES"} or None, default=None
        Learn labels of this scheme in place of y's, which must be of IOB2, IOE2 or a scheme like
        this one; answers are in y's. Implies the constraint of y's scheme.
    label_cost : array-like of shape (n_classes, n_classes) or dict, default=None
        Costs of wrong labels, which are added to their scores while learning (softmax-margin), so
        that the right label has to win by as much: an array from right label, the row, to predicted
        one, in the order of ``classes_``; a dict of numbers by pairs ``(right, predicted)``, zero
        where not given; or ``{"missed": 2}`` for "O" in place of any other label, which finds more
        names. Not negative. Tokens without a label have no cost. The
        dual objective gains the expected costs, and its gap certifies the minimum as without.
    max_iter : int, default=1000
        Largest number of epochs, each of as many updates as there are sequences.
    tol : float, default=1e-4
        Relative tolerance: stop when the verified duality gap is at most this fraction of the
        objective. Without `verify_every`, the gap is verified after an epoch whose estimate of it
        is at most twice as large, and not before some 10 ms of work; so small training sets are
        solved further. The estimate is the sum of the gaps of the sequences at their last visits.
        It never ends a fit: it is often too large, and can be far too small where few sequences
        have nearly all of the gap.
    verify_every : int, default=None
        Number of epochs between verifications of the gap. By default, the gap is verified when
        its estimate is small enough.
    max_memory : float, default=2**32
        Largest number of bytes for the marginals, see `memory_needed`.
    random_state : int, RandomState instance or None, default=None
        Source of the order of the updates.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, 1 where not given. The weight of a sequence is its
        ``sample_weight`` times the mean class weight of its tokens. "balanced" weights a class by
        ``n_tokens / (n_classes * count)``.
    n_jobs : int, default=None
        Number of threads that verify the gap, and predict; -1 means all processors. Updates are
        sequential. None means 1 unless in a `joblib.parallel_config` context.
    warm_start : bool, default=False
        Start `fit` from the marginals of the weights of the previous call, and keep its classes and
        features.
    verbose : int, default=0
        1 prints the memory needed, and a line for each epoch with the time left; 2 the numbers of
        ``history_``.

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
    intercept_, start_, end_ : ndarray of shape (n_classes,)
        Biases at all, first and last tokens.
    duality_gap_ : float
        Duality gap, in the unit of the objective: an upper bound on the distance of the objective
        from its minimum. Always verified, also after `max_iter` epochs: a pass over the training
        set computes it in double precision, from the marginals alone, and uses no estimate.
    relative_duality_gap_ : float
        Duality gap divided by the objective.
    n_iter_ : int
        Number of epochs.
    history_ : dict of ndarray
        For each epoch ``"epoch"``, ``"time"`` (seconds since the optimisation began),
        ``"objective"``, ``"dual"`` (the lower bound), ``"gap"`` (their difference),
        ``"verified"``, ``"updates"`` and ``"oracle_calls"`` (so far) and ``"weight_norm"``. Where
        ``"verified"`` is False, the gap is an estimate, and the objective is the dual plus that
        estimate. With a validation set also ``"validation_score"``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if X has them.
    vectorizer_ : SequenceVectorizer
        Vectoriser fitted on X, if X was given as feature dicts or attribute strings.

    See Also
    --------
    CRFTagger : The same objective by other methods, with weights for observed combinations only,
        and without marginals to store.

    References
    ----------
    R. Le Priol, A. Piché and S. Lacoste-Julien. Adaptive stochastic dual coordinate ascent for
    conditional random fields. UAI 2018.

    K. Gimpel and N. A. Smith. Softmax-margin CRFs: training log-linear models with cost functions.
    NAACL 2010.

    Examples
    --------
    >>> from skstruct import SDCACRF
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> tagger = SDCACRF(l2=0.1, random_state=0).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}]])
    array([list(['DET', 'NOUN'])], dtype=object)
    >>> tagger.relative_duality_gap_ < 1e-4
    True
    """

    _parameter_constraints: dict = {
        **BaseTagger._parameter_constraints,
        "l2": [Interval(Real, 0, None, closed="neither")],
        "sampling": [StrOptions({"uniform", "importance", "gap", "gap_importance", "max"})],
        "nonuniformity": [Interval(Real, 0, 1, closed="both")],
        "line_search_tol": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verify_every": [Interval(Integral, 1, None, closed="left"), None],
        "max_memory": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        l2=1.0,
        sampling="gap",
        nonuniformity=0.8,
        line_search_tol=1e-3,
        fit_intercept=True,
        order=1,
        constraint=None,
        learn_scheme=None,
        label_cost=None,
        max_iter=1000,
        tol=1e-4,
        verify_every=None,
        max_memory=2**32,
        random_state=None,
        class_weight=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ) -> None:
        self.l2 = l2
        self.sampling = sampling
        self.nonuniformity = nonuniformity
        self.line_search_tol = line_search_tol
        self.fit_intercept = fit_intercept
        self.order = order
        self.constraint = constraint
        self.learn_scheme = learn_scheme
        self.label_cost = label_cost
        self.max_iter = max_iter
        self.tol = tol
        self.verify_every = verify_every
        self.max_memory = max_memory
        self.random_state = random_state
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def memory_needed(self, y):
        """Compute the number of bytes that the marginals will need in `fit`.

        The marginals of each token and of each transition are stored, so the number grows with the
        square of the number of labels. For transitions they are in single precision unless `tol` is
        less than 1e-8.

        Parameters
        ----------
        y : sequences of labels
            As in `fit`.

        Returns
        -------
        n_bytes : int

        Examples
        --------
        >>> from skstruct import SDCACRF
        >>> SDCACRF().memory_needed([["DET", "NOUN", "VERB"], ["NOUN", "VERB"]])
        228
        """
        sequences = [[labels] if np.ndim(labels) == 0 else labels for labels in y]
        n_labels = len(set(chain_of.from_iterable(sequences)))
        full = [labels for labels in sequences if len(labels) > 0]
        return marginals_nbytes(len(full), sum(map(len, full)), n_labels, storage_dtype(self.tol))

    def _check_params(self):
        if self.order > 1:
            able = " or ".join(f"solver={name!r}" for name in solvers_with("order"))
            raise ValueError(
                f"SDCACRF has order=1, not order={self.order}: take an online tagger or CRFTagger "
                f"with {able}, which have order=2."
            )

    def _solver(self):
        return solve, settings_of(Settings, self)

    def _keep(self, solution):
        super()._keep(solution)
        objective = float(solution.history["objective"][-1])
        self.duality_gap_ = solution.bound
        self.relative_duality_gap_ = solution.bound / objective if solution.bound > 0 else 0.0
