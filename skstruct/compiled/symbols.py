"""Undefined symbols of an object file, read from its own symbol table.

The text of an LLVM module does not tell them all: code generation adds calls to ``memcpy``,
``exp`` and the like.
"""

from __future__ import annotations

import struct

__all__ = ["undefined_symbols"]

_ELF_SYMBOL_TABLE = 2
_MACHO_SYMBOL_TABLE = 2
_COFF_EXTERNAL = 2
_COFF_MACHINES = (0x8664, 0xAA64)  # x86-64 and arm64


def undefined_symbols(code):
    """Sorted names of the symbols that the code expects its process to have.

    Parameters
    ----------
    code : bytes
        Object file for a 64-bit little-endian processor: ELF, Mach-O or COFF.

    Raises
    ------
    ValueError
        If the file has another format.
    """
    if code[:6] == b"\x7fELF\x02\x01":
        names = _elf(code)
    elif code[:4] == b"\xcf\xfa\xed\xfe":
        names = _macho(code)
    elif struct.unpack_from("<H", code)[0] in _COFF_MACHINES:
        names = _coff(code)
    else:
        raise ValueError("Unknown format of object file.")
    return sorted({name.decode() for name in names} - {""})


def _string(code, start):
    return code[start : code.index(b"\0", start)]


def _elf(code):
    (sections,) = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQI", code, sections + i * size) for i in range(count)]
    for _, kind, _, _, start, length, link in headers:
        if kind != _ELF_SYMBOL_TABLE:
            continue
        strings = headers[link][4]
        for name, _, _, section, _, _ in struct.iter_unpack(
            "<IBBHQQ", code[start : start + length]
        ):
            if section == 0:
                yield _string(code, strings + name)


def _macho(code):
    (n_commands,) = struct.unpack_from("<I", code, 16)
    place = 32
    for _ in range(n_commands):
        command, size = struct.unpack_from("<II", code, place)
        if command == _MACHO_SYMBOL_TABLE:
            start, count, strings, _ = struct.unpack_from("<IIII", code, place + 8)
            for name, kind, _, _, value in struct.iter_unpack(
                "<IBBHQ", code[start : start + 16 * count]
            ):
                # External and undefined; those with a value are common blocks.
                if kind & 0x0F == 1 and value == 0:
                    yield _string(code, strings + name).removeprefix(b"_")
        place += size


def _coff(code):
    start, count = struct.unpack_from("<II", code, 8)
    strings = start + 18 * count
    number = 0
    while number < count:
        name, value, section, _, storage, n_more = struct.unpack_from(
            "<8sIhHBB", code, start + 18 * number
        )
        if section == 0 and storage == _COFF_EXTERNAL and value == 0:
            if name[:4] == b"\0\0\0\0":
                yield _string(code, strings + struct.unpack_from("<I", name, 4)[0])
            else:
                yield name.rstrip(b"\0")
        number += 1 + n_more
