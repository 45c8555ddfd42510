"""Learning from a stream, for any number of epochs: rounds of batches, early stopping, checkpoints.

``partial_fit`` of a tagger learns a batch. `fit_stream` is the loop around it, and goes on from a
checkpoint after a break.
"""

import copy
from collections import deque
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path

import joblib
import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from skstruct.datasets.conll import batched
from skstruct.input.formats import Format, as_lists, flatten_labels, read_format
from skstruct.learning.monitor import Monitor, Stopping
from skstruct.matrices import to_offsets
from skstruct.taggers.online import OnlineTagger
from skstruct.taggers.scoring import scorer_of
from skstruct.templates.syntax import template_lines
from skstruct.utils.declared import Columns, Counts, Maybe, Part
from skstruct.utils.files import check_writable, write_whole
from skstruct.utils.messages import check_count, compiling_announced, short_repr
from skstruct.utils.persistence import archived, load_archive, set_module

__all__ = ["fit_stream", "iter_batches"]


@set_module("skstruct.streams")
def iter_batches(sequences, batch_size=1000, *, block_size=None, random_state=None):
    """Gather sequences into batches, shuffled by blocks.

    Parameters
    ----------
    sequences : iterable of (tokens, labels)
        Pairs, such as :func:`skstruct.datasets.iter_conll` yields.
    batch_size : int, default=1000
        Sequences in a batch; the last one may have fewer.
    block_size : int, default=None
        Sequences to shuffle at a time; these are held in memory. By default, the order stays.
    random_state : int, RandomState instance or None, default=None
        Source of the order within the blocks.

    Yields
    ------
    X, y : list
        Tokens and labels of a batch.

    Raises
    ------
    ValueError
        If `batch_size` or `block_size` is not a positive integer, or an element of `sequences` is
        no pair.

    See Also
    --------
    fit_stream : Learn from batches.

    Examples
    --------
    >>> from skstruct.streams import iter_batches
    >>> sequences = [([f"word{i}"], ["O"]) for i in range(5)]
    >>> [X for X, y in iter_batches(sequences, 2, block_size=4, random_state=0)]
    [[['word2'], ['word3']], [['word1'], ['word0']], [['word4']]]
    """
    check_count("batch_size", batch_size)
    check_count("block_size", block_size, none=True)
    expected = "sequences must be pairs of tokens and labels"
    sequences = (_as_pair(item, expected, i) for i, item in enumerate(sequences))
    if block_size is not None:
        sequences = _shuffled(sequences, block_size, check_random_state(random_state))
    return batched(sequences, batch_size)


def _as_pair(item, expected, number):
    """Return a pair; a ValueError for anything else."""
    try:
        first, second = item
    except (TypeError, ValueError):
        raise ValueError(f"{expected}, but number {number} is {short_repr(item)}.") from None
    return first, second


def _shuffled(items, block_size, random_state):
    while block := list(islice(items, block_size)):
        for i in random_state.permutation(len(block)).tolist():
            yield block[i]


