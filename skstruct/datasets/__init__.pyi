from .class_labels import labels_from_ids, labels_to_ids
from .conll import iter_conll, read_conll
from .conllu import read_conllu, write_conllu
from .fetchers import fetch_conll2000, fetch_conll2002, fetch_ocr_letters
from .loaders import load_addresses, load_digit_sequences
from .spans import find_tokens, labels_to_spans, spans_to_labels
from .writing import write_conll

__all__ = [
    "fetch_conll2000",
    "fetch_conll2002",
    "fetch_ocr_letters",
    "find_tokens",
    "iter_conll",
    "labels_from_ids",
    "labels_to_ids",
    "labels_to_spans",
    "load_addresses",
    "load_digit_sequences",
    "read_conll",
    "read_conllu",
    "spans_to_labels",
    "write_conll",
    "write_conllu",
]
