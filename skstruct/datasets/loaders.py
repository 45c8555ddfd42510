"""Data sets: addresses and digits that are installed, and public corpora, downloaded once."""

import hashlib
import inspect
import io
import os
import zlib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np
import pooch
from sklearn.datasets import load_digits
from sklearn.utils import Bunch, check_random_state

from skstruct.datasets.conll import read_conll, unpacked
from skstruct.metrics.labels import as_list
from skstruct.utils.files import write_whole
from skstruct.utils.messages import check_choice
from skstruct.utils.persistence import set_module


def make_bunch(data, target, source, return_X_y, **more):
    """Make the result of a loader.

    Parameters
    ----------
    data, target : list
    source : callable
        The loader. Summary and extended summary of its docstring are the description.
    return_X_y : bool
        Return data and target alone.
    **more : object
        Other fields.

    Returns
    -------
    dataset : Bunch or tuple
        With the labels that occur, unless they are given.
    """
    if return_X_y:
        return data, target
    names = sorted({label for labels in target for label in as_list(labels)})
    about = (inspect.getdoc(source) or "").partition("\n\nParameters\n")[0]
    return Bunch(**{"data": data, "target": target, "target_names": names, **more, "DESCR": about})


_N_TRAIN = 1198  # two thirds of the images, in the order of scikit-learn
_AREA_CODES = ("201", "212", "305", "415", "512", "617", "702", "808")
_CENTS = ("00", "49", "95", "99")


@set_module("skstruct.datasets")
def load_addresses(*, return_X_y=False):
    """Load postal addresses, labelled with their components.

    538 addresses in the formats of more than twenty countries, two thirds of them from
    English-speaking ones. They were written for this library: people and house numbers are
    invented, and no address is meant to exist. The data set is small enough to learn from in
    seconds, and hard enough to distinguish models: it has lower case, capitals, misspellings,
    missing commas and missing parts.

    ==========  ==========================================================================
    Component   Covers
    ==========  ==========================================================================
    RECIPIENT   people, firms and departments, with "c/o" or "Attn"
    BUILDING    named or lettered buildings, farms, estates
    UNIT        flats, suites, floors, rooms, shops, lots
    POBOX       post office boxes, rural routes, poste restante
    NUMBER      house numbers, with their letters, fractions and "bis"
    STREET      streets with their type and direction
    DISTRICT    parts of the address between street and city: villages, quarters
    CITY        cities and, in Australia, suburbs; with "Cedex" or "Dublin 2"
    REGION      states, provinces, counties
    POSTCODE    postal codes, with a country prefix such as "D-"
    COUNTRY     countries
    ==========  ==========================================================================

    Labels are in the IOB2 scheme: ``B-STREET`` on the first token of a street, ``I-STREET`` on
    the others, and ``O`` on commas and on words that belong to no component ("corner of"). Two
    components of the same kind may touch, as in "piso 7 depto. C".

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    dataset : Bunch or tuple of (list of list of str, list of list of str)
        Bunch with the fields

        data : list of list of str
            The addresses, split at blanks; a comma is a token of its own. In random order.
        target : list of list of str
            Their labels.
        target_names : list of str
            The labels that occur, sorted.
        DESCR : str
            Description.

    Examples
    --------
    >>> from skstruct.datasets import load_addresses
    >>> addresses = load_addresses()
    >>> for token, label in zip(addresses.data[12], addresses.target[12]):
    ...     print(f"{token:10} {label}")
    12         B-NUMBER
    Sandpiper  B-STREET
    Lane       I-STREET
    ,          O
    c/o        B-RECIPIENT
    Mrs.       I-RECIPIENT
    Elspeth    I-RECIPIENT
    Gow        I-RECIPIENT
    ,          O
    Chatham    B-CITY
    ,          O
    MA         B-REGION
    02633      B-POSTCODE
    """
    with resources.as_file(resources.files("skstruct.datasets") / "data" / "addresses.txt") as path:
        tokens, labels = read_conll(path, separator="\t")
    return make_bunch(tokens, labels, load_addresses, return_X_y)


