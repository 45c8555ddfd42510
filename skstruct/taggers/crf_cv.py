"""Conditional random fields whose penalties are chosen by cross-validation, along paths."""

import warnings
from collections.abc import Iterator
from copy import copy
from inspect import signature
from itertools import compress, product
from numbers import Integral, Real
from time import perf_counter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn import get_config
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import _check_method_params

from skstruct.blocks.rows import Placed
from skstruct.frames import is_frame
from skstruct.input.constraints import check_chain
from skstruct.input.folds import checked_folds, params_of_fold
from skstruct.input.formats import Format, as_lists
from skstruct.input.training_set import classes_that_occur
from skstruct.learning import lbfgs
from skstruct.learning.lbfgs import PenaltyPath, separate_minimum
from skstruct.learning.solver import settings_of
from skstruct.taggers.base import BaseTagger
from skstruct.taggers.crf import CRFTagger
from skstruct.taggers.scoring import SCORING, as_number, scorer_of, takes_weights
from skstruct.utils.messages import compiling_announced, short_repr
from skstruct.utils.parallel import chain_work, range_runner, run_tasks
from skstruct.utils.persistence import set_module
from skstruct.utils.progress import fit_context
from skstruct.utils.transaction import draft_of

# Range of the penalties where only their number is given.
_STRONGEST, _WEAKEST = 10.0, 0.01
# Attributes of X.
_OF_X = "n_features_in_", "feature_names_in_", "vectorizer_", "n_transition_features_in_"
# Parameters shared with `CRFTagger`.
_OF_MODEL = ("min_freq", "all_possible_states", "all_possible_transitions")
_LEARNT = (*CRFTagger._learnt, *_OF_X, "classes_", "n_iter_", "history_")


class _Trial(NamedTuple):
    """Score of a fold for a pair of penalties, and how it came about."""

    test_score: float
    objective: float
    n_iter: int
    converged: bool
    fit_time: float
    score_time: float


