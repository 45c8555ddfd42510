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

    def entries(self):
        """Entries of a JSON line."""
        found = {"labels": self.labels[0]}
        if self.spans is not None:
            found["spans"] = [span._asdict() for span in self.spans]
        if self.probabilities is not None:
            found["n_best"] = [
                {"labels": labels, "score": score, "probability": probability}
                for labels, score, probability in zip(*self[:3], strict=True)
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

    def entries(self):
        """Entries of a JSON line."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def inputs_of(model, sequences):
    """Return X of sequences, as a model takes it: without a vectoriser, columns are attributes."""
    X = [sequence.X for sequence in sequences]
    if model.vectorizer is not None or model.is_reranker:
        return X
    return [[_attributes(token) for token in tokens] for tokens in X]


def _attributes(token):
    """Columns as a list of attribute strings; a feature dict as it is."""
    if isinstance(token, str):
        return [token]
    return list(token) if isinstance(token, tuple) else token


def baselines_of(sequences):
    """Baseline scores of candidates; None if the groups have none."""
    found = [sequence.baseline for sequence in sequences]
    return None if all(scores is None for scores in found) else found


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
    check_kind(sequences, model.is_reranker)
    _check_details(model, details)
    with errors_name_lines(sequences):
        return (_choose if model.is_reranker else _label)(model, sequences, details)


def check_kind(sequences, are_groups, who="this model"):
    """Raise an error for tokens where candidates are needed, and the reverse."""
    needed = "candidates" if are_groups else "tokens"
    for sequence in sequences:
        if are_groups and not isinstance(sequence.raw, dict):
            raise ValueError(f"{sequence.name}: a reranker reads JSON lines (--format jsonl).")
        if sequence.kind != needed:
            found = f'needs "{needed}", and not "{sequence.kind}"'
            raise ValueError(f"{sequence.where()}: {who} {found}.")


def _check_details(model, details):
    """Raise an error if a model cannot predict the details that are wanted."""
    estimator, kind = model.estimator, type(model.estimator).__name__
    n_best, marginals = details.n_best is not None, details.any_marginals
    if n_best and not (hasattr(estimator, "rank") or hasattr(estimator, "predict_nbest")):
        raise ValueError(f"{kind} chooses one labelling: leave out --n-best.")
    if details.spans and (marginals or n_best):
        raise ValueError(
            "--spans has probabilities of its own: leave out --n-best and --marginals."
        )
    if details.spans and not hasattr(estimator, "predict_spans"):
        raise ValueError(f"{kind} has no probabilities of chunks: leave out --spans.")
    if marginals and not hasattr(estimator, "predict_proba"):
        raise ValueError(f"{kind} has no probabilities of labels: leave out --marginals.")


def _label(model, sequences, details):
    X, tagger = inputs_of(model, sequences), model.estimator
    if model.vectorizer is not None:
        X = model.vectorizer.transform(X)
    if details.spans:
        scheme = scheme_of_classes(tagger.classes_.tolist())
        pairs = zip(sequences, tagger.predict_spans(X, threshold=details.threshold), strict=True)
        found = [
            Answer([labels_of_spans(spans, len(one.X), scheme)], spans=spans)
            for one, spans in pairs
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
        for i, proba in enumerate(tagger.predict_proba(X)):
            marginals = [dict(zip(names, row, strict=True)) for row in proba.tolist()]
            found[i] = found[i]._replace(marginals=marginals, all_marginals=details.all_marginals)
    # What has no tokens, such as comments at the end of a file, is written as it is.
    pairs = zip(sequences, found, strict=True)
    return [one if len(sequence.X) else Answer([[]]) for sequence, one in pairs]


def _choose(model, sequences, details):
    given = inputs_of(model, sequences), baselines_of(sequences)
    found = []
    for order in model.estimator.rank(*given):
        ranking = None if details.n_best is None else order[: details.n_best].tolist()
        found.append(Choice(int(order[0]), ranking))
    if details.any_marginals:
        pairs = zip(found, model.estimator.predict_proba(*given), strict=True)
        found = [one._replace(probabilities=proba.tolist()) for one, proba in pairs]
    return found
