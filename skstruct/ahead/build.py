"""Build the archives of compiled kernels that wheels carry.

    python -m skstruct.ahead.build FOLDER --baselines x86-64-v3,x86-64-v2

The first baseline is one that this processor meets: its kernels are called while they are compiled,
which tells the types of their arguments. For the others they are compiled and never called.

The work is cut into parts, each with its own process, cache and symbol numbers, so that archives do
not depend on the number of processes. Where NUMBA_CACHE_DIR names a folder, the kernels of the
first baseline are kept there, for processes with NUMBA_CPU_NAME=<baseline> and NUMBA_CPU_FEATURES=
(empty).
"""

import argparse
import multiprocessing
import os
import shutil
import tempfile
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from itertools import chain, repeat
from pathlib import Path

import numba

from skstruct.ahead.warm import number_symbols_from
from skstruct.ahead.workload import part_of, run_step, steps
from skstruct.compiled.archive import write_archive
from skstruct.compiled.cache import unpack
from skstruct.compiled.rules import (
    all_baselines,
    host_baselines,
    loaded_kernels,
    own_folders,
    read_file,
)

# More parts would compile more of the kernels that they share.
N_PARTS = 2


def build(folder, baselines):
    """Write an archive for each baseline into a folder.

    Parameters
    ----------
    folder : path-like
    baselines : list of str
        Names of processors; this one must have the features of the first.
    """
    if baselines[0] not in host_baselines():
        raise ValueError(f"This processor cannot run code for {baselines[0]}; name another first.")
    folder = Path(folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    signatures = None
    for baseline in baselines:
        with tempfile.TemporaryDirectory() as work, _processes(baseline) as processes:
            caches = [Path(work, str(part)) for part in range(N_PARTS)]
            list(processes.map(_compile_part, range(N_PARTS), caches, repeat(signatures)))
            # What several parts have compiled is taken from the first of them.
            for cache in reversed(caches):
                shutil.copytree(cache, Path(work, "all"), dirs_exist_ok=True)
            if signatures is None:
                loaded = chain(*processes.map(_record, range(N_PARTS), repeat(Path(work, "all"))))
                found = {repr(kernel): kernel for kernel in loaded}
                signatures = [found[key] for key in sorted(found)]
                if kept := os.environ.get("NUMBA_CACHE_DIR"):
                    shutil.copytree(Path(work, "all"), kept, dirs_exist_ok=True)
            path = folder / f"{baseline}.zip"
            processes.submit(_write, path, Path(work, "all"), signatures).result()


def _processes(baseline):
    """Processes that compile for a baseline, a fresh one for each task."""
    os.environ.update(
        NUMBA_CPU_NAME=baseline,
        NUMBA_CPU_FEATURES="",
        PYTHONHASHSEED="0",
        SKSTRUCT_KERNELS="local",
    )
    fresh = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(mp_context=fresh, max_tasks_per_child=1)


def _use_cache(cache):
    # Kernels are not read from where others may write.
    cache.mkdir(0o755, parents=True, exist_ok=True)
    numba.config.CACHE_DIR = str(cache)


def _compile_part(part, cache, signatures):
    """Compile one part, by running its steps unless the signatures are known."""
    _use_cache(cache)
    number_symbols_from((1 + part) * 10**9)
    if signatures is not None:
        for found in signatures[part::N_PARTS]:
            module, _, name = found.kernel.rpartition(".")
            getattr(import_module(module), name).compile(found.signature)
        return
    _run_steps(part)


def _run_steps(part):
    for step in steps():
        if part_of(step) == part:
            run_step(step)


def _record(part, cache):
    """Kernels that Python calls in a part, as `LoadedKernel`.

    With a full cache, these are all that are loaded: what kernels call is part of their code.
    """
    _use_cache(cache)
    _run_steps(part)
    late = [f"{k.kernel}{k.signature}" for k in loaded_kernels if k.origin == "compiler"]
    if late:
        raise RuntimeError(f"Compiled on the second run only: {', '.join(late)}.")
    return loaded_kernels


def _write(path, cache, signatures):
    _use_cache(cache)
    names = [found.file for found in signatures]
    codes = {name: unpack(read_file(own_folders(), name))[0] for name in names}
    nameless = [name for name, code in codes.items() if b"__numba_array_expr_" in code]
    if nameless:
        # numba puts addresses in their names, and no two builds would be the same.
        raise RuntimeError(f"Write loops in place of expressions of arrays: {', '.join(nameless)}.")
    write_archive(path, codes)
    print(f"{path.name}: {len(codes)} kernels, {path.stat().st_size / 1e6:.1f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--baselines", default="all", help="names, or all or best")
    options = parser.parse_args()
    # Those that this processor meets come first, the best one before all others.
    names = list(dict.fromkeys([*host_baselines(), *all_baselines()]))
    known = {"all": names, "best": names[:1]}
    baselines = known.get(options.baselines) or options.baselines.split(",")
    build(options.folder, baselines)


if __name__ == "__main__":
    main()
