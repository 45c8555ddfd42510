"""`DaskTagger`: a tagger that learns from partitions on the workers of a cluster."""

import warnings
from contextlib import closing
from copy import copy
from numbers import Integral
from os import PathLike

from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from skstruct.dask.cluster import Cluster
from skstruct.dask.learning import Checkpoints, learn
from skstruct.dask.shard import answer_part, count_hits
from skstruct.features.dicts import SequenceVectorizer
from skstruct.taggers.crf import CRFTagger
from skstruct.taggers.mira import MIRATagger
from skstruct.taggers.perceptron import PerceptronTagger
from skstruct.taggers.sapo import SAPOTagger
from skstruct.templates.vectorizers import HashingTemplateVectorizer, LearningTemplateVectorizer
from skstruct.utils.declared import Labels, Maybe, Part
from skstruct.utils.files import check_writable
from skstruct.utils.messages import short_repr
from skstruct.utils.persistence import Persistent, set_module
from skstruct.utils.transaction import draft_of

# Taggers whose weights can be mixed, and solvers of CRFTagger that can learn from shards.
_ONLINE = (PerceptronTagger, MIRATagger, SAPOTagger)
_SOLVERS = ("lbfgs", "sgd")
_EXPECTED = "Expected a dask bag, or a list of delayed objects or futures, one for each partition."
# Vectorisers that need not be fitted.
_UNFITTED = (SequenceVectorizer, LearningTemplateVectorizer, HashingTemplateVectorizer)


def _is_of_tagger(vectorizer):
    """Return True if a vectoriser becomes part of the tagger, which then takes tokens."""
    return vectorizer is None or isinstance(vectorizer, SequenceVectorizer)


