"""A drop-in for ``sklearn_crfsuite.CRF``."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from skstruct.crfsuite.log import TrainingLog
from skstruct.crfsuite.model import read_model, tagger_to_bytes, write_model
from skstruct.crfsuite.tagger import ModelInfo, Tagger, as_tokens, tagger_of
from skstruct.crfsuite.trainer import Trainer, learn
from skstruct.utils.persistence import Persistent
from skstruct.utils.public_paths import set_module

__all__ = ["CRF", "ModelInfo", "Tagger", "Trainer", "TrainingLog", "read_model", "write_model"]


@set_module("skstruct.crfsuite")
class CRF(Persistent, BaseEstimator):
    """Conditional random field with the interface of ``sklearn_crfsuite.CRF``.

    The same parameters, methods and attributes on the same data; behind them are `CRFTagger`,
    `PerceptronTagger` and `MIRATagger`. The guide says what is different.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, default=None
        How to learn; None is "lbfgs". "lbfgs": `CRFTagger`; "l2sgd": `CRFTagger` by stochastic
        gradient descent; "ap": averaged perceptron, `PerceptronTagger`; "pa": `MIRATagger`.
        There is no "arow".
    min_freq : float, default=None
        Combinations of an attribute or label with a label that are less frequent than this have
        no weight. Of "lbfgs" and "l2sgd".
    all_possible_states : bool, default=None
        Whether every attribute has a weight for every label, and not only for those that it
        occurs with. With "ap" and "pa" it has in any case.
    all_possible_transitions : bool, default=None
        Whether every label pair has a weight, and not only those that occur. With "ap" and "pa"
        it has in any case.
    c1 : float, default=None
        Strength of the absolute penalty; None is 0. Of "lbfgs".
    c2 : float, default=None
        Strength of the squared penalty; None is 1. Of "lbfgs" and "l2sgd".
    max_iterations : int, default=None
        Most iterations. None is no limit for "lbfgs", 1000 for "l2sgd" and 100 for others.
    num_memories : int, default=None
        Has no effect.
    epsilon : float, default=None
        Has no effect.
    period : int, default=None
        Has no effect.
    delta : float, default=None
        Stop when the objective is certainly within three times this share of its minimum, which
        is about where CRFsuite's own criterion stops; None is 1e-5. Of "lbfgs" and "l2sgd".
    linesearch, max_linesearch : object, default=None
        Have no effect.
    calibration_eta, calibration_rate, calibration_samples : object, default=None
        Have no effect.
    calibration_candidates, calibration_max_trials : object, default=None
        Have no effect.
    pa_type : {0, 1}, default=None
        Of "pa": 0 for no limit of an update, 1 (which None is) for the limit `c`. There is no 2.
    c : float, default=None
        Of "pa": limit of an update; None is 1.
    error_sensitive : bool, default=None
        Of "pa": whether the margin grows with the number of wrong tokens, as it does by default.
    averaging : bool, default=None
        Of "pa": whether to predict with the average of the weights, as it does by default.
    variance, gamma : float, default=None
        Of "arow".
    verbose : bool, default=False
        Whether to print a line for each iteration.
    model_filename : str, default=None
        A model file. If there is one already, it is used without fitting; `fit` overwrites it.
    keep_tempfiles : bool, default=False
        Whether the temporary file that is made where ``modelfile.name`` is asked for stays when
        the estimator is gone.
    trainer_cls : object, default=None
        Has no effect.

    Attributes
    ----------
    estimator_ : estimator
        The fitted tagger behind.
    tagger_ : Tagger
        Labels one sequence after another.
    classes_ : list of str
        Labels, in the order in which they first occur.
    attributes_ : list of str
        Attributes that have a weight other than zero.
    state_features_ : dict of (str, str) to float
        Weight of each pair of an attribute and a label.
    transition_features_ : dict of (str, str) to float
        Weight of each pair of a label before and a label.
    num_attributes_ : int
        Number of attributes.
    size_ : int
        Bytes of the model file.
    training_log_ : TrainingLog
        Its ``iterations`` are dicts, one for each iteration.
    modelfile : object
        Its ``name`` is the path of a model file, which is written when it is asked for.

    See Also
    --------
    CRFTagger : The same in scikit-learn's names, with more to choose.

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

    # As of an estimator that was not fitted.
    training_log_ = None
    _estimator = None
    _labels = None
    # Made of the weights when it is asked for.
    _derived_state = ("_tagger", "_info_cached", "_modelfile")

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
    ):
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

    def fit(self, X, y, X_dev=None, y_dev=None):
        """Learn the weights.

        Parameters
        ----------
        X : list of lists of tokens
            Sequences of feature dicts or lists of attribute strings; also all else that
            `CRFTagger` takes and has names for.
        y : list of lists of str
            Labels.
        X_dev, y_dev : list of lists, default=None
            Sequences to be scored with the weights of every iteration; the scores are in
            ``training_log_.iterations``.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the data or a parameter is invalid, or a parameter does not belong to the
            algorithm.
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("Pass both X_dev and y_dev to use the holdout data")
        X_dev = None if X_dev is None else _as_sequences(X_dev)
        learnt = learn(self.get_params(deep=False), _as_sequences(X), y, X_dev, y_dev)
        self._forget()
        self._estimator, self._labels, self.training_log_ = learnt
        if self.model_filename is not None:
            Path(self.model_filename).write_bytes(self._bytes())
        return self

    def predict(self, X):
        """Best label sequences.

        Parameters
        ----------
        X : list of lists of tokens
            As in `fit`.

        Returns
        -------
        y : ndarray of shape (n_sequences,), dtype object
            Lists of labels, also where all are equally long.
        """
        X = _as_sequences(X)
        estimator = self._fitted().estimator_
        return estimator.predict(X) if len(X) else np.empty(0, dtype=object)

    def predict_single(self, xseq):
        """Best labels of a sequence.

        Parameters
        ----------
        xseq : list of tokens
            The sequence.

        Returns
        -------
        labels : list of str
        """
        return self._fitted().tagger_.tag(xseq)

    def predict_marginals(self, X):
        """Marginal probability of each label at each token.

        Parameters
        ----------
        X : list of lists of tokens
            As in `fit`.

        Returns
        -------
        marginals : ndarray of shape (n_sequences,), dtype object
            Lists of dicts from label to probability.
        """
        X, estimator = _as_sequences(X), self._fitted().estimator_
        marginals = np.empty(len(X), dtype=object)
        if len(X):
            marginals[:] = [self._as_dicts(proba) for proba in estimator.predict_proba(X)]
        return marginals

    def predict_marginals_single(self, xseq):
        """Marginal probability of each label at each token of a sequence.

        Parameters
        ----------
        xseq : list of tokens
            The sequence.

        Returns
        -------
        marginals : list of dict of str to float
        """
        tagger = self._fitted().tagger_
        tagger.set(xseq)
        return self._as_dicts(tagger._probabilities()[0])

    def score(self, X, y):
        """Share of tokens that get the right label.

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
        return self._fitted().estimator_.score(_as_sequences(X), y)

    @property
    def estimator_(self):
        """The fitted tagger behind; None if there is none."""
        if self._estimator is None and self.model_filename is not None:
            tagger = Tagger()
            tagger.open(self.model_filename)
            self._estimator, self._labels = tagger._estimator, tagger.labels()
        return self._estimator

    @property
    def tagger_(self):
        """`Tagger` of the model; None if there is none."""
        if self.estimator_ is None:
            return None
        if "_tagger" not in self.__dict__:
            self._tagger = tagger_of(self.estimator_, self._labels)
        return self._tagger

    @property
    def classes_(self):
        """Labels, in the order in which they first occur."""
        return None if self.tagger_ is None else self.tagger_.labels()

    @property
    def size_(self):
        """Bytes of the model file."""
        return None if self._info is None else int(self._info.header["size"])

    @property
    def num_attributes_(self):
        """Number of attributes that have a weight other than zero."""
        return None if self._info is None else len(self._info.attributes)

    @property
    def attributes_(self):
        """Attributes that have a weight other than zero."""
        return None if self._info is None else list(self._info.attributes)

    @property
    def state_features_(self):
        """Weight of each pair of an attribute and a label."""
        return None if self._info is None else self._info.state_features

    @property
    def transition_features_(self):
        """Weight of each pair of a label before and a label."""
        return None if self._info is None else self._info.transitions

    @property
    def modelfile(self):
        """What has the path of a model file as its ``name``."""
        if "_modelfile" not in self.__dict__:
            self._modelfile = _ModelFile(self)
        return self._modelfile

    @property
    def _info(self):
        if self.tagger_ is None:
            return None
        if "_info_cached" not in self.__dict__:
            self._info_cached = self.tagger_.info()
        return self._info_cached

    def _fitted(self):
        if self.estimator_ is None:
            raise NotFittedError(
                "This CRF is not fitted: call fit, or give it the model_filename of a model."
            )
        return self

    def _bytes(self):
        return tagger_to_bytes(self.estimator_, labels=self._labels)

    def _as_dicts(self, proba):
        columns = [self.tagger_._codes[label] for label in self._labels]
        return [dict(zip(self._labels, row, strict=True)) for row in proba[:, columns].tolist()]

    def _forget(self):
        """Drop what was derived from the weights."""
        for name in self._derived_state:
            self.__dict__.pop(name, None)

    def _check_state(self):
        if self._estimator is not None:
            known = sorted(self._labels)
            if known != sorted(set(self._estimator.classes_.tolist()) & set(known)):
                raise ValueError("the labels are not those of the estimator.")

    def __sklearn_is_fitted__(self):
        return self._estimator is not None or self.model_filename is not None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.dict = True
        tags.input_tags.two_d_array = False
        return tags


class _ModelFile:
    """The model file of a `CRF`: the user's, or a temporary one, written when it is asked for."""

    def __init__(self, crf):
        self._crf = weakref.ref(crf)
        self._temporary = None

    @property
    def name(self):
        crf = self._crf()
        if crf is None or crf.model_filename is not None or crf.estimator_ is None:
            return None if crf is None else crf.model_filename
        if self._temporary is None:
            handle, self._temporary = tempfile.mkstemp(".crfsuite", "model")
            with os.fdopen(handle, "wb") as file:
                file.write(crf._bytes())
            if not crf.keep_tempfiles:
                weakref.finalize(self, Path(self._temporary).unlink, missing_ok=True)
        return self._temporary


def _as_sequences(X):
    """X, with what python-crfsuite's ``ItemSequence`` holds in place of it."""
    if hasattr(X, "shape"):
        return X
    return [as_tokens(xseq) for xseq in X]
