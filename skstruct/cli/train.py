"""``skstruct train``: train a tagger or a reranker, and store it."""

import contextlib
import os
import warnings
from types import SimpleNamespace

import click
import numpy as np
from joblib import Parallel
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold

import skstruct
from skstruct.cli.annotators import (
    bring_together,
    describe_annotators,
    flat_labels,
    write_consensus,
)
from skstruct.cli.answers import baselines_of, check_kind, inputs_of
from skstruct.cli.estimators import (
    AROUND,
    CONFORMAL,
    ESTIMATORS,
    OF_ANNOTATORS,
    RERANKERS,
    SPANS,
    STACKED,
    TAGGER_OF,
    make,
    make_vectorizer,
)
from skstruct.cli.evaluate import brief_scores
from skstruct.cli.labels import (
    convert_sequences,
    describe_columns,
    describe_scheme,
    reading_of,
    warn_of_labels,
    warn_of_odd_labels,
)
from skstruct.cli.layout import layout_options, layout_to_store
from skstruct.cli.models import Model, store_model
from skstruct.cli.options import (
    FILE,
    FILE_OR_INPUT,
    Name,
    NewFile,
    assignments_option,
    jobs_option,
    require_other_files,
)
from skstruct.cli.output import Log, standard_output, write_line
from skstruct.cli.text import errors_name_lines, read_all
from skstruct.input.folds import restrict_to_fold
from skstruct.input.schemes import SCHEMES, in_standard_spelling, infer_scheme
from skstruct.inspection.checks import check_fit
from skstruct.metrics.scores import chunk_f1_score, token_accuracy_scorer
from skstruct.utils.parallel import in_process

# Sequences that are looked at for signs that nothing was learnt.
_CHECKED = 200


