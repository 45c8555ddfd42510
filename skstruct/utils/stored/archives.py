"""Files of skops, before anything of them is read."""

from __future__ import annotations

import zipfile
from math import prod

from numpy.lib import format as numpy_format

from skstruct.utils.memory import require_memory

__all__ = ["check_archive"]


def check_archive(path):
    """Check that what a file holds fits into memory, and that its arrays are as long as they say.

    A file may be small, and what it unpacks large.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    ValueError
        If an array has fewer numbers than its header says, or the file is no archive.
    MemoryError
        If all of them need more memory than there is.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
            require_memory(
                sum(sizes.values()), f"The contents of {path}", "Load it where there is more."
            )
            for name, size in sizes.items():
                if name.endswith(".npy"):
                    with archive.open(name) as file:
                        _check_header(file, size)
    except zipfile.BadZipFile as error:
        raise ValueError(f"the file is damaged: {error}") from error


def _check_header(file, size):
    readers = {
        (1, 0): numpy_format.read_array_header_1_0,
        (2, 0): numpy_format.read_array_header_2_0,
    }
    version = numpy_format.read_magic(file)
    if version not in readers:
        raise ValueError(f"it has an array in the format {version}.")
    shape, _, dtype = readers[version](file)
    if prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of the shape {shape} has only {size} bytes.")
