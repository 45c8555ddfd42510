"""Recipes of the guide with packages that skstruct does not need: run where these are installed."""

import json
import re
from pathlib import Path

import pytest
from sklearn.pipeline import Pipeline, make_pipeline

from skstruct import (
    CRFTagger,
    HashingTemplateVectorizer,
    PerceptronTagger,
    TemplateVectorizer,
)
from skstruct.datasets import (
    iter_conll,
    labels_to_spans,
    load_addresses,
    read_annotations,
    spans_to_labels,
    write_annotations,
    write_conll,
)
from skstruct.metrics import chunk_f1_score, chunk_f1_scorer
from skstruct.streams import fit_stream, iter_batches

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def recipe(page, marker):
    """The code block of a page that has a text in it."""
    text = (GUIDE / page).read_text(encoding="utf-8")
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text)
    (block,) = [block for block in blocks if marker in block]
    return re.sub(r"^   ", "", block, flags=re.MULTILINE)


def test_optuna():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    X, y = load_addresses(return_X_y=True)
    steps = [("features", TemplateVectorizer("U0:%x[0,0|lower]")), ("tagger", CRFTagger())]
    names = {
        "model": Pipeline(steps), "X": X[:60], "y": y[:60], "chunk_f1_scorer": chunk_f1_scorer
    }  # fmt: skip
    exec(recipe("tuning.rst", "optuna").replace("n_trials=20", "n_trials=2"), names)
    best = names["study"].best_trial
    assert len(names["study"].trials) == 2
    assert best.params.keys() == {"l2", "min_freq"}
    assert 0 < best.value <= 1


@pytest.fixture
def stream(tmp_path, monkeypatch):
    """Names that the recipes for streams use, with files, and what they are to yield."""
    pairs = [([f"w{i}", "x"], ["O", "B-X"]) for i in range(30)]
    for number in range(3):
        part = slice(10 * number, 10 * number + 10)
        write_conll(tmp_path / f"{number}.conll", *zip(*pairs[part], strict=True))
    rows = [{"tokens": X, "labels": y, "ner_tags": [0, 1]} for X, y in pairs]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "rows.jsonl").write_text(lines, encoding="utf-8")
    names = {"folder": tmp_path, "iter_batches": iter_batches, "iter_conll": iter_conll}
    return {**names, "path": tmp_path / "rows.jsonl", "names": ["O", "B-X"]}, rows


def check_stream(names, rows):
    """Each epoch has all sequences, in an order of its own, which it has again when it is run."""
    expected = sorted((row["tokens"], row["labels"]) for row in rows)
    orders = []
    for epoch in (1, 2, 1):
        found = [pair for X, y in names["batches"](epoch) for pair in zip(X, y, strict=True)]
        assert sorted(found) == expected
        orders.append(found)
    assert orders[0] == orders[2] != orders[1]


@pytest.mark.parametrize("marker", [".permutation(", "import json"])
def test_streams_of_files(stream, marker):
    names, rows = stream
    exec(recipe("streams.rst", marker), names)
    check_stream(names, rows)


def test_a_stream_of_parquet(stream, tmp_path):
    arrow, parquet = (pytest.importorskip(f"pyarrow{name}") for name in ("", ".parquet"))
    names, rows = stream
    names["path"] = tmp_path / "rows.parquet"
    parquet.write_table(arrow.Table.from_pylist(rows), names["path"])
    exec(recipe("streams.rst", "pyarrow"), names)
    check_stream(names, rows)


def test_a_stream_of_hugging_face(stream, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    pytest.importorskip("datasets")
    names, rows = stream
    names["files"] = str(names["path"])
    exec(recipe("streams.rst", "load_dataset"), names)
    check_stream(names, rows)
    tagger = fit_stream(
        PerceptronTagger(random_state=0),
        names["batches"],
        vectorizer=HashingTemplateVectorizer("U:%x[0,0]", n_features=100),
    )
    assert tagger.classes_.tolist() == ["B-X", "O"]


def test_spacy():
    spacy = pytest.importorskip("spacy")
    X = [["Maria", "sings", "in", "Rome"], ["Rome", "burns"]]
    y = [["B-PER", "O", "O", "B-LOC"], ["B-LOC", "O"]]
    model = make_pipeline(TemplateVectorizer("U:%x[0,0]"), CRFTagger(l2=0.01)).fit(X, y)
    names = {"spacy": spacy, "model": model}
    exec(recipe("datasets.rst", "Language.factory"), names)
    (found,) = names["nlp"].pipe(["Maria sings in Rome"])
    assert [(e.text, e.label_) for e in found.ents] == [("Maria", "PER"), ("Rome", "LOC")]


@pytest.fixture
def tagged_addresses(tmp_path, monkeypatch):
    """Names that the recipes for stored models use, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    X, y = load_addresses(return_X_y=True)
    model = make_pipeline(TemplateVectorizer("U:%x[0,0]"), CRFTagger()).fit(X[:60], y[:60])
    held_out = {"X_test": X[60:90], "y_test": y[60:90]}
    return {"pipeline": model, "chunk_f1_score": chunk_f1_score, **held_out}


def test_mlflow(tagged_addresses):
    mlflow = pytest.importorskip("mlflow")
    mlflow.set_tracking_uri("sqlite:///mlflow.db")
    names = tagged_addresses
    exec(recipe("persistence.rst", "import mlflow"), names)
    predicted = names["pipeline"].predict(names["X_test"]).tolist()
    assert names["same"].predict(names["X_test"]).tolist() == predicted
    (run,) = mlflow.search_runs(output_format="list")
    assert run.data.metrics == {"chunk_f1": chunk_f1_score(names["y_test"], predicted)}


def test_model_card(tagged_addresses, tmp_path):
    pytest.importorskip("skops.card")
    exec(recipe("persistence.rst", "import card"), tagged_addresses)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    score = chunk_f1_score(
        tagged_addresses["y_test"], tagged_addresses["pipeline"].predict(tagged_addresses["X_test"])
    )
    assert "Parts of postal addresses" in text
    assert f"{score}" in text
    assert "crftagger__l2" in text


def test_annotation_tools(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts, spans = ["Maria sings in Rome."], [[(0, 5, "PER"), (15, 19, "LOC")]]
    write_annotations("export.jsonl", texts, spans, format="doccano")
    names = {
        "model": make_pipeline(TemplateVectorizer("U:%x[0,0]"), CRFTagger(l2=0.01)),
        "spans_to_labels": spans_to_labels,
        "labels_to_spans": labels_to_spans,
    }
    exec(recipe("datasets.rst", "export.jsonl"), names)
    read = read_annotations("to_correct.jsonl", format="doccano", unreviewed="keep")
    assert read == (texts, spans)