@click.command(short_help="Train a tagger or a reranker.")
@click.argument("files", nargs=-1, required=True, type=FILE_OR_INPUT)
@click.option("-m", "--model", type=NewFile(), help="File to store the model in.")
@click.option(
    "-e", "--estimator", type=Name(ESTIMATORS), default="CRFTagger", help="Tagger or reranker."
)
@assignments_option(
    "-p",
    "--param",
    "parameters",
    help="Parameter of the estimator; may be repeated. Those of the parts of NBestReranker, "
    "SpanTaggerCV and ConformalTagger have two underscores: tagger__l2=0.5, estimator__l2=0.5.",
)
@click.option(
    "--order",
    type=click.IntRange(1, 2),
    help="Order of the tagger's chain, as -p order=2: 2 for weights of label triples.",
)
@click.option(
    "--features",
    type=click.Choice(["auto", "words", "template", "none"]),
    default="auto",
    help="words: as from WordVectorizer. template: TemplateVectorizer's default. none: "
    "each column is a feature. auto: words, or none where JSON lines have feature dicts.",
)
@click.option(
    "-t", "--template", type=FILE, help="Template of CRF++ or Wapiti, in place of --features."
)
@assignments_option(
    "-f",
    "--feature-param",
    "feature_parameters",
    help="Parameter of the vectoriser; may be repeated.",
)
@assignments_option(
    "--gazetteer",
    "gazetteers",
    metavar="NAME=FILE",
    read_value=str,
    unique=True,
    help="File with a name in each line, for --features words; may be repeated.",
)
@click.option("--clusters", type=FILE, help="Brown clusters for --features words: path, tab, word.")
@click.option(
    "--dev",
    multiple=True,
    type=FILE,
    help="Validation set, scored at every epoch, for NBestReranker once at the end; may be "
    "repeated.",
)
@click.option(
    "--early-stopping",
    is_flag=True,
    help="Stop when the score of the validation set no longer rises. Without --dev, a tenth of "
    "the training set is held out for it.",
)
@click.option(
    "--cv",
    type=click.IntRange(2),
    metavar="K",
    help="Cross-validate with K folds first; without -m, do nothing else.",
)
@click.option(
    "--scheme",
    type=click.Choice(SCHEMES),
    help="Scheme of the labels; by default the one that the fewest labels break. runs: labels "
    "without prefixes, each run of which is a chunk.",
)
@click.option(
    "--repair",
    type=click.Choice(["conlleval", "drop"]),
    help="Repair labels that break their scheme: read chunks as conlleval does, or drop those "
    "that are invalid. The log says how many there are.",
)
@click.option(
    "--to-scheme",
    type=click.Choice(SCHEMES),
    help="Scheme to convert the labels into before training.",
)
@click.option(
    "--consensus",
    type=NewFile(),
    help="With AnnotatorCRF: file for the sequences that were learnt from, with the most probable "
    "labels by all annotators and the model: columns, or JSON lines for a name in .jsonl.",
)
@jobs_option("Threads to train with; processes for --cv. -1: all processors.")
@click.option("-q", "--quiet", is_flag=True, help="No progress on standard error.")
@layout_options
def train(**options):
    """Train a tagger or a reranker on FILES.

    In a column file, each line has a token: the word, maybe further columns such as its part of
    speech, and the label last. A blank line follows each sentence. JSON lines have {"tokens":
    [...], "labels": [...]}, where a token is a word, a list of columns, or a dict of features. For
    rerankers, they have {"candidates": [{...}, ...], "costs": [...]}, a dict of features and a cost
    for each candidate; in place of costs, "oracle" is the number of the best one.

    NBestReranker learns from tokens and labels: it trains a tagger, by default CRFTagger, and a
    reranker, by default VRDAReranker, which chooses among the tagger's best labellings by what
    their labels have as a whole, such as two chunks of a type that occurs once.

    SpanTaggerCV finds the threshold above which chunks are predicted, by cross-validation of a
    tagger, by default CRFTagger. With -f label_statistics=true, features tell what labels a word
    has in other sentences. Where chunks are rare, both together find many more.

    AnnotatorCRF learns from annotators who contradict each other. Each of FILES is the work of one,
    named as the file is. Sequences are the same if they have the same tokens; an annotator need not
    have labelled all. With --cv, the score counts the labels of each annotator as right.

    \b
    Examples:
      skstruct train train.txt -m chunker.skops
      skstruct train train.txt -m chunker.skops --dev dev.txt --early-stopping
      skstruct train train.txt --cv 5 -p l2=0.5
      skstruct train train.txt -m names.skops -e PerceptronTagger -p max_iter=20
      skstruct train train.txt -m second.skops --order 2
      skstruct train train.txt -m names.skops -f affixes=5 --gazetteer place=cities.txt
      skstruct train train.txt -m names.skops -e SpanTaggerCV -f label_statistics=true
      skstruct train train.txt -m names.skops -e ConformalTagger -p alpha=0.1
      skstruct train train.txt -m names.skops -e SpanTaggerCV -p estimator=SAPOTagger -p cv=3
      skstruct train ann.txt bob.txt eve.txt -m names.skops -e AnnotatorCRF --consensus all.txt
      skstruct train en-train.conllu -m pos.skops --columns form --label upos
      skstruct train train.txt -m model.skops -t template.txt
      skstruct train train.txt -m words.skops --scheme BMES --repair conlleval
      skstruct train nbest.jsonl -m reranker.skops -e VRDAReranker
      skstruct train train.txt -m both.skops -e NBestReranker -p n_best=5 -p tagger__l2=0.5
    """
    plan = SimpleNamespace(**options, log=Log(options["quiet"]))
    plan.reranks = plan.estimator in RERANKERS
    _check_options(plan)
    # Mistakes in parameters are found before the text is read.
    estimator = _make_estimator(plan)
    vectorizer = None if plan.reranks else _make_vectorizer(plan)
    if plan.estimator == OF_ANNOTATORS and getattr(vectorizer, "label_statistics", False):
        raise click.UsageError(
            "-f label_statistics needs one labelling of each sequence: train on what --consensus "
            "writes."
        )
    sequences = _read(plan.files, plan)
    if not plan.reranks:
        sequences = _in_scheme(sequences, plan)
        if plan.features == "auto" and isinstance(sequences[0].X[0], dict):
            vectorizer = None
        if plan.estimator == OF_ANNOTATORS:
            sequences = bring_together(sequences, plan.files)
            plan.log.say(f"{len(sequences):,} different sequences of {len(plan.files)} annotators")
    model = Model(estimator, vectorizer)
    if plan.cv:
        _cross_validate(plan, model, sequences)
    if plan.model is not None:
        model = (_fit_reranker if plan.reranks else _fit_tagger)(plan, model, sequences)
        layout = layout_to_store(plan.layout.of(plan.files[0]), sequences[0])
        size = store_model(model._replace(layout=layout), plan.model)
        plan.log.report(f"Stored {plan.model}, {size / 1e6:.1f} MB")
    # Last: tokens may not fit into columns, and the model is there all the same.
    if plan.consensus is not None:
        write_consensus(plan.consensus, plan.layout, sequences, *plan.agreed)
        plan.log.report(f"Wrote {plan.consensus}")


