"""Classes of processors that kernels are compiled for, and which of them this one belongs to."""

from __future__ import annotations

import platform
from functools import lru_cache

import llvmlite.binding as llvm

__all__ = ["all_baselines", "baselines", "host_baselines", "host_features"]

# The levels of the x86-64 psABI, with LLVM's names of their features.
_V2 = "cmov cx8 cx16 fxsr mmx popcnt sahf sse sse2 sse3 sse4.1 sse4.2 ssse3"
_V3 = f"{_V2} avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave"
_V4 = f"{_V3} avx512bw avx512cd avx512dq avx512f avx512vl"
_X86 = {"x86-64-v4": _V4, "x86-64-v3": _V3, "x86-64-v2": _V2}
_ARM = {"generic": ""}
# For each kind of machine LLVM's names of processors, the best ones first, and what they must have.
_BASELINES = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}


@lru_cache(maxsize=1)
def host_features():
    """LLVM's names of the features of this processor; none where LLVM does not know them."""
    try:
        return frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    except RuntimeError:
        return frozenset()


def baselines():
    """Baselines for this kind of processor and the features that they need, best first."""
    found = _BASELINES.get(platform.machine().lower(), {})
    return {name: frozenset(features.split()) for name, features in found.items()}


def host_baselines():
    """Names of the baselines that this processor meets, best first."""
    return [name for name, needed in baselines().items() if needed <= host_features()]


def all_baselines():
    """Names of the baselines of this kind of processor; those that it meets come first."""
    return list(dict.fromkeys([*host_baselines(), *baselines()]))
