from skstruct.datasets.annotations import read_annotations, write_annotations
from skstruct.datasets.conll import iter_conll, read_conll, read_features, write_conll
from skstruct.datasets.conllu import read_conllu, write_conllu
from skstruct.datasets.loaders import (
    fetch_conll2000,
    fetch_conll2002,
    fetch_ocr_letters,
    load_addresses,
    load_digit_sequences,
)
from skstruct.datasets.spans import (
    ConvertedLabels,
    convert_labels,
    docs_to_sequences,
    find_tokens,
    labels_from_ids,
    labels_to_docs,
    labels_to_ids,
    labels_to_spans,
    spans_to_labels,
)
from skstruct.datasets.vectors import WordVectors, read_vectors

__all__ = [
    "ConvertedLabels",
    "WordVectors",
    "convert_labels",
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
    "read_features",
    "read_vectors",
    "spans_to_labels",
    "write_annotations",
    "write_conll",
    "write_conllu",
]
