"""Adaptive regularisation of weights."""

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from skstruct import kernels
from skstruct.taggers.online import LearnerState, OnlineTagger
from skstruct.utils.declared import Maybe
from skstruct.utils.public_paths import set_module


@set_module("skstruct")
class AROWTagger(OnlineTagger):
    r"""Adaptive regularisation of weights (Crammer, Kulesza and Dredze, 2009).

    Every weight has a variance. Where the best labelling of a sequence is wrong, each weight
    changes in proportion to its variance, and the variances of these weights shrink. So weights of
    frequent features settle early, and rare ones can still change much: AROW takes few epochs.

    Parameters
    ----------
    variance : float, default=1.0
        Variance of every weight at first, at most 1e100. Only its ratio to `gamma` matters.
    gamma : float, default=10.0
        Strength of the regularisation: the larger, the smaller the changes, of weights and of
        variances.
    average : bool, default=True
        Predict with the average of the weights after each sequence, which usually labels better.
        False predicts with those after the last one, as in the paper.
    fit_intercept : bool, default=True
        Learn a bias for each label, and for each label at the first and at the last token.
    order : {1, 2}, default=1
        Order of the chain. With 2, a label's score depends on the two labels before it: each triple
        of neighbouring labels has a weight beside that of its last pair. Time and memory grow with
        the cube of the number of labels. Not with transition features.
    constraint : str or array-like of bool of shape (n_classes, n_classes), default=None
        Labellings that are allowed. A scheme, "IOB1", "IOB2" (or "BIO"), "IOE1", "IOE2", "IOBES"
        (or "BIOES"), "BILOU" or "BMES", allows its valid labellings, and "runs" all. An array, with
        rows and columns in the order of ``classes_``, allows transitions from row to column where
        it is True. Other labellings have probability zero, in learning and in prediction, and
        weights of minus infinity.
    structure_alpha : float, default=1.0
        Structure regularisation: each epoch cuts each sequence anew at random, into this many
        pieces on average, of about equal length. 1 cuts nothing.
    mini_length : float, default=None
        Length of the pieces, in place of their number, `structure_alpha`. 5.5 is a mixture of
        lengths 5 and 6. The rest of a sequence is a shorter piece, so that the mean is lower.
    max_iter : int, default=100
        Largest number of epochs, passes over the training set.
    tol : float or None, default=1e-3
        Stop when the loss has not improved by more than this fraction for `n_iter_no_change`
        epochs, or with `early_stopping` the score on the validation set by more than this. None
        runs for `max_iter` epochs.
    shuffle : bool, default=True
        Visit the sequences in a new random order in every epoch.
    random_state : int, RandomState instance or None, default=None
        Source of the order of the sequences, and of the held-out set.
    early_stopping : bool, default=False
        Monitor the score on a validation set, stop when it no longer improves, and keep the
        weights of the best epoch. The validation set is the one passed to `fit`, or else held out
        from the training set.
    scoring : str, callable or None, default=None
        Score on the validation set: a scorer of :mod:`skstruct.metrics`, any other scorer or its
        name, or a callable ``scoring(estimator, X, y)``, which gets X as a `SequenceBatch`. None is
        token accuracy.
    validation_fraction : float, default=0.1
        Fraction of the sequences that `early_stopping` holds out.
    n_iter_no_change : int, default=5
        Epochs to wait for an improvement.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, 1 where not given. The weight of a sequence is its
        ``sample_weight`` times the mean class weight of its tokens. "balanced" weights a class by
        ``n_tokens / (n_classes * count)``; not supported by `partial_fit`.
    n_jobs : int, default=None
        Number of threads; -1 means all processors. Prediction gives the same result for any
        number (None means 1 unless in a `joblib.parallel_config` context). Learning does not. With
        None or 1, `fit` visits one sequence after the other. With more, it deals the sequences out
        to as many shards, which learn in parallel, each on its own copy of the weights and
        variances, and average both after every epoch. `partial_fit` always visits one sequence
        after the other.
    warm_start : bool, default=False
        Start `fit` from the weights of the previous call, and keep its classes and features. The
        variances start anew.
    verbose : int, default=0
        1 prints a line for each epoch with the time left, 2 the numbers of ``history_``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights of features.
    transition_ : ndarray of shape (n_classes, n_classes)
        Weights of transitions, from row to column.
    transition_coef_ : ndarray of shape (n_classes, n_classes, n_transition_features)
        Weights of transition features, from row to column, if X has a ``transition_X``.
    transition2_ : ndarray of shape (n_classes, n_classes, n_classes)
        Weights of label triples in the order of their tokens, if `order` is 2: of the last label,
        the third axis, after the two before it. They add to those of pairs.
    intercept_, start_, end_ : ndarray of shape (n_classes,)
        Biases at all, first and last tokens.
    n_iter_ : int
        Number of epochs.
    history_ : dict of ndarray
        For each epoch ``"epoch"``, ``"time"`` (seconds), ``"mistakes"`` (fraction of tokens
        labelled wrongly during the epoch), ``"loss"`` (violations of the margins during the epoch),
        ``"weight_norm"`` (of the weights of features), and with a validation set
        ``"validation_score"``.
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
    MIRATagger : Makes the same steps with variances that stay at one.

    Notes
    -----
    The margin of a wrong labelling is the number of its wrong tokens. Let :math:`d` be the
    difference between the features of the gold labelling and those of the best one, :math:`\ell`
    the amount by which the margin is violated, and :math:`v` the variances. Then, for each weight
    :math:`j`,

    .. math::

       w_j \leftarrow w_j + \frac{\ell \, v_j \, d_j}{\gamma + \sum_m v_m d_m^2}

       \frac{1}{v_j} \leftarrow \frac{1}{v_j} + \frac{d_j^2}{\gamma}

    The second is the paper's update of the covariance, with the covariance kept diagonal. A
    sequence with the weight :math:`s` divides `gamma` by :math:`s`.

    `fit` does not keep the variances, which are as many numbers as the weights. `partial_fit` does,
    from one call to the next.

    References
    ----------
    Koby Crammer, Alex Kulesza and Mark Dredze: Adaptive regularization of weight vectors. Advances
    in Neural Information Processing Systems 22, 2009.

    Examples
    --------
    >>> from skstruct import AROWTagger
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> tagger = AROWTagger(random_state=0).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}]])
    array([list(['DET', 'NOUN'])], dtype=object)
    """

    _parameter_constraints: dict = {
        **OnlineTagger._parameter_constraints,
        # The variance of a score, which is a sum of squares, has to be finite.
        "variance": [Interval(Real, 0, 1e100, closed="right")],
        "gamma": [Interval(Real, 0, None, closed="neither")],
    }

    _stored = {"_state": Maybe(LearnerState(confident=True))}
    # The variances.
    _n_more = 1

    def __init__(
        self,
        *,
        variance=1.0,
        gamma=10.0,
        average=True,
        fit_intercept=True,
        order=1,
        constraint=None,
        structure_alpha=1.0,
        mini_length=None,
        max_iter=100,
        tol=1e-3,
        shuffle=True,
        random_state=None,
        early_stopping=False,
        scoring=None,
        validation_fraction=0.1,
        n_iter_no_change=5,
        class_weight=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ) -> None:
        self.variance = variance
        self.gamma = gamma
        self.average = average
        self.fit_intercept = fit_intercept
        self.order = order
        self.constraint = constraint
        self.structure_alpha = structure_alpha
        self.mini_length = mini_length
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    _lists = True

    def _settings(self):
        return kernels.Adaptive(
            kernels.HAMMING, float(self.gamma), np.inf, True, *workspace(self._model())
        )

    def _start(self, state, training_set):
        return kernels.ConfidentState(*state, equal_variances(state.chain, float(self.variance)))


def workspace(model):
    """Workspace of the rule for a model of this size, the last fields of `Adaptive`."""
    n_slots = max(model.n_features, model.n_transition_features or 0)
    n_columns = model.n_labels**2 if model.has_transition_features else model.n_labels
    return np.full(n_slots, -1, np.int32), np.full(n_columns, -1, np.int32)


def equal_variances(chain, variance):
    """The same variance for every weight of a chain."""
    return type(chain)(*(np.full(part.shape, variance) for part in chain))