def _check_options(plan):
    """Raise an error for options that exclude each other, and files that cannot be written."""
    if plan.model is None and plan.cv is None:
        raise click.UsageError("Pass -m FILE to store the model, or --cv K, or both.")
    for given, option in (
        (plan.order, "--order"),
        (plan.dev, "--dev"),
        (plan.template, "-t"),
        (plan.feature_parameters, "-f"),
        (plan.features not in ("auto", "none"), "--features"),
    ):
        if given and plan.reranks:
            raise click.UsageError(f"{option} is for taggers, not for {plan.estimator}.")
    if plan.consensus is not None:
        _check_consensus(plan)
    read = *plan.files, *plan.dev, *plan.gazetteers.values(), plan.template, plan.clusters
    require_other_files([plan.model], read, "-m")
    require_other_files([plan.consensus], read, "--consensus")
    if plan.cv:
        with standard_output():
            pass  # an error if it is closed, before the work


def _check_consensus(plan):
    if plan.estimator != OF_ANNOTATORS or plan.model is None:
        raise click.UsageError("--consensus is for -e AnnotatorCRF with -m.")
    if os.path.realpath(plan.consensus) == os.path.realpath(plan.model):
        raise click.UsageError("-m and --consensus name the same file.")
    if plan.consensus.endswith((".conllu", ".gz")):
        raise click.UsageError("--consensus writes columns or JSON lines, and does not gzip them.")


def _make_estimator(plan):
    known = getattr(skstruct, plan.estimator)._parameter_constraints
    parameters = {"n_jobs": plan.jobs} if "n_jobs" in known and plan.jobs != 1 else {}
    part = TAGGER_OF.get(plan.estimator, "")
    if plan.order is not None:
        if f"{part}order" in plan.parameters:
            raise click.UsageError(f"Pass --order or -p {part}order=..., not both.")
        parameters[f"{part}order"] = plan.order
    if plan.early_stopping:
        parameters[f"{part}early_stopping"] = True
    return make(plan.estimator, {**parameters, **plan.parameters}, "-p")


def _make_vectorizer(plan):
    """Make the vectoriser of a tagger. Its features are no longer "auto" if any option is given."""
    how = plan.template, plan.feature_parameters, plan.gazetteers, plan.clusters
    if plan.features == "auto" and any(how):
        plan.features = "words"
    return make_vectorizer(plan.features, *how)


def _read(paths, plan):
    """Sequences of files; groups are refused for taggers, and tokens for rerankers."""
    said = []
    sequences = read_all(paths, plan.layout, say=said.append)
    check_kind(sequences, plan.reranks, plan.estimator)
    if paths is plan.files and not plan.reranks:
        plan.log.say(describe_columns(sequences, plan.layout))
    for line in said:
        plan.log.say(line)
    n_tokens = sum(len(sequence.X) for sequence in sequences)
    units = ("groups", "candidates") if plan.reranks else ("sequences", "tokens")
    counts = f"{len(sequences):,} {units[0]}, {n_tokens:,} {units[1]}"
    plan.log.report(f"Read {counts} from {', '.join(paths)}")
    return sequences


