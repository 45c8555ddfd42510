"""Cold start: what the first import and the first fit cost, in fresh processes.

    python benchmarks/cold_start.py

One process with an empty numba cache compiles; the second finds the cache filled. They learn from
538 addresses (5,349 tokens), or from these twice over, which is where `CRFTagger` begins with dual
ascent and has more to compile. Writes the table to docs/benchmarks/cold_start.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "cold_start.md"
RUNS = {
    "CRFTagger": ("CRFTagger", 1),
    "CRFTagger, 10,698 tokens": ("CRFTagger", 2),
    "PerceptronTagger": ("PerceptronTagger", 1),
}
CHILD = """
import json, sys
from time import perf_counter
start = perf_counter()
import skstruct
kind = getattr(skstruct, sys.argv[1])
imported = perf_counter()
from skstruct.datasets import load_addresses
X, y = load_addresses(return_X_y=True)
X = [[["word=" + word, "suffix=" + word[-3:]] for word in line] for line in X]
X, y = X * int(sys.argv[2]), [*y] * int(sys.argv[2])
tagger = kind(max_iter=20)
import warnings
warnings.simplefilter("ignore")
times = []
for _ in range(2):
    begin = perf_counter()
    tagger.fit(X, y).predict(X)
    times.append(perf_counter() - begin)
print(json.dumps({"import": imported - start, "first": times[0], "second": times[1]}))
"""


def run(tagger, copies, cache):
    """Import, fit and predict twice in a fresh process with this numba cache."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", CHILD, tagger, str(copies)]
    result = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


def measure(tagger, copies, repeat):
    """Compilation, import and the overhead of a first fit with a filled cache, in seconds."""
    compiling, imports, overheads = [], [], []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (run(tagger, copies, cache) for _ in range(2))
        compiling.append(cold["first"] - cold["second"])
        imports.append(warm["import"])
        overheads.append(warm["first"] - warm["second"])
    return [statistics.median(values) for values in (imports, overheads, compiling)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write the table")
    arguments = parser.parse_args()
    lines = [
        "# Cold start",
        "",
        "Seconds in fresh processes, medians. The overhead of the first fit and prediction is what",
        "they take longer than the second ones. Written by `benchmarks/cold_start.py`, whose text",
        "says what is learnt.",
        "",
        "| | import | overhead of the first fit, cache filled | compilation, cache empty |",
        "|---|---:|---:|---:|",
    ]
    for name, (tagger, copies) in RUNS.items():
        cells = [f"{seconds:.2f}" for seconds in measure(tagger, copies, arguments.repeat)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    arguments.page.parent.mkdir(parents=True, exist_ok=True)
    arguments.page.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
