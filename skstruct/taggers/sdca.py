"""Conditional random fields by stochastic dual coordinate ascent."""

from __future__ import annotations

from functools import partial
from itertools import chain as chain_of
from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skstruct.solvers.base import settings_of
from skstruct.solvers.dual import marginals_nbytes
from skstruct.solvers.sdca import Settings, solve, storage_dtype
from skstruct.taggers.base import BaseTagger
from skstruct.utils.public_paths import set_module

__all__ = ["SDCACRF"]


@set_module("skstruct")
class SDCACRF(BaseTagger):
    """Conditional random field by stochastic dual coordinate ascent (Le Priol et al., 2018).

    Minimises what `CRFTagger` minimises, ``sum_i s_i nll_i(w) + l2 / 2 |w|^2``, with a weight for
    every combination of features and labels. Instead of the weights, it improves a distribution
    over the labellings of each training sequence, one sequence at a time. These distributions
    give a lower bound on the objective that no weights can go below, so at the end it is known,
    and verified, how near the weights are to the optimum.

    Parameters
    ----------
    l2 : float, default=1.0
        Strength of the squared penalty, positive. All weights are penalised, the biases too.
    sampling : {"gap", "uniform", "importance", "gap_importance", "max"}, default="gap"
        How the next sequence is chosen. "uniform": any, with the same chance. "importance": in
        proportion to a bound on how strongly the objective bends. "gap": in proportion to the
        duality gap that the sequence had when it was visited last, so that sequences that are
        settled are seldom visited. "gap_importance": in proportion to both. "max": the one with
        the largest gap. In the first epoch each sequence is visited once.
    nonuniformity : float, default=0.8
        The chance of choosing by `sampling` and not uniformly. With less than 1 every sequence is
        visited now and then, whatever its gap was.
    line_search_tol : float, default=1e-3
        Precision of the length of a step, between 0 and 1.
    fit_intercept : bool, default=True
        Whether to learn a bias of each label, of first and of last tokens.
    constraint : str or array-like of bool of shape (n_classes, n_classes), default=None
        Which labellings are possible: those that are valid in the scheme "IOB1", "IOB2", "IOBES"
        (or "BIOES") or "BILOU"; or, of an array in the order of ``classes_``, those in which the
        label of a column follows that of a row only where it is true. All others have no
        probability, in learning and in prediction, and their weights are minus infinity.
    max_iter : int, default=1000
        Most epochs, of as many updates as there are sequences.
    tol : float, default=1e-4
        Stop when the duality gap is at most this share of the objective: the objective is then
        certainly within that share of its minimum. Small training sets are solved further, because
        without `verify_every` the question is put after some 10 ms of work at the earliest.
    verify_every : int, default=None
        Verify the gap every so many epochs. By default, only when it seems to be small enough.
    max_memory : float, default=2**32
        Most bytes that the distributions may take, see `memory_needed`.
    random_state : int, RandomState instance or None, default=None
        Source of the order of the updates.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; classes without one have 1. A sequence counts ``sample_weight``
        times the mean class weight of its tokens. "balanced" weighs classes by
        ``n_tokens / (n_classes * count)``.
    n_jobs : int, default=None
        Number of threads that verify the gap, and predict; updates are made one after the other.
        None means 1 unless in a `joblib.parallel_config` context, -1 means all processors.
    warm_start : bool, default=False
        Whether `fit` starts from the marginals of the weights of the previous call, whose classes
        and features then stand.
    verbose : int, default=0
        Whether to print the memory needed, and the history of every epoch.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights of features.
    transition_ : ndarray of shape (n_classes, n_classes)
        Weights of label pairs, from row to column.
    intercept_, start_, end_ : ndarray of shape (n_classes,)
        Biases of all, first and last tokens.
    duality_gap_ : float
        The objective is at most this far above its minimum, in its own unit. Verified in double
        precision, from the distributions alone.
    relative_duality_gap_ : float
        The same over the objective.
    n_iter_ : int
        Number of epochs.
    history_ : dict of ndarray
        For each epoch ``"epoch"``, ``"time"`` (seconds since the start of `fit`'s optimisation),
        ``"objective"``, ``"dual"`` (the lower bound), ``"gap"`` (their difference),
        ``"verified"``, ``"updates"`` and ``"oracle_calls"`` (up to then) and ``"weight_norm"``.
        Where ``"verified"`` is false, the gap is an estimate, and the objective the sum of the
        dual and that. Where `fit` was given a validation set, also ``"validation_score"``.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has them.
    vectorizer_ : SequenceVectorizer
        Where X was given as feature dicts or attribute strings, what made numbers of them.

    See Also
    --------
    CRFTagger : The same objective by other methods; weights for what was observed alone, no
        distributions to store.

    References
    ----------
    R. Le Priol, A. Piché and S. Lacoste-Julien. Adaptive stochastic dual coordinate ascent for
    conditional random fields. UAI 2018.

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
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verify_every": [Interval(Integral, 1, None, closed="left"), None],
        "max_memory": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        l2=1.0,
        sampling="gap",
        nonuniformity=0.8,
        line_search_tol=1e-3,
        fit_intercept=True,
        constraint=None,
        max_iter=1000,
        tol=1e-4,
        verify_every=None,
        max_memory=2**32,
        random_state=None,
        class_weight=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ):
        self.l2 = l2
        self.sampling = sampling
        self.nonuniformity = nonuniformity
        self.line_search_tol = line_search_tol
        self.fit_intercept = fit_intercept
        self.constraint = constraint
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
        """Bytes that the distributions over labellings will take in `fit`.

        They are stored as the marginals of each token and of each pair of neighbours, so this
        grows with the square of the number of labels. Pairs are stored in single precision unless
        `tol` is less than 1e-8.

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

    def _solver(self):
        return partial(solve, settings=settings_of(Settings, self))

    def _keep(self, solution):
        super()._keep(solution)
        objective = float(solution.history["objective"][-1])
        self.duality_gap_ = solution.bound
        self.relative_duality_gap_ = solution.bound / objective if solution.bound > 0 else 0.0