def _in_scheme(sequences, plan):
    """Sequences with the labels to learn, repaired and converted; the log describes them."""
    warn_of_labels(sequences)
    is_used = plan.repair is not None or plan.to_scheme is not None
    # Conversions refuse them.
    plan.may_have_odd = not is_used and plan.scheme is None
    if plan.may_have_odd:
        warn_of_odd_labels(sequences)
    with errors_name_lines(sequences):
        about = describe_scheme(sequences, plan.scheme, is_used=is_used)
        # Validation sets are in the same scheme.
        plan.source = plan.scheme
        if is_used and plan.scheme is None:
            plan.source = infer_scheme(in_standard_spelling([one.y for one in sequences]))
        found, repaired = convert_sequences(sequences, plan.source, plan.repair, plan.to_scheme)
    for line in filter(None, (about, repaired)):
        plan.log.say(line)
    return found


@contextlib.contextmanager
def _progress(plan, estimator):
    """Context of a fit: it prints to standard error, and is verbose by default."""
    name = "tagger__verbose" if plan.estimator == STACKED else "verbose"
    # The folds of a search would print the same lines again and again.
    chosen = plan.quiet or name in plan.parameters or plan.estimator in AROUND
    if not chosen:
        estimator.set_params(**{name: 1})
    with contextlib.redirect_stdout(plan.log):
        yield
    if not chosen:
        estimator.set_params(**{name: 0})
        if plan.estimator == STACKED:
            estimator.tagger_.set_params(verbose=0)


def _X_y(model, sequences):
    return inputs_of(model, sequences), [sequence.y for sequence in sequences]


def _like(y, others):
    """Give labels the types that they have in `y`: numbers of JSON lines are text in columns."""
    same = {str(label): label for labels in y for label in labels if label is not None}
    return [
        [label if label is None else same.get(str(label), label) for label in labels]
        for labels in others
    ]


def _fit_tagger(plan, model, sequences):
    estimator, vectorizer = model.estimator, model.vectorizer
    held_out = _read(plan.dev, plan) if plan.dev else []
    if plan.may_have_odd:
        warn_of_odd_labels(held_out)
    with errors_name_lines(held_out):
        held_out, _ = convert_sequences(held_out, plan.source, plan.repair, plan.to_scheme)
    (X, y), (X_val, y_val) = (_X_y(model, part) for part in (sequences, held_out))
    y_val = _like(_labels_of(plan, sequences), y_val)
    if plan.estimator in AROUND:
        model = _fit_around(plan, model, sequences)
        X_val = model.vectorizer.transform(X_val) if vectorizer is not None and held_out else X_val
    else:
        if vectorizer is not None:
            with errors_name_lines(sequences):
                X = vectorizer.fit_transform(X, y)
            with errors_name_lines(held_out):
                X_val = vectorizer.transform(X_val) if held_out else X_val
            plan.log.report(f"{X.n_features:,} features by {type(vectorizer).__name__}")
        # A reranker on top of a tagger has no epochs at which to score, and annotators none that
        # labels which are right could stop.
        is_watched = held_out and plan.estimator not in (STACKED, OF_ANNOTATORS)
        validation = {"X_val": X_val, "y_val": y_val} if is_watched else {}
        with errors_name_lines(sequences, held_out), _progress(plan, estimator):
            estimator.fit(X, y, **validation)
        if plan.estimator == OF_ANNOTATORS:
            y = _agree(plan, estimator, X, sequences)
        if plan.estimator != STACKED:
            for doubt in check_fit(estimator, X[:_CHECKED], y[:_CHECKED]):
                warnings.warn(doubt, stacklevel=2)
    plan.log.report(f"Trained {plan.estimator}, {len(model.estimator.classes_)} labels")
    if held_out:
        scores = brief_scores(y_val, model.estimator.predict(X_val), plan.to_scheme or plan.scheme)
        plan.log.report(f"Validation set: {scores}")
        if plan.estimator == CONFORMAL:
            measures = model.estimator.measure(X_val, y_val)
            found = ", ".join(f"{name} {value:.4f}" for name, value in measures.items())
            plan.log.report(f"Validation set: {found}")
    return model