@set_module("skstruct.datasets")
def load_digit_sequences(
    *, n_sequences=500, subset="all", noise=0.0, random_state=0, return_X_y=False
):
    """Compose handwritten numbers from scikit-learn's images of digits.

    A sequence is a number of an everyday kind, and each of its digits is an image. Where an image
    is ambiguous, the digits next to it often help. The kinds of numbers:

    =====  =========================================================================
    Kind   Digits
    =====  =========================================================================
    year   4, from 1900 to 2029
    date   8, year, month, day
    time   4, from 0000 to 2355, to five minutes
    phone  10, one of 8 area codes and a fictitious number, 55501 and two more
    price  3 to 5, ending in 00, 49, 95 or 99
    count  5 to 12, each one more than the one before, or each one less, modulo 10
    =====  =========================================================================

    Parameters
    ----------
    n_sequences : int, default=500
        Number of sequences to compose.
    subset : {"all", "train", "test"}, default="all"
        Images to draw from. The first 1198 of the 1797 images are "train" and the others "test",
        for any `random_state`: no image occurs in both subsets. The same `random_state` gives
        different numbers for different subsets.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to the pixels, which are clipped to 0 to 16.
        The more noise, the more important are neighbouring digits.
    random_state : int, RandomState instance or None, default=0
        Determines the numbers, the images and the noise.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    dataset : Bunch or tuple of (list of ndarray, list of ndarray)
        Bunch with the fields

        data : list of ndarray of shape (length, 64)
            The images of each number, 8 x 8 pixels from 0 to 16, in row-major order.
        target : list of ndarray of shape (length,), dtype int64
            The digits.
        kind : list of str
            The kind of each number.
        target_names : list of int
            The labels, 0 to 9.
        DESCR : str
            Description.

    Raises
    ------
    ValueError
        If `subset` is unknown, `n_sequences` less than 1, or `noise` negative.

    Examples
    --------
    >>> from skstruct.datasets import load_digit_sequences
    >>> numbers = load_digit_sequences(n_sequences=3)
    >>> for kind, images, digits in zip(numbers.kind, numbers.data, numbers.target):
    ...     print(kind, images.shape, digits)
    price (3, 64) [1 9 5]
    phone (10, 64) [7 0 2 5 5 5 0 1 4 1]
    time (4, 64) [0 7 1 5]
    """
    subsets = ("all", "train", "test")
    check_choice("subset", subset, subsets)
    if n_sequences < 1:
        raise ValueError(f"n_sequences must be at least 1, got {n_sequences}")
    if not noise >= 0:
        raise ValueError(f"noise must not be negative, got {noise}")
    # A seed for each subset, or the test numbers would equal the training numbers.
    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=len(subsets))
    rng = np.random.RandomState(seeds[subsets.index(subset)])

    images, digits = load_digits(return_X_y=True)
    first, last = {"all": (0, None), "train": (0, _N_TRAIN), "test": (_N_TRAIN, None)}[subset]
    images, digits = images[first:last], digits[first:last]
    pool = [np.flatnonzero(digits == digit) for digit in range(10)]

    kinds = [list(_COMPOSERS)[i] for i in rng.randint(len(_COMPOSERS), size=n_sequences)]
    target = [np.array([int(digit) for digit in _COMPOSERS[kind](rng)]) for kind in kinds]
    data = [images[[rng.choice(pool[digit]) for digit in number]] for number in target]
    if noise:
        data = [np.clip(rows + noise * rng.standard_normal(rows.shape), 0, 16) for rows in data]
    more = {"kind": kinds, "target_names": list(range(10))}
    return make_bunch(data, target, load_digit_sequences, return_X_y, **more)


def _year(rng):
    return str(rng.randint(1900, 2030))


def _count(rng):
    start, step, length = rng.randint(10), rng.choice([-1, 1]), rng.randint(5, 13)
    return "".join(str((start + step * i) % 10) for i in range(length))


