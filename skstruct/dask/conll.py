"""`read_conll`: column files as partitions, a file or a block of one each."""

import re
from collections import deque
from copy import copy
from itertools import chain, pairwise, repeat
from numbers import Integral

from skstruct.dask.cluster import missing
from skstruct.datasets.conll import GZIP_MAGIC, TokenLines, open_line_blocks, starting_with
from skstruct.datasets.conll import read_conll as read_columns
from skstruct.utils.messages import short_repr
from skstruct.utils.persistence import set_module

_PIECE = 1 << 16
# A line end that follows another one. What follows a "\r" says whether it is whole.
_empty_lines = re.compile(rb"(?<=[\r\n])\r\n?|(?<=\n)\n").finditer
# Bytes of the longest such line end, and of the one before it.
_CONTEXT = 3


@set_module("skstruct.dask")
def read_conll(
    urlpath,
    *,
    columns=None,
    label=-1,
    encoding="utf-8",
    separator=None,
    comment=None,
    skip_docstart=True,
    blocksize=None,
    compression="infer",
    storage_options=None,
):
    r"""Read column files on the workers, a partition for each file or block of a file.

    Reads what :func:`skstruct.datasets.read_conll` reads, when a worker needs it. The files may be
    wherever `fsspec` finds them: on a disk that all workers have, in a bucket or in HDFS. Sequences
    end at empty lines, and a first line with names of columns is not expected.

    Parameters
    ----------
    urlpath : str, path-like, or list of these
        Paths or addresses such as ``"s3://bucket/part-*.conll"``, which may be globs.
    columns, label, encoding, separator, comment, skip_docstart : object
        As in :func:`skstruct.datasets.read_conll`.
    blocksize : int or str, default=None
        Least size of a block in bytes, or a text such as ``"64MB"``. Larger files are cut into
        blocks of about equal size, each a partition, at the next empty line: no sequence is cut.
        By default, each file is a partition. Compressed files cannot be cut.
    compression : str or None, default="infer"
        Compression that `fsspec` knows, by default told by the suffix. Gzipped files are recognised
        by their content.
    storage_options : dict, default=None
        Options of the file system, such as credentials.

    Returns
    -------
    X : list of Delayed
        For each partition the sequences, a list of lists of tokens.
    y : list of Delayed, or None
        Their labels. None if `label` is None.

    Raises
    ------
    ImportError
        If dask is missing.
    ValueError
        If `blocksize` is invalid, or is given for a compressed file or for an encoding whose line
        ends are not single bytes. When partitions are computed: as in
        :func:`skstruct.datasets.read_conll`, with the name of the file and the number of the line
        in it.
    OSError
        If a glob matches no file, or a file cannot be opened; that may be when partitions are
        computed.

    See Also
    --------
    skstruct.datasets.read_conll : Read one file in this process.
    DaskTagger : Learns from the partitions.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import dask
    >>> from skstruct.dask import read_conll
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, word in [("1.conll", "sleeps"), ("2.conll", "wakes")]:
    ...         _ = (Path(folder) / name).write_text(f"He B-NP\n{word} B-VP\n")
    ...     X, y = read_conll(f"{folder}/*.conll")
    ...     dask.compute(*X)
    ([['He', 'sleeps']], [['He', 'wakes']])
    >>> len(y)
    2
    """
    try:
        from dask.delayed import delayed  # optional
        from dask.utils import parse_bytes  # optional
        from fsspec.core import OpenFile, get_fs_token_paths  # optional
    except ImportError:
        raise missing() from None
    if isinstance(blocksize, str):
        blocksize = parse_bytes(blocksize)
    if blocksize is not None:
        _check_blocksize(blocksize, encoding)
    options = {"mode": "rb", "storage_options": dict(storage_options or {})}
    fs, _, paths = get_fs_token_paths(urlpath, **options)
    if not paths:
        raise FileNotFoundError(f"{short_repr(urlpath)} matches no file.")
    parameters = {
        "columns": columns,
        "label": label,
        "encoding": encoding,
        "separator": separator,
        "comment": comment,
        "skip_docstart": skip_docstart,
    }
    parts = []
    for path in paths:
        packed = OpenFile(fs, path, compression=compression).compression
        # Gzipped files are unpacked by the reader, which names the file if it is damaged.
        file = OpenFile(fs, path, compression=None if packed == "gzip" else packed)
        if blocksize is None:
            parts.append(delayed(_read_file, nout=2)(file, parameters))
        else:
            if packed is not None:
                raise _packed(file)
            bounds = _block_bounds(file, blocksize)
            parts += [
                delayed(_read_block, nout=2)(file, places, bounds[-1], parameters)
                for places in pairwise(bounds)
            ]
    X, y = zip(*parts, strict=True)
    return list(X), None if label is None else list(y)


