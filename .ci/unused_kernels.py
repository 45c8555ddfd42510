"""Print which kernels of wheels no page of the guide and no example calls, and the steps that do.

    python .ci/unused_kernels.py [FILE ...]

They are compiled for parameters and data that no page shows. Without files, all pages and examples
are run, each in a process of its own; this takes minutes. What their own workers call is not seen.
"""

import contextlib
import doctest
import json
import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("docs/guide/*.rst")), ROOT / "docs" / "index.rst"]
EXAMPLES = sorted(ROOT.glob("examples/*/plot_*.py"))


def run_file(path):
    """Run a page or an example."""
    if path.suffix == ".rst":
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        doctest.testfile(str(path), module_relative=False, optionflags=flags)
    else:
        runpy.run_path(str(path), run_name="__main__")


def run_steps():
    """Run all steps; return the first that calls each kernel, by the name of its file."""
    from skstruct.ahead.workload import run_step, steps
    from skstruct.compiled.cache import loaded_kernels

    found = {}
    for step in steps():
        run_step(step)
        for loaded in loaded_kernels:
            found.setdefault(loaded.file, f"{step.estimator}: {step.title}")
    return found


def kernels(path):
    """Files of the kernels that a page or an example calls, or of all steps, with the first one."""
    command = [sys.executable, __file__, "--here", str(path)]
    environment = {**os.environ, "MPLBACKEND": "agg"}
    run = subprocess.run(command, stdout=subprocess.PIPE, env=environment, text=True, check=True)
    return json.loads(run.stdout)


def main(paths):
    """Compare steps with pages and examples."""
    shipped, called = kernels("steps"), {}
    for path in paths:
        called |= kernels(path)
        print(f"{path}: {len(called.keys() & shipped.keys())} of {len(shipped)} so far", flush=True)
    for name in shipped.keys() - called.keys():
        print(f"{name.rpartition('-')[0]} ({shipped[name]})")


def here(what):
    """Kernels that are called in this process, as JSON."""
    with contextlib.redirect_stdout(sys.stderr), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if what == "steps":
            return run_steps()
        run_file(Path(what))
    from skstruct.compiled.cache import loaded_kernels

    return {loaded.file: what for loaded in loaded_kernels}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(here(sys.argv[2])))
    else:
        main([Path(name) for name in sys.argv[1:]] or [*PAGES, *EXAMPLES])