@set_module("skstruct.streams")
def fit_stream(
    estimator,
    batches,
    *,
    vectorizer=None,
    classes=None,
    n_epochs=1,
    round_size=None,
    X_val=None,
    y_val=None,
    scoring=None,
    patience=None,
    checkpoint=None,
    verbose=0,
):
    """Learn from batches by ``partial_fit``, for several epochs.

    The batches of an epoch are learnt in rounds. After each round the validation set is scored, if
    there is one, a checkpoint is stored, and a line is printed. An error or an interrupt leaves the
    estimator as it was after the last whole batch.

    Parameters
    ----------
    estimator : tagger
        One with ``partial_fit``, which learns in place: `PerceptronTagger`, `MIRATagger`,
        `SAPOTagger`, `AROWTagger` or ``CRFTagger(solver="sgd")``. If it has been fitted, it goes on
        from there. Its `max_iter`, `tol` and `early_stopping` have no effect.
    batches : callable
        ``batches(epoch)`` returns an iterable of ``(X, y)``, the batches of an epoch in their
        order; epochs count from 1.
    vectorizer : vectoriser, default=None
        What turns the X of a batch into numbers: a `HashingTemplateVectorizer`, or any other one
        that is fitted. With None the estimator gets X as it is.
    classes : array-like of shape (n_classes,), default=None
        All labels. Needed for a new estimator, unless the first batch has them all.
    n_epochs : int, default=1
        Largest number of epochs.
    round_size : int, default=None
        Batches in a round. By default, a round is an epoch.
    X_val, y_val : sequences of tokens and of labels, default=None
        Validation set, which stays in memory.
    scoring : str or callable, default=None
        Score on the validation set, ``scoring(estimator, X, y)``, such as
        :func:`skstruct.metrics.chunk_f1_scorer`. By default, the token accuracy.
    patience : int, default=None
        Rounds without a better score after which to stop. The estimator then returns to its state
        after the round with the best score, also if the epochs end first; a copy of that state is
        held in memory. With None the last state is kept.
    checkpoint : str or path-like, default=None
        File in the format of skops, written after each round. If the file exists, learning goes on
        after the round that it holds, and comes to the same bits as without a break, provided that
        `batches` returns the same batches for the same epoch and `random_state` of the estimator is
        not None. Vectoriser, `classes` and the parameters of the estimator must be as before,
        but for parameters without an effect here and ``n_jobs``; so must `random_state`, where a
        RandomState instance counts by its state at the beginning.
    verbose : int, default=0
        1 prints a line for each round, 2 the numbers of ``history_``.

    Returns
    -------
    estimator : tagger
        The same object. ``n_iter_`` counts batches. ``history_`` has an entry for each round:
        ``"epoch"``, ``"time"`` (seconds, breaks left out), ``"batches"`` and ``"tokens"`` (learnt
        so far), ``"mistakes"`` (fraction of tokens labelled wrongly during the round), ``"loss"``
        (sum during the round), ``"weight_norm"``, and with a validation set
        ``"validation_score"``.

    Raises
    ------
    ValueError
        If an argument is invalid, `batches` returns no batch, or the checkpoint is damaged or was
        made with other arguments, the first of which the message names; and as in ``partial_fit``,
        with a note that names batch and epoch.
    OSError
        If the checkpoint cannot be written, before anything is learnt.

    See Also
    --------
    iter_batches : Gather sequences into batches, shuffled by blocks.
    skstruct.datasets.iter_conll : Read a column file sequence by sequence.

    Examples
    --------
    >>> from skstruct import HashingTemplateVectorizer, PerceptronTagger
    >>> from skstruct.datasets import load_addresses
    >>> from skstruct.streams import fit_stream, iter_batches
    >>> X, y = load_addresses(return_X_y=True)
    >>> def batches(epoch):
    ...     return iter_batches(zip(X[:400], y[:400]), 50, block_size=200, random_state=epoch)
    ...
    >>> tagger = fit_stream(
    ...     PerceptronTagger(random_state=0),
    ...     batches,
    ...     vectorizer=HashingTemplateVectorizer(n_features=2**14),
    ...     classes=sorted(set().union(*y)),
    ...     n_epochs=5,
    ...     X_val=X[400:],
    ...     y_val=y[400:],
    ...     patience=2,
    ... )
    >>> tagger.history_["batches"].tolist()
    [8, 16, 24, 32, 40]
    """
    _check(estimator, batches, vectorizer, X_val, y_val, scoring, patience)
    check_count("round_size", round_size, none=True)
    check_count("patience", patience, none=True)
    check_count("n_epochs", n_epochs)
    # Before anything is learnt: a round may take hours.
    if X_val is not None:
        scorer = scorer_of(estimator, scoring)
        X_val, y_val = _read_validation_set(X_val, y_val, vectorizer, scoring)
    # With rounds of batches, nobody knows how many there will be.
    monitor = Monitor(
        estimator,
        stopping=Stopping(tol=None if patience is None else 0.0, n_iter_no_change=patience),
        max_iter=n_epochs if round_size is None else None,
        verbose=verbose,
    )
    loop = _Loop(estimator, monitor, keeps_best=patience is not None)
    if checkpoint is not None:
        check_writable(checkpoint)
        checkpoint = Path(checkpoint)
        given = {"estimator": _describe(estimator), "vectorizer": _describe(vectorizer)}
        if checkpoint.exists():
            loop.load(checkpoint, given, classes, X_val is not None)
    with compiling_announced(verbose):
        for epoch, portion in loop.rounds(batches, n_epochs, round_size):
            loop.learn(epoch, portion, vectorizer, classes)
            if X_val is not None:
                loop.record_score(_score(estimator, X_val, y_val, scorer))
            if checkpoint is not None:
                loop.store(checkpoint, given)
            monitor.report()
    loop.finish()
    monitor.close()
    return estimator


