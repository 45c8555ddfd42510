"""Training: read, vectorise, cross-validate, fit, store."""

from __future__ import annotations

import contextlib
import time
from typing import NamedTuple

import click

from skstruct.cli.options import Layout
from skstruct.cli.output import Progress, standard_output
from skstruct.cli.text.columns import count_columns
from skstruct.cli.text.documents import errors_name_lines, read_all
from skstruct.cli.work.answers import as_attributes, baselines_of
from skstruct.cli.work.estimators import (
    RERANKERS,
    STACKED,
    find_estimator,
    make,
    make_vectorizer,
    parameters_of,
)
from skstruct.cli.work.evaluation import brief_scores
from skstruct.cli.work.folds import cross_validate, cross_validate_reranker
from skstruct.cli.work.models import Model, store_model

__all__ = ["Plan", "run"]


class Plan(NamedTuple):
    """Options of ``skstruct train``."""

    files: list
    path: str | None
    estimator: str
    parameters: dict
    order: int | None
    features: str
    template: str | None
    feature_parameters: dict
    gazetteers: dict
    clusters: str | None
    dev: list
    early_stopping: bool
    cv: int | None
    jobs: int
    quiet: bool
    layout: Layout


def run(plan):
    """Do what the options ask for."""
    tell = _teller(plan.quiet)
    if plan.cv:
        with standard_output():
            pass  # an error if it is closed, before the work
    estimator = _make_estimator(plan)
    # Before the text is read, for mistakes in them.
    lists = plan.gazetteers or plan.clusters
    given = plan.template or plan.features != "auto" or plan.feature_parameters or lists
    vectorizer = _make_vectorizer(plan, plan.features) if given else None
    sequences = _read(plan.files, plan, tell)
    _check_kind(plan, sequences)
    if plan.estimator in RERANKERS:
        return _train_reranker(plan, estimator, sequences, tell)
    if not given and not _has_dicts(sequences):
        vectorizer = _make_vectorizer(plan, "words")
    if plan.cv:
        with errors_name_lines(sequences):
            cross_validate(Model(estimator, vectorizer), *_X_y(sequences), plan.cv, plan.jobs)
    if plan.path is not None:
        model = _train_tagger(plan, vectorizer, estimator, sequences, tell)
        _store(model, plan, tell)
    return None


def _teller(quiet):
    """Function that reports progress with the seconds since the last report."""
    since = time.perf_counter()

    def tell(message):
        nonlocal since
        now = time.perf_counter()
        if not quiet:
            print(f"{message} ({now - since:.1f} s)", file=Progress())
        since = now

    return tell


def _make_estimator(plan):
    kind = find_estimator(plan.estimator)
    known = parameters_of(kind)
    parameters = {"n_jobs": plan.jobs} if "n_jobs" in known and plan.jobs != 1 else {}
    part = "tagger__" if plan.estimator == STACKED else ""
    if plan.early_stopping:
        parameters[f"{part}early_stopping"] = True
    if plan.order is not None:
        name = f"{part}order"
        if name in plan.parameters:
            raise click.UsageError(f"Pass --order or -p {name}=..., not both.")
        if plan.estimator in RERANKERS:
            raise click.UsageError(f"--order is for taggers; {plan.estimator} has no chain.")
        parameters[name] = plan.order
    return make(kind, {**parameters, **plan.parameters}, "-p")


def _make_vectorizer(plan, features):
    features = "words" if features == "auto" else features
    return make_vectorizer(
        features, plan.template, plan.feature_parameters, plan.gazetteers, plan.clusters
    )


def _read(paths, plan, tell):
    sequences = read_all(paths, plan.layout)
    n_tokens = sum(len(sequence.X) for sequence in sequences)
    units = ("groups", "candidates") if plan.estimator in RERANKERS else ("sequences", "tokens")
    counts = f"{len(sequences):,} {units[0]}, {n_tokens:,} {units[1]}"
    tell(f"Read {counts} from {', '.join(paths)}")
    return sequences


def _check_kind(plan, sequences):
    """Refuse groups for taggers, and tokens for rerankers."""
    for sequence in sequences:
        grouped = isinstance(sequence.raw, dict) and "candidates" in sequence.raw
        if grouped != (plan.estimator in RERANKERS):
            needs = "groups of candidates" if not grouped else "tokens"
            raise ValueError(
                f"{sequence.name}, line {sequence.first}: {plan.estimator} needs {needs}."
            )


