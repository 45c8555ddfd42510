"""The command: same labels as in Python, formats, errors with file and line, exit codes."""

import csv
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from inspect import signature
from pathlib import Path

import numpy as np
import pytest
import skops.io
from click.testing import CliRunner
from joblib import Parallel, delayed
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

import skstruct
from skstruct import (
    ConformalTagger,
    CRFTagger,
    NBestReranker,
    PerceptronTagger,
    SGDReranker,
    SpanTaggerCV,
    TemplateVectorizer,
    VRDAReranker,
    WordVectorizer,
    predict_spans,
)
from skstruct.cli import main as cli
from skstruct.crfsuite import CRF, read_model
from skstruct.datasets import convert_labels, load_addresses, read_annotations
from skstruct.metrics import chunk_f1_score, chunk_f1_scorer, chunk_report, extract_chunks
from skstruct.model_selection import choose_sequences, find_label_errors

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X, Y = load_addresses(return_X_y=True)
X, Y = [list(x) for x in X[:240]], [list(y) for y in Y[:240]]
TRAIN, TEST = (X[:160], Y[:160]), (X[160:], Y[160:])
TYPES = ["skstruct.CRFTagger", "skstruct.WordVectorizer"]
QUICK = ["-p", "max_iter=15"]
# Before click 8.2, standard error is a part of the standard output unless this is said.
APART = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


def columns(sequences, labels=None):
    """Text of a column file."""
    blocks = []
    for i, tokens in enumerate(sequences):
        rows = [[t] if isinstance(t, str) else list(t) for t in tokens]
        if labels is not None:
            rows = [[*row, label] for row, label in zip(rows, labels[i], strict=True)]
        blocks.append("".join("\t".join(row) + "\n" for row in rows))
    return "\n".join(blocks)


def run(*arguments, text=None, code=0):
    """Output of a command in this process."""
    result = CliRunner(**APART).invoke(
        cli.skstruct, [str(a) for a in arguments], input=text, catch_exceptions=True
    )
    if code == 0:
        assert result.exit_code == 0, (result.output, result.stderr, result.exception)
    return result


def exit_code(*arguments, capsys):
    """Exit code and standard error of the whole program."""
    code = cli.main([str(a) for a in arguments])
    return code, capsys.readouterr().err


