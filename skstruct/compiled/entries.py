"""Compiled kernels as bytes: numba's own serialised results, with a hash and the symbols needed.

Next to machine code numba keeps LLVM bitcode, which is only needed when another kernel that is
compiled here calls the one that was loaded. Parsing it takes most of the time of loading, so it is
kept apart and parsed on demand.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from typing import NamedTuple

import llvmlite.binding as llvm
from numba.core.codegen import CPUCodeLibrary, JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import CompileResult
from numba.core.options import DefaultOptions
from numba.core.serialize import dumps

from skstruct.compiled.library import CalledLibrary, libraries_of
from skstruct.compiled.symbols import undefined_symbols

__all__ = ["DamagedEntry", "Entry", "load_entry", "make_entry", "read_entry", "supported"]

_MAGIC = b"skstruct kernel\n"
_DIGEST = hashlib.sha256().digest_size
_HEAD = len(_MAGIC) + _DIGEST + 8


class DamagedEntry(Exception):
    """Bytes that are not what was written."""


class Entry(NamedTuple):
    """One compiled kernel."""

    code: bytes  # pickled (signature, reduced result, undefined symbols)
    read_bitcode: Callable  # returns bytes

    def pack(self):
        """The entry as the content of a file."""
        content = len(self.code).to_bytes(8, "little") + self.code + self.read_bitcode()
        return _MAGIC + hashlib.sha256(content).digest() + content


def read_entry(content):
    """Entry of the content of a file."""
    digest, body = content[len(_MAGIC) : _HEAD - 8], content[_HEAD - 8 :]
    if content[: len(_MAGIC)] != _MAGIC or hashlib.sha256(body).digest() != digest:
        raise DamagedEntry
    middle = 8 + int.from_bytes(body[:8], "little")
    return Entry(body[8:middle], lambda: body[middle:])


def supported():
    """Return True if this release of numba has the private names that are used here."""
    return all(
        hasattr(kind, name)
        for kind, name in (
            (CompileResult, "_reduce"),
            (CompileResult, "_rebuild"),
            (CompileResult, "_find_referenced_environments"),
            (CPUCodeLibrary, "_get_module_for_linking"),
            (CPUCodeLibrary, "_finalize_dynamic_globals"),
            (CPUCodeLibrary, "_finalize_final_module"),
            (CPUCodeLibrary, "_unserialize"),
            (CPUCodeLibrary, "_verify_declare_only_symbols"),
            (JITCPUCodegen, "_library_class"),
            (DefaultOptions, "no_cpython_wrapper"),
        )
    )


def make_entry(signature, result):
    """Entry of a result of numba's compiler; None if it must not be kept."""
    if result.library.has_dynamic_globals or any(not x.can_cache for x in result.lifted):
        return None
    # The annotation is a listing of the source for people, and long.
    library, *rest = result._replace(type_annotation="")._reduce()
    name, kind, (code, bitcode) = library
    names = result.fndesc.llvm_func_name, result.fndesc.llvm_cpython_wrapper_name
    stub = _stub(*(name for name in names if result.library.get_pointer_to_function(name)))
    reduced = ((name, kind, (code, stub)), *rest)
    symbols = undefined_symbols(code) if code else []
    return Entry(dumps((signature, reduced, symbols)), lambda: bitcode)


def _stub(*names):
    """Bitcode that takes the place of the real one: it names what the machine code defines.

    The names stand for bytes, not functions: whatever tries to call them fails to link.
    """
    lines = [f'@"{name}" = global i8 0' for name in names]
    return llvm.parse_assembly("\n".join(lines)).as_bitcode()


def load_entry(entry, signature, target):
    """Result of numba's compiler, made from an entry; None if it does not belong here."""
    kept_signature, reduced, symbols = pickle.loads(entry.code)
    # LLVM ends the process where a symbol is missing.
    if kept_signature != signature or not all(map(llvm.address_of_symbol, symbols)):
        return None
    code = reduced[0][2][0]
    with libraries_of(target, JITCodeLibrary if code else CalledLibrary):
        result = CompileResult._rebuild(target, *reduced)
    parsed = []

    def module_for_linking():
        if not parsed:
            parsed.append(llvm.parse_bitcode(entry.read_bitcode()))
        return parsed[0]

    result.library._get_module_for_linking = module_for_linking
    return result
