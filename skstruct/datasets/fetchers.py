"""Fetchers of public corpora, which are downloaded once and then read from disk."""

from zipfile import BadZipFile

import numpy as np
from sklearn.utils import Bunch

from skstruct.datasets.bunches import description, text_bunch
from skstruct.datasets.conll import read_conll
from skstruct.datasets.originals import obtained, parsed_words
from skstruct.utils.options import check_choice
from skstruct.utils.public_paths import set_module

__all__ = ["fetch_conll2000", "fetch_conll2002", "fetch_ocr_letters"]


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
    return text_bunch(*read_conll(path), fetch_conll2000, return_X_y)


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
    return text_bunch(*read_conll(path), fetch_conll2002, return_X_y)


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
    data, target = read(path, subset)
    if return_X_y:
        return data, target
    names = sorted(set(np.concatenate(target).tolist()))
    return Bunch(data=data, target=target, target_names=names, DESCR=description(fetch_ocr_letters))


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
    words = [
        (letters, pixels)
        for fold, letters, pixels in parsed_words(path.read_bytes(), str(path))
        if (fold == 0) == (subset == "test")
    ]
    return [pixels for _, pixels in words], [np.array(list(letters)) for letters, _ in words]