def _check(estimator, batches, vectorizer, X_val, y_val, scoring, patience):
    name = type(estimator).__name__
    if not isinstance(estimator, OnlineTagger):
        raise ValueError(f"fit_stream needs a tagger with partial_fit, and {name} is none.")
    if not hasattr(estimator, "partial_fit"):
        raise ValueError(
            f"fit_stream needs partial_fit, which {name} does not have with "
            f"solver={estimator.solver!r}. Use solver='sgd'."
        )
    if not callable(batches):
        raise ValueError(
            f"batches must be a function of the number of the epoch, got {short_repr(batches)}. "
            "An iterator could be read only once."
        )
    if vectorizer is not None and not hasattr(vectorizer, "transform"):
        raise ValueError(f"vectorizer needs a method transform, got {short_repr(vectorizer)}.")
    if not (scoring is None or isinstance(scoring, str) or callable(scoring)):
        raise ValueError(f"scoring must be a str or a callable, got {short_repr(scoring)}.")
    if (X_val is None) != (y_val is None):
        raise ValueError("Pass both X_val and y_val, or neither.")
    if patience is not None and X_val is None:
        raise ValueError("patience needs a validation set: X_val and y_val.")


def _read_validation_set(X, y, vectorizer, scoring):
    """Validation set that can be read in every round; a ValueError unless it has the labels."""
    X, y = as_lists(X), as_lists(y)
    if vectorizer is not None:
        X = vectorizer.transform(X)
    if not (scoring is None or isinstance(scoring, str) or hasattr(scoring, "_score_func")):
        # A function of the user may take other answers than labels.
        return X, y
    try:
        format, found = read_format(X)
        if format is Format.ROWS:
            lengths = np.ones(_num_samples(found), np.int64)
        else:
            lengths = [len(x) for x in found] if format is Format.TOKENS else found.lengths
        labels, _ = flatten_labels(y, to_offsets(lengths), format, "y_val", partial=True)
        if all(label is None for label in labels):
            raise ValueError("no label is known.")
    except ValueError as error:
        raise ValueError(f"X_val, y_val: {error}") from error
    return X, y


def _score(estimator, X, y, scorer):
    score = float(scorer(estimator, X, y))
    # What scoring has cached is as large as the weights, and can be computed again.
    estimator._forget(*estimator._learnt)
    return score


