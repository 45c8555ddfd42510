"""Drop-in replacement for ``sklearn_crfsuite.CRF``."""

import os
from operator import itemgetter
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from skstruct.crfsuite.algorithms import most_iterations
from skstruct.crfsuite.items import LabelLists, as_sequences, count_sequences, read_sequence
from skstruct.crfsuite.model import ModelFile, tagger_to_bytes
from skstruct.crfsuite.pickles import is_state_of_peer, read_state_of_peer
from skstruct.crfsuite.tagger import Tagger
from skstruct.crfsuite.trainer import UNIT, close, learn
from skstruct.learning.monitor import Monitor
from skstruct.taggers.short import OWN, answer
from skstruct.utils.declared import Maybe, Part, Strings
from skstruct.utils.files import check_writable, write_whole
from skstruct.utils.persistence import Persistent, set_module
from skstruct.utils.progress import CallbackSupport, FitTasks, fit_context
from skstruct.utils.transaction import draft_of


@set_module("skstruct.crfsuite")
class CRF(CallbackSupport, Persistent, BaseEstimator):
    """Conditional random field with the interface of ``sklearn_crfsuite.CRF``.

    The parameters, methods and attributes are the same; the models are trained by `CRFTagger` or
    `OnlineCRF`. The guide lists the differences.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, default=None
        Training algorithm; None means "lbfgs". "lbfgs": `CRFTagger`; "l2sgd": `CRFTagger` with
        stochastic gradient descent; "ap": averaged perceptron; "pa": passive-aggressive; "arow":
        adaptive regularisation of weights; the last three by `OnlineCRF`.
    min_freq : float, default=None
        Minimum frequency of a combination of an attribute, or of a label, with a label. Less
        frequent ones have no weight.
    all_possible_states : bool, default=None
        If True, every attribute has a weight for every label, otherwise only for the labels that
        it occurs with.
    all_possible_transitions : bool, default=None
        If True, every label pair has a weight, otherwise only the pairs that occur.
    c1 : float, default=None
        Strength of the L1 penalty; None means 0. For "lbfgs".
    c2 : float, default=None
        Strength of the L2 penalty; None means 1. For "lbfgs" and "l2sgd".
    max_iterations : int, default=None
        Maximum number of iterations; for "lbfgs" with `c1`, passes of the dual ascent that comes
        first count. None means no limit for "lbfgs", 1000 for "l2sgd", and 100
        for the others. 0 means no limit for "lbfgs", and a model without weights for the others.
        With up to 100 iterations, `c1`, and neither `delta` nor `period`, "lbfgs" does not go on to
        the minimum: it stops as soon as the objective has settled, usually below CRFsuite's after
        100 iterations. ``delta=1e-5`` turns this off.
    num_memories : object, default=None
        No effect.
    epsilon : float, default=None
        "lbfgs": stop when the norm of the gradient is at most this times the norm of the weights,
        or times 1 if that is less; None means 1e-5. "ap", "pa" and "arow": stop when the mean loss
        of a sequence is less; None means 0.
    period : int, default=None
        Number of iterations over which `delta` is measured; None means 10, 0 never. No effect on
        "l2sgd".
    delta : float, default=None
        "lbfgs": stop when `period` iterations, not counting the first two, improved the objective
        by less than this share, or when it is provably within three times this share of its
        minimum, and within 1 %; None means 1e-5.
        "l2sgd": stop when five epochs have not improved the loss by three times this share; None
        means 1e-6.
    linesearch, max_linesearch : object, default=None
        No effect.
    calibration_eta, calibration_rate, calibration_samples : object, default=None
        No effect.
    calibration_candidates, calibration_max_trials : object, default=None
        No effect.
    pa_type : {0, 1, 2}, default=None
        Type of "pa": 0 for updates without a limit; 1, the default, for updates limited by `c`; 2
        for updates damped by `c`.
    c : float, default=None
        Aggressiveness of "pa"; None means 1.
    error_sensitive : bool, default=None
        If True, the default, the margin of "pa" is the square root of the number of wrong tokens,
        otherwise 1.
    averaging : bool, default=None
        If True, the default, "pa" predicts with the average of the weights.
    variance, gamma : float, default=None
        Variance of the weights of "arow" at first, and strength of its regularisation; None means
        1.
    verbose : bool, default=False
        If True, print a line for each iteration.
    model_filename : str, default=None
        Path of a model file. An existing file is used without fitting; `fit` overwrites it.
    keep_tempfiles : bool, default=False
        If True, keep the temporary file created by ``modelfile.name`` after the estimator is
        deleted.
    trainer_cls : object, default=None
        No effect.

    Attributes
    ----------
    estimator_ : estimator
        Fitted tagger.
    tagger_ : Tagger
        Tagger of the model, for one sequence at a time.
    classes_ : list of str
        Labels, in order of first occurrence.
    attributes_ : list of str
        Attributes with non-zero weights.
    state_features_ : dict of (str, str) to float
        Weights of pairs of an attribute and a label.
    transition_features_ : dict of (str, str) to float
        Weights of transitions, from the first label to the second.
    num_attributes_ : int
        Number of attributes with non-zero weights.
    size_ : int
        Size of the model file in bytes.
    training_log_ : TrainingLog
        Log of the training; its ``iterations`` are dicts, one for each iteration.
    modelfile : object
        Model file with its path as ``name``. The file is written when ``name`` is first read.

    See Also
    --------
    CRFTagger : CRF with scikit-learn's names and more options.

    Examples
    --------
    >>> from skstruct.crfsuite import CRF
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> crf = CRF(algorithm="lbfgs", c2=0.1).fit(X, y)
    >>> crf.predict([[{"word": "the"}, {"word": "dog"}]])
    array([list(['DET', 'NOUN'])], dtype=object)
    >>> print(f"{crf.state_features_['word:the', 'DET']:.2f}")
    0.57
    """

    # The estimators that learn check the values.
    _parameter_constraints: dict = {}

    # Values before fitting.
    training_log_ = None
    _estimator = None
    _labels = None
    _stored = {
        "_estimator": Maybe(Part("predict_proba", "classes_", "coef_")),
        "_labels": Maybe(Strings(distinct=True)),
        "training_log_": Maybe(Part("iterations", "training_seconds")),
    }
    _complete = ("_estimator", "_labels")
    # Caches, derived from the weights.
    _derived_state = ("_tagger", "_info_cached", "_size_cached", "_modelfile", "_pick")
    _tagger = _info_cached = _size_cached = _modelfile = _pick = None

    def __init__(
        self,
        algorithm=None,
        min_freq=None,
        all_possible_states=None,
        all_possible_transitions=None,
        c1=None,
        c2=None,
        max_iterations=None,
        num_memories=None,
        epsilon=None,
        period=None,
        delta=None,
        linesearch=None,
        max_linesearch=None,
        calibration_eta=None,
        calibration_rate=None,
        calibration_samples=None,
        calibration_candidates=None,
        calibration_max_trials=None,
        pa_type=None,
        c=None,
        error_sensitive=None,
        averaging=None,
        variance=None,
        gamma=None,
        verbose=False,
        model_filename=None,
        keep_tempfiles=False,
        trainer_cls=None,
    ) -> None:
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.variance = variance
        self.gamma = gamma
        self.verbose = verbose
        self.model_filename = model_filename
        self.keep_tempfiles = keep_tempfiles
        self.trainer_cls = trainer_cls

    def fit(self, X, y, X_dev=None, y_dev=None) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : list of lists of tokens
            Sequences of feature dicts or lists of attribute strings, or any other input of
            `CRFTagger` with feature names.
        y : list of lists of str
            Labels.
        X_dev, y_dev : list of lists, default=None
            Held-out sequences, scored after every iteration. The scores are in
            ``training_log_.iterations``.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the data or a parameter is invalid, or if a parameter does not belong to the
            algorithm.
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("Pass both X_dev and y_dev to use the holdout data.")
        if self.model_filename is not None:
            check_writable(self.model_filename)
        with draft_of(self) as draft:
            draft._fit_draft(X, y, X_dev, y_dev)
        return self

    @fit_context(prefer_skip_nested_validation=False)
    def _fit_draft(self, X, y, X_dev, y_dev):
        params = self.get_params(deep=False)
        X_dev = None if X_dev is None else as_sequences(X_dev, "X_dev")
        most = most_iterations(params)
        monitor = Monitor(self, FitTasks.of(self, X, y, most), unit=UNIT, max_iter=most)
        learnt = learn(params, as_sequences(X), y, X_dev, y_dev, monitor)
        self._forget()
        self._estimator, self._labels, self.training_log_ = learnt
        if self.model_filename is not None:
            write_whole(self.model_filename, self._bytes())
        close(monitor, self.training_log_, self.verbose)

    def predict(self, X) -> Any:
        """Predict label sequences.

        Parameters
        ----------
        X : list of lists of tokens
            As in `fit`.

        Returns
        -------
        y : ndarray of shape (n_sequences,), dtype object
            Lists of labels, also if all have the same length. It then compares, by ``==``, as the
            two-dimensional array that sklearn-crfsuite returns.
        """
        if type(X) is list and len(X) == 1 and self._estimator is not None:
            labels = []
            if answer(self._estimator, X, bytearray(), [labels]):
                found = LabelLists(1, object)
                found[0] = labels
                return found
        return self._predict(X)

    def _predict(self, X):
        X = as_sequences(X)
        estimator = self._fitted().estimator_
        predicted = estimator.predict(X) if count_sequences(X) else np.empty(0, dtype=object)
        return predicted.view(LabelLists)

    def predict_single(self, xseq):
        """Predict the labels of a sequence.

        Parameters
        ----------
        xseq : list of tokens
            Sequence of tokens.

        Returns
        -------
        labels : list of str
        """
        estimator = self._estimator
        if type(xseq) is list and estimator is not None:
            labels = []
            if answer(estimator, [xseq], bytearray(), [labels]):
                return labels
        return self._predict([read_sequence(xseq)])[0]

    def predict_marginals(self, X):
        """Compute the marginals of all labels at all tokens.

        Parameters
        ----------
        X : list of lists of tokens
            As in `fit`.

        Returns
        -------
        marginals : ndarray of shape (n_sequences,), dtype object
            Lists of dicts from label to probability.
        """
        X, estimator = as_sequences(X), self._fitted().estimator_
        marginals = np.empty(count_sequences(X), dtype=object)
        if count_sequences(X):
            # Each row of a matrix is a sequence of length one.
            marginals[:] = [self._as_dicts(np.atleast_2d(p)) for p in estimator.predict_proba(X)]
        return marginals

    def predict_marginals_single(self, xseq):
        """Compute the marginals of all labels at all tokens of a sequence.

        Parameters
        ----------
        xseq : list of tokens
            Sequence of tokens.

        Returns
        -------
        marginals : list of dict of str to float
        """
        estimator, labels = self._fitted().estimator_, self._labels
        if type(xseq) is list:
            sums, k = bytearray(), len(labels)
            if answer(estimator, [xseq], bytearray(), [], sums):
                # After the marginals come the log-partition and the score.
                flat, pick = memoryview(sums).cast("d").tolist(), self._in_order()
                rows = [pick(flat[i : i + k]) for i in range(0, len(flat) - 2, k)]
                return [dict(zip(labels, row, strict=True)) for row in rows]
        return self._as_dicts(estimator.predict_proba([read_sequence(xseq)])[0])

    def score(self, X, y) -> float:
        """Compute the token accuracy.

        Parameters
        ----------
        X : list of lists of tokens
            As in `fit`.
        y : list of lists of str
            Labels.

        Returns
        -------
        score : float
            Between 0 and 1.
        """
        return self._fitted().estimator_.score(as_sequences(X), y)

    @property
    def estimator_(self):
        """Fitted tagger; None before fitting."""
        if self._estimator is None and self.model_filename is not None:
            tagger = Tagger()
            tagger.open(self.model_filename)
            # From now on, others can change it.
            vars(tagger._estimator).pop(OWN)
            self._labels, self._estimator = tagger.labels(), tagger._estimator
        return self._estimator

    @property
    def tagger_(self):
        """`Tagger` of the model; None before fitting."""
        if self._tagger is None and self.estimator_ is not None:
            tagger = Tagger()
            tagger._set_model(self.estimator_, self._labels)
            # At the end: threads that predict share it.
            self._tagger = tagger
        return self._tagger

    @property
    def classes_(self):
        """Labels, in order of first occurrence."""
        return None if self.tagger_ is None else self.tagger_.labels()

    @property
    def size_(self):
        """Size of the model file in bytes."""
        if self._size_cached is None and self.estimator_ is not None:
            self._size_cached = len(self._bytes())
        return self._size_cached

    @property
    def num_attributes_(self):
        """Number of attributes with non-zero weights."""
        return None if self._info is None else len(self._info.attributes)

    @property
    def attributes_(self):
        """Attributes with non-zero weights."""
        return None if self._info is None else list(self._info.attributes)

    @property
    def state_features_(self):
        """Weights of pairs of an attribute and a label."""
        return None if self._info is None else self._info.state_features

    @property
    def transition_features_(self):
        """Weights of transitions, from the first label to the second."""
        return None if self._info is None else self._info.transitions

    @property
    def _info(self):
        if self._info_cached is None and self.tagger_ is not None:
            _, self._info_cached = self.tagger_._described()
        return self._info_cached

    @property
    def modelfile(self):
        """Model file with its path as ``name``."""
        if self._modelfile is None:
            self._modelfile = ModelFile(self)
        return self._modelfile

    def _fitted(self):
        if self.estimator_ is None:
            raise NotFittedError(
                "This CRF is not fitted. Call fit, or pass the path of a model as model_filename."
            )
        return self

    def _bytes(self):
        return tagger_to_bytes(self.estimator_, labels=self._labels)

    def _as_dicts(self, proba):
        labels, pick = self._labels, self._in_order()
        return [dict(zip(labels, pick(row), strict=True)) for row in proba.tolist()]

    def _in_order(self):
        """Function that puts numbers for the classes in the order of the labels."""
        pick = self._pick
        if pick is None:
            columns = list(map(self.tagger_._code, self._labels))
            one_by_one = itemgetter(*columns) if len(columns) > 1 else tuple
            pick = self._pick = one_by_one
        return pick

    def _forget(self):
        for name in self._derived_state:
            self.__dict__.pop(name, None)
        return self

    def __setstate__(self, state):
        super().__setstate__(read_state_of_peer(state) if is_state_of_peer(state) else state)

    def __copy__(self):
        # Callbacks replace the weights of a copy.
        return super().__copy__()._forget()

    def _check_state(self):
        if self._estimator is not None and set(self._labels) != set(
            self._estimator.classes_.tolist()
        ):
            raise ValueError("the labels differ from the estimator's.")
        if not isinstance(self.model_filename, (str, bytes, os.PathLike, type(None))):
            raise ValueError("model_filename is not a path.")

    def __sklearn_is_fitted__(self):
        return self._estimator is not None or self.model_filename is not None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.dict = True
        tags.input_tags.two_d_array = False
        return tags
