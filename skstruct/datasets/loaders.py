"""Loaders of packaged data, and fetchers of public corpora."""

import inspect
from importlib import resources

import numpy as np
from sklearn.utils import Bunch, check_random_state

from skstruct.datasets.conll import read_conll
from skstruct.datasets.originals import obtained, parsed_words
from skstruct.utils.public_paths import set_module

__all__ = [
    "fetch_conll2000",
    "fetch_conll2002",
    "fetch_ocr_letters",
    "load_addresses",
    "load_digit_sequences",
]

_N_TRAIN = 1198  # two thirds of the images, in the order of scikit-learn
_AREA_CODES = ("201", "212", "305", "415", "512", "617", "702", "808")


@set_module("skstruct.datasets")
def load_addresses(*, return_X_y=False):
    """Load postal addresses, labelled with their components.

    538 addresses in the formats of more than twenty countries, two thirds of them from the
    English-speaking ones, written for this library: people and house numbers are invented, and no
    address is meant to exist. Small enough to learn from in seconds, and hard enough to tell
    models apart: lower case, capitals, misspellings, missing commas and missing parts.

    ==========  ==========================================================================
    Component   Covers
    ==========  ==========================================================================
    RECIPIENT   people, firms and departments, with "c/o" or "Attn"
    BUILDING    named or lettered buildings, farms, estates
    UNIT        flats, suites, floors, rooms, shops, lots
    POBOX       post office boxes, rural routes, poste restante
    NUMBER      house numbers, with their letters, fractions and "bis"
    STREET      streets with their type and direction
    DISTRICT    what lies between street and city: villages, quarters, postal stations
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
        Whether to return ``(data, target)`` and not a Bunch.

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
    return _text_bunch(tokens, labels, load_addresses, return_X_y)


@set_module("skstruct.datasets")
def load_digit_sequences(
    *, n_sequences=500, subset="all", noise=0.0, random_state=0, return_X_y=False
):
    """Compose handwritten numbers from scikit-learn's images of digits.

    A sequence is a number as people write them, and each of its digits is an image. What the
    images leave open, the neighbours often settle. The kinds of numbers:

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
        How many numbers to compose.
    subset : {"all", "train", "test"}, default="all"
        Which images to draw from. The first 1198 of the 1797 images are "train", the others
        "test", whatever the `random_state`: no image occurs in both subsets. The same
        `random_state` gives different numbers for different subsets.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise added to the pixels, which stay within 0 to 16.
        The more noise, the more depends on the neighbours.
    random_state : int, RandomState instance or None, default=0
        Determines the numbers, the images and the noise.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` and not a Bunch.

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
        If `subset` is none of the three, `n_sequences` less than 1, or `noise` negative.

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
    _check_option("subset", subset, subsets)
    if n_sequences < 1:
        raise ValueError(f"n_sequences must be at least 1, got {n_sequences}")
    if not noise >= 0:
        raise ValueError(f"noise must not be negative, got {noise}")
    # A stream of its own for each subset: else the test numbers would be the training numbers.
    seeds = check_random_state(random_state).randint(np.iinfo(np.int32).max, size=len(subsets))
    rng = np.random.RandomState(seeds[subsets.index(subset)])

    # Here, because of all that sklearn.datasets imports.
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    first, last = {"all": (0, None), "train": (0, _N_TRAIN), "test": (_N_TRAIN, None)}[subset]
    images, digits = images[first:last], digits[first:last]
    pool = [np.flatnonzero(digits == digit) for digit in range(10)]

    kinds = [list(_COMPOSERS)[i] for i in rng.randint(len(_COMPOSERS), size=n_sequences)]
    target = [np.array([int(digit) for digit in _COMPOSERS[kind](rng)]) for kind in kinds]
    data = [images[[rng.choice(pool[digit]) for digit in number]] for number in target]
    if noise:
        data = [np.clip(rows + noise * rng.standard_normal(rows.shape), 0, 16) for rows in data]
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        kind=kinds,
        target_names=list(range(10)),
        DESCR=_description(load_digit_sequences),
    )


def _year(rng):
    return str(rng.randint(1900, 2030))


def _date(rng):
    return f"{_year(rng)}{rng.randint(1, 13):02}{rng.randint(1, 32):02}"


def _time(rng):
    return f"{rng.randint(24):02}{5 * rng.randint(12):02}"


def _phone(rng):
    return f"{_AREA_CODES[rng.randint(len(_AREA_CODES))]}55501{rng.randint(100):02}"


def _price(rng):
    return f"{rng.randint(1, 10 ** rng.randint(1, 4))}{('00', '49', '95', '99')[rng.randint(4)]}"


def _count(rng):
    start, step, length = rng.randint(10), rng.choice([-1, 1]), rng.randint(5, 13)
    return "".join(str((start + step * i) % 10) for i in range(length))


_COMPOSERS = {
    "year": _year,
    "date": _date,
    "time": _time,
    "phone": _phone,
    "price": _price,
    "count": _count,
}


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
        Folder for downloads. None stands for the folder named by the environment variable
        ``SKSTRUCT_DATA`` if that is set and can be written to, else for ``~/skstruct_data``. The
        folder named by ``SKSTRUCT_DATA`` is searched first in any case.
    download_if_missing : bool, default=True
        Whether to download the corpus if it is not there, or to raise an OSError.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` and not a Bunch.

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
        If there is no such subset, or a file found on this machine cannot be parsed.
    OSError
        If the corpus is missing and may not or cannot be downloaded, if what was downloaded has
        the wrong checksum, or if it cannot be stored. The message says what to do.

    References
    ----------
    .. [1] E. F. Tjong Kim Sang and S. Buchholz, "Introduction to the CoNLL-2000 shared task:
       Chunking", CoNLL-2000.
    """
    _check_option("subset", subset, ("train", "test"))
    path = obtained(f"conll2000/{subset}", data_home, download_if_missing)
    return _text_bunch(*read_conll(path), fetch_conll2000, return_X_y)


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

    The marks between the documents of the Dutch files, which some count as tokens, are left out.
    Each of the Spanish files has one label that breaks the scheme, an ``I-`` after an ``O``.

    Parameters
    ----------
    language : {"esp", "ned"}, default="esp"
        Spanish or Dutch, as the corpus calls them.
    subset : {"train", "testa", "testb"}, default="train"
        Training, development or test data.
    data_home : str or path-like, default=None
        Folder for downloads. None stands for the folder named by the environment variable
        ``SKSTRUCT_DATA`` if that is set and can be written to, else for ``~/skstruct_data``. The
        folder named by ``SKSTRUCT_DATA`` is searched first in any case.
    download_if_missing : bool, default=True
        Whether to download the corpus if it is not there, or to raise an OSError.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` and not a Bunch.

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
        If there is no such language or subset, or a file found on this machine cannot be parsed.
    OSError
        If the corpus is missing and may not or cannot be downloaded, if what was downloaded has
        the wrong checksum, or if it cannot be stored. The message says what to do.

    References
    ----------
    .. [1] E. F. Tjong Kim Sang, "Introduction to the CoNLL-2002 shared task:
       Language-independent named entity recognition", CoNLL-2002.
    """
    _check_option("language", language, ("esp", "ned"))
    _check_option("subset", subset, ("train", "testa", "testb"))
    path = obtained(f"conll2002-{language}/{subset}", data_home, download_if_missing)
    return _text_bunch(*read_conll(path), fetch_conll2002, return_X_y)