class _Loop:
    """State of the loop over a stream.

    Parameters
    ----------
    estimator : tagger
        Learns in place.
    monitor : Monitor
        Gets an entry for each round.
    keeps_best : bool
        Whether the state with the best score is the one to keep.
    """

    def __init__(self, estimator, monitor, keeps_best):
        self._estimator, self._monitor, self._keeps_best = estimator, monitor, keeps_best
        self._best = None
        # The number of the epoch, and of its batches and of all tokens that have been learnt.
        self._place = {"epoch": 1, "batch": 0, "tokens": 0}

    def rounds(self, batches, n_epochs, round_size):
        """Yield the number of the epoch and the batches of each remaining round."""
        for epoch in range(self._place["epoch"], n_epochs + 1):
            if self._monitor.is_over:
                return
            found = batches(epoch)
            try:
                stream = iter(found)
            except TypeError:
                raise ValueError(
                    f"batches({epoch}) must return an iterable of pairs, got {short_repr(found)}."
                ) from None
            if epoch != self._place["epoch"]:
                self._place |= {"epoch": epoch, "batch": 0}
            deque(islice(stream, self._place["batch"]), maxlen=0)
            while not self._monitor.is_over:
                first = list(islice(stream, 1))
                if not first:
                    break
                more = None if round_size is None else round_size - 1
                yield epoch, chain(first, islice(stream, more))
            if self._place["batch"] == 0:
                raise ValueError(f"batches({epoch}) has no batch.")

    def learn(self, epoch, portion, vectorizer, classes):
        """Learn the batches of a round."""
        mistakes = loss = n_tokens = 0
        try:
            for batch in portion:
                number = self._place["batch"] + 1
                X, y = _as_pair(batch, f"batches({epoch}) must yield pairs of X and y", number)
                # Labels of an iterator are counted, too.
                y = as_lists(y)
                X = X if vectorizer is None else vectorizer.transform(X)
                self._estimator.partial_fit(X, y, classes=classes)
                self._place["batch"] += 1
                noted = {name: v[-1] for name, v in self._estimator.history_.items()}
                n_tokens += (n := sum(map(np.size, y)))
                mistakes, loss = mistakes + n * noted["mistakes"], loss + noted["loss"]
        except Exception as error:
            number = self._place["batch"] + 1
            error.add_note(f"This happened in batch {number} of epoch {epoch}.")
            raise
        self._place["tokens"] += n_tokens
        self._monitor.add(
            epoch=epoch,
            batches=int(self._estimator.n_iter_),
            tokens=self._place["tokens"],
            mistakes=float(mistakes / max(n_tokens, 1)),
            loss=float(loss),
            weight_norm=float(noted["weight_norm"]),
        )

    def record_score(self, score):
        self._monitor.add_score(score)
        # Of scores that are all NaN the first is the best one known.
        if (self._monitor.is_best(score) or self._best is None) and self._keeps_best:
            self._best = copy.copy(self._estimator)

    def finish(self):
        """Restore the best state if there is one, and set the history."""
        if self._best is not None:
            _copy_state(self._estimator, self._best)
        self._estimator.history_ = self._monitor.arrays()

    def store(self, path, given):
        """Write a checkpoint, whole or not at all.

        Parameters
        ----------
        path : Path
        given : dict
            What `_describe` made of the estimator and the vectoriser.
        """
        best = self._best
        # Not twice where this round is the best so far.
        if best is not None and best.n_iter_ == self._estimator.n_iter_:
            best = None
        state = {"estimator": self._estimator, "best": best, "place": self._place}
        state |= {"history": self._monitor.arrays(), "given": given, _KEY: _VERSION}
        write_whole(path.resolve(), archived(state))

    def load(self, path, given, classes, is_scored):
        """Restore the state of a checkpoint."""
        stored = _read_checkpoint(path, self._estimator, given)
        learnt, history = stored["estimator"], stored["history"]
        if ("validation_score" in history) != is_scored:
            kind = "without" if is_scored else "with"
            raise ValueError(f"Checkpoint {path} was made {kind} a validation set.")
        try:
            learnt._check_classes(classes, False)
        except ValueError as error:
            raise ValueError(f"Checkpoint {path} has other classes: {error}") from None
        _copy_state(self._estimator, learnt)
        self._monitor.resume(history)
        self._place = stored["place"]
        if self._keeps_best:
            # With None, the last round was the best, or patience begins with it.
            best = stored["best"]
            self._best = copy.copy(self._estimator) if best is None else best
            # Patience depends on the best score and what came after it.
            first = history["batches"].tolist().index(self._best.n_iter_)
            for score in history["validation_score"][first:]:
                self._monitor.is_best(score)


def _copy_state(estimator, other):
    """Give an estimator the state of another one, except `_MAY_CHANGE`, in one assignment."""
    kept = {name: value for name, value in vars(estimator).items() if name in _MAY_CHANGE}
    estimator.__dict__ = {**vars(other), **kept}


# Checkpoints

_KEY, _VERSION = "skstruct_stream", 2
# Parameters without an effect on learning from a stream.
_MAY_CHANGE = frozenset(
    {
        *("early_stopping", "max_iter", "n_iter_no_change", "tol", "validation_fraction"),
        *("memory", "n_jobs", "verbose", "verbose_feature_names_out", "warm_start"),
    }
)
_FITTED = Part("_state", "classes_", "n_features_in_", "n_iter_")
# The tagger as it is; as it was after the round with the best score, unless that was the last one;
# an entry for each round; and the numbers of the epoch, of its batches so far, and of all tokens.
_STORED = {
    "estimator": _FITTED,
    "best": Maybe(_FITTED),
    "history": Columns("epoch", "time", "batches", "tokens", "mistakes", "loss", "weight_norm"),
    "place": Counts("epoch", "batch", "tokens"),
}


