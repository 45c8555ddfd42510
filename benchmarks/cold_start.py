"""Cold start: the cost of the first import and the first fit, in fresh processes.

    python -m benchmarks.cold_start

One process with an empty cache of compiled kernels compiles; the second finds the cache filled.
They learn from 538 addresses (5,349 tokens), or from these twice over: that many tokens make
`CRFTagger` begin with dual ascent, which has more to compile.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.report import machine, table

# Estimator, and copies of the addresses.
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


def run(estimator, copies, cache):
    """Import, fit and predict twice in a fresh process with this folder of compiled kernels."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, "-c", CHILD, estimator, str(copies)]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def measure(estimator, copies, repeat):
    """Median seconds of the import, the overhead of a first fit with the cache, and compiling."""
    imports, overheads, compiling = [], [], []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (run(estimator, copies, cache) for _ in range(2))
        imports.append(warm["import"])
        overheads.append(warm["first"] - warm["second"])
        compiling.append(cold["first"] - cold["second"])
    return [statistics.median(values) for values in (imports, overheads, compiling)]


def main():
    """Run the benchmark; a quick run compiles the quickest estimator alone."""
    arguments = parse(make_parser(__doc__, repeat=3))
    rows = []
    for name in ["PerceptronTagger"] if arguments.quick else RUNS:
        seconds = measure(*RUNS[name], arguments.repeat)
        rows.append([name, *(f"{value:.2f}" for value in seconds)])
        print(*rows[-1], flush=True)
    head = ["", "import", "overhead of the first fit, cache filled", "compilation, cache empty"]
    note = f"Medians of {arguments.repeat} pairs of processes. {machine()}"
    with open_report("cold_start", arguments) as report:
        report.write("seconds", table(head, rows), note)


if __name__ == "__main__":
    main()
