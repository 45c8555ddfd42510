"""Predictions for sequences and groups, as they are written to files."""

from typing import NamedTuple

from skstruct.cli.text import errors_name_lines
from skstruct.input.schemes import labels_of_spans, scheme_of_classes


class Details(NamedTuple):
    """Optional contents of an answer, besides the best labels."""

    n_best: int | None = None
    marginals: bool = False  # the probability of each label that is predicted
    all_marginals: bool = False  # the probabilities of all labels
    spans: bool = False  # chunks and their probabilities, in place of the best labels
    candidates: bool = False  # of a `ConformalTagger`
    # Probability that chunks are to exceed; None: as in training, or a half.
    threshold: float | None = None

    @property
    def any_marginals(self):
        """True if the answer has probabilities of labels."""
        return self.marginals or self.all_marginals


class Answer(NamedTuple):
    """Labels of a sequence, or the candidate of a group."""

    entries: dict  # of a JSON line
    marginals: list | None = None  # for each token, the probability of each label's text

    def fields_of(self, t, label):
        """Further fields of a token: probabilities as text."""
        if "spans" in self.entries:
            inside = [span for span in self.entries["spans"] if span["start"] <= t < span["end"]]
            return [f"{span['probability']:.6f}" for span in inside] or ["_"]
        if self.marginals is None:
            return []
        if "marginals" in self.entries:
            return [f"{name}/{p:.6f}" for name, p in self.marginals[t].items()]
        return [f"{self.marginals[t][str(label)]:.6f}"]


def inputs_of(model, sequences):
    """Return X of sequences, as a model takes it: without a vectoriser, columns are attributes."""
    X = [sequence.X for sequence in sequences]
    if model.vectorizer is not None or model.is_reranker:
        return X
    return [[[token] if isinstance(token, str) else token for token in tokens] for tokens in X]


def baselines_of(sequences):
    """Baseline scores of candidates; None if the groups have none."""
    found = [sequence.baseline for sequence in sequences]
    return None if all(scores is None for scores in found) else found


def answer(model, sequences, details):
    """Predict the labels of sequences, or choose among candidates.

    Parameters
    ----------
    model : Model
    sequences : list of Sequence
    details : Details

    Returns
    -------
    answers : list of Answer
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
    if details.candidates and not hasattr(estimator, "predict_candidates"):
        raise ValueError(f"{kind} has no candidates: train a ConformalTagger for --candidates.")
    if marginals and not hasattr(estimator, "predict_proba"):
        raise ValueError(f"{kind} has no probabilities of labels: leave out --marginals.")


def _label(model, sequences, details):
    X, tagger = inputs_of(model, sequences), model.estimator
    if model.vectorizer is not None:
        X = model.vectorizer.transform(X)
    if details.spans:
        scheme, found = scheme_of_classes(tagger.classes_.tolist()), []
        given = {} if details.threshold is None else {"threshold": details.threshold}
        chunks = tagger.predict_spans(X, **given)
        for sequence, spans in zip(sequences, chunks, strict=True):
            labels = labels_of_spans(spans, len(sequence.X), scheme)
            found.append(Answer({"labels": labels, "spans": [one._asdict() for one in spans]}))
    elif details.n_best is None:
        found = [Answer({"labels": list(labels)}) for labels in tagger.predict(X)]
    else:
        n_best = tagger.predict_nbest(X, n_best=details.n_best)
        rankings = [[one._asdict() for one in labellings] for labellings in n_best]
        found = [Answer({"labels": one[0]["labels"], "n_best": one}) for one in rankings]
    if details.candidates:
        is_whole = tagger.risk == "labelling"
        some = tagger.predict_sets(X) if is_whole else tagger.predict_candidates(X)
        for one, candidates in zip(found, some, strict=True):
            one.entries["labellings" if is_whole else "candidates"] = [
                candidate._asdict() for candidate in candidates
            ]
    if details.any_marginals:
        names = [str(name) for name in tagger.classes_]
        for i, proba in enumerate(tagger.predict_proba(X)):
            marginals = [dict(zip(names, row, strict=True)) for row in proba.tolist()]
            pairs = zip(marginals, found[i].entries["labels"], strict=True)
            found[i].entries["probabilities"] = [at[str(label)] for at, label in pairs]
            if details.all_marginals:
                found[i].entries["marginals"] = marginals
            found[i] = found[i]._replace(marginals=marginals)
    # What has no tokens, such as comments at the end of a file, is written as it is.
    pairs = zip(sequences, found, strict=True)
    return [one if len(sequence.X) else Answer({"labels": []}) for sequence, one in pairs]


def _choose(model, sequences, details):
    given = inputs_of(model, sequences), baselines_of(sequences)
    orders = model.estimator.rank(*given)
    found = [{"chosen": int(order[0])} for order in orders]
    if details.n_best is not None:
        for one, order in zip(found, orders, strict=True):
            one["ranking"] = order[: details.n_best].tolist()
    if details.any_marginals:
        for one, proba in zip(found, model.estimator.predict_proba(*given), strict=True):
            one["probabilities"] = proba.tolist()
    return [Answer(one) for one in found]
