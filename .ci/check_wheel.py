"""Call everything with the kernels of a platform wheel: none may be compiled, bits must agree.

    python check_wheel.py README.md

Other processes have no use for the kernels that were shipped, and must compile: what they learn
has to be the same, bit for bit.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

README_EXAMPLE = re.compile("```python\n(.*?)```", re.DOTALL)
LEARN = """
import hashlib, json
from skstruct import PerceptronTagger
from skstruct.compiled.cache import uses
from skstruct.datasets import load_addresses

X, y = load_addresses(return_X_y=True)
X = [[["word=" + word, "suffix=" + word[-3:]] for word in line] for line in X]
tagger = PerceptronTagger(max_iter=5, random_state=0).fit(X, y)
bits = hashlib.sha256(tagger.coef_.tobytes() + tagger.transition_.tobytes())
bits.update(repr(tagger.predict(X).tolist()).encode())
print(json.dumps([bits.hexdigest(), sorted({use.origin for use in uses})]))
"""
# Each makes something differ that kernels depend on.
DIFFERENCES = {
    "another release of numba": "import numba\nnumba.__version__ = '0.0.0'",
    "an edited kernel": "from skstruct.compiled import keys\nkeys._SOURCES = 64 * '0'",
    "another processor": """
import llvmlite.binding as llvm
features = llvm.get_host_cpu_features()
features["sse4.2"] = False
llvm.get_host_cpu_features = lambda: features
""",
}


def call_everything(readme):
    """Run the workload and an example, in this process; nothing may be compiled."""
    from skstruct.ahead.workload import run_step, steps
    from skstruct.compiled.cache import uses

    for step in steps():
        first, begin = len(uses), time.process_time()
        run_step(step)
        compiled = [use for use in uses[first:] if use.origin == "compiler"]
        seconds = time.process_time() - begin
        if compiled:
            sys.exit(f"{step.estimator}.{step.title} compiles {compiled[0]} ({seconds:.1f} s)")
    exec(README_EXAMPLE.search(readme.read_text(encoding="utf-8"))[1], {})
    compiled = [use for use in uses if use.origin == "compiler"]
    if compiled:
        sys.exit(f"The example of the README compiles {compiled[0]}")
    print(f"{len(uses)} kernels loaded, none compiled")


def learn(before, cache):
    """Bits of what a fresh process learns, and where its kernels came from."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", f"{before}\n{LEARN}"]
    output = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(output.stdout)


def compare():
    """Compare shipped kernels with those compiled where something differs."""
    with tempfile.TemporaryDirectory() as cache:
        bits, origins = learn("", cache)
        if {"cache", "compiler"} & set(origins):
            sys.exit(f"The kernels of the wheel were not used: {origins}")
        print(f"shipped kernels, from {origins[0]}: {bits[:16]}")
        for name, difference in DIFFERENCES.items():
            found, origins = learn(difference, cache)
            if set(origins) - {"cache", "compiler"}:
                sys.exit(f"Kernels of the wheel were used in spite of {name}.")
            if found != bits:
                sys.exit(f"Kernels compiled because of {name} give other bits.")
            print(f"{name}: compiled, same bits")


if __name__ == "__main__":
    call_everything(Path(sys.argv[1]))
    compare()