def predicted(text):
    """Last columns of an output, sequence by sequence."""
    blocks = [block.splitlines() for block in text.strip().split("\n\n")]
    return [
        [re.split("[\t ]", line)[-1] for line in block if not line.startswith("# ")]
        for block in blocks
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of text, and a model trained on them from the command line."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "train.txt").write_text(columns(*TRAIN))
    (folder / "test.txt").write_text(columns(*TEST))
    (folder / "plain.txt").write_text(columns(TEST[0]))
    run("train", folder / "train.txt", "-m", folder / "model.skops", *QUICK, "-q")
    return folder


@pytest.fixture(scope="module")
def pipeline():
    """The same model, trained in Python."""
    return make_pipeline(WordVectorizer(), CRFTagger(max_iter=15)).fit(*TRAIN)


# Help and usage. ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [None, *(command.name for command in cli.COMMANDS)])
def test_help_teaches(command):
    text = run(*filter(None, [command]), "--help").output
    assert text.startswith("Usage: ")
    if command != "versions":
        assert "Examples:\n" in text
        assert f"skstruct {command or ''}" in text


def test_every_estimator_has_its_name_in_the_command():
    from skstruct.cli.estimators import ESTIMATORS

    public = {name for name in skstruct.__all__ if hasattr(getattr(skstruct, name), "predict")}
    assert set(ESTIMATORS) == public


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Pass -m FILE"),
        (
            ["-m", "x", "-p", "l3=1"],
            "Invalid parameter 'l3' for estimator CRFTagger(). Valid parameters are",
        ),
        (["-m", "x", "-p", "l2=-1"], "The 'l2' parameter of CRFTagger must be a float"),
        (["-m", "x", "-p", "l2"], "'l2' is not NAME=VALUE"),
        (["-m", "x", "-e", "NBestReranker", "-p", "l2=1"], "such as tagger__max_iter"),
        (["-m", "x", "-e", "SpanTaggerCV", "-p", "l2=1"], "such as estimator__max_iter"),
        (["-m", "x", "-e", "SpanTaggerCV", "-p", "estimator=CRF"], "expected one of AROWTagger,"),
        (["-m", "x", "-e", "NBestReranker", "-p", "tagger=CRF"], "expected one of AROWTagger,"),
        (["-m", "x", "-e", "NBestReranker", "-p", "n_best=1"], "range [2, inf). Got 1 instead."),
        (
            ["-m", "x", "-e", "NBestReranker", "-p", "tagger__l3=1"],
            "'l3' for estimator CRFTagger()",
        ),
        (["-m", "x", "-e", "NBestReranker", "-p", "tagger__l2=-1"], "'l2' parameter of CRFTagger"),
        (["-m", "x", "-f", "windows=1"], "'windows' for estimator WordVectorizer()"),
        (["-m", "x", "-f", "window=2000000000"], "'window' parameter of WordVectorizer must be"),
        (["-m", "x", "-e", "CRF"], "'CRF' is not one of"),
        (["-m", "x", "--columns", "word"], "'word' is neither a number nor one of id, form,"),
        (["-m", "x", "--encoding", "utf-9"], "'utf-9' is unknown"),
        (["-m", "x", "--features", "none", "--gazetteer", "a=b"], "are for --features words"),
    ],
)
def test_wrong_usage(arguments, message, folder, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    code, error = exit_code("train", "train.txt", *arguments, capsys=capsys)
    assert code == 2
    assert message in " ".join(error.split())
    assert not (folder / "x").exists()


def test_a_file_that_is_missing(folder, capsys):
    code, error = exit_code("tag", "-m", folder / "model.skops", folder / "no", capsys=capsys)
    assert code == 2
    assert "does not exist" in error


# Training and tagging. ----------------------------------------------------------------------------


def test_same_labels_as_in_python(folder, pipeline):
    expected = [list(labels) for labels in pipeline.predict(TEST[0])]
    for name in ("plain.txt", "test.txt"):
        output = run("tag", "-m", folder / "model.skops", folder / name).output
        assert predicted(output) == expected
    text = (folder / "plain.txt").read_text()
    assert predicted(run("tag", "-m", folder / "model.skops", text=text).output) == expected
    assert predicted(run("tag", "-m", folder / "model.skops", "-", text=text).output) == expected


def test_lines_are_kept_as_they_are(folder):
    first = (folder / "plain.txt").read_text().split("\n\n")[0]
    text = f"-DOCSTART-\n\n{first}\n\n\n{first}\n"
    for size in ("1", "9"):
        output = run("tag", "-m", folder / "model.skops", "--batch-size", size, text=text).output
        assert re.sub(r" \S+$", "", output, flags=re.MULTILINE) == text


def test_stored_models_are_estimators_for_python(folder, pipeline):
    types = skops.io.get_untrusted_types(file=folder / "model.skops")
    assert types == TYPES
    model = skops.io.load(folder / "model.skops", trusted=types)
    assert model.predict(TEST[0]).tolist() == pipeline.predict(TEST[0]).tolist()
    np.testing.assert_array_equal(model[1].coef_, pipeline[1].coef_)


@pytest.mark.parametrize(
    "name", ["AROWTagger", "MIRATagger", "PerceptronTagger", "SAPOTagger", "SDCACRF"]
)
def test_every_tagger(name, folder, tmp_path):
    parameters = {"max_iter": 3, "random_state": 0}
    options = [f"-p{key}={value}" for key, value in parameters.items()]
    model = tmp_path / "model.skops"
    run("train", folder / "train.txt", "-m", model, "-e", name.lower(), "-q", *options)
    tagger = make_pipeline(WordVectorizer(), getattr(skstruct, name)(**parameters)).fit(*TRAIN)
    output = run("tag", "-m", model, folder / "plain.txt").output
    assert predicted(output) == [list(labels) for labels in tagger.predict(TEST[0])]


def test_templates_and_parameters(folder, tmp_path):
    (tmp_path / "template").write_text("U0:%x[0,0|lower]\nU1:%x[-1,0]/%x[0,0]\n# more\nB\n")
    options = ["-t", tmp_path / "template", "-f", "min_freq=2", "-p", "l2=0.5", *QUICK]
    run("train", folder / "train.txt", "-m", tmp_path / "model", *options, "-q")
    vectorizer = TemplateVectorizer((tmp_path / "template").read_text(), min_freq=2)
    model = make_pipeline(vectorizer, CRFTagger(l2=0.5, max_iter=15)).fit(*TRAIN)
    output = run("tag", "-m", tmp_path / "model", folder / "plain.txt").output
    assert predicted(output) == [list(labels) for labels in model.predict(TEST[0])]


def test_lines_of_the_user_beside_those_of_words(folder, tmp_path):
    (tmp_path / "lines").write_text("Ulast:%x[-1,0]/%x[0,0]\n")
    options = ["-f", f"extra_template={tmp_path / 'lines'}", *QUICK]
    run("train", folder / "train.txt", "-m", tmp_path / "model", *options, "-q")
    vectorizer = WordVectorizer(extra_template="Ulast:%x[-1,0]/%x[0,0]")
    model = make_pipeline(vectorizer, CRFTagger(max_iter=15)).fit(*TRAIN)
    output = run("tag", "-m", tmp_path / "model", folder / "plain.txt").output
    assert predicted(output) == [list(labels) for labels in model.predict(TEST[0])]
    assert "Ulast:" in run("show", tmp_path / "model", "--dump").output


def test_gazetteers_and_clusters(folder, tmp_path):
    (tmp_path / "cities").write_text("Wellington\nNew York\n\n")
    (tmp_path / "paths").write_text("0010\troad\t7\n0011\tstreet\t9\n")
    lists = ["--gazetteer", f"city={tmp_path / 'cities'}", "--clusters", tmp_path / "paths"]
    run("train", folder / "train.txt", "-m", tmp_path / "model", *lists, *QUICK, "-q")
    vectorizer = WordVectorizer(
        gazetteers={"city": ["Wellington", "New York"]},
        clusters={"road": "0010", "street": "0011"},
    )
    model = make_pipeline(vectorizer, CRFTagger(max_iter=15)).fit(*TRAIN)
    output = run("tag", "-m", tmp_path / "model", folder / "plain.txt").output
    assert predicted(output) == [list(labels) for labels in model.predict(TEST[0])]
    (tmp_path / "paths").write_text("0010 road\n")
    result = run("train", folder / "train.txt", "-m", tmp_path / "model", *lists, code=1)
    assert "paths, line 1: expected a path" in str(result.exception)


def test_progress_and_validation_set(folder, tmp_path):
    options = ["--dev", folder / "test.txt", "--early-stopping", "-p", "max_iter=30"]
    result = run("train", folder / "train.txt", "-m", tmp_path / "model", *options)
    assert result.stdout == ""
    n_tokens = sum(map(len, TRAIN[0]))
    assert f"Read 160 sequences, {n_tokens:,} tokens from" in result.stderr
    assert "features by WordVectorizer" in result.stderr
    assert "Validation set: token accuracy 0." in result.stderr
    model = skops.io.load(
        tmp_path / "model", trusted=["skstruct.CRFTagger", "skstruct.WordVectorizer"]
    )
    assert model[1].early_stopping
    assert model[1].verbose == 0
    assert "validation_score" in model[1].history_
    expected = model.score(*TEST)
    assert f"token accuracy {expected:.4f}" in result.stderr
    quiet = run("train", folder / "train.txt", "-m", tmp_path / "model", *options, "-q")
    assert quiet.stderr == ""


def test_cross_validation_as_in_scikit_learn(folder):
    result = run("train", folder / "train.txt", "--cv", "3", *QUICK)
    model = make_pipeline(WordVectorizer(), CRFTagger(max_iter=15))
    expected = cross_val_score(model, *TRAIN, cv=KFold(3), scoring=chunk_f1_scorer)
    lines = [f"fold {i}: chunk_f1 {score:.4f}" for i, score in enumerate(expected, start=1)]
    mean = f"mean: chunk_f1 {expected.mean():.4f} (standard deviation {expected.std():.4f})"
    assert result.stdout.splitlines() == [*lines, mean]


# Output. ------------------------------------------------------------------------------------------


def test_n_best(folder, pipeline):
    output = run("tag", "-m", folder / "model.skops", "--n-best", "3", folder / "plain.txt").output
    batch = pipeline[0].transform(TEST[0])
    found = [one for found in pipeline[1].predict_nbest(batch, n_best=3) for one in found]
    assert predicted(output) == [one.labels for one in found]
    headers = [line.split() for line in output.splitlines() if line.startswith("# ")]
    assert [int(rank) for _, rank, _ in headers] == [0, 1, 2] * len(TEST[0])
    probabilities = [float(p) for *_, p in headers]
    assert probabilities == pytest.approx([one.probability for one in found], abs=1e-6)


def test_spans(folder, pipeline):
    arguments = "tag", "-m", folder / "model.skops", "--spans", "--threshold", "0.3"
    lines = run(*arguments, folder / "plain.txt").output.strip().split("\n\n")
    found = predict_spans(pipeline, TEST[0], threshold=0.3)
    assert any(found)
    for block, spans in zip(lines, found, strict=True):
        rows = [line.split() for line in block.splitlines()]
        assert [tuple(c) for c in extract_chunks([row[-2] for row in rows])] == [
            span[:3] for span in spans
        ]
        for t, row in enumerate(rows):
            inside = [p for start, end, _, p in spans if start <= t < end]
            assert row[-1] == (f"{inside[0]:.6f}" if inside else "_")
    objects = "\n".join(json.dumps({"tokens": tokens}) for tokens in TEST[0])
    (folder / "spans.jsonl").write_text(objects)
    output = run(*arguments, folder / "spans.jsonl").output
    for line, spans in zip(output.splitlines(), found, strict=True):
        assert json.loads(line)["spans"] == [span._asdict() for span in spans]
    result = run(*arguments, "--marginals", folder / "plain.txt", code=2)
    assert "--spans has probabilities of its own" in str(result.exception or result.stderr)


def test_spans_of_training_with_label_statistics(folder, tmp_path):
    """Each fold fits the features, too, and `tag` takes the threshold that was found."""
    model, dev = tmp_path / "spans.skops", folder / "test.txt"
    options = ["-e", "SpanTaggerCV", "-f", "label_statistics=true", "-p", "cv=2"]
    options += ["-p", "estimator__max_iter=15"]
    result = run("train", folder / "train.txt", "-m", model, "--dev", dev, "--cv", 2, *options)
    inner = make_pipeline(WordVectorizer(label_statistics=True), CRFTagger(max_iter=15))
    twin = SpanTaggerCV(inner, cv=2).fit(*TRAIN)
    assert f"Threshold {twin.best_threshold_:.2f}" in result.stderr
    folds = [float(line.split()[-1]) for line in result.output.splitlines() if "fold" in line]
    scores = cross_val_score(SpanTaggerCV(inner, cv=2), *TRAIN, cv=2)
    assert folds == pytest.approx(scores.tolist(), abs=1e-4)
    expected = [list(labels) for labels in twin.predict(TEST[0])]
    assert predicted(run("tag", "-m", model, folder / "plain.txt").output) == expected
    objects = "\n".join(json.dumps({"tokens": tokens}) for tokens in TEST[0])
    lines = run("tag", "-m", model, "--spans", "--format", "jsonl", text=objects).output
    for line, spans in zip(lines.splitlines(), twin.predict_spans(TEST[0]), strict=True):
        assert json.loads(line)["spans"] == [span._asdict() for span in spans]
    shown = run("show", model).output
    assert f"threshold: {twin.best_threshold_:.4g}" in shown
    assert "features by WordVectorizer" in shown


def test_spans_of_training_with_feature_dicts(tmp_path):
    X = [[{"word": word} for word in words] for words in TRAIN[0]]
    lines = [json.dumps({"tokens": a, "labels": b}) for a, b in zip(X, TRAIN[1], strict=True)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    options = ["-e", "SpanTaggerCV", "-p", "estimator=PerceptronTagger", "-p", "cv=2"]
    options += ["-p", "estimator__random_state=0", "-p", "estimator__max_iter=2"]
    run("train", tmp_path / "a.jsonl", "-m", tmp_path / "m.skops", *options)
    tagger = PerceptronTagger(random_state=0, max_iter=2)
    twin = SpanTaggerCV(tagger, cv=2).fit(X, TRAIN[1])
    output = run("tag", "-m", tmp_path / "m.skops", tmp_path / "a.jsonl").output
    found = [json.loads(line)["labels"] for line in output.splitlines()]
    assert found == [list(labels) for labels in twin.predict(X)]


def test_candidates_of_training(folder, tmp_path):
    """What is held out is not in the statistics of labels either."""
    model, dev = tmp_path / "conformal.skops", folder / "test.txt"
    options = ["-e", "ConformalTagger", "-f", "label_statistics=true", "-p", "alpha=0.4"]
    options += ["-p", "max_chunks=4", "-p", "estimator__max_iter=15"]
    result = run("train", folder / "train.txt", "-m", model, "--dev", dev, *options)
    inner = make_pipeline(WordVectorizer(label_statistics=True), CRFTagger(max_iter=15))
    twin = ConformalTagger(inner, alpha=0.4, max_chunks=4, random_state=0).fit(*TRAIN)
    assert f"held-out sequences: {twin.thresholds_[0]:.4f} (all)" in result.stderr
    assert f"missed {twin.measure(*TEST)['missed']:.4f}, missed_by_sequence" in result.stderr
    assert f"threshold of all: {twin.thresholds_[0]:.4g}" in run("show", model).output
    expected = twin.predict_candidates(TEST[0])
    objects = "\n".join(json.dumps({"tokens": tokens}) for tokens in TEST[0])
    command = ["tag", "-m", model, "--candidates"]
    lines = run(*command, "--format", "jsonl", text=objects).output.splitlines()
    for line, spans in zip(lines, expected, strict=True):
        assert json.loads(line)["candidates"] == [span._asdict() for span in spans]
    text = run(*command, folder / "plain.txt").output
    found = [line.split()[2:] for line in text.splitlines() if line.startswith("# candidate ")]
    assert found == [
        [str(span.start), str(span.end), span.type, f"{span.probability:.6f}"]
        for spans in expected
        for span in spans
    ]
    assert predicted(text) == [list(labels) for labels in twin.predict(TEST[0])]
    texts = "\n".join(map(" ".join, TEST[0]))
    lines = run(*command, "--tokenizer", "whitespace", "--format", "jsonl", text=texts).output
    for line, spans, tokens in zip(lines.splitlines(), expected, TEST[0], strict=True):
        found = json.loads(line)
        chunks = [found["text"][one["start"] : one["end"]] for one in found["candidates"]]
        assert chunks == [" ".join(tokens[span.start : span.end]) for span in spans]
    result = run(*command, "--tokenizer", "whitespace", text=texts, code=2)
    assert "Candidates overlap: pass --format jsonl" in result.stderr


def test_labellings_of_training(folder, tmp_path):
    model = tmp_path / "sets.skops"
    options = ["-e", "ConformalTagger", "-p", "risk=labelling", "-p", "alpha=0.6"]
    run("train", folder / "train.txt", "-m", model, *options, "-p", "estimator__max_iter=15")
    inner = make_pipeline(WordVectorizer(), CRFTagger(max_iter=15))
    twin = ConformalTagger(inner, alpha=0.6, risk="labelling", random_state=0).fit(*TRAIN)
    objects = "\n".join(json.dumps({"tokens": tokens}) for tokens in TEST[0])
    command = ["tag", "-m", model, "--candidates"]
    lines = run(*command, "--format", "jsonl", text=objects).output.splitlines()
    for line, some in zip(lines, twin.predict_sets(TEST[0]), strict=True):
        assert json.loads(line)["labellings"] == [one._asdict() for one in some]
    result = run(*command, folder / "plain.txt", code=2)
    assert "sets of labellings need --format jsonl" in str(result.exception or result.stderr)
    result = run("tag", "-m", folder / "model.skops", "--candidates", text="a\n", code=2)
    assert "CRFTagger has no candidates" in str(result.exception or result.stderr)


@pytest.mark.parametrize("tool", ["label-studio", "doccano", "brat"])
def test_choose(folder, pipeline, tmp_path, tool):
    """Tasks have what the model predicts, and come back when somebody has reviewed them."""
    target = tmp_path / "tasks"
    arguments = "choose", folder / "model.skops", folder / "plain.txt", "-n", 5
    result = run(*arguments, "-o", target, "--to", tool)
    assert f"Chose 5 of {len(TEST[0])} sentences" in result.stderr
    with pytest.warns(UserWarning, match=r"5 text\(s\) have suggestions that nobody has reviewed"):
        texts, spans = read_annotations(target, format=tool, unreviewed="keep")
    numbers, scores = choose_sequences(pipeline, TEST[0], 5)
    chosen = [TEST[0][i] for i in numbers]
    assert texts == list(map(" ".join, chosen))
    for text, tokens, found, right in zip(
        texts, chosen, spans, predict_spans(pipeline, chosen), strict=True
    ):
        ends = np.cumsum([len(token) + 1 for token in tokens])
        expected = [(ends[a] - len(tokens[a]) - 1, ends[b - 1] - 1, c) for a, b, c, _ in right]
        assert found == expected
        assert all(text[a:b].strip() == text[a:b] for a, b, _ in found)
    lines = run(*arguments).stdout.splitlines()
    assert lines == [f"{s:.4f}\t{text}" for s, text in zip(scores, texts, strict=True)]


def test_choose_from_plain_text(folder, tmp_path):
    texts = "\n".join(["  Rue de  Rivoli, 5", "", "12 High Street"])
    (tmp_path / "letters.txt").write_text(texts)
    arguments = "choose", folder / "model.skops", tmp_path / "letters.txt"
    options = "--tokenizer", r"\w+|[^\w\s]", "--strategy", "random", "--near-copies"
    found = {line.partition("\t")[2] for line in run(*arguments, *options).stdout.splitlines()}
    assert found == {"  Rue de  Rivoli, 5", "12 High Street"}
    (tmp_path / "none.txt").write_text("\n")
    result = run(*arguments[:2], tmp_path / "none.txt", code=2)
    assert "there are no sentences to choose from" in str(result.exception)
    (tmp_path / "dicts.jsonl").write_text('{"tokens": [{"word": "a"}]}')
    model = tmp_path / "dicts.skops"
    X = [[{"word": word} for word in words] for words in TRAIN[0]]
    lines = [json.dumps({"tokens": a, "labels": b}) for a, b in zip(X, TRAIN[1], strict=True)]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    run("train", tmp_path / "train.jsonl", "-m", model, "-p", "max_iter=2")
    result = run("choose", model, tmp_path / "dicts.jsonl", code=2)
    assert "feature dicts have no text" in str(result.exception)


def test_label_errors(tmp_path):
    X, y = TRAIN[0][:60], [list(labels) for labels in TRAIN[1][:60]]
    place = next(i for i, labels in enumerate(y) if labels[:2] == ["B-STREET", "I-STREET"])
    y[place][:2] = ["B-CITY", "I-CITY"]
    rows = zip(X, y, strict=True)
    text = "\n".join("".join(f"{a} {b}\n" for a, b in zip(*row, strict=True)) for row in rows)
    (tmp_path / "train.txt").write_text(text)
    arguments = "label-errors", tmp_path / "train.txt", "--cv", 3, "-p", "max_iter=15", "-n", 12
    result = run(*arguments)
    model = make_pipeline(WordVectorizer(), CRFTagger(max_iter=15))
    errors = find_label_errors(model, X, y, cv=3)
    assert f"{len(errors)} in 60 sentences, 12 shown" in result.stderr
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert [line[0] for line in lines] == [f"{error.score:.4f}" for error in errors[:12]]
    for line, error in zip(lines, errors, strict=False):
        tokens = list(X[error.sequence])
        part = " ".join(tokens[error.start : error.end])
        assert line[2:4] == [" ".join(error.given), " ".join(error.suggested)]
        assert f"[{part}]" in line[4]
        assert line[4].replace(f"[{part}]", part) == " ".join(tokens)
        number = sum(len(x) + 1 for x in X[: error.sequence]) + error.start + 1
        assert line[1].endswith(f"line {number}")
    run(*arguments, "-o", tmp_path / "tasks.json")
    with pytest.warns(UserWarning, match="nobody has reviewed"):
        texts, _ = read_annotations(tmp_path / "tasks.json", unreviewed="keep")
    expected = dict.fromkeys(error.sequence for error in errors[:12])
    assert texts == [" ".join(X[i]) for i in expected]


def test_kinds_of_errors(folder):
    model = "evaluate", "-m", folder / "model.skops", folder / "test.txt"
    text = run(*model, "--errors").output
    assert "wrong boundary" in text
    assert "wrong boundary" not in run(*model).output
    scores = json.loads(run(*model, "--json").output)
    assert scores["errors"]["strict"]["f1-score"] == pytest.approx(scores["chunk_f1"])


def test_marginals(folder, pipeline):
    proba = np.concatenate(list(pipeline.predict_proba(TEST[0])))
    output = run("tag", "-m", folder / "model.skops", "--marginals", folder / "plain.txt").output
    rows = [line.split("\t" if "\t" in line else " ") for line in output.splitlines() if line]
    classes = pipeline[1].classes_.tolist()
    codes = [classes.index(row[-2]) for row in rows]
    expected = proba[np.arange(len(proba)), codes]
    np.testing.assert_allclose([float(row[-1]) for row in rows], expected, atol=1e-6)
    model = folder / "model.skops"
    output = run("tag", "-m", model, "--all-marginals", folder / "plain.txt").output
    rows = [re.split("[\t ]", line) for line in output.splitlines() if line]
    fields = [[field.rpartition("/") for field in row[-len(classes) :]] for row in rows]
    assert [name for name, _, _ in fields[0]] == classes
    np.testing.assert_allclose([[float(p) for *_, p in row] for row in fields], proba, atol=1e-6)


@pytest.mark.slow
def test_files_in_parallel_are_those_in_turn(folder, tmp_path):
    paths = []
    for i in range(4):
        paths.append(tmp_path / f"part-{i}.txt")
        paths[-1].write_text(columns(TEST[0][20 * i : 20 * i + 20]) + "\n")
    serial = run("tag", "-m", folder / "model.skops", *paths).output
    parallel = run("tag", "-m", folder / "model.skops", "-j", "2", *paths).output
    assert serial == parallel
    out = tmp_path / "out"
    run("tag", "-m", folder / "model.skops", "-j", "2", "--output-dir", out, *paths)
    assert "".join((out / path.name).read_text() for path in paths) == serial
    run("tag", "-m", folder / "model.skops", "-o", tmp_path / "all.txt", *paths)
    assert (tmp_path / "all.txt").read_text() == serial


def test_outputs_are_gzipped_by_their_names(folder, tmp_path):
    text, path = columns(TEST[0][:5]).encode(), tmp_path / "in.txt.gz"
    path.write_bytes(gzip.compress(text))
    tag = "tag", "-m", folder / "model.skops"
    tagged = run(*tag, text=text.decode()).output
    run(*tag, path, "-o", tmp_path / "out.txt.gz")
    run(*tag, path, "--output-dir", tmp_path / "out")
    found = [(tmp_path / name).read_bytes() for name in ("out.txt.gz", "out/in.txt.gz")]
    assert found[0] == found[1]
    assert found[0][4:8] == bytes(4)  # no time
    assert gzip.decompress(found[0]).decode() == tagged


def test_scores(folder, pipeline):
    report = run("evaluate", "-m", folder / "model.skops", folder / "test.txt").output
    y_pred = pipeline.predict(TEST[0])
    assert chunk_report(TEST[1], y_pred, digits=4).rstrip() in report
    assert f"token accuracy: {pipeline.score(*TEST):.4f}" in report
    tagged = run("tag", "-m", folder / "model.skops", folder / "test.txt").output
    assert run("evaluate", text=tagged).output == report
    scores = run("evaluate", "-m", folder / "model.skops", "--json", folder / "test.txt").output
    assert json.loads(scores)["token_accuracy"] == pipeline.score(*TEST)


def test_weights(folder, pipeline):
    model = folder / "model.skops"
    text = run("show", model, "--label", "B-CITY", "-n", "3").output
    assert text.startswith("CRFTagger\nparameters: max_iter=15\n")
    names = pipeline[0].get_feature_names_out()
    weights = pipeline[1].coef_[pipeline[1].classes_.tolist().index("B-CITY")]
    best = np.argsort(-weights, kind="stable")[0]
    assert f"{weights[best]:+9.4f}  {names[best]}" in text
    rows = [line.split("\t") for line in run("show", model, "--dump").output.splitlines()]
    table = {(a, b): float(weight) for a, b, weight in rows}
    n_weights = np.count_nonzero(pipeline[1].coef_) + np.count_nonzero(pipeline[1].transition_)
    assert len(table) == len(rows) == n_weights
    assert table[names[best], "B-CITY"] == weights[best]
    assert run("show", model, "--label", "B-TOWN", code=2).exit_code == 2


# Formats of files. --------------------------------------------------------------------------------

CONLLU = """\
# sent_id = 1
# text = Don't go home.
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
3.1\tthere\tthere\tADV\t_\t_\t_\t_\t_\t_
4\thome\thome\tADV\tRB\t_\t3\tadvmod\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

# sent_id = 2
1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
2\t!\t!\tPUNCT\t.\t_\t1\tpunct\t_\t_

"""


def test_conllu(tmp_path):
    (tmp_path / "a.conllu").write_text(CONLLU)
    run("train", tmp_path / "a.conllu", "-m", tmp_path / "model", "-p", "l2=0.01", "-q")
    unlabelled = re.sub(r"\t(AUX|PART|VERB|ADV|PUNCT)\t", "\t_\t", CONLLU)
    unlabelled = unlabelled.replace("3.1\tthere\tthere\t_", "3.1\tthere\tthere\tADV")
    (tmp_path / "b.conllu").write_text(unlabelled)
    assert run("tag", "-m", tmp_path / "model", tmp_path / "b.conllu").output == CONLLU
    # From standard input, the format is that of the training files.
    assert run("tag", "-m", tmp_path / "model", text=unlabelled).output == CONLLU
    output = run("tag", "-m", tmp_path / "model", "--marginals", text=unlabelled).output
    assert re.search(r"^4\thome.*\tSpaceAfter=No\|Prob=0\.\d{6}$", output, re.MULTILINE)
    options = ["--columns", "form,xpos", "--label", "deprel", "-p", "l2=0.01", "-q"]
    run("train", tmp_path / "a.conllu", "-m", tmp_path / "model", *options)
    assert run("tag", "-m", tmp_path / "model", tmp_path / "a.conllu").output == CONLLU
    scores = run("evaluate", "-m", tmp_path / "model", "--json", tmp_path / "a.conllu").output
    assert json.loads(scores) == {
        "sequences": 2,
        "tokens": 7,
        "token_accuracy": 1.0,
        "sequence_accuracy": 1.0,
    }


def json_lines(objects):
    return "".join(json.dumps(one) + "\n" for one in objects)


def test_json_lines_of_words_and_of_dicts(folder, pipeline, tmp_path):
    pairs = [
        {"tokens": x, "labels": y, "id": i} for i, (x, y) in enumerate(zip(*TRAIN, strict=True))
    ]
    (tmp_path / "words.jsonl").write_text(json_lines(pairs))
    run("train", tmp_path / "words.jsonl", "-m", tmp_path / "model", *QUICK, "-q")
    new = json_lines({"tokens": x, "id": i} for i, x in enumerate(TEST[0]))
    found = [
        json.loads(line)
        for line in run("tag", "-m", tmp_path / "model", text=new).output.splitlines()
    ]
    assert [one["labels"] for one in found] == [list(y) for y in pipeline.predict(TEST[0])]
    assert [one["id"] for one in found] == list(range(len(TEST[0])))
    options = ["--n-best", "2", "--marginals", "--all-marginals"]
    output = run("tag", "-m", tmp_path / "model", *options, text=new).output
    one = json.loads(output.splitlines()[0])
    assert one["n_best"][0]["labels"] == one["labels"]
    assert one["n_best"][0]["probability"] >= one["n_best"][1]["probability"]
    assert one["probabilities"] == [
        at[label] for at, label in zip(one["marginals"], one["labels"], strict=True)
    ]
    dicts = [[{"word": t, "end": t[-2:], "n": len(t)} for t in x] for x in TRAIN[0]]
    (tmp_path / "dicts.jsonl").write_text(
        json_lines({"tokens": x, "labels": y} for x, y in zip(dicts, TRAIN[1], strict=True))
    )
    run("train", tmp_path / "dicts.jsonl", "-m", tmp_path / "model", *QUICK, "-q")
    tagger = CRFTagger(max_iter=15).fit(dicts, TRAIN[1])
    output = run("tag", "-m", tmp_path / "model", tmp_path / "dicts.jsonl").output
    labels = [json.loads(line)["labels"] for line in output.splitlines()]
    assert labels == [list(y) for y in tagger.predict(dicts)]


def test_rerankers(tmp_path):
    rng = np.random.default_rng(0)
    groups = [
        {
            "candidates": [{"a": float(rng.random()), f"b{rng.integers(5)}": 1} for _ in range(4)],
            "costs": rng.random(4).round(2).tolist(),
            "baseline_score": rng.random(4).tolist(),
        }
        for _ in range(40)
    ]
    (tmp_path / "groups.jsonl").write_text(json_lines(groups))
    options = ["-e", "VRDAReranker", "-p", "random_state=0", "-q"]
    result = run(
        "train", tmp_path / "groups.jsonl", "-m", tmp_path / "model", "--cv", "4", *options
    )
    X, y, scores = ([g[k] for g in groups] for k in ("candidates", "costs", "baseline_score"))
    reranker = VRDAReranker(random_state=0).fit(X, y, baseline_score=scores)
    output = run("tag", "-m", tmp_path / "model", "--n-best", "2", tmp_path / "groups.jsonl").output
    found = [json.loads(line) for line in output.splitlines()]
    assert [one["chosen"] for one in found] == reranker.predict(X, scores).tolist()
    assert [one["ranking"] for one in found] == [r[:2].tolist() for r in reranker.rank(X, scores)]
    output = run("evaluate", "-m", tmp_path / "model", tmp_path / "groups.jsonl").output
    assert f"mean cost: {-reranker.score(X, y, baseline_score=scores):.4f}" in output
    folds = []
    for train, test in KFold(4).split(X):
        fitted = VRDAReranker(random_state=0).fit(
            *([values[i] for i in train] for values in (X, y)),
            baseline_score=[scores[i] for i in train],
        )
        part = [[values[i] for i in test] for values in (X, y, scores)]
        folds.append(fitted.score(*part[:2], baseline_score=part[2]))
    assert f"mean: negative mean cost {np.mean(folds):.4f}" in result.output
    assert "VRDAReranker\n" in run("show", tmp_path / "model").output
    bad = json_lines([groups[0], {**groups[1], "costs": [1.0]}])
    result = run(
        "train", "-", "-m", tmp_path / "m", "--format", "jsonl", *options, text=bad, code=1
    )
    assert str(result.exception).endswith(", line 2: there are 4 candidates, but 1 costs")


def test_a_reranker_on_top_of_a_tagger(folder, tmp_path, capsys):
    model, files = tmp_path / "model", [folder / "train.txt", folder / "test.txt"]
    options = ["-p", "cost=chunk_f1", "-p", "tagger__max_iter=15", "-p", "reranker__max_iter=3"]
    result = run("train", files[0], "-m", model, "-e", "NBestReranker", "--dev", files[1], *options)
    assert result.stderr.count("CRFTagger: finished") == 6
    stacked = NBestReranker(
        CRFTagger(max_iter=15),
        VRDAReranker(max_iter=3, random_state=0),
        features="labels",
        cost="chunk_f1",
    )
    pipeline = make_pipeline(WordVectorizer(), stacked).fit(*TRAIN)
    expected = [list(labels) for labels in pipeline.predict(TEST[0])]
    assert predicted(run("tag", "-m", model, folder / "plain.txt").output) == expected
    f1 = chunk_f1_score(TEST[1], expected)
    assert f"chunk F1 {f1:.4f}" in result.stderr
    assert f"chunk f1: {f1:.4f}" in run("evaluate", "-m", model, files[1]).output
    shown = run("show", model).output
    assert "CITY repeated" in shown
    for name in ("NBestReranker", "CRFTagger", "VRDAReranker"):
        assert f"{name}\n" in shown
    dumped = run("show", model, "--dump").output.splitlines()
    n_weights = [
        np.count_nonzero(stacked.tagger_.coef_),
        np.count_nonzero(stacked.tagger_.transition_),
    ]
    assert len(dumped) == sum(n_weights) + np.count_nonzero(stacked.reranker_.coef_)
    for arguments, message in (
        (("tag", "-m", model, "--n-best", "2", files[1]), "leave out --n-best"),
        (("tag", "-m", model, "--marginals", files[1]), "leave out --marginals"),
        (("convert", model, tmp_path / "x.crfsuite"), "CRF++ have no rerankers"),
    ):
        code, error = exit_code(*arguments, capsys=capsys)
        assert code == 2
        assert message in error


def test_a_reranker_on_top_of_a_tagger_takes_their_names(folder, tmp_path):
    options = ["-p", "tagger=perceptrontagger", "-p", "tagger__random_state=0"]
    options += ["-p", "reranker=SGDReranker", "-p", "reranker__random_state=0", "-p", "n_best=3"]
    options += ["-p", "cv=2", "--early-stopping", "-q"]
    run("train", folder / "train.txt", "-m", tmp_path / "model", "-e", "nbestreranker", *options)
    tagger = PerceptronTagger(early_stopping=True, random_state=0)
    reranker = SGDReranker(random_state=0)
    stacked = NBestReranker(tagger, reranker, features="labels", n_best=3, cv=2)
    expected = make_pipeline(WordVectorizer(), stacked).fit(*TRAIN).predict(TEST[0])
    output = run("tag", "-m", tmp_path / "model", folder / "plain.txt").output
    assert predicted(output) == [list(labels) for labels in expected]


# Models of others. --------------------------------------------------------------------------------


def test_models_of_crfsuite(folder, tmp_path):
    options = ["-p", "fit_intercept=false", *QUICK, "-q"]
    run("train", folder / "train.txt", "-m", tmp_path / "a.skops", *options)
    run("convert", tmp_path / "a.skops", tmp_path / "a.crfsuite")
    output = run("tag", "-m", tmp_path / "a.skops", folder / "plain.txt").output
    pipeline = make_pipeline(WordVectorizer(), CRFTagger(fit_intercept=False, max_iter=15))
    vectorizer = pipeline.fit(*TRAIN)[0]
    dicts = vectorizer.inverse_transform(vectorizer.transform(TEST[0]))
    attributes = [[list(features) for features in x] for x in dicts]
    other = read_model(tmp_path / "a.crfsuite")
    assert predicted(output) == [list(labels) for labels in other.predict(attributes)]
    run("convert", tmp_path / "a.crfsuite", tmp_path / "b.skops")
    text = json_lines({"tokens": x} for x in attributes)
    for name in ("a.crfsuite", "b.skops"):
        lines = run(
            "tag", "-m", tmp_path / name, "--format", "jsonl", text=text
        ).output.splitlines()
        assert [json.loads(line)["labels"] for line in lines] == predicted(output)
    run("convert", "--to", "crfsuite", tmp_path / "b.skops", tmp_path / "c")
    assert (tmp_path / "c").read_bytes()[:4] == b"lCRF"
    # The drop-in is none of the command's models, but may have been stored.
    X, y = [[["a"], ["b"]]], [["A", "B"]]
    skops.io.dump(CRF().fit(X, y), tmp_path / "d.skops")
    run("convert", tmp_path / "d.skops", tmp_path / "d.crfsuite")
    assert read_model(tmp_path / "d.crfsuite").predict(X).tolist() == y


CRFPP = """version: 100
cost-factor: 1
maxid: 8
xsize: 1

DET
NOUN

U0:%x[0,0]
B

4 B
2 U0:cat
0 U0:the

1.5
-1.5
-1.0
1.0
-0.5
0.5
0.25
0.0
"""


def test_models_of_crfpp(tmp_path):
    (tmp_path / "model.txt").write_text(CRFPP)
    text = "the\ncat\n"
    output = "the DET\ncat NOUN\n"
    assert run("tag", "-m", tmp_path / "model.txt", text=text).output.strip() == output.strip()
    run("convert", tmp_path / "model.txt", tmp_path / "model.skops")
    assert run("tag", "-m", tmp_path / "model.skops", text=text).output.strip() == output.strip()
    run("convert", "--to", "crfpp", tmp_path / "model.skops", tmp_path / "again.txt")
    assert run("tag", "-m", tmp_path / "again.txt", text=text).output.strip() == output.strip()


# Errors. ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "this is not a model"),
        (b"PK\x03\x04 and then nothing", "the file is damaged"),
        (b"\x64\x00\x00\x00", "Binary models of CRF++ cannot be read"),
        (b"lCRF", "too short for the header"),
        (b"version: 100\n", "This is not an intact text model of CRF++"),
    ],
)
def test_models_that_are_damaged(content, message, folder, tmp_path, capsys):
    (tmp_path / "model").write_bytes(content)
    code, error = exit_code("tag", "-m", tmp_path / "model", folder / "plain.txt", capsys=capsys)
    assert code == 2
    assert f"Error: {tmp_path / 'model'}: " in error
    assert message in error


