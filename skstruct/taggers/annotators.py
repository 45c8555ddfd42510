"""Several annotators: y has labellings of the same sequence that contradict each other."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from skstruct.decoding import best_labels
from skstruct.input.annotators import are_several, labellings, read_annotators, to_read
from skstruct.input.constraints import check_chain
from skstruct.input.formats import check_number, label_array, shape_predictions
from skstruct.input.scale import advise_scaling, check_sample_weight
from skstruct.input.training_set import (
    TrainingSet,
    block_rows,
    empty_unweighted,
    has_token_weights,
    read_sample_weight,
    require_weight,
)
from skstruct.learning import lbfgs
from skstruct.learning.crowd import Answers, best_possible, dawid_skene, learn, with_scores
from skstruct.learning.solver import Notice, Solution, settings_of
from skstruct.matrices import read_only
from skstruct.metrics.labels import token_accuracy_score
from skstruct.taggers.base import LABELS, BaseTagger
from skstruct.taggers.crf import CRFTagger
from skstruct.taggers.prediction import LEARNT
from skstruct.taggers.short import DERIVED
from skstruct.utils.declared import Array, Labels
from skstruct.utils.parallel import chain_work, range_runner
from skstruct.utils.persistence import set_module
from skstruct.utils.transaction import draft_of, refuse_arguments

# Smallest probability whose logarithm is taken: a file may hold zero.
_LEAST = 1e-300
# The CRF has a weight for every combination: which labels occur is not known.
_EVERY = {"all_possible_states": True, "all_possible_transitions": True}
# Parameters shared with `CRFTagger`, and attributes of X.
_OF_CRF = ("l2", "fit_intercept", "constraint", "n_jobs", "verbose")
_OF_X = ("n_features_in_", "feature_names_in_", "vectorizer_", "n_transition_features_in_")


@set_module("skstruct")
class AnnotatorCRF(BaseTagger):
    r"""Conditional random field that learns from several annotators who contradict each other.

    People, rules or language models have labelled the same sequences, each some of them. None is
    right at all times, and nobody knows who is. The model learns together what the right labels
    look like, by a CRF, and how each annotator confuses labels, by a matrix.

    `fit` minimises

    .. math::

       -\sum_i s_i \log \sum_{y} p_w(y \mid x_i) \prod_{a, t} C_a[y_t, v_{iat}]
       + \frac{l_2}{2} \, \lVert w \rVert^2 - \sum_{a, j, k} \alpha_{jk} \log C_a[j, k]

    over the weights :math:`w` of the CRF, which are those of `CRFTagger` with a weight for every
    combination, and the confusions :math:`C_a` of the annotators. Annotator :math:`a` has given the
    label :math:`v_{iat}` to the token :math:`t` of the sequence :math:`x_i`, whose right labels
    are :math:`y`. Predictions are those of the CRF.

    Parameters
    ----------
    l2 : float, default=1.0
        Strength of the L2 penalty of the CRF, on all weights including biases.
    prior_right : float, default=1.0
        Number of tokens of each label that each annotator is taken to have labelled rightly, before
        any is counted. More trusts annotators who have labelled little.
    prior_any : float, default=1.0
        Number of tokens of each label that each annotator is taken to have labelled at random,
        positive. With `prior_right`, these are the :math:`\alpha` above.
    fit_intercept : bool, default=True
        Learn a bias for each label, and for each label at the first and at the last token.
    constraint : str or array-like of bool of shape (n_classes, n_classes), default=None
        Labellings that can be right, as in `CRFTagger`. Annotators may give others.
    max_iter : int, default=50
        Largest number of iterations of expectation maximisation.
    tol : float, default=1e-3
        Stop when an iteration has decreased the objective by less than this fraction.
    n_jobs : int, default=None
        Number of threads; -1 means all processors. Learning gives the same bits for the same
        number, prediction for any.
    verbose : int, default=0
        1 prints a line for each iteration, 2 the numbers of ``history_``.

    Attributes
    ----------
    annotators_ : ndarray of shape (n_annotators,)
        Names of the annotators, sorted; their numbers where they have none.
    confusion_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Probabilities of the label that an annotator gives, the column, by the right one, the row.
        Rows sum to 1.
    estimator_ : CRFTagger
        The CRF alone, as a tagger of its own.
    classes_ : ndarray of shape (n_classes,)
        Labels that annotators have given, sorted.
    coef_, transition_, intercept_, start_, end_ : ndarray
        Weights, as of `CRFTagger`.
    transition_coef_ : ndarray of shape (n_classes, n_classes, n_transition_features)
        Weights of transition features, if X has a ``transition_X``.
    n_iter_ : int
        Number of iterations.
    history_ : dict of ndarray
        An entry for the start and for each iteration: ``"epoch"``, ``"time"``, ``"objective"``,
        which never rises, and ``"log_likelihood"``, of the labels that are given.
    n_weights_ : int
        Number of weights of the CRF.
    n_features_in_, n_transition_features_in_, feature_names_in_, vectorizer_ : object
        As of `CRFTagger`.

    See Also
    --------
    CRFTagger : Learns from one labelling of each sequence.
    skstruct.model_selection.find_label_errors : Labels of one annotator that may be wrong.

    Notes
    -----
    It starts from the model of Dawid and Skene, which takes each token by itself, and a CRF of the
    labels that are then most probable. E steps are exact (forward-backward); M steps are counts
    for the annotators, and some iterations of L-BFGS for the CRF.

    Annotators are taken to err independently of each other. Two of whom one copies the other count
    as two witnesses. With a single annotator, only the CRF can contradict.

    References
    ----------
    A. P. Dawid and A. M. Skene: Maximum likelihood estimation of observer error-rates using the EM
    algorithm. Journal of the Royal Statistical Society C, 1979.

    V. C. Raykar et al.: Learning from crowds. Journal of Machine Learning Research, 2010.

    F. Rodrigues, F. Pereira and B. Ribeiro: Sequence labeling with multiple annotators. Machine
    Learning, 2014.

    Examples
    --------
    >>> from skstruct import AnnotatorCRF
    >>> X = [[["in"], ["Rome"]], [["in"], ["May"]], [["Rome"]]] * 4
    >>> ann, bob = [["O", "LOC"], ["O", "O"], ["LOC"]] * 4, [["O", "LOC"], ["O", "LOC"], ["O"]] * 4
    >>> y = [{"ann": a, "bob": b, "eve": a} for a, b in zip(ann, bob)]
    >>> tagger = AnnotatorCRF(l2=0.1).fit(X, y)
    >>> tagger.predict(X[:3]).tolist()
    [['O', 'LOC'], ['O', 'O'], ['LOC']]
    >>> tagger.annotators_.tolist(), tagger.classes_.tolist()
    (['ann', 'bob', 'eve'], ['LOC', 'O'])

    Bob misses more places than Ann does:

    >>> bool(tagger.confusion_[1, 0, 1] > tagger.confusion_[0, 0, 1])
    True
    """

    _parameter_constraints: dict = {
        **{
            name: BaseTagger._parameter_constraints[name]
            for name in ("fit_intercept", "constraint", "max_iter", "n_jobs", "verbose")
        },
        "l2": [Interval(Real, 0, None, closed="left")],
        "prior_right": [Interval(Real, 0, None, closed="left")],
        "prior_any": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    _stored = {
        "annotators_": Labels(),
        "confusion_": Array(np.float64, ("annotators_", LABELS, LABELS), least=0),
    }
    _complete = (*BaseTagger._complete, *_stored)
    _learns_transition_features = True

    def __init__(
        self,
        *,
        l2=1.0,
        prior_right=1.0,
        prior_any=1.0,
        fit_intercept=True,
        constraint=None,
        max_iter=50,
        tol=1e-3,
        n_jobs=None,
        verbose=0,
    ) -> None:
        self.l2 = l2
        self.prior_right = prior_right
        self.prior_any = prior_any
        self.fit_intercept = fit_intercept
        self.constraint = constraint
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X, y, sample_weight=None, **others) -> Self:
        """Learn the CRF and the confusions of the annotators.

        Parameters
        ----------
        X : sequences of tokens
            As in `CRFTagger.fit`.
        y : sequences of labellings
            For each sequence a dict of labellings by the name of the annotator; or a list with a
            labelling for each annotator, always in the same order, and None for those who have not
            labelled the sequence. A labelling has a label, str or int, for each token, or None
            where the annotator has left it open. For a 2-D `X`, a label takes the place of a
            labelling. Plain labels, as `CRFTagger` takes them, are those of a single annotator.
            Nothing is learnt from sequences that nobody has labelled.
        sample_weight : float or array-like of shape (n_sequences,), default=None
            Weight of each sequence, for the CRF and the confusions. By default, 1. A sequence of
            weight 0 is as if it were not there.
        **others
            None.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If X, y or a parameter is invalid; the message names annotator, sequence and token. The
            estimator is then as it was before.

        Warns
        -----
        ConvergenceWarning
            If `max_iter` iterations were not enough.
        """
        refuse_arguments("fit", others)
        y = to_read(y)
        with draft_of(self) as draft:

            def learn_from(monitor):
                data, model, answers, scores = draft._read_answers(X, y, sample_weight)
                monitor = draft._watch(monitor, (None,) * 3)
                return draft._learn_together(data, model, answers, scores, monitor)

            draft._fit_by(learn_from, X, y, sample_weight=sample_weight)
        return self

    def _read_answers(self, X, y, sample_weight):
        """Read X and y; return a training set, its model, the answers, and scores to start from."""
        format, batch = self._read_X(X, reset=True)
        self._forget("_state", DERIVED, *LEARNT)
        if has_token_weights(sample_weight):
            self._read_token_weights(sample_weight, batch.lengths)
        weight = read_sample_weight(sample_weight, len(batch))
        require_weight(weight, batch.lengths)
        given = read_annotators(y, batch.offsets, format, weight)
        self.annotators_ = given.annotators
        self.classes_, codes = given.encode()
        check_number(len(self.classes_))
        labelled = np.zeros(len(batch), bool)
        labelled[np.searchsorted(batch.offsets, given.rows, side="right") - 1] = True
        weight = weight * labelled
        # Numbers of the rows that are left.
        number_of = np.cumsum(np.repeat(labelled, batch.lengths)) - 1
        batch, kept = empty_unweighted(batch, number_of, weight)
        batch = self._keep_features_of(batch)
        if batch.n_features == 0:
            raise ValueError("Found array with 0 feature(s): at least one feature is required.")
        model = self._model()
        shape = len(kept), len(self.annotators_), len(self.classes_)
        answers = Answers.of(number_of[given.rows], given.numbers, codes, shape)
        scores = dawid_skene(answers, np.repeat(weight, batch.lengths), self._prior)
        start = best_possible(scores, batch.offsets, model.possible)
        check_sample_weight(weight)
        data = TrainingSet(block_rows(batch), batch.offsets, start, read_only(weight))
        return data.weighted(), model, answers, scores

    @property
    def _prior(self):
        """Tokens of each right and given label that are counted before any."""
        k = len(self.classes_)
        return self.prior_right * np.eye(k) + self.prior_any / k

    def _learn_together(self, data, model, answers, scores, monitor):
        """Learn, keep the confusions, and return a `Solution`."""
        scale = advise_scaling(data.rows, getattr(self, "feature_names_in_", None))
        shared = {name: getattr(self, name) for name in _OF_CRF}
        start = CRFTagger(tol=min(self.tol, 1e-4), **shared, **_EVERY)
        settings = settings_of(lbfgs.Settings, start)
        objective = lbfgs.build_objective(data, model, settings)
        work = chain_work(objective.n_labels, model.order)
        with range_runner(objective.offsets, self.n_jobs, work) as run:
            problem = objective, answers, self._prior, scores
            chain, self.confusion_, is_over = learn(
                *problem, settings, self.max_iter, self.tol, monitor, run
            )
        entry = monitor.last()
        check_chain(chain, model.possible, entry["epoch"])
        notice = None
        if not is_over:
            notice = Notice(
                f"Did not converge after {entry['epoch']} iterations (max_iter={self.max_iter}).",
                "Increase max_iter or tol.",
            )
        self.n_weights_ = objective.n_weights
        history = monitor.arrays()
        return Solution(chain, history, entry["epoch"], notice=notice, scale=scale)

    @property
    def estimator_(self):
        """The CRF alone, as a `CRFTagger`."""
        if "coef_" not in vars(self):
            raise AttributeError("estimator_ is there after fit.")
        shared = {name: getattr(self, name) for name in _OF_CRF}
        tagger = CRFTagger(**shared, **_EVERY)
        kept = {*LEARNT, *_OF_X, "classes_", "n_iter_", "history_", "n_weights_"}
        vars(tagger).update({name: v for name, v in vars(self).items() if name in kept})
        return tagger

    def consensus(self, X, y) -> Any:
        """Find the labels that are most probable by the annotators and the CRF together.

        Parameters
        ----------
        X : sequences of tokens
            Such as those of `fit`.
        y : sequences of labellings
            What annotators of `fit` say of them, in the same form.

        Returns
        -------
        labels : ndarray
            The best labelling of each sequence, in the shape of those of `predict`.
        proba : ndarray
            Probabilities of the labels of each token, in the shape of those of `predict_proba`.

        Raises
        ------
        ValueError
            If X or y is invalid, or has an annotator or a label that `fit` has not seen.
        """
        check_is_fitted(self)
        format, batch = self._read_X(X)
        given = read_annotators(to_read(y), batch.offsets, format)
        numbers = given.numbers_among(self.annotators_)
        _, codes = given.encode(self.classes_)
        shape = batch.offsets[-1], len(self.annotators_), len(self.classes_)
        answers = Answers.of(given.rows, numbers, codes, shape)
        rows, chain, _, possible = self._condition(batch, None, format)
        evidence = answers.evidence(np.log(np.maximum(self.confusion_, _LEAST)))
        rows, chain = with_scores(rows, chain, evidence)
        proba, _ = self._marginals(batch.offsets, rows, chain, None, possible)
        codes = best_labels(rows, batch.offsets, chain, self.n_jobs)
        labels = self._shape_labels(codes, batch, format)
        return labels, shape_predictions(proba, batch.offsets, format)

    def score(self, X, y, sample_weight=None):
        """Compute the token accuracy.

        Parameters
        ----------
        X : sequences of tokens
            As in `predict`.
        y : sequences of labels
            The right ones. Or labellings of several annotators, as in `fit`: each of their labels
            then counts as right.
        sample_weight : array-like of shape (n_sequences,), default=None
            Weight of the tokens of each sequence.

        Returns
        -------
        score : float
            Fraction of the labels that are predicted, between 0 and 1.
        """
        y, predicted = to_read(y), self.predict(X)
        of_rows = predicted.ndim == 1 and not isinstance(predicted[0], list)
        if not are_several(y, of_rows):
            return token_accuracy_score(y, predicted, sample_weight=sample_weight)
        if len(y) != len(predicted):
            raise ValueError(f"X has {len(predicted)} sequences, but y has labels for {len(y)}.")
        given = list(labellings(y, of_rows))
        which = np.array([one.sequence for one in given], np.int64)
        true = [one.labels for one in given]
        true = label_array(true) if of_rows else true
        weight = read_sample_weight(sample_weight, len(predicted))[which]
        return token_accuracy_score(true, predicted[which], sample_weight=weight)
