"""The margin infused relaxed algorithm."""

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from skstruct.kernels.online.mira import MAX_PASSES, Margin, mira_epoch
from skstruct.taggers.search import SearchTagger
from skstruct.utils.public_paths import set_module

__all__ = ["MIRATagger"]


@set_module("skstruct")
class MIRATagger(SearchTagger):
    """Margin infused relaxed algorithm (Crammer et al., 2006), over the best or the n best.

    After each sequence it makes the least change of the weights after which the labellings found
    score less than the right one by a margin, as far as the cap `C` allows.

    Parameters
    ----------
    n_best : int, default=1
        How many labellings are searched for, each of which is a constraint. Where there are fewer,
        all are used.
    C : float, default=1.0
        Largest multiplier of a labelling in the change: the smaller, the less a sequence can move
        the weights.
    cost : {"hamming", "zero_one"}, default="hamming"
        The margin: the number of wrong tokens of the labelling, or one whatever their number.
    update : {"hildreth", "sequential"}, default="hildreth"
        How the constraints of several labellings are met: all of them, by Hildreth's algorithm for
        the quadratic programme, or each once in its turn.
    search : {"astar", "kbest", "beam"}, default="astar"
        How the labellings are found. "astar" and "kbest", k-best Viterbi, are exact; "astar" is
        the fastest. "beam" keeps the `beam_width` best partial labellings from token to token,
        and may miss some.
    beam_width : int, default=50
        How many partial labellings a beam keeps, at least `n_best`.
    average : bool, default=True
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
        wrongly on the way), ``"loss"`` (by how much the margins were missed, on the way),
        ``"weight_norm"`` (of the weights of features), and with a validation
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
    PerceptronTagger : Moves by the same amount at every mistake.
    SAPOTagger : Weighs the labellings by their probability.

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

    _epoch = staticmethod(mira_epoch)

    def __init__(
        self,
        *,
        n_best=1,
        C=1.0,
        cost="hamming",
        update="hildreth",
        search="astar",
        beam_width=50,
        average=True,
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
        self.C = C
        self.cost = cost
        self.update = update
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
        model = self._model()
        n_slots = max(model.n_features, model.n_transition_features or 0, model.n_labels**2)
        return Margin(
            self._search(),
            self.cost == "hamming",
            float(self.C),
            MAX_PASSES if self.update == "hildreth" else 1,
            self.fit_intercept,
            np.full(n_slots, -1, np.int32),
        )

    def _notes(self, settings, n_visited):
        return self._search_notes([margin.search for margin in settings], n_visited)