@set_module("skstruct.dask")
class DaskTagger(Persistent, BaseEstimator):
    """Tagger that learns on the workers of a Dask cluster.

    Every partition of the data is a shard. For L-BFGS, workers compute the sums of the objective
    shard by shard, and the driver, the process that calls `fit`, adds them in the order of the
    partitions and makes the steps. Online learners visit the sequences of each shard on their own,
    and after every epoch the driver mixes the weights of all shards (McDonald et al., 2010). So the
    result depends on the partitions, but not on the number of workers, their order, or the death of
    one. Needs the package distributed: ``pip install "skstruct[dask]"``.

    Parameters
    ----------
    estimator : CRFTagger, PerceptronTagger, MIRATagger or SAPOTagger
        Tagger to fit, a `CRFTagger` with ``solver="lbfgs"`` or ``solver="sgd"``. It is cloned.
        With ``warm_start=True``, another `fit` starts from the weights of `estimator_`: features
        and labels are matched by name, and may have changed.
    vectorizer : vectoriser, default=None
        Turns the tokens of a partition into a batch. It is cloned. A `SequenceVectorizer`,
        `TemplateVectorizer` or `WordVectorizer` learns the features of all partitions, which the
        driver unites, and so does None where X has feature dicts or attribute strings.
        `HashingTemplateVectorizer` has nothing to learn. Any other vectoriser must be fitted, and
        is used as it is; so is one in a `sklearn.frozen.FrozenEstimator`.
    client : distributed.Client, default=None
        Connection to the cluster. By default, the one that was made last.
    transport_dtype : {"float64", "float32"}, default="float64"
        Type in which weights and gradients of L-BFGS travel. "float32" halves the traffic, and
        usually takes some more iterations.
    max_retries : int, default=3
        How often Dask repeats a task that fails, such as one that cannot read a file. Tasks that
        are lost with their worker are repeated anyway, invalid data are not.
    checkpoint : str or path-like, default=None
        File of this process in which `fit` stores the model by skops.io while it learns. A model
        that is loaded from there is a fitted `DaskTagger`, and goes on if its estimator has
        ``warm_start=True``.
    checkpoint_period : int, default=10
        Number of iterations or epochs from one time to the next.

    Attributes
    ----------
    estimator_ : estimator
        The fitted tagger, which needs no cluster. With a `SequenceVectorizer` or without a
        vectoriser it takes feature dicts itself.
    vectorizer_ : vectoriser or None
        The one that made the batches that `estimator_` learnt from; None where it takes the
        partitions as they are.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.

    See Also
    --------
    CRFTagger, PerceptronTagger, MIRATagger, SAPOTagger : The same on one machine, in threads.

    Notes
    -----
    The solvers "sag", "oeg" and "crfsuite", other taggers, transition features,
    ``class_weight="balanced"``, and ``early_stopping`` without a validation set are refused. The
    order in which an online learner visits the sequences of a shard is drawn from `random_state`,
    the numbers of the shard and the epoch.

    References
    ----------
    R. McDonald, K. Hall and G. Mann. Distributed training strategies for the structured perceptron.
    NAACL 2010.

    C. Ma et al. Adding vs. averaging in distributed primal-dual optimization. ICML 2015.

    Examples
    --------
    >>> import dask.bag
    >>> from distributed import Client
    >>> from skstruct import CRFTagger
    >>> from skstruct.dask import DaskTagger
    >>> client = Client(n_workers=1, processes=False, dashboard_address=":0")
    >>> X = [[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {"word": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> X, y = (dask.bag.from_sequence(data, npartitions=2) for data in (X, y))
    >>> tagger = DaskTagger(CRFTagger(l2=0.1)).fit(X, y)
    >>> tagger.predict(X).compute()
    [['DET', 'NOUN'], ['DET', 'NOUN']]
    >>> tagger.estimator_.predict([[{"word": "the"}, {"word": "dog"}]])
    array([list(['DET', 'NOUN'])], dtype=object)
    >>> client.close()
    """

    _parameter_constraints: dict = {
        "estimator": [HasMethods(["fit", "predict"])],
        "vectorizer": [HasMethods(["transform"]), None],
        "client": "no_validation",
        "transport_dtype": [StrOptions({"float64", "float32"})],
        "max_retries": [Interval(Integral, 0, None, closed="left")],
        "checkpoint": [str, PathLike, None],
        "checkpoint_period": [Interval(Integral, 1, None, closed="left")],
    }

    _stored = {
        "classes_": Labels(),
        "estimator_": Part("predict_proba", classes_="classes_"),
        "vectorizer_": Maybe(Part("transform")),
    }
    _complete = ("classes_", "estimator_", "vectorizer_")

    def __init__(
        self,
        estimator,
        *,
        vectorizer=None,
        client=None,
        transport_dtype="float64",
        max_retries=3,
        checkpoint=None,
        checkpoint_period=10,
    ):
        self.estimator = estimator
        self.vectorizer = vectorizer
        self.client = client
        self.transport_dtype = transport_dtype
        self.max_retries = max_retries
        self.checkpoint = checkpoint
        self.checkpoint_period = checkpoint_period

    def fit(self, X, y, *, classes=None, X_val=None, y_val=None):
        """Learn the weights.

        Parameters
        ----------
        X : dask.bag.Bag, or list of Delayed or Future
            Sequences of tokens: a bag of sequences, or one delayed object or future for each
            partition, a list of sequences or a `SequenceBatch`. Partitions may be empty, and may
            lack labels and features.
        y : dask.bag.Bag, or list of Delayed or Future
            Label sequences, with the same partitions.
        classes : array-like of shape (n_classes,), default=None
            Labels. By default, those that occur. Others are an error.
        X_val, y_val : sequences of tokens and of labels, default=None
            Validation set in this process, in any format that ``fit`` of the estimator takes; with
            a `vectorizer` as that takes X.

        Returns
        -------
        self : DaskTagger

        Raises
        ------
        ImportError
            If the package distributed is missing.
        ValueError
            If X, y or a parameter is invalid; the message names partition, sequence and token.
        RuntimeError
            If workers have other releases of skstruct, numpy or numba than this process, or if a
            task is lost and cannot be repeated.
        """
        self._validate_params()
        tagger = clone(self.estimator)
        vectorizer = self._check(tagger, X_val)
        if self.checkpoint is not None:
            check_writable(self.checkpoint)

        workers = Cluster(self.client, self.max_retries)
        _refuse_collection(X_val, "X_val")
        _refuse_collection(y_val, "y_val")

        def learn_from_parts(monitor):
            store = None
            if self.checkpoint is not None:
                place = self.checkpoint, self.checkpoint_period
                store = Checkpoints(lambda: copy(self)._keep(tagger, vectorizer), *place)

            def make_monitor():
                known = X_val is None or _is_of_tagger(vectorizer)
                held_out = X_val if known else vectorizer.transform(X_val), y_val, None
                return tagger._watch(monitor, held_out, on_epoch=store)

            before = self if tagger.warm_start and hasattr(self, "estimator_") else None
            parts = _pair_parts(workers.client, X, y)
            given = parts, vectorizer, classes, make_monitor, self.transport_dtype
            return learn(tagger, workers, *given, before)

        with closing(workers):
            workers.check_versions()
            tagger._fit_by(learn_from_parts, X, y)
        with draft_of(self) as draft:
            draft._keep(tagger, vectorizer)
        return self

    def _keep(self, tagger, vectorizer):
        self.estimator_, self.classes_ = tagger, tagger.classes_
        self.vectorizer_ = None if _is_of_tagger(vectorizer) else vectorizer
        return self

    def predict(self, X):
        """Predict the best label sequences, when the result is asked for.

        Parameters
        ----------
        X : dask.bag.Bag, or list of Delayed or Future
            As in `fit`.

        Returns
        -------
        y : dask.bag.Bag, or list of Delayed
            For a bag, a bag of label lists. Otherwise, for each partition a delayed list of them.
        """
        return _answer_lazily("predict", X, self._model())

    def predict_proba(self, X):
        """Predict the marginal probability of each label at each token, when asked for.

        Parameters
        ----------
        X : dask.bag.Bag, or list of Delayed or Future
            As in `fit`.

        Returns
        -------
        proba : dask.bag.Bag, or list of Delayed
            As in `predict`, of arrays of shape ``(length_i, n_classes)`` in place of label lists.
        """
        return _answer_lazily("predict_proba", X, self._model())

    def score(self, X, y):
        """Compute the token accuracy on the workers.

        Parameters
        ----------
        X, y : dask.bag.Bag, or list of Delayed or Future
            As in `fit`. Tokens whose label is None are left out.

        Returns
        -------
        score : float
            Fraction of tokens with the correct label, between 0 and 1.

        Raises
        ------
        ValueError
            If X or y is invalid, or no token has a label.
        """
        model, workers = self._model(), Cluster(self.client, self.max_retries)
        parts = _pair_parts(workers.client, X, y)
        hits, known = map(sum, zip(*workers.map(count_hits, parts, model), strict=True))
        if not known:
            raise ValueError("y has no known labels.")
        return hits / known

    def _model(self):
        """Vectoriser or None, and tagger: the model that workers predict with."""
        check_is_fitted(self)
        return self.vectorizer_, self.estimator_

    def _check(self, tagger, X_val):
        """Refuse unsupported parameters; return the vectoriser for the workers."""
        is_crf = isinstance(tagger, CRFTagger)
        if not isinstance(tagger, _ONLINE) and not (is_crf and tagger.solver in _SOLVERS):
            found = f"(solver={tagger.solver!r})" if is_crf else ""
            raise ValueError(
                "DaskTagger fits CRFTagger with solver='lbfgs' or solver='sgd', PerceptronTagger, "
                f"MIRATagger and SAPOTagger, not {type(tagger).__name__}{found}."
            )
        tagger._validate_params()
        tagger._check_params()
        if isinstance(tagger.class_weight, str):
            raise ValueError(
                f"DaskTagger does not support class_weight={tagger.class_weight!r}: pass the "
                "weights of the classes as a dict."
            )
        if tagger.learn_scheme is not None:
            raise ValueError(
                "DaskTagger does not support learn_scheme: convert the labels of each partition "
                "with skstruct.datasets.convert_labels."
            )
        if tagger.early_stopping and X_val is None:
            raise ValueError("early_stopping on a cluster needs a validation set: X_val and y_val.")
        vectorizer = self.vectorizer
        if isinstance(vectorizer, _UNFITTED):
            vectorizer = clone(vectorizer)
            vectorizer._validate_params()
        elif vectorizer is not None:
            check_is_fitted(vectorizer)
        return vectorizer

    def __sklearn_clone__(self):
        # A client cannot be copied, and the copy has the same cluster.
        params = {
            name: value if name == "client" else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
        }
        return type(self)(**params)

    def __getstate__(self):
        return {**super().__getstate__(), "client": None}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        # Bags and lists of partitions.
        tags.input_tags.two_d_array = False
        return tags


