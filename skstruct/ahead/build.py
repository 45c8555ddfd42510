"""Build the archives of compiled kernels that wheels carry.

    python -m skstruct.ahead.build FOLDER --baselines x86-64-v3,x86-64-v4

The first baseline is one that this processor meets: its kernels are called while they are compiled,
which tells the types of their arguments. For the others they are compiled and never called.

The work is cut into parts, each with a process, a cache and numbers of its own, so that archives do
not depend on how many processes there are.
"""

from __future__ import annotations

import argparse
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import numba

from skstruct.ahead.warm import number_symbols_from
from skstruct.ahead.workload import run_step, steps
from skstruct.chain.family import Family
from skstruct.compiled.archive import archive_name, write_archive
from skstruct.compiled.cache import own_folders, uses
from skstruct.compiled.entries import read_entry
from skstruct.compiled.folders import read_file
from skstruct.compiled.keys import PACKAGES, file_name, find_kernel
from skstruct.compiled.processors import all_baselines, host_baselines

__all__ = ["all_kernels", "build", "called_kernels"]

# The estimators of each part share kernels; one more part is for those that are not listed.
PARTS = (
    ("CRFTagger",),
    ("AROWTagger", "PerceptronTagger", "MIRATagger", "SAPOTagger"),
    ("SDCACRF",),
)
N_PARTS = len(PARTS) + 1


def build(folder, baselines, n_jobs):
    """Write an archive for each baseline into a folder.

    Parameters
    ----------
    folder : path-like
    baselines : list of str
        Names of processors; this one must have the features of the first.
    n_jobs : int
        Number of processes.
    """
    if baselines[0] not in host_baselines():
        raise ValueError(f"This processor cannot run code for {baselines[0]}; name another first.")
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(n_jobs) as pool:
        signatures = Path(work) / "signatures.pickle"
        for number, baseline in enumerate(baselines):
            what = ["--compile", str(signatures)] if number else ["--run"]
            caches = [Path(work) / baseline / str(part) for part in range(N_PARTS)]

            def start(part, baseline=baseline, what=what, caches=caches):
                _python(caches[part], baseline, *what, "--part", str(part))

            list(pool.map(start, range(N_PARTS)))
            # What several parts have compiled is taken from the first of them.
            for cache in reversed(caches):
                shutil.copytree(cache, cache.parent / "all", dirs_exist_ok=True)
            if number == 0:
                _python(caches[0].parent / "all", baseline, "--record", str(signatures))
            write = ["--write", str(folder), "--compile", str(signatures)]
            _python(caches[0].parent / "all", baseline, *write)


def _python(cache, baseline, *arguments):
    """Run this module in a process that compiles for a baseline, and for its own cache."""
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(cache),
        "NUMBA_CPU_NAME": baseline,
        "NUMBA_CPU_FEATURES": "",
        "PYTHONHASHSEED": "0",
        "SKSTRUCT_KERNELS": "local",
    }
    # Kernels are not read from where others may write.
    cache.mkdir(0o755, parents=True, exist_ok=True)
    command = [sys.executable, "-m", "skstruct.ahead.build", *arguments]
    subprocess.run(command, check=True, env=environment)


def _run_part(part):
    """Run the steps of one part, which compiles what they call."""
    listed = {name for names in PARTS for name in names}
    for step in steps():
        if step.estimator in PARTS[part] if part < len(PARTS) else step.estimator not in listed:
            run_step(step)


def _record(path):
    """Write down which kernels Python calls, and with arguments of which types.

    With a full cache, these are all that are loaded: what kernels call is part of their code.
    """
    for step in steps():
        run_step(step)
    late = [f"{use.kernel}{use.signature}" for use in uses if use.origin == "compiler"]
    if late:
        raise RuntimeError(f"Compiled on the second run only: {', '.join(late)}.")
    found = {repr(use): (use.kernel, use.signature) for use in uses}
    path.write_bytes(pickle.dumps([found[key] for key in sorted(found)]))


def _compile_part(signatures, part):
    for name, signature in signatures[part::N_PARTS]:
        find_kernel(name).compile(signature)


def _write(folder, signatures):
    names = [file_name(*signature) for signature in signatures]
    entries = {name: read_entry(read_file(own_folders(), name)) for name in names}
    nameless = [name for name, entry in entries.items() if b"__numba_array_expr_" in entry.code]
    if nameless:
        # numba puts addresses in their names, and no two builds would be the same.
        raise RuntimeError(f"Write loops in place of expressions of arrays: {', '.join(nameless)}.")
    baseline = numba.config.CPU_NAME
    path = folder / archive_name(baseline)
    write_archive(path, baseline, entries, called_kernels())
    print(f"{path.name}: {len(entries)} kernels, {path.stat().st_size / 1e6:.1f} MB")


def called_kernels():
    """Names of the kernels that other kernels call, as far as their code names them."""
    called = set()
    for kernel in all_kernels():
        codes = [kernel.py_func.__code__]
        for code in codes:
            codes += [constant for constant in code.co_consts if hasattr(constant, "co_names")]
            for name in code.co_names:
                named = _kernels_of(kernel.py_func.__globals__.get(name))
                called |= {other._cache.kernel for other in named if hasattr(other, "_cache")}
    return called


def all_kernels():
    """All kernels of the package, members of families among them."""
    found = [m.name for p in PACKAGES for m in walk_packages(import_module(p).__path__, f"{p}.")]
    values = [value for name in found for value in vars(import_module(name)).values()]
    return [kernel for value in values for kernel in _kernels_of(value)]


def _kernels_of(value):
    """Kernels that a name stands for: one, the members of a family, or none."""
    members = [*value.members.values(), value.default] if isinstance(value, Family) else [value]
    return [kernel for kernel in members if hasattr(kernel, "py_func")]


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--baselines", default="all", help="names, or all or best")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    # For the processes that the command starts.
    for name in ("--compile", "--record", "--write"):
        parser.add_argument(name, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part is not None:
        number_symbols_from((1 + options.part) * 10**9)
    if options.run:
        _run_part(options.part)
    elif options.record:
        _record(options.record)
    elif options.write:
        _write(options.write, pickle.loads(options.compile.read_bytes()))
    elif options.compile:
        _compile_part(pickle.loads(options.compile.read_bytes()), options.part)
    else:
        # Those that this processor meets come first, the best one before all others.
        known = {"all": all_baselines(), "best": all_baselines()[:1]}
        baselines = known.get(options.baselines) or options.baselines.split(",")
        build(options.folder, baselines, options.jobs)


if __name__ == "__main__":
    main()