_COMPOSERS = {
    "year": _year,
    "date": lambda rng: f"{_year(rng)}{rng.randint(1, 13):02}{rng.randint(1, 32):02}",
    "time": lambda rng: f"{rng.randint(24):02}{5 * rng.randint(12):02}",
    "phone": lambda rng: f"{rng.choice(_AREA_CODES)}55501{rng.randint(100):02}",
    "price": lambda rng: f"{rng.randint(1, 10 ** rng.randint(1, 4))}{rng.choice(_CENTS)}",
    "count": _count,
}


# Public corpora

_VARIABLE = "SKSTRUCT_DATA"
_N_PIXELS = 128
_OTHER_FOLDER = (
    f"Pass a folder of yours as data_home=, or set the environment variable {_VARIABLE} to one."
)


class Original(NamedTuple):
    """A public file, and the prepared file that may replace it."""

    prepared: str  # path below a data folder, as is `kept`
    kept: str  # path of the unchanged download
    urls: tuple[str, ...]  # of the same content, tried in this order
    fingerprint: Callable[[bytes], str]
    expected: str  # fingerprint of the correct content


def content_sha256(content):
    """Return the SHA-256 of a file's decompressed content.

    The compressed file would not do: some servers let the client decompress it on the way.
    """
    return hashlib.sha256(unpacked(content, "download")).hexdigest()


def words_sha256(content):
    """Return the SHA-256 of the handwritten words in a letter.data file, in any order."""
    keys = (
        f"{'test' if fold == 0 else 'train'}:{letters}:".encode() + np.packbits(pixels).tobytes()
        for fold, letters, pixels in parsed_words(content, "download")
    )
    return hashlib.sha256(b"\n".join(sorted(keys))).hexdigest()


def parsed_words(content, name):
    """Parse the letter.data format: one letter per line, in seven fields separated by tabs.

    The fields are the letter's id, the letter, the id of the next letter of the word (-1 for the
    last), the word's id, the position in the word, the word's cross-validation fold, and 128
    pixels, each 0 or 1, again separated by tabs.

    Parameters
    ----------
    content : bytes
        Content of the file, gzipped or not.
    name : str
        Name of the file, for error messages.

    Returns
    -------
    words : list of tuple of (int, str, ndarray of shape (n_letters, 128) and dtype uint8)
        Fold, letters and pixels of each word.
    """
    words, letters, images = [], [], []
    for number, line in enumerate(unpacked(content, name).splitlines(), start=1):
        fields = line.split(b"\t", 6)
        pixels = fields[-1].rstrip()[::2]
        is_image = len(pixels) == _N_PIXELS and not pixels.strip(b"01")
        if len(fields) != 7 or not is_image or not fields[1].isascii() or not fields[5].isdigit():
            raise ValueError(f"{name}, line {number}: not a line of letter.data: {line[:40]!r}...")
        letters.append(fields[1].decode())
        images.append(pixels)
        if fields[2] == b"-1":
            flat = np.frombuffer(b"".join(images), dtype=np.uint8) - ord("0")
            words.append((int(fields[5]), "".join(letters), flat.reshape(-1, _N_PIXELS)))
            letters, images = [], []
    if letters or not words:
        raise ValueError(f"{name}: the last word is incomplete; the file may be truncated")
    return words


_MIRROR = "https://raw.githubusercontent.com/teropa/nlp/master/resources/corpora"
# The SHA-256 values are those that the Hugging Face library `datasets` published for these very
# addresses (datasets/conll2000 and datasets/conll2002, dataset_infos.json). For CoNLL-2000, they
# also belong to the unpacked files of the shared task's own site (CorpusLoaders.jl lists them),
# and the MD5 sums in torchtext agree.
_SHA256 = {
    "conll2000/train": "82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea",
    "conll2000/test": "73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628",
    "conll2002-esp/train": "a20d95cab7d88a19a86f8c1ad6329325c99fbd9529ed978cbd7e31d4b01b4008",
    "conll2002-esp/testa": "85c17793b77881c53d19017d9d0f1e6fb98b7ddcab54a5f24b05ed1793103c87",
    "conll2002-esp/testb": "1f8f7a392c6d4979a5592a5794eed43d7869b46da6851bbcde99714149f1d016",
    "conll2002-ned/train": "0a419dcb356b62c8cff38515675550b3d5dbea9f45a1c4956328dbd5cc7fcdbc",
    "conll2002-ned/testa": "51259d4bfe52462f211d3d0b67173a7ecbfa296e199f6c6bd0895f4c78155057",
    "conll2002-ned/testb": "2aa748edb82e6f9c4d82e57a4bed69ded18cfa4803122c75070335d513517488",
}