@set_module("skstruct")
class CRFTaggerCV(BaseTagger):
    """Conditional random field whose penalties are chosen by cross-validation.

    What ``GridSearchCV(CRFTagger(), {"l2": l2s})`` finds, in a quarter of the time. X is read once.
    In each fold the minima for weaker and weaker penalties are found one from the other: the line
    through the last two leads near the next one, and L-BFGS keeps what it has learnt of the
    curvature. Many values of `l2` cost hardly more than few.

    Parameters
    ----------
    l2s : int or array-like of float, default=10
        Strengths of the L2 penalty to compare. An integer is their number, from 10 to 0.01 with the
        same ratio from each to the next.
    l1s : array-like of float, default=None
        Strengths of the L1 penalty, each of which is combined with each of `l2s`. None means 0.
        Fits with an L1 penalty do not start from each other, and take as long as single fits.
    block_scales : array-like of float, default=None
        Factors of all vectors in blocks (`SequenceBatch.blocks`), each of which is combined with
        each pair of penalties. The best one is folded into `coef_`, so that the model takes X as it
        is. None means 1.
    cv : int, cross-validation generator, iterable or None, default=None
        Folds, as in :class:`~sklearn.model_selection.GridSearchCV`. None means 5.
    scoring : str, callable or None, default=None
        What is to be maximised: a scorer of :mod:`skstruct.metrics`, any other scorer or its name,
        or a callable ``scoring(estimator, X, y)``. None is token accuracy. For feature dicts,
        attribute strings and lists of matrices, scorers get X as a `SequenceBatch`.
    search_tol : float, default=1e-3
        Relative tolerance of the fits of the search. They stop by the bound of `CRFTagger`, or when
        ten iterations gained less than a tenth of this fraction of the objective; with `l1`, as
        those of `CRFTagger`.
    tol : float, default=1e-4
        That of the last fit.
    refit : bool, default=True
        Fit with the best penalties on all data. Otherwise there is no model that predicts.
    min_freq : float, default=0
        Frequency below which a combination has no weight, as in `CRFTagger`.
    all_possible_states : bool, default=False
        Give every feature a weight for every label, not only for those that it occurs with.
    all_possible_transitions : bool, default=False
        Give every transition a weight, not only those that occur, as in `CRFTagger`.
    fit_intercept : bool, default=True
        Learn a bias for each label, and for each label at the first and at the last token.
    order : {1, 2}, default=1
        Order of the chain, as in `CRFTagger`.
    constraint : str or array-like of bool of shape (n_classes, n_classes), default=None
        As in `CRFTagger`.
    label_cost : array-like of shape (n_classes, n_classes) or dict, default=None
        Costs of wrong labels, as in `CRFTagger`.
    max_iter : int, default=1000
        Largest number of iterations of a fit.
    class_weight : dict, "balanced" or None, default=None
        As in `CRFTagger`; "balanced" refers to the training part of each fold.
    n_jobs : int, default=None
        Number of threads. Folds are searched in parallel, one thread each, and give the same bits
        for any number. The last fit has as many threads as given.
    verbose : int, default=0
        As in `CRFTagger`, of the last fit.

    Attributes
    ----------
    l2_, l1_ : float
        The best penalties.
    best_score_ : float
        Their mean score over the folds.
    best_params_ : dict
        The best penalties by name; ``"l1"`` and ``"block_scale"`` only where `l1s` and
        `block_scales` were given.
    best_index_ : int
        Their position in `cv_results_`.
    best_estimator_ : CRFTagger
        The model, as a tagger with the best penalties. Only with ``refit=True``.
    cv_results_ : dict of arrays
        A column for each pair of penalties, as in :class:`~sklearn.model_selection.GridSearchCV`:
        ``"params"``, ``"param_l2"``, ``"split0_test_score"``, ``"mean_test_score"``,
        ``"rank_test_score"``, times and so on. Besides, for each fold, ``"split0_objective"`` and
        ``"split0_n_iter"``.
    block_scale_ : float
        The best factor of vectors.
    l2s_, l1s_, block_scales_ : ndarray
        The penalties and factors that were compared.
    n_splits_ : int
        Number of folds.
    refit_time_ : float
        Seconds of the last fit.
    scorer_ : callable
        What `scoring` stands for.
    classes_, coef_, transition_, transition_coef_, transition2_, intercept_, start_, end_ : ndarray
        Labels and weights, as of `CRFTagger`; these and all below only with ``refit=True``, but for
        ``classes_`` and what belongs to X.
    n_iter_, n_weights_, suboptimality_bound_, history_ : object
        Of the last fit, as of `CRFTagger`.
    n_features_in_, n_transition_features_in_, feature_names_in_, vectorizer_ : object
        As of `CRFTagger`.

    See Also
    --------
    CRFTagger : The same model with given penalties.
    sklearn.linear_model.LogisticRegressionCV : The counterpart for classifiers.
    skstruct.inspection.PenaltyPathDisplay : Picture of the scores.

    Notes
    -----
    Labels that the training part of a fold lacks are no labels of its model, and features that it
    lacks have no weight there, as if it had been read by itself. Where labels of tokens are
    unknown, every fit begins anew: the objective then has many minima.

    With a sample weight, scorers that take weights get the test part's, unless metadata
    routing says otherwise. Groups of a splitter are passed to `fit`: ``fit(X, y, groups=groups)``.

    As the last step of a pipeline, it does not refit the steps before it. Where these learn from
    labels, as `LabelStatistics` does, `best_score_` is biased, by .8 points of F1 at most in the
    measurements told there. Search around the pipeline for a score without bias.

    Examples
    --------
    >>> from skstruct import CRFTaggerCV
    >>> from skstruct.datasets import load_addresses
    >>> from skstruct.metrics import chunk_f1_scorer
    >>> X, y = load_addresses(return_X_y=True)
    >>> X = [[{"word": word.lower(), "ending": word[-2:]} for word in words] for words in X]
    >>> tagger = CRFTaggerCV([3, 0.3, 0.03, 0.003], cv=3, scoring=chunk_f1_scorer).fit(X, y)
    >>> tagger.l2_
    0.03
    """

    _parameter_constraints: dict = {
        **BaseTagger._parameter_constraints,
        "l2s": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "l1s": ["array-like", None],
        "block_scales": ["array-like", None],
        "cv": ["cv_object"],
        "scoring": SCORING,
        "search_tol": [Interval(Real, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "refit": ["boolean"],
        **{name: CRFTagger._parameter_constraints[name] for name in _OF_MODEL},
    }

    _learns_transition_features = True

    def __init__(
        self,
        l2s=10,
        *,
        l1s=None,
        block_scales=None,
        cv=None,
        scoring=None,
        search_tol=1e-3,
        tol=1e-4,
        refit=True,
        min_freq=0,
        all_possible_states=False,
        all_possible_transitions=False,
        fit_intercept=True,
        order=1,
        constraint=None,
        label_cost=None,
        max_iter=1000,
        class_weight=None,
        n_jobs=None,
        verbose=0,
    ):
        self.l2s = l2s
        self.l1s = l1s
        self.block_scales = block_scales
        self.cv = cv
        self.scoring = scoring
        self.search_tol = search_tol
        self.tol = tol
        self.refit = refit
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.fit_intercept = fit_intercept
        self.order = order
        self.constraint = constraint
        self.label_cost = label_cost
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None, **params):
        """Choose the penalties by cross-validation, and learn the weights from all data.

        Parameters
        ----------
        X : sequences of tokens
            In any format of `CRFTagger`.
        y : sequences of labels
            As in `CRFTagger`; None where the label of a token is unknown.
        sample_weight : float or array-like of shape (n_sequences,), default=None
            Weight of each sequence in the objective, and in scores that take weights. By default,
            1. A sequence of weight 0 is left out of fits and scores.
        **params : dict of array-like
            ``groups`` for splitters that take groups, such as
            :class:`~sklearn.model_selection.GroupKFold`. With metadata routing, whatever splitter
            and scorer request.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X, y or a parameter is invalid; the message names the sequence and the token. The
            estimator is then as it was before.

        Warns
        -----
        UserWarning
            If the best penalty is the first or the last one of several.
        ConvergenceWarning
            If `max_iter` iterations were not enough for a fit.
        """
        l2s, l1s = _penalties("l2s", self.l2s), _penalties("l1s", self.l1s)
        scales = _scales(self.block_scales)
        with draft_of(self) as draft:
            draft._forget(*_LEARNT)
            draft.l2s_, draft.l1s_, draft.block_scales_ = l2s, l1s, scales

            def learn(monitor):
                whole, model = draft._search(X, y, sample_weight, params)
                start = perf_counter()
                monitor = draft._watch(monitor, (None,) * 3)
                scaled, placed = _scaled(whole.pop(), draft.block_scale_)
                whole.append(scaled)
                del scaled
                solution = draft._learn_from(whole, model, None, monitor)
                _fold_in(solution.chain, placed, draft.block_scale_)
                draft.refit_time_ = perf_counter() - start
                return solution

            if self.refit:
                draft._fit_by(learn, X, y, sample_weight=sample_weight)
            else:
                with compiling_announced(self.verbose):
                    draft._check_params()
                    draft._search(X, y, sample_weight, params)
            complaints = draft._complaints
            del draft._complaints
        for kind, message in complaints:
            warnings.warn(message, kind, stacklevel=3)
        return self

    def score(self, X, y, sample_weight=None, **params):
        """Compute the score that `scoring` stands for.

        Parameters
        ----------
        X : sequences of tokens
            As in `predict`.
        y : sequences of labels
            As in `fit`.
        sample_weight : array-like of shape (n_sequences,), default=None
            Weight of each sequence.
        **params : dict
            With metadata routing, what the scorer requests.

        Returns
        -------
        score : float
        """
        if _routes():
            routed = process_routing(self, "score", sample_weight=sample_weight, **params)
            params = routed.scorer.score
        elif sample_weight is not None:
            params = {**params, "sample_weight": sample_weight}
        if self.scoring is None:
            return super().score(X, y, **params)
        return self.scorer_(self, X, y, **params)

    @property
    def scorer_(self):
        """Scorer of `scoring`."""
        tagger = CRFTagger()
        if _routes():
            # Its own score takes weights wherever this estimator gets them.
            tagger.set_score_request(sample_weight=True)
        return scorer_of(tagger, self.scoring)

    @property
    def best_estimator_(self):
        """The model, as a tagger with the best penalties."""
        if "coef_" not in vars(self):
            raise AttributeError("best_estimator_ is there after fit, with refit=True.")
        tagger = self._tagger(self.l2_, self.l1_)
        learnt = {name: value for name, value in vars(self).items() if name in _LEARNT}
        vars(tagger).update(learnt)
        return tagger

    def get_metadata_routing(self):
        """Say which metadata `fit` and `score` pass on to splitter and scorer.

        Returns
        -------
        routing : MetadataRouter
        """
        to_scorer = MethodMapping().add(caller="fit", callee="score")
        to_scorer.add(caller="score", callee="score")
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split"))
            .add(scorer=self.scorer_, method_mapping=to_scorer)
        )

    def _chain(self):
        if "coef_" not in vars(self) and "l2_" in vars(self):
            raise NotFittedError("This CRFTaggerCV has no weights: fit it with refit=True.")
        return super()._chain()

    def _check_params(self):
        for l1 in self.l1s_.tolist():
            self._tagger(1.0, l1)._check_params()

    def _learns_partial_labels(self):
        return True

    def _tagger(self, l2, l1, **more):
        """`CRFTagger` with the parameters of this one."""
        shared = signature(CRFTagger).parameters.keys() & self.get_params(deep=False).keys()
        params = {name: getattr(self, name) for name in shared}
        return CRFTagger(l2=l2, l1=l1, **{**params, **more})

    def _solver(self):
        return lbfgs.solve, settings_of(lbfgs.Settings, self._tagger(self.l2_, self.l1_))

    def _keep(self, solution):
        super()._keep(solution)
        self.n_weights_, self.suboptimality_bound_ = solution.n_weights, solution.bound

    def _search(self, X, y, sample_weight, params):
        """Read all, and compare the penalties; return a list of the whole set, and the model."""
        y = _to_split(as_lists(y))
        format, batch, given, model = self._read(X, y, sample_weight, None, True)
        weight = given.sample_weight
        whole = [self._weigh(given)]
        X = _to_split(X) if format in (Format.ROWS, Format.GRID) else batch
        split_params, score_params = self._route(sample_weight, params)
        scorer = self.scorer_
        if not _routes() and sample_weight is not None and takes_weights(scorer):
            score_params = {"sample_weight": weight}
        data = X, y, given, scorer, score_params
        splits = checked_folds(check_cv(self.cv).split(X, y, **split_params), len(weight))
        if not splits:
            raise ValueError("cv has no split: there is nothing to score.")
        splits = [(train, test[weight[test] > 0]) for train, test in splits]
        for i, (train, test) in enumerate(splits):
            if not len(test) or not weight[train].any():
                what = "learns from" if len(test) else "tests"
                raise ValueError(f"Fold {i}: none of the sequences that it {what} has a weight.")
        if self.block_scales is not None and not whole[0].rows.placed:
            raise ValueError("block_scales is given, but X has no vectors: see batch.blocks.")
        pairs = product(self.block_scales_.tolist(), self.l1s_.tolist())
        tasks = [(*split, l1, scale) for scale, l1 in pairs for split in splits]
        n = self.n_splits_ = len(splits)

        def sweep(i):
            try:
                return self._sweep(*data, *tasks[i])
            except ValueError as error:
                raise ValueError(f"Fold {i % n}: {error}") from error

        found = run_tasks(sweep, len(tasks), self.n_jobs)
        swept = [found[first : first + n] for first in range(0, len(found), n)]
        trials = [[sweep[l2] for sweep in sweeps] for sweeps in swept for l2 in self.l2s_.tolist()]
        self._tabulate(trials)
        return whole, model

    def _route(self, sample_weight, params):
        """Parameters of the splitter and of the scorer."""
        if _routes():
            routed = process_routing(self, "fit", sample_weight=sample_weight, **params)
            return routed.splitter.split, routed.scorer.score
        unknown = sorted(params.keys() - {"groups"})
        if unknown:
            raise TypeError(
                f"CRFTaggerCV.fit does not take {unknown[0]!r}; with metadata routing, it passes "
                "on what splitter and scorer request."
            )
        return {"groups": params.get("groups")}, {}

    def _sweep(self, X, y, training_set, scorer, score_params, train, test, l1, scale):
        """Trials of a fold for all L2 penalties, by penalty."""
        fold, model, part = self._fold(training_set.take(train))
        part, placed = _scaled(part, scale)
        settings = settings_of(lbfgs.Settings, self._tagger(1.0, l1, tol=self.search_tol))
        objective = lbfgs.build_objective(part, model, settings)
        arguments = _safe_indexing(X, test), _safe_indexing(y, test)
        params = _check_method_params(X, score_params, indices=test)
        trials = {}
        with range_runner(objective.offsets, 1, chain_work(len(fold.classes_), self.order)) as run:
            path = None
            if l1 == 0 and not objective.partial:
                path = PenaltyPath(objective, self.search_tol, self.max_iter, run)
            for l2 in sorted(set(self.l2s_.tolist()), reverse=True):
                start = perf_counter()
                if path is None:
                    solution = separate_minimum(objective, l2, settings, run)
                else:
                    solution = path.minimize(l2)
                check_chain(solution.chain, model.possible, solution.n_iter)
                _fold_in(solution.chain, placed, scale)
                tagger = copy(fold).set_params(l2=l2, l1=l1)
                tagger._set_chain(solution.chain)
                end = perf_counter()
                score = as_number(scorer(tagger, *arguments, **params))
                times = end - start, perf_counter() - end
                value = float(solution.history["objective"][-1])
                converged = solution.reason in ("bound", "gain")
                trials[l2] = _Trial(score, value, solution.n_iter, converged, *times)
        return trials

    def _fold(self, part):
        """Tagger and model of a fold, and its training set with weights.

        Labels that it lacks are none of the model's.
        """
        classes, labels = classes_that_occur(self.classes_, part.labels)
        of_labels = params_of_fold(self, self.classes_, np.unique(part.labels[part.labels >= 0]))
        fold = self._tagger(1.0, 0.0, **of_labels)
        fold.set_params(tol=self.search_tol, n_jobs=None, verbose=0)
        vars(fold).update({name: value for name, value in vars(self).items() if name in _OF_X})
        fold.classes_ = classes
        model = fold._model()
        fold._check_labels(labels, part.offsets, model.possible)
        return fold, model, fold._weigh(part._replace(labels=labels)).effective()

    def _tabulate(self, trials):
        """Keep the scores of all pairs of penalties, and the best one."""
        grid = self.block_scales_, self.l1s_, self.l2s_
        tried = list(product(*(values.tolist() for values in grid)))
        given = "block_scale", "l1", "l2"
        kept = self.block_scales is not None, self.l1s is not None, True
        params = [dict(compress(zip(given, values, strict=True), kept)) for values in tried]
        columns = {
            field: np.array([[getattr(trial, field) for trial in row] for row in trials])
            for field in _Trial._fields
        }
        results = _moments("fit_time", columns["fit_time"])
        results |= _moments("score_time", columns["score_time"])
        results |= {f"param_{name}": np.array([p[name] for p in params]) for name in params[0]}
        results["params"] = params
        for name in ("test_score", "objective", "n_iter"):
            results |= {f"split{i}_{name}": column for i, column in enumerate(columns[name].T)}
        results |= _moments("test_score", columns["test_score"])
        mean = results["mean_test_score"]
        results["rank_test_score"] = rankdata(-mean, method="min").astype(np.int32)
        best = self.best_index_ = int(np.argmin(results["rank_test_score"]))
        self.cv_results_ = results
        self.best_score_, self.best_params_ = float(mean[best]), params[best]
        self.block_scale_, self.l1_, self.l2_ = tried[best]
        self._complaints = list(self._find_fault(columns["converged"], mean))

    def _find_fault(self, converged, scores):
        """Yield warnings about the search: kinds and messages."""
        if not converged.all():
            yield (
                ConvergenceWarning,
                f"{np.sum(~converged)} of the {converged.size} fits of the search did not "
                f"converge within max_iter={self.max_iter} iterations. Increase max_iter, "
                "search_tol or the least of l2s.",
            )
        sides = {name: getattr(self, f"{name}_") for name in ("block_scales", "l1s", "l2s")}
        table = scores.reshape([len(values) for values in sides.values()])
        place = np.unravel_index(self.best_index_, table.shape)
        for axis, (name, values) in enumerate(sides.items()):
            best, line = place[axis], list(place)
            line[axis] = slice(None)
            others = table[tuple(line)]
            value = values[best]
            inner = (values > values.min()) & (values < values.max())
            at_end = value != 0 and len(values) > 1 and not inner[best]
            if at_end and not np.any(others[inner] == others[best]):
                end, more = ("largest", "larger") if value == values.max() else ("least", "smaller")
                yield (
                    UserWarning,
                    f"The best of {name}, {value:.4g}, is the {end} one: scores may be higher "
                    f"beyond it. Compare {more} ones, too.",
                )


