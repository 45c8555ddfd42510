"""Files of word vectors: word2vec as text or binary, GloVe and fastText, plain or gzipped."""

import codecs
import gzip
import io
import os
import zlib
from contextlib import contextmanager, suppress
from itertools import chain
from time import perf_counter

import numpy as np

from skstruct.datasets.conll import GZIP_MAGIC
from skstruct.utils.messages import check_float_dtype, say, short_repr
from skstruct.utils.persistence import set_module

# Words that may have vectors have no more bytes than this: else a binary file is damaged.
_LONGEST = 10_000
_MOST_DIMENSIONS = 1 << 20
_BUFFER = 1 << 20
# Seconds between two lines of progress, and lines between two looks at the clock.
_PERIOD, _LINES = 10.0, 50_000


@set_module("skstruct.datasets")
class WordVectors(dict):
    """Dict of word vectors that is shown by its size.

    An estimator is shown with its parameters, and scikit-learn writes all numbers of a dict for
    that, which takes a minute for a few thousand words.

    See Also
    --------
    read_vectors : Read them from a file.
    skstruct.EmbeddingVectorizer : Look the vectors of tokens up.

    Examples
    --------
    >>> import numpy as np
    >>> from skstruct import EmbeddingVectorizer
    >>> from skstruct.datasets import WordVectors
    >>> vectors = WordVectors({"the": np.array([0.1, 0.9]), "cat": np.array([0.8, 0.1])})
    >>> EmbeddingVectorizer(vectors)
    EmbeddingVectorizer(vectors=WordVectors(2 words, 2 numbers))
    """

    def __repr__(self):
        first = next(iter(self.values()), ())
        words = "1 word" if len(self) == 1 else f"{len(self):,} words"
        return f"{type(self).__name__}({words}, {np.size(first):,} numbers)"


@set_module("skstruct.datasets")
def read_vectors(path, words=None, *, dtype=np.float32, encoding="utf-8", verbose=0):
    r"""Read word vectors from a file in one pass.

    The format is detected: word2vec as text or binary, GloVe, and ``.vec`` of fastText, each plain
    or gzipped. Vectors of words that are not asked for are passed over, without reading their
    numbers.

    Parameters
    ----------
    path : str or path-like
        The file.
    words : iterable of str, default=None
        Words to keep, such as those of the training and test sets. None keeps all.
    dtype : {np.float32, np.float64}, default=np.float32
        Type of the numbers.
    encoding : str, default="utf-8"
        Encoding of the words. Words that are not in it are passed over.
    verbose : int, default=0
        1 prints every ten seconds how much has been read.

    Returns
    -------
    vectors : WordVectors of ndarray of shape (n_dimensions,)
        Vector of each word, in the order of the file; rows of one table. If a word occurs more than
        once, its first vector. Empty if the file has none of the words. Letter case counts.

    Raises
    ------
    ValueError
        If the file has no vectors, fewer than its first line says, or a line or entry is damaged:
        too few numbers, or something else in place of one. The message names the line or the
        number of the entry.

    See Also
    --------
    skstruct.EmbeddingVectorizer : Look the vectors of tokens up.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skstruct.datasets import read_vectors
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "glove.txt")
    ...     _ = path.write_text("the 0.1 0.9\ncat 0.8 0.1\ndog 0.7 0.2\n")
    ...     vectors = read_vectors(path, words={"cat", "axolotl"})
    >>> vectors
    WordVectors(1 word, 2 numbers)
    >>> vectors["cat"]
    array([0.8, 0.1], dtype=float32)
    """
    dtype, name = check_float_dtype(dtype), os.fspath(path)
    keys = None if words is None else {key.encode(encoding, "ignore") for key in _listed(words)}
    with _opened(path) as (file, share):
        head = file.readline(_LONGEST * 100).removeprefix(codecs.BOM_UTF8)
        size = _header(head)
        if size is not None and not 1 <= size[1] <= _MOST_DIMENSIONS:
            raise ValueError(f"{name}, line 1 says that vectors have {size[1]:,} numbers.")
        if size is not None and _is_binary(file.peek(_BUFFER), size[1], encoding):
            entries = _binary_entries(file, *size, name)
        else:
            entries = _text_entries(file, head, size, keys, name)
        found = _collect(entries, keys, dtype, _reporter(share, verbose, name))
    if not found and keys is None:
        raise ValueError(f"{name} has no vectors.")
    return _by_word(found, encoding, dtype)


def _listed(words):
    if isinstance(words, str):
        raise ValueError("words must be several words, such as a set, not a string.")
    words = list(words)
    for word in words:
        if not isinstance(word, str):
            raise ValueError(
                f"words has {short_repr(word)}, which is no string; the words of sentences X are "
                "set(chain.from_iterable(X))."
            )
    return words


@contextmanager
def _opened(path):
    """Context with a file of bytes, and a function that returns the share that has been read."""
    with open(path, "rb", _BUFFER) as raw:
        total = os.fstat(raw.fileno()).st_size or 1
        is_zipped = raw.peek(2)[:2] == GZIP_MAGIC
        file = io.BufferedReader(gzip.GzipFile(fileobj=raw), _BUFFER) if is_zipped else raw
        try:
            yield file, lambda: raw.tell() / total
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{os.fspath(path)} is damaged: {error}.") from error


