"""Cold start: the cost of the first import, the first fit and the first label, in fresh processes.

    python -m benchmarks.cold_start --wheel dist/skstruct-....whl

The platform wheel (see `.ci/build-wheel`) is installed into an environment of its own. Beside it,
kernels are compiled in a process with an empty cache, loaded by one that finds the cache filled,
and compiled ahead by `skstruct warm`. All learn from 538 addresses (5,349 tokens).
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.report import machine, table

ESTIMATORS = (
    "CRFTagger",
    "SDCACRF",
    "PerceptronTagger",
    "MIRATagger",
    "SAPOTagger",
    "VRDAReranker",
    "PerceptronReranker",
    "SGDReranker",
    "TruncatedGradientReranker",
    "TemplateVectorizer",
    "HashingTemplateVectorizer",
)
OVERHEAD = "processor seconds of the first fit beyond the second"
AHEAD = ("CRFTagger", "PerceptronTagger")
CHILD = """
import json, sys, warnings
from time import perf_counter, process_time
start = perf_counter()
import skstruct
name = sys.argv[1]
kind = getattr(skstruct, name)
imported = perf_counter() - start
from skstruct.datasets import load_addresses
tokens, y = load_addresses(return_X_y=True)
if name.endswith("Tagger") or name == "SDCACRF":
    X = [[["word=" + word, "suffix=" + word[-3:]] for word in line] for line in tokens]
    def run():
        kind(max_iter=20).fit(X, y).predict(X)
elif name.endswith("Reranker"):
    X = [[{word: 1.0, "length": float(len(word))} for word in line] for line in tokens]
    costs = [[len(word) for word in line] for line in tokens]
    def run():
        kind(max_iter=5).fit(X, costs).predict(X)
else:
    X = [[(word, word[-3:]) for word in line] for line in tokens]
    def run():
        kind(["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,1]"]).fit(X).transform(X)
warnings.simplefilter("ignore")
times = []
for _ in range(2):
    begin = perf_counter(), process_time()
    run()
    times.append([perf_counter() - begin[0], process_time() - begin[1]])
print(json.dumps({
    "import": imported,
    "import and first fit": imported + times[0][0],
    "overhead": times[0][1] - times[1][1],
}))
"""
STORE = """
import pickle, sys, skstruct
from skstruct.datasets import load_addresses
X, y = load_addresses(return_X_y=True)
X = [[["word=" + word, "suffix=" + word[-3:]] for word in line] for line in X]
with open(sys.argv[1], "wb") as file:
    pickle.dump(skstruct.CRFTagger(max_iter=20).fit(X, y), file)
"""
# Calls what `skstruct warm` compiles for.
EVERYTHING = """
import sys, warnings
import skstruct
from skstruct.datasets import load_addresses
warnings.simplefilter("ignore")
tokens, y = load_addresses(return_X_y=True)
X = [[["word=" + word, "suffix=" + word[-3:]] for word in line] for line in tokens]
tagger = getattr(skstruct, sys.argv[1])(max_iter=20).fit(X, y)
for method in ("predict", "predict_proba", "predict_nbest"):
    if hasattr(tagger, method):
        getattr(tagger, method)(X[:20])
"""
LABEL = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    tagger = pickle.load(file)
sentence = "5 Harbour Road Wellington".split()
print(*tagger.predict([[["word=" + word, "suffix=" + word[-3:]] for word in sentence]])[0])
"""


class Python:
    """An interpreter, a folder of compiled kernels, and whether those of the package are used."""

    def __init__(self, executable, cache, kernels="local"):
        self.executable = str(executable)
        paths = {"NUMBA_CACHE_DIR": str(cache), "SKSTRUCT_KERNELS": kernels}
        self.environment = {**os.environ, **paths}

    def run(self, *arguments):
        """Output of a fresh process."""
        # -P: what is measured is what is installed, not the package in the working directory.
        command = [self.executable, "-P", "-W", "ignore", *map(str, arguments)]
        options = {"check": True, "stdout": subprocess.PIPE, "text": True}
        return subprocess.run(command, env=self.environment, **options).stdout

    def measure(self, estimator):
        """What `CHILD` measures."""
        return json.loads(self.run("-c", CHILD, estimator))

    def seconds(self, *arguments):
        """Seconds of a whole process, and of processors in it."""
        before, begin = os.times(), perf_counter()
        self.run(*arguments)
        after = os.times()
        used = after.children_user - before.children_user
        return perf_counter() - begin, used + after.children_system - before.children_system