def _conll(key, sha256):
    """File of a CoNLL shared task."""
    corpus, _, subset = key.partition("/")
    prepared = f"{key}.txt.gz"
    if corpus == "conll2000":
        site = "https://www.clips.uantwerpen.be/conll2000/chunking"
        kept, urls = prepared, (f"{site}/{subset}.txt.gz", f"{_MIRROR}/{key}.txt")
    else:
        name = f"{corpus.removeprefix('conll2002-')}.{subset}"
        kept, urls = f"{corpus}/{name}", (f"{_MIRROR}/conll2002/{name}",)
    return Original(prepared, kept, urls, content_sha256, sha256)


ORIGINALS = {key: _conll(key, sha256) for key, sha256 in _SHA256.items()}
# No checksum of this file was ever published: this one is of the words in it.
ORIGINALS["ocr"] = Original(
    prepared="ocr.npz",
    kept="ocr/letter.data.gz",
    urls=("https://ai.stanford.edu/~btaskar/ocr/letter.data.gz",),
    fingerprint=words_sha256,
    expected="07f5175208d4ea79219666a2d8d315c3199551323889b6e8454453eac543a45b",
)


def obtained(key, data_home, download_if_missing):
    """Return the path of a local corpus file, downloaded if it is missing.

    The folder in the environment variable SKSTRUCT_DATA is searched first, then `data_home`. Files
    found there are not verified, but downloads are.

    Parameters
    ----------
    key : str
        Key of `ORIGINALS`.
    data_home : str, path-like or None
        Folder for downloads. By default, the folder in SKSTRUCT_DATA if it is writable, else
        ~/skstruct_data.
    download_if_missing : bool
        Download a missing file, instead of raising an error.

    Returns
    -------
    path : Path
        Path of the prepared file or the original.

    Raises
    ------
    OSError
        If the file is missing and `download_if_missing` is False, or the download fails, has a
        wrong checksum, or cannot be written.
    """
    original = ORIGINALS[key]
    shared = os.environ.get(_VARIABLE)
    folders = [Path(shared).expanduser()] if shared else []
    if data_home is not None:
        folders.append(Path(data_home).expanduser())
    elif not folders or (folders[0].exists() and not os.access(folders[0], os.W_OK)):
        folders.append(_default_home())
    for folder in folders:
        for name in (original.prepared, original.kept):
            if (folder / name).is_file():
                return folder / name

    target = folders[-1] / original.kept
    advice = (
        f"To provide the file yourself, get it from {original.urls[0]} and save it unchanged as "
        f"{target}, or set the environment variable {_VARIABLE} to a folder with "
        f"{original.prepared}."
    )
    if not download_if_missing:
        raise OSError(f"{target} is missing, and download_if_missing=False. {advice}")
    content = _downloaded(original, advice)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, content)
    except OSError as error:
        raise OSError(f"{target} cannot be written ({error}). {_OTHER_FOLDER}") from error
    return target


def _default_home():
    path = Path(os.path.expanduser("~/skstruct_data"))  # Path.expanduser would raise without a home
    # Without a home, or with a relative one, it would be below the current folder.
    if not path.is_absolute():
        raise OSError(f"There is no home folder for downloads. {_OTHER_FOLDER}")
    return path