def _header(line):
    """Numbers of words and dimensions, if a line has these alone; else None."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    return tuple(map(int, fields))


def _is_binary(start, n_dimensions, encoding):
    """Return True if numbers in four bytes each follow the first word, and not text."""
    _, _, numbers = start.partition(b" ")
    # A character may be cut off at the end.
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        text = decoder.decode(numbers[: 4 * n_dimensions])
    except UnicodeDecodeError:
        return True
    return not all(character.isprintable() or character in "\t\r\n" for character in text)


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


def _text_entries(file, head, size, keys, name):
    """Yield the place, the word and the numbers, as bytes, of lines that may be asked for.

    Words may have blanks in them, unless tabs separate the numbers. So lines are split from their
    ends, and those whose first part begins no word that is asked for not at all, which yield None.
    """
    first = head if size is None else file.peek(_BUFFER).split(b"\n", 1)[0]
    _, *fields = first.split() or [b""]
    n_dimensions = len(fields) if size is None else size[1]
    if size is None and not (fields and all(map(_is_number, fields))):
        raise ValueError(
            f"{name} begins with {short_repr(first[:40])}, and not with a word and its vector: "
            "expected a file of word2vec or GloVe, or the .vec of fastText."
        )
    if len(fields) > n_dimensions and all(map(_is_number, fields)):
        raise ValueError(
            f"{name}, line 2 has {len(fields)} numbers after the word, but line 1 says "
            f"{n_dimensions}."
        )
    blank = b" " if b" " in first else b"\t"
    beginnings = None if keys is None else {key.split(blank, 1)[0] for key in keys}
    lines, number = chain([head], file) if size is None else file, 1
    for number, line in enumerate(lines, 1 if size is None else 2):
        if beginnings is not None and line[: line.find(blank)] not in beginnings:
            yield None
            continue
        word, *numbers = line.rstrip(b" \t\r\n").rsplit(blank, n_dimensions)
        if len(numbers) == n_dimensions:
            yield f"{name}, line {number}", word, numbers
        elif line.strip():
            raise ValueError(
                f"{name}, line {number} has {len(numbers)} numbers after the word, but others have "
                f"{n_dimensions}: the file is damaged, or was cut off."
            )
    if size is not None and number <= size[0]:
        raise ValueError(
            f"{name} has {number - 1:,} words, but its first line says {size[0]:,}: the file is "
            "damaged, or was cut off."
        )


def _binary_entries(file, n_words, n_dimensions, name):
    """Yield the place, the word and the numbers, as bytes, of all entries."""
    n_bytes, buffer, start = 4 * n_dimensions, b"", 0
    for number in range(1, n_words + 1):
        end = buffer.find(b" ", start)
        while end < 0 or len(buffer) < end + 1 + n_bytes:
            piece = file.read(max(_BUFFER, n_bytes))
            if not piece or (end < 0 and len(buffer) - start > _LONGEST):
                raise ValueError(
                    f"{name}, word {number} of {n_words}: no numbers follow. The file is damaged, "
                    "or was cut off."
                )
            buffer, start = buffer[start:] + piece, 0
            end = buffer.find(b" ")
        numbers = buffer[end + 1 : end + 1 + n_bytes]
        yield f"{name}, word {number}", buffer[start:end].lstrip(b"\n"), numbers
        start = end + 1 + n_bytes


def _collect(entries, keys, dtype, report):
    """Vectors by the bytes of their words; the first one of each."""
    found = {}
    for count, entry in enumerate(entries):
        if count % _LINES == 0:
            report(count)
        if entry is None:
            continue
        place, word, numbers = entry
        if (keys is None or word in keys) and word not in found:
            found[word] = _as_vector(place, word, numbers, dtype)
    return found


def _as_vector(place, word, numbers, dtype):
    if isinstance(numbers, bytes):
        return np.frombuffer(numbers, "<f4").astype(dtype)
    try:
        return np.array(list(map(float, numbers)), dtype)
    except ValueError as error:
        raise ValueError(
            f"{place}: the vector of {word.decode(errors='replace')!r} is not made of numbers "
            f"({error})."
        ) from None


def _by_word(found, encoding, dtype):
    """Rows of one table by words; without those that are not in the encoding."""
    table = np.stack(list(found.values())) if found else np.empty((0, 0), dtype)
    vectors = WordVectors()
    for word, row in zip(found, table, strict=True):
        with suppress(UnicodeDecodeError):
            vectors[word.decode(encoding)] = row
    return vectors


def _reporter(share, verbose, name):
    """Function that says how much has been read, every ten seconds."""
    start = last = perf_counter()

    def report(count):
        nonlocal last
        now = perf_counter()
        if now - last >= _PERIOD:
            last = now
            say(
                verbose,
                "%s: %.0f %% read, %d words, %.0f s",
                name,
                100 * share(),
                count,
                now - start,
            )

    return report
