"""SAPO, search-based probabilistic online learning (Sun et al., 2018)."""

from typing import NamedTuple

import numpy as np

from skstruct.chain.beam import n_possible
from skstruct.chain.forward_backward import log_sum_exp
from skstruct.chain.scores import path_score
from skstruct.chain.search import AStarSearch, search_nbest
from skstruct.learning.epoch import add_contrast, clear_difference, count_wrong, rule
from skstruct.taggers.online import SearchTagger
from skstruct.utils.persistence import set_module


@set_module("skstruct")
class SAPOTagger(SearchTagger):
    r"""Search-based probabilistic online learning over the n best labellings (Sun et al., 2018).

    Searches for the `n_best` labellings :math:`y_1, \ldots, y_n` of each sequence :math:`x`, and
    normalises their scores :math:`s` to probabilities. Then it moves the weights towards the
    features :math:`\Phi` of the gold labelling :math:`y` and away from the mean of those found, by
    the step size :math:`\gamma`:

    .. math::

       p_k = \frac{\exp s(x, y_k)}{\sum_{m=1}^{n} \exp s(x, y_m)}

       w \leftarrow w + \gamma \left( \Phi(x, y) - \sum_{k=1}^{n} p_k \, \Phi(x, y_k) \right)

    The penalty :math:`\frac{l_2}{2} \lVert w \rVert^2` shrinks the weights. With ``n_best=1`` this
    is a perceptron with a penalty. With all labellings it is stochastic gradient descent on the
    objective of `CRFTagger`.

    Parameters
    ----------
    n_best : int, default=5
        Number of labellings to search for. All are used where there are fewer.
    l2 : float, default=1.0
        Strength of the L2 penalty, on all weights including biases.
    learning_rate : float, default=0.1
        Step size at the first sequence.
    decay : float, default=0.9
        Factor of the step size per epoch, applied gradually; 1 keeps the step size.
    search : {"astar", "beam"}, default="astar"
        Search algorithm. "astar" is exact. "beam" keeps the `beam_width` best partial labellings
        from token to token, and may miss some.
    beam_width : int, default=50
        Number of partial labellings that a beam keeps, at least `n_best`.
    average : bool, default=False
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
        labelled wrongly during the epoch), ``"loss"`` (negative log-likelihood among the labellings
        found), ``"weight_norm"`` (of the weights of features), and with a validation set
        ``"validation_score"``. With ``search="beam"`` also ``"search_misses"``: the fraction of the
        sequences (or pieces) whose best labelling the beam missed.
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
    CRFTagger : Uses all labellings.
    PerceptronTagger : Uses the best one, without probabilities.

    References
    ----------
    Xu Sun, Shuming Ma, Yi Zhang and Xuancheng Ren: Towards easier and faster sequence labeling
    for natural language processing: a search-based probabilistic online learning framework
    (SAPO). Information Sciences, 2018. Algorithm 1.

    Examples
    --------
    >>> from skstruct import SAPOTagger
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> tagger = SAPOTagger(random_state=0).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}]])
    array([list(['DET', 'NOUN'])], dtype=object)
    """

    def __init__(
        self,
        *,
        n_best=5,
        l2=1.0,
        learning_rate=0.1,
        decay=0.9,
        search="astar",
        beam_width=50,
        average=False,
        fit_intercept=True,
        order=1,
        constraint=None,
        learn_scheme=None,
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
        self.n_best = n_best
        self.l2 = l2
        self.learning_rate = learning_rate
        self.decay = decay
        self.search = search
        self.beam_width = beam_width
        self.average = average
        self.fit_intercept = fit_intercept
        self.order = order
        self.constraint = constraint
        self.learn_scheme = learn_scheme
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

    def _learner(self, model):
        return self._online_learner(model, lambda _: Expectation(self._search()))


class Expectation(NamedTuple):
    """Parameters of SAPO."""

    search: AStarSearch  # or BeamSearch


@rule.of(Expectation)
def sapo_rule(settings, rows, sample, scores, edges, gold, difference, counts):
    """Gold labelling less the expectation over the n best (Algorithm 1, lines 4 to 7).

    The loss is the negative log-likelihood of the gold labelling, normalised over the n best
    (equation 1). It is set to zero where a beam finds only labellings that score less than gold.
    """
    length = gold.shape[0]
    n_best = n_possible(length, scores.shape[1], settings.search.n_best)
    labels = np.empty((n_best, length), np.int32)
    path_scores = np.empty(n_best)
    gold_score = path_score(scores, length, edges, gold)
    n_found = search_nbest(settings.search, scores, length, edges, labels, path_scores)
    log_z = log_sum_exp(path_scores, n_found)
    clear_difference(length, difference)
    for k in range(n_found):
        p = np.exp(path_scores[k] - log_z)
        add_contrast(edges, gold, labels[k], p, difference, counts)
    loss = log_z - gold_score
    return count_wrong(gold, labels[0]), 0.0 if loss < 0.0 else loss