def _check_blocksize(blocksize, encoding):
    if not (isinstance(blocksize, Integral) and blocksize >= 1):
        raise ValueError(
            "blocksize must be None, a positive integer or a text such as '64MB', got "
            f"{short_repr(blocksize)}."
        )
    if not "\n\n".encode(encoding).endswith(b"\n\n"):
        raise ValueError(
            f"Files in {encoding} cannot be cut into blocks, because their line ends are not "
            "single bytes. Leave blocksize out."
        )


def _packed(file):
    return ValueError(
        f"{_name(file)}: a compressed file cannot be cut into blocks. Leave blocksize out."
    )


def _block_bounds(file, blocksize):
    """Bounds of blocks of about equal size, at least `blocksize` bytes each."""
    size = file.fs.info(file.path)["size"]
    if size is None:
        raise ValueError(
            f"{_name(file)}: its file system does not know the size of the file, so it cannot be "
            "cut into blocks. Leave blocksize out."
        )
    n_blocks = max(1, size // blocksize)
    return [size * number // n_blocks for number in range(n_blocks + 1)]


def _name(file):
    """Path of a local file, address of any other."""
    from fsspec.implementations.local import LocalFileSystem  # optional

    return file.path if isinstance(file.fs, LocalFileSystem) else file.full_name


class _Pieces:
    """Pieces of bytes as a file object with a name."""

    def __init__(self, name, pieces):
        self.name = name
        self._pieces = filter(None, pieces)

    def read(self, size):
        return next(self._pieces, b"")


def _read_file(file, parameters):
    # A copy, because threads of a worker may share the object.
    with copy(file) as opened:
        return read_columns(_Pieces(_name(file), _pieces(opened)), **parameters)


def _read_block(file, places, size, parameters):
    """Read the tokens and labels of a block of a file.

    Parameters
    ----------
    file : OpenFile
    places : (int, int)
        Offsets after which the block begins and ends, at the next empty lines.
    size : int
        Bytes of the file.
    parameters : dict
        For the reader.
    """
    name, encoding, label = _name(file), parameters["encoding"], parameters["label"]
    layout = {key: parameters[key] for key in ("columns", "separator", "skip_docstart")}
    lines, skip = TokenLines(name, label, **layout), starting_with(parameters["comment"])

    def read(pieces):
        with open_line_blocks(_Pieces(name, pieces), encoding) as (_, blocks):
            yield from lines.sequences(blocks, skip)

    with copy(file) as opened:
        if opened.read(len(GZIP_MAGIC)) == GZIP_MAGIC:
            raise _packed(file)
        start, stop = (_next_cut(opened, byte, size) for byte in places)
        # The first line of the file that has a token fixes the columns of all others.
        next(read(_pieces(opened)))
        try:
            # After a line end, a byte order mark is a character.
            before = [b"\n"] if start else []
            sequences = list(read(chain(before, _pieces(opened, start, stop))))
        except ValueError:
            # Once more, after as many empty lines as precede the block: the error then has the
            # number of the line in the file.
            before = _lines_before(opened, start, encoding)
            deque(read(chain(before, _pieces(opened, start, stop))), maxlen=0)
            raise
    tokens, labels = ([pair[k] for pair in sequences] for k in (0, 1))
    return tokens, None if label is None else labels


def _pieces(opened, start=0, stop=float("inf")):
    """Yield pieces of an open file between two offsets."""
    opened.seek(start)
    while start < stop:
        piece = opened.read(int(min(_PIECE, stop - start)))
        if not piece:
            return
        start += len(piece)
        yield piece


def _next_cut(opened, byte, size):
    """Offset after the first empty line that ends at or after a byte, else the end of the file.

    It depends on nothing but the file, so neighbouring blocks agree about it.
    """
    if byte in (0, size):
        return byte
    start, text = max(byte - _CONTEXT, 0), b""
    for piece in chain(_pieces(opened, start), [b""]):
        text += piece
        for match in _empty_lines(text):
            whole = match.end() < len(text) or not piece
            if whole and start + match.end() >= byte:
                return start + match.end()
        kept = text[-_CONTEXT:]
        start, text = start + len(text) - len(kept), kept
    return size


def _lines_before(opened, stop, encoding):
    """Yield pieces of empty lines, one for each line of the file before an offset."""
    with open_line_blocks(_Pieces("", _pieces(opened, 0, stop)), encoding) as (_, blocks):
        n_full, n_more = divmod(sum(map(len, blocks)) - 1, _PIECE)
    return chain(repeat(b"\n" * _PIECE, n_full), [b"\n" * n_more])
