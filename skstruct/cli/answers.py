"""Predictions for sequences and groups, as they are written to files."""

from typing import NamedTuple

from skstruct.cli.text import errors_name_lines
from skstruct.input.schemes import scheme_of_classes
from skstruct.spans import labels_of_spans


class Details(NamedTuple):
    """Optional contents of an answer, besides the best labels."""

    n_best: int | None = None
    marginals: bool = False  # the probability of each label that is predicted
    all_marginals: bool = False  # the probabilities of all labels
    spans: bool = False  # chunks and their probabilities, in place of the best labels
    threshold: float = 0.5  # probability that chunks are to exceed

    @property
    def any_marginals(self):
        """True if the answer has probabilities of labels."""
        return self.marginals or self.all_marginals


class Answer(NamedTuple):
    """Labels of a sequence."""

    labels: list  # one labelling, or the n best
    scores: list | None = None  # of the n best
    probabilities: list | None = None  # of the n best
    marginals: list | None = None  # for each token, the probability of each label's text
    all_marginals: bool = False
    spans: list | None = None  # chunks with their probabilities

    def fields_of(self, t, label):
        """Further fields of a token: probabilities as text."""
        if self.spans is not None:
            inside = (p for start, end, _, p in self.spans if start <= t < end)
            return [f"{p:.6f}" for p in inside] or ["_"]
        if self.marginals is None:
            return []
        if self.all_marginals:
            return [f"{name}/{p:.6f}" for name, p in self.marginals[t].items()]
        return [f"{self.marginals[t][str(label)]:.6f}"]

    def as_dict(self):
        """Return it in the names of JSON lines."""
        found = {"labels": self.labels[0]}
        if self.spans is not None:
            found["spans"] = [span._asdict() for span in self.spans]
        if self.probabilities is not None:
            columns = zip(self.labels, self.scores, self.probabilities, strict=True)
            found["n_best"] = [
                dict(zip(("labels", "score", "probability"), row, strict=True)) for row in columns
            ]
        if self.marginals is not None:
            pairs = zip(self.marginals, self.labels[0], strict=True)
            found["probabilities"] = [at[str(label)] for at, label in pairs]
            if self.all_marginals:
                found["marginals"] = self.marginals
        return found


class Choice(NamedTuple):
    """Candidate of a group."""

    chosen: int
    ranking: list | None = None  # numbers of the n best candidates
    probabilities: list | None = None  # of all candidates

    def as_dict(self):
        """Return it in the names of JSON lines."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def inputs_of(model, sequences):
    """Return X of sequences, as a model takes it."""
    X = [sequence.X for sequence in sequences]
    takes_attributes = model.vectorizer is None and not model.is_reranker
    return as_attributes(X) if takes_attributes else X


def as_attributes(X):
    """Sequences of columns as those of lists of attribute strings; feature dicts as they are."""
    return [[_attributes(token) for token in tokens] for tokens in X]


def _attributes(token):
    if isinstance(token, str):
        return [token]
    return list(token) if isinstance(token, tuple) else token


def answer(model, sequences, details):
    """Predict.

    Parameters
    ----------
    model : Model
    sequences : list of Sequence
    details : Details

    Returns
    -------
    answers : list of Answer or Choice
        One for each sequence.

    Raises
    ------
    ValueError
        If a sequence is invalid; the message names the file and the line.
    """
    check_kind(model, sequences)
    _check_details(model, details)
    with errors_name_lines(sequences):
        return (_choose if model.is_reranker else _label)(model, sequences, details)


def check_kind(model, sequences):
    """Raise an error for tokens where a model needs candidates, and the reverse."""
    needed = "candidates" if model.is_reranker else "tokens"
    for sequence in sequences:
        if model.is_reranker and not isinstance(sequence.raw, dict):
            raise ValueError(f"{sequence.name}: a reranker reads JSON lines (--format jsonl).")
        found = "candidates" if "candidates" in sequence.raw else "tokens"
        if isinstance(sequence.raw, dict) and found != needed:
            where = sequence.where()
            raise ValueError(f'{where}: this model needs "{needed}", and not "{found}".')


def _check_details(model, details):
    """Raise an error if a model cannot predict the details that are wanted."""
    kind = type(model.estimator).__name__
    if details.n_best is not None and not any(
        hasattr(model.estimator, name) for name in ("rank", "predict_nbest")
    ):
        raise ValueError(f"{kind} chooses one labelling: leave out --n-best.")
    if details.spans and (details.any_marginals or details.n_best is not None):
        raise ValueError(
            "--spans has probabilities of its own: leave out --n-best and --marginals."
        )
    if details.spans and not hasattr(model.estimator, "predict_spans"):
        raise ValueError(f"{kind} has no probabilities of chunks: leave out --spans.")
    if details.any_marginals and not hasattr(model.estimator, "predict_proba"):
        raise ValueError(f"{kind} has no probabilities of labels: leave out --marginals.")


def _label(model, sequences, details):
    X, tagger = inputs_of(model, sequences), model.estimator
    if model.vectorizer is not None:
        X = model.vectorizer.transform(X)
    if details.spans:
        scheme = scheme_of_classes(tagger.classes_.tolist())
        found = [
            Answer([labels_of_spans(spans, len(sequence.X), scheme)], spans=spans)
            for sequence, spans in zip(
                sequences, tagger.predict_spans(X, threshold=details.threshold), strict=True
            )
        ]
    elif details.n_best is None:
        found = [Answer([list(labels)]) for labels in tagger.predict(X)]
    else:
        found = [
            Answer(*map(list, zip(*labellings, strict=True)))
            for labellings in tagger.predict_nbest(X, n_best=details.n_best)
        ]
    if details.any_marginals:
        names = [str(name) for name in tagger.classes_]
        found = [
            one._replace(
                marginals=[dict(zip(names, row, strict=True)) for row in proba.tolist()],
                all_marginals=details.all_marginals,
            )
            for one, proba in zip(found, tagger.predict_proba(X), strict=True)
        ]
    # What has no tokens, such as comments at the end of a file, is written as it is.
    pairs = zip(sequences, found, strict=True)
    return [one if len(sequence.X) else Answer([[]]) for sequence, one in pairs]


def _choose(model, sequences, details):
    X, baseline = inputs_of(model, sequences), baselines_of(sequences)
    ranks = model.estimator.rank(X, baseline)
    proba = [None] * len(X)
    if details.any_marginals:
        proba = [p.tolist() for p in model.estimator.predict_proba(X, baseline)]
    return [
        Choice(
            int(order[0]), None if details.n_best is None else order[: details.n_best].tolist(), p
        )
        for order, p in zip(ranks, proba, strict=True)
    ]


def baselines_of(sequences):
    """Baseline scores of candidates; None if the groups have none."""
    found = [sequence.baseline for sequence in sequences]
    return None if all(scores is None for scores in found) else found