def _labels_of(plan, sequences):
    """Labels of sequences; of several annotators, all of theirs."""
    if plan.estimator == OF_ANNOTATORS:
        return flat_labels(sequences)
    return [sequence.y for sequence in sequences]


def _agree(plan, estimator, X, sequences):
    """Most probable labels by annotators and model; the log holds each annotator against them."""
    consensus, proba = estimator.consensus(X, [sequence.y for sequence in sequences])
    for line in describe_annotators(sequences, consensus):
        plan.log.report(line)
    plan.agreed = consensus, proba, estimator.classes_
    return list(consensus)


def _fit_around(plan, model, sequences):
    """Model of `SpanTaggerCV` or `ConformalTagger`, which fit the vectoriser, too."""
    with errors_name_lines(sequences), _progress(plan, model.estimator):
        fitted = model.to_fit().fit(*_X_y(model, sequences))
    if plan.estimator == SPANS:
        plan.log.report(
            f"Threshold {fitted.best_threshold_:.2f}, with a score of {fitted.best_score_:.4f} in "
            "cross-validation"
        )
    else:
        pairs = zip(fitted.kinds_, fitted.thresholds_, strict=True)
        found = ", ".join(f"{threshold:.4f} ({kind})" for kind, threshold in pairs)
        plan.log.report(f"Thresholds by {fitted.n_calibration_:,} held-out sequences: {found}")
    return model.of_fitted(fitted)


def _fit_reranker(plan, model, sequences):
    estimator, given = model.estimator, _X_y(model, sequences)
    with errors_name_lines(sequences), _progress(plan, estimator):
        estimator.fit(*given, baseline_score=baselines_of(sequences))
    plan.log.report(f"Trained {plan.estimator}, {estimator.n_features_in_:,} features")
    return model


def _scorer(plan, y):
    """Name of the scores of folds, and their scorer; None for the estimator's own."""
    if plan.reranks:
        return "accuracy" if isinstance(y[0], int) else "negative mean cost", None
    if plan.estimator == OF_ANNOTATORS:
        return "agreement", None
    reading = reading_of(plan.to_scheme or plan.scheme, y)
    if reading is None:
        return "token_accuracy", token_accuracy_scorer
    return "chunk_f1", make_scorer(chunk_f1_score, scheme=reading)


def _cross_validate(plan, model, sequences):
    """Print the scores of the folds."""
    name, scorer = _scorer(plan, [sequence.y for sequence in sequences])
    if not plan.reranks:
        # Other processes need no lines.
        sequences = [sequence._replace(raw=None) for sequence in sequences]
    folds = (
        [[sequences[i] for i in part] for part in parts]
        for parts in KFold(plan.cv).split(sequences)
    )
    parallel = Parallel(n_jobs=plan.jobs)
    scores = np.array(parallel(in_process(_score_of_fold)(model, scorer, *fold) for fold in folds))
    for number, score in enumerate(scores, start=1):
        write_line(f"fold {number}: {name} {score:.4f}")
    write_line(f"mean: {name} {scores.mean():.4f} (standard deviation {scores.std():.4f})")


def _score_of_fold(model, scorer, train, test):
    """Score on some sequences of a model that learns from others; errors name the lines of each."""
    estimator, params = clone(model.to_fit()), []
    for part in (train, test):
        baseline = baselines_of(part)
        params.append({} if baseline is None else {"baseline_score": baseline})
    if scorer is not None:
        labels = [sequence.y for part in (train, test) for sequence in part]
        restrict_to_fold(estimator, labels, range(len(train)))
    with errors_name_lines(train):
        estimator.fit(*_X_y(model, train), **params[0])
    with errors_name_lines(test):
        return (scorer or type(estimator).score)(estimator, *_X_y(model, test), **params[1])