# Partitions


def _refuse_collection(data, name):
    """Raise a ValueError for a bag, a delayed object, and a list of delayed objects or futures."""
    from dask import is_dask_collection  # optional
    from distributed import Future  # optional

    first = data[0] if isinstance(data, (list, tuple)) and data else data
    if is_dask_collection(first) or isinstance(first, Future):
        raise ValueError(
            f"{name} is {short_repr(data)}; expected sequences in this process. Compute them first."
        )


def _as_parts(X, name):
    """List the partitions of a collection.

    Parameters
    ----------
    X : dask.bag.Bag or list of Delayed or Future
        Partitions.
    name : str
        Name of the argument, for messages.

    Returns
    -------
    parts : list of Delayed or Future

    Raises
    ------
    ValueError
        If X is something else, or has no partition.
    """
    from dask.bag import Bag  # optional
    from dask.delayed import Delayed  # optional
    from distributed import Future  # optional

    if isinstance(X, Bag):
        return X.to_delayed()
    if not isinstance(X, (list, tuple)):
        raise ValueError(f"{name} is {short_repr(X)}. {_EXPECTED}")
    if not X:
        raise ValueError(f"{name} has no partition. {_EXPECTED}")
    for i, part in enumerate(X):
        if not isinstance(part, (Delayed, Future)):
            raise ValueError(f"{name}[{i}] is {short_repr(part)}. {_EXPECTED}")
    return list(X)