def test_a_model_that_is_cut_short_or_changed(folder, tmp_path, capsys):
    content = (folder / "model.skops").read_bytes()
    middle = len(content) // 2
    changed = content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
    for damaged in (content[:middle], changed):
        (tmp_path / "model").write_bytes(damaged)
        code, error = exit_code("show", tmp_path / "model", capsys=capsys)
        assert code == 2
        assert error.startswith(f"Error: {tmp_path / 'model'}: ")


def test_models_with_types_of_others(tmp_path, folder, capsys):
    from collections import Counter

    pipeline = make_pipeline(
        TemplateVectorizer("U:%x[0,0|same]", functions={"same": len}), CRFTagger()
    )
    pipeline.fit(*TRAIN)
    pipeline.steps[0][1].functions = {"same": subprocess.Popen}
    skops.io.dump(pipeline, tmp_path / "model")
    code, error = exit_code("show", tmp_path / "model", capsys=capsys)
    assert code == 2
    assert "types that are not skstruct's: subprocess.Popen" in error
    skops.io.dump(Counter("ab"), tmp_path / "model")
    assert exit_code("show", tmp_path / "model", capsys=capsys)[0] == 2


@pytest.mark.parametrize(
    ("module", "name"),
    [("os", "system"), ("skstruct", "warm"), ("skstruct.utils.files", "replaced")],
)
def test_what_is_no_class_of_the_package_is_never_called(module, name, folder, tmp_path, capsys):
    with zipfile.ZipFile(folder / "model.skops") as archive:
        contents = {item: archive.read(item) for item in archive.namelist()}
    schema = contents["schema.json"].decode()
    changed = schema.replace('"__class__": "CRFTagger"', f'"__class__": "{name}"')
    changed = changed.replace('"__module__": "skstruct"', f'"__module__": "{module}"')
    assert changed != schema
    contents["schema.json"] = changed.encode()
    with zipfile.ZipFile(tmp_path / "model", "w") as archive:
        for item, content in contents.items():
            archive.writestr(item, content)
    code, error = exit_code("show", tmp_path / "model", capsys=capsys)
    assert code == 2
    assert str(tmp_path / "model") in error


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a B-X\nb c I-X\n", "line 2: 3 columns, but line 1 has 2"),
        ("a B-X\n\na\n", "line 3: 1 column, but line 1 has 2"),
        ("a\n", "line 1: 1 column, so either the token or the label is missing"),
        ("a B-X\n\xe9 O\n", "line 2: not utf-8 text"),
        ("\n\n", "the file has no tokens"),
    ],
)
def test_bad_columns_are_named_with_file_and_line(text, place, tmp_path, capsys):
    path = tmp_path / "bad.txt"
    path.write_bytes(text.encode("latin-1"))
    code, error = exit_code("train", path, "-m", tmp_path / "m", "-q", capsys=capsys)
    assert code == 2
    assert f"Error: {path}" in error
    assert place in error
    assert not (tmp_path / "m").exists()


