"""Loaders of data sets that come with this package or with scikit-learn."""

import inspect
from importlib import resources

import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import Bunch, check_random_state

from skstruct.datasets.conll import read_conll
from skstruct.metrics.labels import as_list
from skstruct.utils.options import check_choice
from skstruct.utils.public_paths import set_module


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