def _downloaded(original, advice):
    # `pooch.retrieve` would hash the file as sent, and create it unreadable for other users.
    failures = []
    for url in original.urls:
        buffer = io.BytesIO()
        try:
            pooch.HTTPDownloader(chunk_size=1 << 16)(url, buffer, None)
            found = original.fingerprint(buffer.getvalue())
        except (OSError, ValueError, zlib.error) as error:  # requests' errors are OSErrors
            failures.append(f"{url}: {error}")
            continue
        if found == original.expected:
            return buffer.getvalue()
        failures.append(
            f"{url}: wrong checksum; the content has SHA-256 {found}, not {original.expected}"
        )
    raise OSError("\n  ".join(["The download failed.", *failures]) + f"\n{advice}")


@set_module("skstruct.datasets")
def fetch_conll2000(*, subset="train", data_home=None, download_if_missing=True, return_X_y=False):
    """Fetch the corpus of the CoNLL-2000 shared task: phrase chunking of English.

    Wall Street Journal text with parts of speech and chunks. Labels are in the IOB2 scheme:
    ``B-NP`` on the first word of a noun phrase, ``I-NP`` on the others, and so on for ten more
    kinds of phrases, ``O`` outside. The scores in papers are chunk F1.

    =======  =========  =======  ======
    Subset   Sentences  Tokens   Labels
    =======  =========  =======  ======
    train    8,936      211,727  22
    test     2,012      47,377   19
    =======  =========  =======  ======

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        Sections 15-18 of the Wall Street Journal corpus, or section 20.
    data_home : str or path-like, default=None
        Folder for downloads. By default, the folder in the environment variable
        ``SKSTRUCT_DATA`` if that is set and writable, else ``~/skstruct_data``. The folder in
        ``SKSTRUCT_DATA`` is always searched first.
    download_if_missing : bool, default=True
        Download the corpus if it is missing, instead of raising an OSError.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    dataset : Bunch or tuple of (list of list of tuple, list of list of str)
        Bunch with the fields

        data : list of list of tuple of (str, str)
            The sentences; a token is a word and its part of speech.
        target : list of list of str
            The labels.
        target_names : list of str
            The labels that occur in this subset, sorted.
        DESCR : str
            Description.

    Raises
    ------
    ValueError
        If `subset` is unknown, or a local file cannot be parsed.
    OSError
        If the corpus is missing and `download_if_missing` is False, if the download fails or has
        a wrong checksum, or if the file cannot be written. The message says what to do.

    References
    ----------
    .. [1] E. F. Tjong Kim Sang and S. Buchholz, "Introduction to the CoNLL-2000 shared task:
       Chunking", CoNLL-2000.
    """
    check_choice("subset", subset, ("train", "test"))
    path = obtained(f"conll2000/{subset}", data_home, download_if_missing)
    return make_bunch(*read_conll(path), fetch_conll2000, return_X_y)


@set_module("skstruct.datasets")
def fetch_conll2002(
    *, language="esp", subset="train", data_home=None, download_if_missing=True, return_X_y=False
):
    """Fetch the corpora of the CoNLL-2002 shared task: named entities in Spanish and Dutch.

    Newspaper text with parts of speech and the names of persons (PER), organisations (ORG),
    locations (LOC) and others (MISC). Labels are in the IOB2 scheme: ``B-PER`` on the first word
    of a person's name, ``I-PER`` on the others, ``O`` outside. The scores in papers are chunk F1
    on "testb"; "testa" is for development.

    ==========  =======  =========  =======
    Language    Subset   Sentences  Tokens
    ==========  =======  =========  =======
    esp         train    8,323      264,715
    esp         testa    1,915      52,923
    esp         testb    1,517      51,533
    ned         train    15,806     202,644
    ned         testa    2,895      37,687
    ned         testb    5,195      68,875
    ==========  =======  =========  =======

    The document marks of the Dutch files, which some papers count as tokens, are left out. Each
    of the Spanish files has one label that breaks the scheme, an ``I-`` after an ``O``.

    Parameters
    ----------
    language : {"esp", "ned"}, default="esp"
        Spanish or Dutch, as the corpus calls them.
    subset : {"train", "testa", "testb"}, default="train"
        Training, development or test data.
    data_home : str or path-like, default=None
        Folder for downloads. By default, the folder in the environment variable
        ``SKSTRUCT_DATA`` if that is set and writable, else ``~/skstruct_data``. The folder in
        ``SKSTRUCT_DATA`` is always searched first.
    download_if_missing : bool, default=True
        Download the corpus if it is missing, instead of raising an OSError.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    dataset : Bunch or tuple of (list of list of tuple, list of list of str)
        Bunch with the fields

        data : list of list of tuple of (str, str)
            The sentences; a token is a word and its part of speech.
        target : list of list of str
            The labels.
        target_names : list of str
            The labels that occur in this subset, sorted.
        DESCR : str
            Description.

    Raises
    ------
    ValueError
        If `language` or `subset` is unknown, or a local file cannot be parsed.
    OSError
        If the corpus is missing and `download_if_missing` is False, if the download fails or has
        a wrong checksum, or if the file cannot be written. The message says what to do.

    References
    ----------
    .. [1] E. F. Tjong Kim Sang, "Introduction to the CoNLL-2002 shared task:
       Language-independent named entity recognition", CoNLL-2002.
    """
    check_choice("language", language, ("esp", "ned"))
    check_choice("subset", subset, ("train", "testa", "testb"))
    path = obtained(f"conll2002-{language}/{subset}", data_home, download_if_missing)
    return make_bunch(*read_conll(path), fetch_conll2002, return_X_y)