def test_labels_that_a_constraint_rules_out_are_named_with_the_line(tmp_path, capsys):
    path = tmp_path / "bad.txt"
    path.write_text("# first\na O\nb O\n\nc B-X\n# second\nd I-Y\n")
    options = ["--comment", "#", "-p", "constraint=IOB2", "-q"]
    code, error = exit_code("train", path, "-m", tmp_path / "m", *options, capsys=capsys)
    assert code == 2
    assert re.match(rf"Error: {path}, line [57]: Sequence 1, token", error)


def test_a_column_that_is_missing(folder, tmp_path, capsys):
    (tmp_path / "train.txt").write_text("the DT B-NP\ncat NN I-NP\n")
    run("train", tmp_path / "train.txt", "-m", tmp_path / "model", *QUICK, "-q")
    (tmp_path / "new.txt").write_text("the\n")
    code, error = exit_code("tag", "-m", tmp_path / "model", tmp_path / "new.txt", capsys=capsys)
    assert code == 2
    assert f"{tmp_path / 'new.txt'}, line 1: 1 column, so --columns 1 does not exist" in error


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "this is not JSON"),
        ("[]", 'expected an object with "tokens" or "candidates"'),
        ('{"tokens": ["a"]}', '"labels" are missing'),
        ('{"tokens": ["a"], "labels": []}', "there are 1 tokens, but 0 labels"),
        ('{"tokens": "a", "labels": []}', '"tokens" is not a list'),
        ('{"candidates": [{}], "costs": [1]}', 'CRFTagger needs "tokens"'),
    ],
)
def test_bad_json_lines_are_named_with_file_and_line(line, message, tmp_path, capsys):
    path = tmp_path / "bad.jsonl"
    path.write_text(json_lines([{"tokens": ["a"], "labels": ["X"]}]) + "\n" + line + "\n")
    code, error = exit_code("train", path, "-m", tmp_path / "m", "-q", capsys=capsys)
    assert code == 2
    assert f"Error: {path}, line 3: " in error
    assert message in error