def _pair_parts(client, X, y):
    """Pair the partitions of X and y, without computing them.

    Parameters
    ----------
    client : distributed.Client
    X, y : dask.bag.Bag or list of Delayed or Future
        With the same number of partitions.

    Returns
    -------
    shards : list of (Delayed or Future, Delayed or Future)
        The partitions of both.

    Raises
    ------
    ValueError
        If they are not collections, or their numbers of partitions differ.
    """
    from distributed import Future  # optional

    parts = _as_parts(X, "X"), _as_parts(y, "y")
    n = len(parts[0])
    if n != len(parts[1]):
        raise ValueError(f"X has {n} partitions, but y has {len(parts[1])}.")
    keys = [part.key for column in parts for part in column if isinstance(part, Future)]
    if keys and (scattered := client.run_on_scheduler(_without_recipe, keys)):
        warnings.warn(
            f"{scattered} of the partitions were scattered: if their worker dies they are lost, "
            "and learning ends with an error. Bags and delayed objects can be computed again.",
            UserWarning,
            stacklevel=6,
        )
    return list(zip(*parts, strict=True))


def _without_recipe(keys, dask_scheduler):
    """Count the keys that the scheduler cannot compute again; runs there."""
    tasks = [dask_scheduler.tasks.get(key) for key in keys]
    return sum(task is not None and task.run_spec is None for task in tasks)


def _answer_lazily(method, X, model):
    """Call a method of a tagger for each partition when the result is asked for.

    Parameters
    ----------
    method : str
    X : dask.bag.Bag or list of Delayed or Future
        Partitions.
    model : tuple
        Vectoriser or None, and the tagger. Sent once, and passed on from worker to worker.

    Returns
    -------
    answers : dask.bag.Bag or list of Delayed
        A bag for a bag.
    """
    import dask  # optional
    from dask.bag import Bag, from_sequence  # optional

    shared = dask.delayed(model, traverse=False)
    if isinstance(X, Bag):
        # Partitions of a bag do not know their numbers.
        numbers = from_sequence(range(X.npartitions), npartitions=X.npartitions)
        return X.map_partitions(answer_part, numbers, model=shared, method=method)
    call = dask.delayed(answer_part)
    return [call(part, [i], shared, method) for i, part in enumerate(_as_parts(X, "X"))]