def _read_checkpoint(path, estimator, given):
    """Read the state that `_Loop.store` wrote.

    Parameters
    ----------
    path : Path
    estimator : tagger
        The one that is to go on.
    given : dict
        As of `_Loop.store`. The file's must be the same.

    Returns
    -------
    state : dict

    Raises
    ------
    ValueError
        If the file is damaged, no checkpoint, or another stream's; the message names the
        file, and the first difference.
    """
    try:
        content = load_archive(path, own=_path(estimator))
        is_one = isinstance(content, dict) and content.get(_KEY) == _VERSION
        if not is_one or set(content) != {_KEY, "given", *_STORED}:
            raise ValueError("it is no checkpoint of fit_stream.")
    except Exception as error:
        raise ValueError(f"Checkpoint {path} cannot be read: {error}") from error
    found = content["estimator"]
    if type(found) is not type(estimator):
        raise ValueError(
            f"Checkpoint {path} belongs to a {type(found).__name__}, not to a "
            f"{type(estimator).__name__}. Remove it, or name another one."
        )
    _compare(content["given"], given, path)
    try:
        state = {name: kind.read(content[name], name, None) for name, kind in _STORED.items()}
        _check_state(**state)
    except Exception as error:
        raise ValueError(f"Checkpoint {path} is damaged: {error}") from error
    return state


def _check_state(estimator, best, history, place):
    """Raise a ValueError if the parts of a checkpoint do not fit together."""
    if best is not None and not (
        type(best) is type(estimator)
        and best.n_features_in_ == estimator.n_features_in_
        and np.array_equal(best.classes_, estimator.classes_)
        and "validation_score" in history
        and best.n_iter_ in history["batches"]
    ):
        raise ValueError("its best state belongs to another estimator.")
    last = [history[name][-1:].tolist() for name in ("batches", "epoch", "tokens")]
    if (
        last != [[estimator.n_iter_], [place["epoch"]], [place["tokens"]]]
        or not 1 <= place["batch"] <= estimator.n_iter_
    ):
        raise ValueError("its history ends in another place than the estimator.")


def _describe(part):
    """Describe an estimator or vectoriser that a stream is learnt with.

    Parameters
    ----------
    part : object or None

    Returns
    -------
    found : dict
        Hash and text of each parameter, but for `_MAY_CHANGE`, or of each public attribute
        where there is no ``get_params``; its type, and the names of the features that a vectoriser
        has learnt. Functions and classes count by their names, and generators of random numbers by
        their states. What cannot be pickled counts by its type.
    """
    if part is None:
        return {}
    if hasattr(part, "get_params"):
        params = part.get_params(deep=True)
    else:
        # Private attributes are not parameters.
        params = {n: v for n, v in getattr(part, "__dict__", {}).items() if n[:1] != "_"}
    found = {"type": _named(_path(part))}
    for name, value in params.items():
        last = name.rpartition("__")[2]
        if last not in _MAY_CHANGE:
            is_file = last == "template" and value is not None
            found[name] = _named(template_lines(value) if is_file else value)
    # Some parts have no feature names, or none before they are fitted.
    with suppress(AttributeError):
        found["features"] = _named(part.get_feature_names_out().tolist())
    return found


def _named(value):
    plain = _plain(value)
    try:
        digest = joblib.hash(plain)
    except Exception:
        # Objects that cannot be pickled may raise any exception.
        digest = joblib.hash(_path(value))
    if isinstance(value, np.random.RandomState):
        return [digest, f"RandomState in the state {digest[:8]}"]
    return [digest, short_repr(value)]


def _plain(value):
    """Replace parts that differ from process to process."""
    if isinstance(value, np.random.RandomState):
        return value.get_state(legacy=False)
    if hasattr(value, "__qualname__") or hasattr(value, "get_params"):
        return _path(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return list(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def _path(value):
    """Path of a function or class, and of the class of anything else."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{getattr(named, '__module__', None)}.{named.__qualname__}"


def _compare(theirs, ours, path):
    """Raise a ValueError that names the first difference between two descriptions."""
    for part, params in ours.items():
        known = theirs.get(part) if isinstance(theirs, dict) else None
        if not isinstance(known, dict):
            raise ValueError(f"Checkpoint {path} is damaged: it does not tell its {part}.")
        for name in (*params, *known):
            before, now = (_pair(described.get(name)) for described in (known, params))
            if before[0] != now[0]:
                raise ValueError(
                    f"Checkpoint {path} belongs to {'an' if part[0] in 'aeiou' else 'a'} {part} "
                    f"with {name}={before[1]}, not {now[1]}. Remove it, or name another one."
                )


def _pair(named):
    """Hash and text of a parameter; None for both if it is missing."""
    return named if isinstance(named, list) and len(named) == 2 else (None, None)