def _has_dicts(sequences):
    return isinstance(sequences[0].X[0], dict)


@contextlib.contextmanager
def _progress(plan, estimator):
    """Context of a fit: it prints to standard error, and is verbose unless told otherwise."""
    name = "tagger__verbose" if plan.estimator == STACKED else "verbose"
    chosen = plan.quiet or name in plan.parameters
    if not chosen:
        estimator.set_params(**{name: 1})
    with contextlib.redirect_stdout(Progress()):
        yield
    if not chosen:
        estimator.set_params(**{name: 0})
        if plan.estimator == STACKED:
            estimator.tagger_.set_params(verbose=0)


def _X_y(sequences):
    return [sequence.X for sequence in sequences], [sequence.y for sequence in sequences]


def _like(y, others):
    """Labels in which 1 and "1" are what they are in `y`: column files and JSON lines differ."""
    same = {str(label): label for labels in y for label in labels if label is not None}
    return [
        [label if label is None else same.get(str(label), label) for label in labels]
        for labels in others
    ]


def _train_tagger(plan, vectorizer, estimator, sequences, tell):
    X, y = _X_y(sequences)
    validation, held_out = {}, _read(plan.dev, plan, tell) if plan.dev else []
    _check_kind(plan, held_out)
    X_val, y_val = _X_y(held_out)
    y_val = _like(y, y_val)
    if vectorizer is None:
        X, X_val = (as_attributes(part) for part in (X, X_val))
    else:
        with errors_name_lines(sequences):
            X = vectorizer.fit_transform(X)
        with errors_name_lines(held_out):
            X_val = vectorizer.transform(X_val) if held_out else X_val
        tell(f"{X.n_features:,} features by {type(vectorizer).__name__}")
    # A reranker on top of a tagger has no epochs at which to score.
    if held_out and plan.estimator != STACKED:
        validation = {"X_val": X_val, "y_val": y_val}
    with errors_name_lines(sequences), _progress(plan, estimator):
        estimator.fit(X, y, **validation)
    tell(f"Trained {plan.estimator}, {len(estimator.classes_)} labels")
    if held_out:
        scores = brief_scores(y_val, estimator.predict(X_val))
        tell(f"Validation set: {scores}")
    return Model(estimator, vectorizer, _layout_of(plan, sequences))


def _layout_of(plan, sequences):
    """Layout that files to tag have, as a model remembers it."""
    layout = plan.layout.of(plan.files[0])
    found = {"format": layout.format}
    if layout.format == "columns":
        found["width"] = count_columns(sequences[0], layout)
        token = sequences[0].X[0]
        width = 1 if isinstance(token, str) else len(token)
        if layout.columns is None:
            label = width if layout.label is None else layout.label % (width + 1)
            found["columns"] = [c for c in range(width + 1) if c != label]
            found["label"] = label
    for name in ("columns", "label", "separator", "comment"):
        value = getattr(layout, name)
        if value is not None and name not in found:
            found[name] = value
    return found


def _train_reranker(plan, estimator, sequences, tell):
    for given, option in (
        (plan.dev, "--dev"),
        (plan.template, "-t"),
        (plan.feature_parameters, "-f"),
        (plan.features not in ("auto", "none"), "--features"),
    ):
        if given:
            raise click.UsageError(f"{option} is for taggers, not for {plan.estimator}.")
    X, y = _X_y(sequences)
    baseline = baselines_of(sequences)
    with errors_name_lines(sequences):
        if plan.cv:
            cross_validate_reranker(estimator, X, y, baseline, plan.cv)
        if plan.path is not None:
            with _progress(plan, estimator):
                estimator.fit(X, y, baseline_score=baseline)
    if plan.path is not None:
        tell(f"Trained {plan.estimator}, {estimator.n_features_in_:,} features")
        _store(Model(estimator, None, {"format": "jsonl"}), plan, tell)


def _store(model, plan, tell):
    size = store_model(model, plan.path)
    tell(f"Stored {plan.path}, {size / 1e6:.1f} MB")
