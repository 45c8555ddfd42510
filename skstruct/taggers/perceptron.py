"""The structured perceptron (Collins, 2002)."""

from typing import NamedTuple

import numpy as np

from skstruct.chain.scores import add_cost, path_score
from skstruct.chain.viterbi import viterbi
from skstruct.learning.epoch import add_weighted_contrast, clear_difference, count_wrong, rule
from skstruct.taggers.online import OnlineTagger
from skstruct.utils.persistence import set_module


class Mistakes(NamedTuple):
    """Parameters of the perceptron."""

    label_cost: np.ndarray  # added to the scores, so that it is the margin (see `add_cost`)
    token_weight: np.ndarray = np.empty(0)  # factor of each token's difference; empty: one


@set_module("skstruct")
class PerceptronTagger(OnlineTagger):
    r"""Structured perceptron (Collins, 2002), averaged or naive.

    Labels each sequence :math:`x` with the current weights. Where the labels are wrong, it adds the
    features :math:`\Phi` of the gold labelling :math:`y` and subtracts the found one's:

    .. math::

       \hat y = \operatorname*{argmax}_{y'} \; s_w(x, y')

       w \leftarrow w + \Phi(x, y) - \Phi(x, \hat y)

    It predicts with the average of the weights after every sequence.

    Parameters
    ----------
    average : bool, default=True
        Predict with the average of the weights after every sequence, not with the last ones.
    fit_intercept : bool, default=True
        Learn a bias for each label, and for each label at the first and at the last token.
    order : {1, 2}, default=1
        Order of the chain. With 2, a label's score depends on the two labels before it: each triple
        of neighbouring labels has a weight beside its last pair's. Time and memory grow with
        the cube of the number of labels. Not with transition features.
    constraint : str or array-like of bool of shape (n_classes, n_classes), default=None
        Labellings that are allowed. A scheme, "IOB1", "IOB2" (or "BIO"), "IOE1", "IOE2", "IOBES"
        (or "BIOES"), "BILOU" or "BMES", allows its valid labellings, and "runs" all. An array, with
        rows and columns in the order of ``classes_``, allows transitions from row to column where
        it is True. Other labellings have probability zero, in learning and in prediction, and
        weights of minus infinity.
    learn_scheme : {"IOBES", "BIOES", "BILOU", "BMES"} or None, default=None
        Learn labels of this scheme in place of y's, which must be of IOB2, IOE2 or a scheme like
        this one; answers are in y's. Implies the constraint of y's scheme.
    structure_alpha : float, default=1.0
        Structure regularisation: each epoch cuts each sequence anew at random, into this many
        pieces on average, of about equal length. 1 cuts nothing.
    mini_length : float, default=None
        Length of the pieces, in place of their number, `structure_alpha`. 5.5 is a mixture of
        lengths 5 and 6. The rest of a sequence is a shorter piece, so that the mean is lower.
    label_cost : array-like of shape (n_classes, n_classes) or dict, default=None
        Costs of wrong labels, as `CRFTagger` takes them, added to the margin by which a labelling
        has to lose against the gold one. Sequences are labelled with the costs added while
        learning. None adds nothing.
    max_iter : int, default=100
        Largest number of epochs, passes over the training set.
    tol : float or None, default=1e-3
        Stop when the fraction of wrong tokens has not improved by more than this for
        `n_iter_no_change` epochs, or with `early_stopping` the score on the validation set.
        None runs for `max_iter` epochs. In any case, learning stops after an epoch without
        mistakes once the weights used for prediction make none on the training sequences either;
        averaged weights may take longer.
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
        to as many shards, which learn in parallel, each on its own copy of the weights, and average
        them after every epoch. `partial_fit` always visits one sequence after the other.
    warm_start : bool, default=False
        Start `fit` from the weights of the previous call, and keep its classes and features.
    verbose : int, default=0
        1 prints a line for each epoch with the time left, 2 the numbers of ``history_``.

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
        Number of epochs.
    history_ : dict of ndarray
        For each epoch ``"epoch"``, ``"time"`` (seconds), ``"mistakes"`` (fraction of tokens
        labelled wrongly during the epoch, with `label_cost` added), ``"loss"`` (score of the
        labelling found minus the gold one's, likewise), ``"weight_norm"`` (of the weights of
        features), and with a validation set ``"validation_score"``.
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
    CRFTagger : Slower to train, with probabilities.

    References
    ----------
    Michael Collins: Discriminative training methods for hidden Markov models: theory and
    experiments with perceptron algorithms. EMNLP 2002.

    Examples
    --------
    >>> from skstruct import PerceptronTagger
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> tagger = PerceptronTagger(random_state=0).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}]])
    array([list(['DET', 'NOUN'])], dtype=object)
    """

    def __init__(
        self,
        *,
        average=True,
        fit_intercept=True,
        order=1,
        constraint=None,
        learn_scheme=None,
        structure_alpha=1.0,
        mini_length=None,
        label_cost=None,
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
        self.average = average
        self.fit_intercept = fit_intercept
        self.order = order
        self.constraint = constraint
        self.learn_scheme = learn_scheme
        self.structure_alpha = structure_alpha
        self.mini_length = mini_length
        self.label_cost = label_cost
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

    _learns_token_weights = True

    def _learner(self, model):
        return self._online_learner(
            model,
            lambda training_set: Mistakes(model.cost, training_set.token_weight),
            merit=lambda history: -history["mistakes"][-1],
            lists=True,
        )


@rule.of(Mistakes)
def perceptron_rule(settings, rows, sample, scores, edges, gold, difference, counts):
    """Gold labelling less the predicted one; the loss is the difference of their scores."""
    add_cost(settings.label_cost, gold, scores)
    length = gold.shape[0]
    predicted = np.empty(length, np.int32)
    gold_score = path_score(scores, length, edges, gold)
    best_score = viterbi(scores, length, edges, predicted)
    wrong = count_wrong(gold, predicted)
    if wrong == 0:
        return 0, 0.0
    clear_difference(length, difference)
    weights, first = settings.token_weight, sample[0]
    add_weighted_contrast(edges, gold, predicted, 1.0, weights, first, difference, counts)
    loss = best_score - gold_score
    # Unlike max, this keeps NaN.
    return wrong, 0.0 if loss < 0.0 else loss
