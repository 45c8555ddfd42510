"""Errors of what is read from a path name the file."""

import gzip
from functools import partial

import numpy as np
import pytest

from skstruct import TemplateVectorizer, crfpp, crfsuite
from skstruct.cli.estimators import make_vectorizer
from skstruct.cli.models import load_model
from skstruct.datasets import (
    fetch_ocr_letters,
    iter_conll,
    read_annotations,
    read_conll,
    read_conllu,
    write_conllu,
)

LATIN = "first\nWörter\n".encode("latin-1")


def brat(path):
    (path.parent / "a.txt").write_text("first")
    return read_annotations(path.rename(path.parent / "a.ann"), format="brat")


def text_of_brat(path):
    (path.parent / "a.ann").write_text("T1\tLOC 0 5\tfirst\n")
    return read_annotations(path.rename(path.parent / "a.txt").with_suffix(".ann"), format="brat")


def vectorizer(path, **named):
    given = {"features": "words", "template": None, "gazetteers": {}, "clusters": None}
    return make_vectorizer(**{**given, "parameters": {}, **named})


OF_TEXT = {
    "TemplateVectorizer, a path": lambda path: TemplateVectorizer(path).fit([["a"]]),
    "TemplateVectorizer, a string": lambda path: TemplateVectorizer(str(path)).fit([["a"]]),
    "brat": brat,
    "the text of brat": text_of_brat,
    "doccano": partial(read_annotations, format="doccano"),
    "Label Studio": partial(read_annotations, format="label-studio"),
    "read_conll": partial(read_conll, label=None),
    "iter_conll": lambda path: list(iter_conll(str(path), label=None)),
    "read_conllu": read_conllu,
    "write_conllu": lambda path: write_conllu(path.with_suffix(".new"), [], like=path),
    "crfpp.read_model": crfpp.read_model,
    "template of the command": lambda path: vectorizer(path, template=str(path)),
    "gazetteer": lambda path: vectorizer(path, gazetteers={"a": str(path)}),
    "clusters": lambda path: vectorizer(path, clusters=str(path)),
}


@pytest.mark.parametrize("name", OF_TEXT)
def test_text_that_is_not_utf8(tmp_path, name):
    path = tmp_path / "words.txt"
    path.write_bytes(LATIN)
    with pytest.raises(ValueError, match=r"(a|words)\.(txt|ann)") as raised:
        OF_TEXT[name](path)
    message = str(raised.value)
    assert message.count(str(tmp_path)) == 1
    if name == "crfpp.read_model":
        assert "in the encoding 'utf-8'" in message
        return
    assert ", line 2: not utf-8 text (byte 0xf6" in message
    assert ("pass encoding=" in message) == (name in ("read_conll", "iter_conll"))


OF_MODELS = {
    "read_model": crfsuite.read_model,
    "read_model, a string": lambda path: crfsuite.read_model(str(path)),
    "Tagger.open": lambda path: crfsuite.Tagger().open(path),
    "CRF": lambda path: crfsuite.CRF(model_filename=str(path)).predict([[["w=tin"]]]),
    "CRF, an attribute": lambda path: crfsuite.CRF(model_filename=path).classes_,
    "the command": lambda path: load_model(str(path)),
}


@pytest.mark.parametrize("name", OF_MODELS)
def test_broken_models_of_crfsuite(tmp_path, name):
    path = tmp_path / "old.crfsuite"
    path.write_bytes(b"lCRF" + bytes(40))
    with pytest.raises(ValueError, match=r"old\.crfsuite: Not a valid CRFsuite model") as raised:
        OF_MODELS[name](path)
    assert str(raised.value).count("old.crfsuite") == 1
    with pytest.raises(ValueError, match=r"^Not a valid CRFsuite model"):
        crfsuite.read_model(path.read_bytes())


@pytest.mark.parametrize("read", [crfpp.read_model, lambda path: load_model(str(path))])
def test_broken_models_of_crfpp(tmp_path, read):
    path = tmp_path / "old.txt"
    path.write_text("version: 100\nmaxid: 8\n")
    with pytest.raises(ValueError, match=r"old\.txt: This is not an intact text model") as raised:
        read(path)
    assert str(raised.value).count("old.txt") == 1
    with pytest.raises(ValueError, match=r"^This is not an intact text model"):
        crfpp.read_model(path.read_bytes())


def test_models_that_need_too_much_memory(tmp_path):
    path = tmp_path / "large.crfsuite"
    crfsuite.write_model(crfsuite.CRF().fit([[["a"], ["b"]]], [["A", "B"]]), path)
    with pytest.raises(ValueError, match=r"large\.crfsuite: .* more than max_bytes=10"):
        crfsuite.read_model(path, max_bytes=10)


def letters(fold=b"1", letter=b"a"):
    return b"\t".join([b"1", letter, b"-1", b"1", b"1", fold, b"\t".join([b"0"] * 128)]) + b"\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ocr.npz", b""),
        ("ocr.npz", b"PK\x03\x04 no archive"),
        ("ocr.npz", b"no arrays"),
        ("ocr/letter.data.gz", gzip.compress(letters(fold=b"x"), mtime=0)),
        ("ocr/letter.data.gz", gzip.compress(letters(letter=b"\xe4"), mtime=0)),
        ("ocr/letter.data.gz", gzip.compress(letters(), mtime=0)[:-9]),
    ],
)
def test_damaged_files_of_letters(tmp_path, monkeypatch, name, content):
    monkeypatch.setenv("SKSTRUCT_DATA", str(tmp_path))
    (tmp_path / "ocr").mkdir()
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=name):
        fetch_ocr_letters(download_if_missing=False)


def test_arrays_that_are_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("SKSTRUCT_DATA", str(tmp_path))
    np.savez(tmp_path / "ocr.npz", X_train=np.zeros((2, 16), np.uint8))
    with pytest.raises(ValueError, match=r"ocr\.npz: the file is truncated or damaged .*y_train"):
        fetch_ocr_letters(download_if_missing=False)


def test_byte_order_marks_of_templates(tmp_path):
    path = tmp_path / "words.txt"
    path.write_bytes("\ufeff# words\r\nU0:%x[0,0]\r\n".encode())
    assert TemplateVectorizer(path).fit([["a"]]).get_feature_names_out().tolist() == ["U0:a"]