def _penalties(name, values):
    if values is None:
        return np.zeros(1)
    if isinstance(values, Integral):
        return np.geomspace(_STRONGEST, _WEAKEST, values)
    try:
        found = np.array(values, dtype=float)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 1 or not len(found) or not np.all(np.isfinite(found) & (found >= 0)):
        raise ValueError(
            f"{name} must be finite numbers that are not negative, got {short_repr(values)}."
        )
    return found


def _scales(values):
    scales = np.ones(1) if values is None else _penalties("block_scales", values)
    if not scales.all():
        raise ValueError("block_scales has a zero, which leaves vectors out; use X without them.")
    return scales


def _scaled(training_set, scale):
    """Training set with a factor of its vectors, and their blocks."""
    rows = training_set.rows
    if scale == 1 or not rows.placed:
        return training_set, rows.placed
    placed = tuple(Placed(start, block.times(scale)) for start, block in rows.placed)
    return training_set._replace(rows=rows._replace(placed=placed)), placed


def _fold_in(chain, placed, scale):
    """Multiply the weights of vectors, in place, so that they fit unscaled ones."""
    for one in placed if scale != 1 else ():
        chain.weights[one.columns] *= scale


def _to_split(values):
    """Rows, a grid or labels in a form that can be split."""
    if sp.issparse(values):
        return values.tocsr()
    if values is None or isinstance(values, (list, tuple)) or hasattr(values, "iloc"):
        return values
    if is_frame(values):
        return values
    if hasattr(values, "__array__"):
        return np.asarray(values)
    return list(values) if isinstance(values, Iterator) else values


def _moments(name, columns):
    return {f"mean_{name}": columns.mean(axis=1), f"std_{name}": columns.std(axis=1)}


def _routes():
    return get_config()["enable_metadata_routing"]