# Processes. ---------------------------------------------------------------------------------------


def process(*arguments, **options):
    # Shells let programs in the background ignore interrupts, and these the programs they start.
    main = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    main += "from skstruct.cli.main import main; sys.exit(main())"
    return subprocess.Popen(
        [sys.executable, "-c", main, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


@pytest.mark.slow
def test_standard_input_and_output(folder, pipeline):
    child = process("tag", "-m", folder / "model.skops", stdin=subprocess.PIPE)
    output, error = child.communicate((folder / "plain.txt").read_text())
    assert (child.returncode, error) == (0, "")
    assert predicted(output) == [list(labels) for labels in pipeline.predict(TEST[0])]


@pytest.mark.slow
def test_a_broken_pipe_is_quiet(folder, tmp_path):
    (tmp_path / "long.txt").write_text((folder / "plain.txt").read_text() + "\n", "utf-8")
    paths = [tmp_path / "long.txt"] * 60
    child = process("tag", "-m", folder / "model.skops", "--batch-size", "5", *paths)
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read() == ""
    assert child.wait() == 141


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_interrupts_leave_no_file(folder, tmp_path):
    (tmp_path / "old").write_bytes(b"as it was")
    # The perceptron would be done before the interrupt: it stops when it makes no mistakes.
    options = ["-p", "max_iter=1000000", "-p", "tol=None", "-e", "SAPOTagger"]
    path = tmp_path / "old"
    child = process("train", folder / "train.txt", "-m", path, *options)
    for line in child.stderr:
        if "features by" in line:
            break
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=60)
    assert child.returncode == 130
    assert error.endswith("Interrupted.\n")
    assert path.read_bytes() == b"as it was"
    assert [p.name for p in tmp_path.iterdir()] == ["old"]


def test_models_are_written_whole(folder, tmp_path, monkeypatch):
    path = tmp_path / "model"
    path.write_bytes(b"as it was")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
    result = run("train", folder / "train.txt", "-m", path, *QUICK, "-q", code=1)
    assert "no space left" in str(result.exception)
    assert path.read_bytes() == b"as it was"
    assert Path(tmp_path).joinpath("model").read_bytes() == b"as it was"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_is_missing_is_noticed_first(folder, tmp_path, capsys):
    begin = time.perf_counter()
    path = tmp_path / "no" / "model"
    code, error = exit_code("train", folder / "train.txt", "-m", path, capsys=capsys)
    assert code == 2
    assert "the folder does not exist" in error
    assert time.perf_counter() - begin < 5


def test_perceptron_from_json_lines_on_standard_input(tmp_path):
    pairs = [{"tokens": x, "labels": y} for x, y in zip(*TRAIN, strict=True)]
    options = ["-e", "PerceptronTagger", "-p", "random_state=0", "-p", "max_iter=3", "-q"]
    run(
        "train",
        "-",
        "-m",
        tmp_path / "model",
        "--format",
        "jsonl",
        *options,
        text=json_lines(pairs),
    )
    tagger = make_pipeline(WordVectorizer(), PerceptronTagger(random_state=0, max_iter=3))
    tagger.fit(*TRAIN)
    output = run(
        "tag", "-m", tmp_path / "model", "--format", "columns", text=columns(TEST[0])
    ).output
    assert predicted(output) == [list(labels) for labels in tagger.predict(TEST[0])]


# Schemes, columns and plain text. -----------------------------------------------------------------


def in_one_scheme(scheme, **options):
    return convert_labels(Y, source="IOB2", target=scheme, repair="conlleval", **options).labels


@pytest.mark.parametrize("scheme", ["IOE2", "BMES", "IOBES", "runs"])
def test_evaluate_infers_the_scheme(scheme, tmp_path):
    """The command reads what `extract_chunks` reads, and says what it takes the labels for."""
    gold = in_one_scheme(scheme)[:60]
    found = [[*labels[1:], labels[0]] if i % 3 == 0 else labels for i, labels in enumerate(gold)]
    rows = [list(zip(tokens, y, strict=True)) for tokens, y in zip(X, gold, strict=False)]
    text = columns(rows, found)
    reading = "runs" if scheme == "runs" else "conlleval"
    options = ["--scheme", "runs"] if scheme == "runs" else []
    scores = json.loads(run("evaluate", "--json", *options, text=text).output)
    assert scores["chunk_f1"] == chunk_f1_score(gold, found, scheme=reading) < 1
    assert scores["scheme"].split()[0] == scheme
    if scheme == "runs":
        result = run("evaluate", text=text)
        assert "chunk f1" not in result.output
        assert "--scheme runs" in result.stderr
    else:
        strict = json.loads(run("evaluate", "--json", "--scheme", scheme, text=text).output)
        assert strict["chunk_f1"] == chunk_f1_score(gold, found, scheme=scheme)


def test_letters_of_segmented_words_are_chunks():
    text = columns([[("a", "B"), ("b", "M"), ("c", "E"), ("d", "S")]], [["B", "M", "E", "S"]])
    assert "chunk f1: 1.0000" in run("evaluate", text=text).output
    assert "BMES (inferred)" in run("evaluate", text=text).output


def test_evaluate_counts_right_labels_that_break_the_scheme():
    rows = [[("a", "B-X"), ("b", "I-X")], [("c", "I-X"), ("d", "B-X"), ("e", "I-Y")]] + 9 * [
        [("a", "B-X"), ("b", "I-X")]
    ]
    text = columns(rows, [[label for _, label in row] for row in rows])
    assert "IOB2 (inferred), read as conlleval does; right labels that break it: 2\n" in (
        run("evaluate", text=text).output
    )


def test_training_labels_are_repaired_and_converted(tmp_path):
    wrong = [[label.replace("B-", "I-", 1) for label in labels] for labels in Y[:40]]
    (tmp_path / "wrong.txt").write_text(columns(X[:40], wrong))
    options = ["-m", tmp_path / "m", *QUICK, "-p", "constraint=BMES"]
    options += ["--scheme", "IOB2", "--to-scheme", "BMES"]
    told = run("train", tmp_path / "wrong.txt", *options, code=2)
    assert "breaks the scheme 'IOB2'" in str(told.exception)
    result = run("train", tmp_path / "wrong.txt", *options, "--repair", "conlleval")
    repaired = convert_labels(wrong, source="IOB2", target="BMES", repair="conlleval")
    assert f"{repaired.n_repaired:,} labels were repaired" in result.stderr
    model = make_pipeline(WordVectorizer(), CRFTagger(max_iter=15, constraint="BMES"))
    model.fit(X[:40], repaired.labels)
    tagged = run("tag", "-m", tmp_path / "m", text=columns(X[40:60])).output
    assert predicted(tagged) == model.predict(X[40:60]).tolist()


def test_labels_without_prefixes_are_not_passed_over(folder, tmp_path):
    types = [[label.partition("-")[2] or label for label in labels] for labels in Y]
    (tmp_path / "train.txt").write_text(columns(X[:160], types[:160]))
    (tmp_path / "test.txt").write_text(columns(X[160:], types[160:]))
    said = run("train", tmp_path / "train.txt", "-m", tmp_path / "m", *QUICK).stderr
    assert "Labels have no prefixes; --scheme runs takes each run of a label as a chunk\n" in said
    told = run("evaluate", "-m", tmp_path / "m", tmp_path / "test.txt")
    assert "No chunk scores: labels have no prefixes. --scheme runs scores runs." in told.stderr
    scored = run("evaluate", "-m", tmp_path / "m", tmp_path / "test.txt", "--scheme", "runs")
    assert "chunk f1: " in scored.stdout
    said = run("train", tmp_path / "train.txt", "-m", tmp_path / "m", *QUICK, "--scheme", "runs")
    assert "Labels are in runs\n" in said.stderr
    # Parts of speech hardly repeat.
    tags = [[f"{label}{t % 2}" for t, label in enumerate(labels)] for labels in types]
    (tmp_path / "train.txt").write_text(columns(X[:160], tags[:160]))
    said = run("train", tmp_path / "train.txt", "-m", tmp_path / "m", "-p", "max_iter=1").stderr
    assert "--scheme" not in said


def test_the_log_begins_with_the_columns(folder, tmp_path):
    first, *_ = run("train", folder / "train.txt", "-m", tmp_path / "m", *QUICK).stderr.splitlines()
    words = list(dict.fromkeys(token for tokens in TRAIN[0] for token in tokens))[:3]
    labels = list(dict.fromkeys(label for labels in TRAIN[1] for label in labels))[:3]
    assert first == f"Columns: token 0 ({', '.join(words)}), label 1 ({', '.join(labels)})"
    with pytest.warns(UserWarning, match="--label names another column"):
        run("train", folder / "test.txt", "-m", tmp_path / "m", "--label", "0", "-p", "max_iter=1")


def test_comments_are_counted(tmp_path):
    text = "<p>\n" + columns(X[:30], Y[:30]) + "\n<p>\n<q>\n"
    (tmp_path / "train.txt").write_text(text)
    model = tmp_path / "m"
    result = run("train", tmp_path / "train.txt", "-m", model, *QUICK, "--comment", "<")
    assert "Lines that begin with '<', dropped as comments: 3\n" in result.stderr
    assert "taken as comments: 3" in run("tag", "-m", model, "--comment", "<", text=text).stderr


@pytest.mark.parametrize(
    ("rule", "pattern"), [("whitespace", r"\S+"), ("characters", r"\S"), (r"\w+|,", r"\w+|,")]
)
def test_plain_text_is_split_by_the_rule_that_is_named(rule, pattern, folder, pipeline):
    texts = [" ".join(tokens) for tokens in TEST[0][:20]]
    texts[3] = ""
    command = ["tag", "-m", folder / "model.skops", "--tokenizer", rule]
    lines = run(*command, "--format", "jsonl", text="\n".join(texts) + "\n").output.splitlines()
    plain = run(*command, text="\n".join(texts) + "\n").output.splitlines()
    assert len(lines) == len(plain) == len(texts)
    for text, line, marked in zip(texts, lines, plain, strict=True):
        offsets = [found.span() for found in re.finditer(pattern, text)]
        tokens = [text[a:b] for a, b in offsets]
        labels = pipeline.predict([tokens])[0] if tokens else []
        spans = [(offsets[a][0], offsets[b - 1][1], kind) for a, b, kind in extract_chunks(labels)]
        found = json.loads(line)
        assert found["text"] == text
        assert [tuple(span.values()) for span in found["spans"]] == spans
        for start, end, kind in spans[::-1]:
            text = f"{text[:start]}[{text[start:end]} {kind}]{text[end:]}"
        assert marked == text


@pytest.mark.parametrize("rule", ["(", "x*"])
def test_rules_that_find_no_tokens(rule, folder):
    told = run("tag", "-m", folder / "model.skops", "--tokenizer", rule, text="a\n", code=2)
    assert "--tokenizer" in told.stderr


TOKENIZERS = """
import re

def words(text):
    return re.findall(r"\\w+|,", text)

class Rules:
    @staticmethod
    def pairs(text):
        return [(token, 0) for token in text.split()]

def lower(text):
    return text.lower().split()

def none(text):
    return None

def nothing(text):
    return []

def broken(text):
    raise KeyError(text)

number = 3
"""


@pytest.fixture
def tokenizers(tmp_path, monkeypatch):
    """Module of functions in the current folder, of a name of its own."""
    name = f"tokenizers_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(TOKENIZERS)
    (tmp_path / f"{name}_broken.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    return name


def test_plain_text_is_split_by_a_function_of_the_user(tokenizers, folder, tmp_path, monkeypatch):
    # Processes that joblib keeps were started in another folder.
    monkeypatch.chdir(tmp_path.parent)
    Parallel(n_jobs=2)(delayed(os.getcwd)() for _ in range(4))
    monkeypatch.chdir(tmp_path)
    text = "".join(" ".join(tokens) + "\n" for tokens in TEST[0][:20])
    command = ["tag", "-m", folder / "model.skops", "--tokenizer"]
    expected = run(*command, r"\w+|,", text=text).output
    assert "[" in expected
    assert run(*command, f"{tokenizers}:words", text=text).output == expected
    for name in "ab":
        (tmp_path / name).write_text(text)
    files = tmp_path / "a", tmp_path / "b"
    run(*command, f"{tokenizers}:words", "-j", "2", "--output-dir", "out", *files)
    assert (tmp_path / "out" / "b").read_text() == expected
    # Text without words has no tokens to find.
    assert run(*command, f"{tokenizers}:words", text="...\n").output == "...\n"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no_module_of_this_name:words", "no_module_of_this_name cannot be imported (ModuleNotF"),
        ("{}_broken:words", "_broken cannot be imported (ZeroDivisionError: division by zero)."),
        ("{}:word", ".py) has no word."),
        ("{}:number", ":number is 3, and not a function."),
        ("{}:Rules.pairs", "line 1: {}:Rules.pairs returned [('10', 0), ('Mill', 0)] for"),
        ("{}:lower", ":lower returned the token 'mill', which is not in what follows in the text"),
        ("{}:none", ":none returned None for '10 Mill'; expected a list of tokens, each a string."),
        ("{}:nothing", ": --tokenizer finds no tokens in this text."),
        ("{}:broken", ":broken raised KeyError for '10 Mill'"),
        ("whitespce", "'whitespce' is no rule: there are whitespace and characters, patterns, and"),
        ("whitespce", "Did you mean whitespace?"),
        (r"[\u4e00-\u9fff]", "--tokenizer finds no tokens in this text."),
    ],
)
def test_tokenizers_that_are_none(name, says, tokenizers, folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"10 Mill\n")))
    words = "tag", "-m", folder / "model.skops", "--tokenizer", name.format(tokenizers)
    code, told = exit_code(*words, capsys=capsys)
    assert code == 2
    assert says.format(tokenizers) in told
    assert "--tokenizer" in told or "line 1" in told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "freezes"),
    [("sys.argv = ['skstruct', '--help']; main()", True), ("main(['--help'])", False)],
)
def test_what_is_imported_is_frozen_in_a_process_of_the_command(call, freezes):
    """In a program that calls the command, the garbage collector is the program's."""
    program = f"import gc, sys; from skstruct.cli.main import main; {call}; "
    command = [sys.executable, "-c", program + "print(gc.get_freeze_count())"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (int(found.stdout.splitlines()[-1]) > 10_000) == freezes


def test_one_odd_label_makes_no_runs_of_all_others(folder, tmp_path):
    odd = [list(labels) for labels in Y[:40]]
    odd[7][0] = "STREET"
    (tmp_path / "odd.txt").write_text(columns(X[:40], odd))
    line = 1 + sum(len(x) + 1 for x in X[:7])
    place = f"{tmp_path / 'odd.txt'}, line {line}: "
    says = f"{place}label 'STREET' has no letter of a scheme"
    options = ["train", tmp_path / "odd.txt", "-m", tmp_path / "m", *QUICK]
    with pytest.warns(UserWarning, match=re.escape(says)):
        run(*options)
    for more in (["--to-scheme", "IOBES"], ["--repair", "conlleval"]):
        told = run(*options, *more, code=2)
        assert f"{place}Sequence 7, token 0: 'STREET' is not a label of 'IOB2'" in str(
            told.exception
        )
    with pytest.warns(UserWarning, match=re.escape(says)):
        scored = run("evaluate", "-m", tmp_path / "m", tmp_path / "odd.txt")
    assert "chunk" not in scored.output
    told = run("tag", "--spans", "-m", tmp_path / "m", text=columns(X[:2]), code=2)
    assert "Label 'STREET' has no letter of a scheme" in str(told.exception)
    # A validation set is in the scheme of the training set.
    told = run(
        *("train", folder / "train.txt", "-m", tmp_path / "m", *QUICK, "--to-scheme", "IOBES"),
        *("--dev", tmp_path / "odd.txt"),
        code=2,
    )
    assert "'STREET' is not a label of 'IOB2'" in str(told.exception)


def test_labels_of_chunks_in_another_spelling(folder, tmp_path):
    spelled = [[label.replace("-", "_") for label in labels] for labels in Y]
    (tmp_path / "x.txt").write_text(columns(X, spelled))
    wrong = [[labels[0], *labels[:-1]] for labels in spelled]
    for scheme in ([], ["--scheme", "IOB2"]):
        scored = []
        for gold, found in (
            (spelled, wrong),
            (Y, [[x.replace("_", "-") for x in y] for y in wrong]),
        ):
            rows = [
                [f"{t}\t{a}" for t, a in zip(x, y, strict=True)]
                for x, y in zip(X, gold, strict=True)
            ]
            out = run("evaluate", *scheme, text=columns(rows, found).replace("\t", " ")).stdout
            scored.append([line for line in out.splitlines() if not line.startswith("scheme")])
        assert scored[0] == scored[1]
        assert any(line.startswith("chunk f1") for line in scored[0])
    (tmp_path / "odd.txt").write_text(columns(X, [*spelled[:-1], ["LOC"] * len(Y[-1])]))
    options = ["-m", tmp_path / "m", *QUICK]
    told = run("train", tmp_path / "x.txt", *options).stderr
    assert "mark chunks, which are written" in told
    assert "--to-scheme IOB2" in told
    told = run("evaluate", "-m", tmp_path / "m", tmp_path / "odd.txt").stderr
    assert "No chunk scores: Labels such as" in told
    assert "'LOC' is not written like them" in told
    run("train", tmp_path / "x.txt", *options, "--to-scheme", "IOBES")
    assert "E-" in run("tag", "-m", tmp_path / "m", text=columns(X)).stdout


def test_csv_files_with_a_column_of_sentences(tmp_path):
    """As Kaggle's corpus of names has them: a header, quotes, and a number in the first row."""
    rows = [["Sentence #", "Word", "Tag"]]
    for i, (x, y) in enumerate(zip(X[:40], Y[:40], strict=True)):
        rows += [
            ["" if t else f"Sentence: {i}", *row] for t, row in enumerate(zip(x, y, strict=True))
        ]
    text = io.StringIO()
    csv.writer(text).writerows([*rows, ["Sentence: z", ",", "O"], ["", '"', "O"]])
    path, model = tmp_path / "ner.csv", tmp_path / "m"
    path.write_text(text.getvalue(), "latin-1", errors="replace")
    layout = ["--separator", ",", "--encoding", "latin-1"]
    for more in ([], ["--sentence-column", "0"], ["--sentence-column", "Sentence #"]):
        said = run("train", path, *layout, *more, "-m", model, *QUICK).stderr
        assert "token 1 (" in said
        assert "feature" not in said.splitlines()[0]
        assert "Read 41 sequences" in said
    # The layout is stored; what is tagged keeps its form, and can be scored.
    tagged = run("tag", path, "-m", model, "--encoding", "latin-1").stdout
    found = list(csv.reader(io.StringIO(tagged)))
    assert found[0] == [*rows[0], "predicted"]
    assert [row[:3] for row in found[:5]] == rows[:5]
    assert len(found) == len(rows) + 2
    scored = run("evaluate", path, "-m", model, "--encoding", "latin-1").stdout
    assert "sequences: 41\n" in scored
    (tmp_path / "tagged").write_text(tagged, "latin-1", errors="replace")
    assert run("evaluate", *layout, tmp_path / "tagged").stdout == scored
    told = run("train", path, "-m", model, "--encoding", "latin-1", code=1)
    assert "pass separator=',' for commas" in str(told.exception)
    told = run("train", path, *layout, "-m", model, "--sentence-column", "Doc", code=1)
    assert "sentence_column has 'Doc'" in str(told.exception)


@pytest.mark.parametrize("token", ["\u3000", "a\u00a0", "\u2003b"])
def test_blanks_that_separate_no_columns_belong_to_tokens(token, folder):
    out = run("tag", "-m", folder / "model.skops", text=f"the\n{token}\nend\n").output
    tokens = [line.rpartition(" ")[0] for line in out.splitlines()]
    assert tokens == ["the", token, "end"]


def test_sequences_of_two_files_are_kept_apart(folder, tmp_path):
    for name, tokens in (("a", X[0]), ("b", X[1]), ("c", [])):
        (tmp_path / name).write_text("".join(f"{token}\n" for token in tokens))
    paths = [tmp_path / name for name in "acb"]
    alone = [run("tag", "-m", folder / "model.skops", path).output for path in paths]
    assert run("tag", "-m", folder / "model.skops", *paths).output == "\n".join(filter(None, alone))
    # A file that ends with a blank line needs no other.
    (tmp_path / "a").write_text((tmp_path / "a").read_text() + "\n")
    assert run("tag", "-m", folder / "model.skops", *paths).output == f"{alone[0]}\n{alone[2]}"


@pytest.mark.parametrize("names", [["S-Bahn", "U-Bahn", "Bus"], ["L-arm", "R-arm", "none"]])
def test_types_that_begin_like_labels_are_runs(names, tmp_path):
    rows = [[("a", names[0]), ("b", names[1])], [("c", names[2])]]
    text = columns(
        [[(word,) for word, _ in row] for row in rows], [[y for _, y in r] for r in rows]
    )
    (tmp_path / "x.txt").write_text(text * 3)
    said = run("train", tmp_path / "x.txt", "-m", tmp_path / "m", "--scheme", "runs", *QUICK).stderr
    assert "Labels are in runs" in said
    assert "no letter" not in said
    spans = run(
        "tag", "--spans", "--format", "jsonl", "-m", tmp_path / "m", text='{"tokens": ["a"]}'
    )
    assert names[0] in spans.output
