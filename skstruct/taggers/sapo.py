"""Search-based probabilistic online learning."""

from numbers import Real

from sklearn.utils._param_validation import Interval

from skstruct.kernels.online.sapo import sapo_epoch
from skstruct.taggers.search import SearchTagger
from skstruct.utils.public_paths import set_module

__all__ = ["SAPOTagger"]


@set_module("skstruct")
class SAPOTagger(SearchTagger):
    """Search-based probabilistic online learning over the n best labellings (Sun et al., 2018).

    Searches for the `n_best` labellings of each sequence, gives them probabilities among
    themselves, and moves the weights towards the features of the right labelling and away from
    the mean of those found. With ``n_best=1`` it is a perceptron with a penalty; with all
    labellings it is stochastic gradient descent on the objective of `CRFTagger`,
    ``sum_i s_i nll_i(w) + l2 / 2 |w|^2``.

    Parameters
    ----------
    n_best : int, default=5
        How many labellings are searched for. Where there are fewer, all are used.
    l2 : float, default=1.0
        Strength of the squared penalty.
    learning_rate : float, default=0.1
        How far the weights move at the first sequence.
    decay : float, default=0.9
        Factor of the learning rate after each epoch, applied little by little; 1 keeps it.
    search : {"astar", "kbest", "beam"}, default="astar"
        How the labellings are found. "astar" and "kbest", k-best Viterbi, are exact; "astar" is
        the fastest. "beam" keeps the `beam_width` best partial labellings from token to token,
        and may miss some.
    beam_width : int, default=50
        How many partial labellings a beam keeps, at least `n_best`.
    average : bool, default=False
        Whether to predict with the average of the weights after every sequence, or with the last
        ones.
    fit_intercept : bool, default=True
        Whether to learn a bias of each label, of first and of last tokens.
    constraint : str or array-like of bool of shape (n_classes, n_classes), default=None
        Which labellings are possible: those that are valid in the scheme "IOB1", "IOB2", "IOBES"
        (or "BIOES") or "BILOU"; or, of an array in the order of ``classes_``, those in which the
        label of a column follows that of a row only where it is true. All others have no
        probability, in learning and in prediction, and their weights are minus infinity.
    structure_alpha : float, default=1.0
        Structure regularisation: in every epoch each sequence is cut anew at random into this many
        pieces, on average. 1 cuts nothing.
    mini_length : float, default=None
        The same by the mean length of the pieces, in place of `structure_alpha`; 5.5 is a mixture
        of lengths 5 and 6.
    max_iter : int, default=100
        Most epochs, passes over the training set.
    tol : float or None, default=1e-3
        Stop when the loss (with `early_stopping`, the share of right tokens in the part held out)
        has not improved by more than this share of itself for `n_iter_no_change` epochs. None goes
        on for `max_iter` epochs.
    shuffle : bool, default=True
        Whether to visit the sequences in a new random order in every epoch.
    random_state : int, RandomState instance or None, default=None
        Source of the order, and of the part held out.
    early_stopping : bool, default=False
        Whether to watch the accuracy on the validation set that `fit` was given, or else on a
        part of the sequences that is held out, and keep the weights of the best epoch.
    validation_fraction : float, default=0.1
        Share of the sequences that is held out with `early_stopping`.
    n_iter_no_change : int, default=5
        Epochs to wait for an improvement.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes; classes without one have 1. A sequence counts ``sample_weight``
        times the mean class weight of its tokens. "balanced" weighs classes by
        ``n_tokens / (n_classes * count)``, not in `partial_fit`.
    n_jobs : int, default=None
        Number of threads, -1 means all processors. Prediction is the same for any number (None
        means 1 unless in a `joblib.parallel_config` context). Learning is not: with None or 1,
        `fit` visits one sequence after the other. With more, the sequences are dealt out to as
        many shards, which learn side by side and mix their weights after every epoch; each has
        its own copy of the weights. `partial_fit` always visits one after the other.
    warm_start : bool, default=False
        Whether `fit` starts from the weights of the previous call, whose classes and features
        then stand.
    verbose : int, default=0
        Whether to print the mistakes of every epoch.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    coef_ : ndarray of shape (n_classes, n_features)
        Weights of features.
    transition_ : ndarray of shape (n_classes, n_classes)
        Weights of label pairs, from row to column.
    transition_coef_ : ndarray of shape (n_classes, n_classes, n_transition_features)
        Weights of the features of transitions, where X has a ``transition_X``, from row to column.
    intercept_, start_, end_ : ndarray of shape (n_classes,)
        Biases of all, first and last tokens.
    n_iter_ : int
        Number of epochs.
    history_ : dict of ndarray
        For each epoch ``"epoch"``, ``"time"`` (seconds), ``"mistakes"`` (share of tokens labelled
        wrongly on the way), ``"loss"`` (negative log-likelihood among the labellings found, on the
        way), ``"weight_norm"`` (of the weights of features), and with a validation
        set ``"validation_score"``. With ``search="beam"`` also ``"search_misses"``: the share of
        the sequences (or pieces) whose best labelling the beam did not find, at the time.
    n_features_in_ : int
        Number of features.
    n_transition_features_in_ : int
        Number of features of transitions, where X has a ``transition_X``.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X has them.
    vectorizer_ : SequenceVectorizer
        Where X was given as feature dicts or attribute strings, what made numbers of them.

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

    _parameter_constraints: dict = {
        **SearchTagger._parameter_constraints,
        "l2": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "decay": [Interval(Real, 0, 1, closed="right")],
    }

    _epoch = staticmethod(sapo_epoch)

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
        constraint=None,
        structure_alpha=1.0,
        mini_length=None,
        max_iter=100,
        tol=1e-3,
        shuffle=True,
        random_state=None,
        early_stopping=False,
        validation_fraction=0.1,
        n_iter_no_change=5,
        class_weight=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ):
        self.n_best = n_best
        self.l2 = l2
        self.learning_rate = learning_rate
        self.decay = decay
        self.search = search
        self.beam_width = beam_width
        self.average = average
        self.fit_intercept = fit_intercept
        self.constraint = constraint
        self.structure_alpha = structure_alpha
        self.mini_length = mini_length
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.random_state = random_state
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def _settings(self):
        return self._search()

    def _notes(self, settings, n_visited):
        return self._search_notes(settings, n_visited)
