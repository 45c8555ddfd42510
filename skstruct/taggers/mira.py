"""MIRA, the margin infused relaxed algorithm (Crammer and Singer, 2003)."""

from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skstruct.chain.beam import n_possible
from skstruct.chain.scores import add_cost, path_score
from skstruct.chain.search import AStarSearch, search_nbest
from skstruct.compiled.jit import jit
from skstruct.decoding import FEW, MANY
from skstruct.learning.epoch import add_weighted_contrast, clear_difference, count_wrong, rule
from skstruct.learning.products import add_vector_products, inner_products
from skstruct.taggers.online import SearchTagger
from skstruct.utils.persistence import set_module

MAX_PASSES = 200
# Passes end when no multiplier changes by more than this share of the largest one.
PRECISION = 1e-9


@set_module("skstruct")
class MIRATagger(SearchTagger):
    r"""Margin infused relaxed algorithm (Crammer et al., 2006), over the best or the n best.

    After each sequence :math:`x` it makes the least change of the weights after which the
    labellings :math:`y_1, \ldots, y_n` that it found score less than the gold one :math:`y` by a
    margin, as far as the cap `C` allows. The second line holds for each of them:

    .. math::

       w \leftarrow \operatorname*{argmin}_{w', \, \xi \ge 0} \;
       \tfrac{1}{2} \lVert w' - w \rVert^2 + C \sum_k \xi_k

       s_{w'}(x, y) - s_{w'}(x, y_k) \ge \operatorname{cost}(y, y_k) - \xi_k

    Parameters
    ----------
    n_best : int, default=1
        Number of labellings to search for; each gives a constraint. All are used where there are
        fewer.
    C : float, default=1.0
        Largest multiplier of a constraint. The smaller, the less a sequence can change the
        weights.
    cost : {"hamming", "zero_one"}, default="hamming"
        Margin: the number of wrong tokens of the labelling, or 1 for any wrong labelling.
    label_cost : array-like of shape (n_classes, n_classes) or dict, default=None
        Costs of wrong labels, as `CRFTagger` takes them, added to the margin by which a labelling
        has to lose against the gold one. Sequences are labelled with the costs added while
        learning. None adds nothing.
    update : {"hildreth", "sequential"}, default="hildreth"
        Update for several constraints: all at once, by Hildreth's algorithm for the quadratic
        programme, or one after the other.
    search : {"astar", "beam"}, default="astar"
        Search algorithm. "astar" is exact. "beam" keeps the `beam_width` best partial labellings
        from token to token, and may miss some.
    beam_width : int, default=50
        Number of partial labellings that a beam keeps, at least `n_best`.
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
        labelled wrongly during the epoch, with `label_cost` added), ``"loss"`` (violations of the
        margins during the epoch), ``"weight_norm"`` (of the weights of features), and with a
        validation set ``"validation_score"``. With ``search="beam"`` also ``"search_misses"``: the
        fraction of the sequences (or pieces) whose best labelling the beam missed.
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
    PerceptronTagger : Takes the same step at every mistake.
    SAPOTagger : Weights the labellings by their probability.

    References
    ----------
    Koby Crammer, Ofer Dekel, Joseph Keshet, Shai Shalev-Shwartz and Yoram Singer: Online
    passive-aggressive algorithms. Journal of Machine Learning Research, 2006.

    Ryan McDonald, Koby Crammer and Fernando Pereira: Online large-margin training of dependency
    parsers. ACL 2005.

    Examples
    --------
    >>> from skstruct import MIRATagger
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> tagger = MIRATagger(random_state=0).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}]])
    array([list(['DET', 'NOUN'])], dtype=object)
    """

    _parameter_constraints: dict = {
        **SearchTagger._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
        "cost": [StrOptions({"hamming", "zero_one"})],
        "update": [StrOptions({"hildreth", "sequential"})],
    }

    def __init__(
        self,
        *,
        n_best=1,
        C=1.0,
        cost="hamming",
        label_cost=None,
        update="hildreth",
        search="astar",
        beam_width=50,
        average=True,
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
        self.C = C
        self.cost = cost
        self.label_cost = label_cost
        self.update = update
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

    _learns_token_weights = True

    def _learner(self, model):
        n_codes = model.n_labels ** (model.order + 1)
        n_slots = max(model.n_features, model.n_transition_features or 0, n_codes)

        def margin(training_set):
            return Margin(
                self._search(),
                self.cost == "hamming",
                model.cost,
                float(self.C),
                MAX_PASSES if self.update == "hildreth" else 1,
                self.fit_intercept,
                np.full(n_slots, -1, np.int32),
                training_set.token_weight,
            )

        # Many labellings are compared with each other.
        work = min(self.n_best, MANY) ** 2 / 3 if self.n_best > FEW else None
        return self._online_learner(model, margin, work=work)


class Margin(NamedTuple):
    """Parameters and workspace of MIRA."""

    search: AStarSearch  # or BeamSearch
    hamming: bool  # the margin is the number of wrong tokens, else one
    label_cost: np.ndarray  # added to the margin, see `add_cost`
    cap: float  # largest multiplier of a labelling
    n_passes: int  # largest number of passes over the constraints
    fit_intercept: bool
    # Slots of features or transitions, -1 between samples (see `inner_products`).
    slots: np.ndarray  # (max(n_features, n_transition_features, n_labels ** (order + 1)),)
    token_weight: np.ndarray = np.empty(0)  # factor of each token's difference; empty: one


@rule.of(Margin)
def mira_rule(margin, rows, sample, scores, edges, gold, difference, counts):
    """Smallest change of the weights that gives every labelling found its margin.

    The loss is the largest violation of a margin.
    """
    add_cost(margin.label_cost, gold, scores)
    length = gold.shape[0]
    n_best = n_possible(length, scores.shape[1], margin.search.n_best)
    labels = np.empty((n_best, length), np.int32)
    path_scores = np.empty(n_best)
    gold_score = path_score(scores, length, edges, gold)
    n_found = search_nbest(margin.search, scores, length, edges, labels, path_scores)
    missing = np.empty(n_found)
    loss = 0.0
    for k in range(n_found):
        wrong = count_wrong(gold, labels[k])
        cost = wrong if margin.hamming else min(wrong, 1)
        missing[k] = cost - (gold_score - path_scores[k]) if wrong > 0 else 0.0
        # Unlike max, this keeps NaN.
        if not missing[k] <= loss:
            loss = missing[k]
        if np.isnan(loss):
            break
    # Also without a loss: a beam that misses the correct labelling may find only others that score
    # less by the margin.
    clear_difference(length, difference)
    if loss > 0.0:
        products = inner_products(
            edges, rows, sample, gold, labels[:n_found], margin.fit_intercept, margin.slots
        )
        if rows.vectors.columns.shape[0] > 0:
            add_vector_products(
                edges, rows.panel.values, gold, labels[:n_found], margin.slots, products
            )
        multipliers = hildreth(products, missing, margin.cap, margin.n_passes)
        weights, first = margin.token_weight, sample[0]
        for k in range(n_found):
            if multipliers[k] != 0.0:
                add_weighted_contrast(
                    edges, gold, labels[k], multipliers[k], weights, first, difference, counts
                )
    return count_wrong(gold, labels[0]), loss


@jit
def hildreth(products, missing, cap, n_passes):
    """Multipliers of the quadratic programme by coordinate ascent (Hildreth, 1957).

    A single pass satisfies each constraint once, in order.
    """
    n = missing.shape[0]
    multipliers = np.zeros(n)
    for _ in range(n_passes):
        largest, change = 0.0, 0.0
        for k in range(n):
            if products[k, k] <= 0.0:
                continue
            gap = missing[k]
            for m in range(n):
                gap -= multipliers[m] * products[k, m]
            value = min(max(multipliers[k] + gap / products[k, k], 0.0), cap)
            change = max(change, abs(value - multipliers[k]))
            largest = max(largest, value)
            multipliers[k] = value
        if change <= PRECISION * largest:
            break
    return multipliers