@set_module("skstruct.datasets")
def fetch_ocr_letters(
    *, subset="train", data_home=None, download_if_missing=True, return_X_y=False
):
    """Fetch the handwritten words of the OCR task of Taskar et al.

    Words written by 150 people, cut into letters of 16 x 8 black and white pixels. The first
    letter of each word, a capital, was left out. "test" is the first of the
    ten folds, "train" the other nine.

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
        Folder for downloads. None stands for the folder named by the environment variable
        ``SKSTRUCT_DATA`` if that is set and can be written to, else for ``~/skstruct_data``. The
        folder named by ``SKSTRUCT_DATA`` is searched first in any case.
    download_if_missing : bool, default=True
        Whether to download the data if they are not there, or to raise an OSError.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` and not a Bunch.

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
        If there is no such subset, or a file found on this machine cannot be parsed.
    OSError
        If the data are missing and may not or cannot be downloaded, if what was downloaded has
        the wrong checksum, or if it cannot be stored. The message says what to do.

    References
    ----------
    .. [1] B. Taskar, C. Guestrin and D. Koller, "Max-margin Markov networks", NIPS 2003.
    """
    _check_option("subset", subset, ("train", "test"))
    path = obtained("ocr", data_home, download_if_missing)
    read = _prepared_letters if path.suffix == ".npz" else _original_letters
    data, target = read(path, subset)
    if return_X_y:
        return data, target
    names = sorted(set(np.concatenate(target).tolist()))
    return Bunch(
        data=data, target=target, target_names=names, DESCR=_description(fetch_ocr_letters)
    )


def _prepared_letters(path, subset):
    with np.load(path) as arrays:
        pixels = np.unpackbits(arrays[f"X_{subset}"], axis=1)
        letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))[arrays[f"y_{subset}"]]
        starts = np.cumsum(arrays[f"lengths_{subset}"])[:-1]
    return np.split(pixels, starts), np.split(letters, starts)


def _original_letters(path, subset):
    words = [
        (letters, pixels)
        for fold, letters, pixels in parsed_words(path.read_bytes(), str(path))
        if (fold == 0) == (subset == "test")
    ]
    return [pixels for _, pixels in words], [np.array(list(letters)) for letters, _ in words]


def _text_bunch(tokens, labels, source, return_X_y):
    if return_X_y:
        return tokens, labels
    names = sorted({label for sequence in labels for label in sequence})
    return Bunch(data=tokens, target=labels, target_names=names, DESCR=_description(source))


def _description(function):
    """Return what a docstring says before its sections."""
    return (inspect.getdoc(function) or "").partition("\n\nParameters\n")[0]


def _check_option(name, value, options):
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