def install(wheel, folder):
    """Interpreter of a fresh environment with a wheel, which may not compile."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    subprocess.run(pip, check=True)
    return Python(python, folder / "cache", "compiled")


def first_fits(runs, wheel, repeat):
    """Rows of the table: medians of the runs of each estimator."""
    rows = []
    for name in runs:
        found = []
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as cache:
                here = Python(sys.executable, cache)
                cold, warm = (here.measure(name) for _ in range(2))
            shipped = wheel.measure(name) if wheel else None
            both = [shipped["import and first fit"], shipped["overhead"]] if wheel else []
            found.append([warm["import"], *both, warm["overhead"], cold["overhead"]])
        medians = [statistics.median(values) for values in zip(*found, strict=True)]
        rows.append([name, *(f"{value:.2f}" for value in medians)])
        print(*rows[-1], flush=True)
    return rows


def labels(places, repeat):
    """Rows of the table: import, load a stored model and label an address, in a fresh process."""
    rows = []
    for name, python in places.items():
        with tempfile.TemporaryDirectory() as folder:
            model = Path(folder) / "model.pickle"
            python.run("-c", STORE, model)
            python.run("-c", LABEL, model)
            found = [python.seconds("-c", LABEL, model) for _ in range(repeat)]
        medians = [statistics.median(values) for values in zip(*found, strict=True)]
        rows.append([name, *(f"{value:.2f}" for value in medians)])
        print(*rows[-1], flush=True)
    return rows


def ahead(names, repeat):
    """Rows of the table: `skstruct warm` beside one process that fits and predicts."""
    rows = []
    for name in names:
        found = []
        for _ in range(repeat):
            with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
                first = Python(sys.executable, one).seconds("-c", EVERYTHING, name)
                warmed = Python(sys.executable, two).seconds("-m", "skstruct", "warm", name)
            found.append([*first, *warmed, warmed[0] / first[0]])
        medians = [statistics.median(values) for values in zip(*found, strict=True)]
        rows.append([name, *(f"{value:.1f}" for value in medians[:-1]), f"{medians[-1]:.2f}"])
        print(*rows[-1], flush=True)
    return rows


def main():
    """Run the benchmark; a quick run compiles the quickest estimator alone."""
    parser = make_parser(__doc__, repeat=3)
    parser.add_argument("--wheel", type=Path, help="platform wheel, needed but for quick runs")
    parser.add_argument("--only", choices=("fits", "labels", "ahead"), help="one table alone")
    arguments = parse(parser)
    if not (arguments.wheel or arguments.quick):
        parser.error("Give --wheel: `.ci/build-wheel FOLDER` builds one.")
    wanted = arguments.only or ("fits" if arguments.quick else "")
    note = f"Medians of {arguments.repeat} turns. {machine()}"
    with tempfile.TemporaryDirectory() as folder, open_report("cold_start", arguments) as report:
        wheel = install(arguments.wheel, Path(folder) / "venv") if arguments.wheel else None
        if wanted in ("", "fits"):
            rows = first_fits(
                ["PerceptronReranker"] if arguments.quick else ESTIMATORS, wheel, arguments.repeat
            )
            both = ["import and first fit, wheel", f"{OVERHEAD}: wheel"] if wheel else []
            head = ["", "import", *both, f"{OVERHEAD}: cache filled", "cache empty"]
            report.write("seconds", table(head, rows), note)
        if wanted in ("", "labels"):
            places = {"wheel": wheel} if wheel else {}
            places["cache filled"] = Python(sys.executable, Path(folder) / "cache")
            head = ["kernels from", "seconds", "of processors"]
            report.write("labels", table(head, labels(places, arguments.repeat)), note)
        if wanted in ("", "ahead"):
            head = ["", "fit and predict, cache empty", "of processors"]
            head += ["`skstruct warm`", "of processors", "ratio"]
            report.write("ahead", table(head, ahead(AHEAD, arguments.repeat)), note)


if __name__ == "__main__":
    main()
