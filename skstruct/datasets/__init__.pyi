from .conll import iter_conll, read_conll
from .fetchers import fetch_conll2000, fetch_conll2002, fetch_ocr_letters
from .loaders import load_addresses, load_digit_sequences

__all__ = [
    "fetch_conll2000",
    "fetch_conll2002",
    "fetch_ocr_letters",
    "iter_conll",
    "load_addresses",
    "load_digit_sequences",
    "read_conll",
]
