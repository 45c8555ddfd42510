"""Versions of dependencies, and origins of compiled kernels."""

import platform
from collections import Counter
from importlib.metadata import PackageNotFoundError, version

import llvmlite.binding as llvm
import numba

from skstruct.compiled.archive import archive_report
from skstruct.compiled.cache import loaded_kernels, own_folders
from skstruct.compiled.folders import is_native, is_safe
from skstruct.compiled.keys import sources_unchanged
from skstruct.utils.persistence import set_module

PACKAGES = (
    "skstruct",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "llvmlite",
    "joblib",
    "pooch",
    "click",
    "skops",
)


@set_module("skstruct")
def show_versions():
    """Print versions and origins of kernels, for bug reports.

    These are the versions of Python and of the packages that skstruct needs, the processor, the
    kernels of the package that can be used on it, and the folders of the cache.

    Examples
    --------
    >>> import skstruct
    >>> skstruct.show_versions()
    Python ...
    """
    print(f"Python {platform.python_version()}, {platform.platform()}")
    for name in PACKAGES:
        try:
            print(f"{name} {version(name)}")
        except PackageNotFoundError:
            print(f"{name} (not installed)")
    print("\nKernels")
    for line in _kernel_lines():
        print(f"  {line}")


def _kernel_lines():
    if numba.config.DISABLE_JIT:
        return ["not compiled: NUMBA_DISABLE_JIT is set"]
    folders = own_folders()
    origins = Counter(loaded.origin for loaded in loaded_kernels)
    cached, compiled = origins["cache"], origins["compiler"]
    shipped = origins.total() - cached - compiled
    lines = [f"processor: {llvm.get_host_cpu_name()}"]
    lines += [f"from the package, {line}" for line in archive_report()]
    for folder in folders:
        n_files = len(list(folder.glob("*.kernel")))
        note = "" if not folder.exists() or is_safe(folder) else ", not used: others may write here"
        lines.append(f"from the cache: {folder}, {n_files} kernels{note}")
    if is_native(folders):
        lines.append("the cache comes first, as `skstruct warm --native` has it")
    if not sources_unchanged():
        lines.append("neither is used: the sources of the kernels cannot be read, or were edited")
    lines.append(f"this process: {shipped} from the package, {cached} cached, {compiled} compiled")
    return lines