@set_module("skstruct.datasets")
def fetch_ocr_letters(
    *, subset="train", data_home=None, download_if_missing=True, return_X_y=False
):
    """Fetch the handwritten words of the OCR task of Taskar et al.

    Words written by 150 people, cut into letters of 16 x 8 black and white pixels. The first
    letter of each word, a capital, is left out. "test" is the first of the ten folds, "train" the
    other nine.

    =======  =====  =======
    Subset   Words  Letters
    =======  =====  =======
    train    6,251  47,535
    test     626    4,617
    =======  =====  =======

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        Folds 1 to 9, or fold 0.
    data_home : str or path-like, default=None
        Folder for downloads. By default, the folder in the environment variable
        ``SKSTRUCT_DATA`` if that is set and writable, else ``~/skstruct_data``. The folder in
        ``SKSTRUCT_DATA`` is always searched first.
    download_if_missing : bool, default=True
        Download the data if they are missing, instead of raising an OSError.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    dataset : Bunch or tuple of (list of ndarray, list of ndarray)
        Bunch with the fields

        data : list of ndarray of shape (n_letters, 128), dtype uint8
            The pixels of each word, 0 or 1, row by row.
        target : list of ndarray of shape (n_letters,), dtype str
            The letters, a to z.
        target_names : list of str
            The letters that occur in this subset, sorted.
        DESCR : str
            Description.

    Raises
    ------
    ValueError
        If `subset` is unknown, or a local file cannot be parsed.
    OSError
        If the data are missing and `download_if_missing` is False, if the download fails or has a
        wrong checksum, or if the file cannot be written. The message says what to do.

    References
    ----------
    .. [1] B. Taskar, C. Guestrin and D. Koller, "Max-margin Markov networks", NIPS 2003.
    """
    check_choice("subset", subset, ("train", "test"))
    path = obtained("ocr", data_home, download_if_missing)
    read = _prepared_letters if path.suffix == ".npz" else _original_letters
    return make_bunch(*read(path, subset), fetch_ocr_letters, return_X_y)


def _prepared_letters(path, subset):
    try:
        with np.load(path) as arrays:
            pixels = np.unpackbits(arrays[f"X_{subset}"], axis=1)
            letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))[arrays[f"y_{subset}"]]
            starts = np.cumsum(arrays[f"lengths_{subset}"])[:-1]
    except (ValueError, LookupError, EOFError, BadZipFile) as error:
        raise ValueError(f"{path}: the file is truncated or damaged ({error})") from error
    return np.split(pixels, starts), np.split(letters, starts)


def _original_letters(path, subset):
    pixels, letters = [], []
    for fold, word, images in parsed_words(path.read_bytes(), str(path)):
        if (fold == 0) == (subset == "test"):
            pixels.append(images)
            letters.append(np.array(list(word)))
    return pixels, letters
