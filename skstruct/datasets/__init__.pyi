from .annotations.tools import read_annotations, write_annotations
from .class_labels import labels_from_ids, labels_to_ids
from .conll import iter_conll, read_conll
from .conllu import read_conllu, write_conllu
from .docs import docs_to_sequences, labels_to_docs
from .fetchers import fetch_conll2000, fetch_conll2002, fetch_ocr_letters
from .loaders import load_addresses, load_digit_sequences
from .spans import find_tokens, labels_to_spans, spans_to_labels
from .writing import write_conll

__all__ = [
    "docs_to_sequences",
    "fetch_conll2000",
    "fetch_conll2002",
    "fetch_ocr_letters",
    "find_tokens",
    "iter_conll",
    "labels_from_ids",
    "labels_to_docs",
    "labels_to_ids",
    "labels_to_spans",
    "load_addresses",
    "load_digit_sequences",
    "read_annotations",
    "read_conll",
    "read_conllu",
    "spans_to_labels",
    "write_annotations",
    "write_conll",
    "write_conllu",
]
