"""Call everything with the kernels of a platform wheel: none may be compiled, bits must agree.

    python check_wheel.py README.md [ESTIMATOR ...]

Other processes then do without the kernels of the wheel. What they compute there has to be the
same, bit for bit: all steps, or those with the usual parameters of the estimators that are named.
"""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from scipy import sparse

README_EXAMPLE = re.compile("```python\n(.*?)```", re.DOTALL)
# Each makes something differ that kernels depend on.
DIFFERENCES = {
    "another release of numba": "import numba\nnumba.__version__ = '0.0.0'",
    "another release of llvmlite": "import llvmlite\nllvmlite.__version__ = '99.0.0'",
    "an edited kernel": "from skstruct.compiled import keys\nkeys._SOURCES = 64 * '0'",
}
# The other processors that wheels are built for have all that their kernels need.
if platform.machine() == "x86_64":
    DIFFERENCES["another processor"] = """
import llvmlite.binding as llvm
features = llvm.get_host_cpu_features()
features["sse4.2"] = False
llvm.get_host_cpu_features = lambda: features
"""
COMPILED = ("cache", "compiler")
# Has few kernels: all are refused for the same reasons.
QUICK = "SequenceVectorizer"


def bits(value):
    """Bytes that differ if numbers do, of what a step returns."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype}{value.shape}".encode() + value.tobytes()
    if sparse.issparse(value):
        return bits([value.data, value.indices, value.indptr])
    if hasattr(value, "get_params"):
        learnt = [name for name in sorted(vars(value)) if name.endswith("_")]
        return bits([getattr(value, name) for name in learnt if name != "history_"])
    if hasattr(value, "offsets"):
        return bits([value.X, value.offsets])
    if isinstance(value, (list, tuple, np.ndarray)):
        return b"".join(map(bits, value))
    return repr(value).encode()


def digests(estimators):
    """Hash of what each step computes, in this process, and where its kernels came from."""
    from skstruct.ahead import workload
    from skstruct.compiled.cache import loaded_kernels

    found = {}
    for step in workload.steps():
        name = f"{step.estimator}.{step.title}"
        if estimators is None or (step.estimator in estimators and step.typical):
            # Steps leave random_state alone.
            np.random.seed(0)  # noqa: NPY002
            found[name] = hashlib.sha256(bits(workload.run_step(step))).hexdigest()
    return found, sorted({loaded.origin for loaded in loaded_kernels}), len(loaded_kernels)


def in_a_fresh_process(before, cache, kernels, estimators=None):
    """The same, in another process with a cache of its own, after some lines of Python."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "SKSTRUCT_KERNELS": kernels}
    command = [sys.executable, __file__, "--digests", before, json.dumps(estimators)]
    begin = time.perf_counter()
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(run.returncode)
    found, origins, n_kernels = json.loads(run.stdout.splitlines()[-1])
    seconds = time.perf_counter() - begin
    print(f"  {len(found)} steps, {n_kernels} kernels from {', '.join(origins)}, {seconds:.0f} s")
    return found, origins


def compare(found, expected, what):
    """Exit if steps have other results."""
    differing = [name for name in found if found[name] != expected[name]]
    if differing:
        sys.exit(f"{what} give other bits: {', '.join(differing)}")


def use_the_wheel(readme):
    """Hash of what each step computes with the kernels of the wheel; exit if one is compiled."""
    with tempfile.TemporaryDirectory() as empty:
        print("Kernels of the wheel alone")
        shipped, origins = in_a_fresh_process("", empty, "compiled")
        example = README_EXAMPLE.search(readme.read_text(encoding="utf-8"))[1]
        command = [sys.executable, "-c", example]
        environment = {**os.environ, "NUMBA_CACHE_DIR": empty, "SKSTRUCT_KERNELS": "compiled"}
        subprocess.run(command, env=environment, check=True)
        if any(Path(empty).iterdir()) or set(origins) & set(COMPILED):
            sys.exit("Something was compiled.")
    return shipped


def do_without(shipped, estimators, cache):
    """Exit if kernels compiled here give other bits, or those of the wheel are used regardless."""
    print("The same, compiled here")
    compiled, _ = in_a_fresh_process("", cache, "local", estimators)
    compare(compiled, shipped, "Kernels compiled here")
    print("The same after something else changed")
    with ThreadPoolExecutor(2) as threads:
        results = threads.map(
            lambda change: in_a_fresh_process(change, cache, "auto", [QUICK]),
            DIFFERENCES.values(),
        )
    for name, (found, origins) in zip(DIFFERENCES, results, strict=True):
        compare(found, shipped, f"Kernels compiled because of {name}")
        if set(origins) - set(COMPILED):
            sys.exit(f"Kernels of the wheel were used in spite of {name}.")


if __name__ == "__main__":
    if sys.argv[1] == "--digests":
        exec(sys.argv[2], {})
        print(json.dumps(digests(json.loads(sys.argv[3]))))
    else:
        shipped = use_the_wheel(Path(sys.argv[1]))
        with tempfile.TemporaryDirectory() as compiled:
            do_without(shipped, sys.argv[2:] or None, compiled)
