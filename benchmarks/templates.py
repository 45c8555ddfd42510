"""Speed and memory of feature extraction by templates, side by side in one run.

    python benchmarks/templates.py --repeat 5

writes the tables to docs/benchmarks/templates.md. The 19 templates of text chunking on the
training part of CoNLL-2000, from token lists to the sparse matrix:

- dicts, DictVectorizer: a Python loop that makes a dict for each token, as sklearn-crfsuite takes
  them, and scikit-learn's vectorizer;
- dicts: the same with `SequenceVectorizer`;
- strings: the same with a list of attribute strings for each token, as python-crfsuite takes them;
- templates: `TemplateVectorizer`;
- templates + names: the same, and then the names of all features;
- hashing: `HashingTemplateVectorizer`.

Those with names give the same matrix up to the order of columns, which is checked.
"""

import argparse
import gc
import multiprocessing
import platform
import time
from pathlib import Path

import numpy as np
from conll2000 import peak_memory, seconds_of
from sklearn.feature_extraction import DictVectorizer

from skstruct.datasets import fetch_conll2000
from skstruct.features import SequenceVectorizer
from skstruct.templates import HashingTemplateVectorizer, TemplateVectorizer

CALLS = 3
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks" / "templates.md"
WORDS = [[(i, 0)] for i in range(-2, 3)] + [[(-1, 0), (0, 0)], [(0, 0), (1, 0)]]
TAGS = [[(i, 1)] for i in range(-2, 3)]
TAGS += [[(i, 1), (i + 1, 1)] for i in range(-2, 2)]
TAGS += [[(i, 1), (i + 1, 1), (i + 2, 1)] for i in range(-2, 1)]
PLACES = WORDS + TAGS
NAMES = [f"U{i:02}" for i in range(len(PLACES))]
TEMPLATE = [
    name + ":" + "/".join(f"%x[{row},{column}]" for row, column in places)
    for name, places in zip(NAMES, PLACES, strict=True)
]


def value(sentence, t, row, column):
    t += row
    if t < 0:
        return f"_B{t}"
    if t >= len(sentence):
        return f"_B+{t - len(sentence) + 1}"
    return sentence[t][column]


def feature_strings(sentence):
    return [
        [
            name + ":" + "/".join([value(sentence, t, *place) for place in places])
            for name, places in zip(NAMES, PLACES, strict=True)
        ]
        for t in range(len(sentence))
    ]


def feature_dicts(sentence):
    return [
        {
            name: "/".join([value(sentence, t, *place) for place in places])
            for name, places in zip(NAMES, PLACES, strict=True)
        }
        for t in range(len(sentence))
    ]


def strings(X):
    vectorizer = SequenceVectorizer()
    return vectorizer, vectorizer.fit_transform([feature_strings(sentence) for sentence in X])


def dicts(X):
    vectorizer = SequenceVectorizer()
    return vectorizer, vectorizer.fit_transform([feature_dicts(sentence) for sentence in X])


def dicts_with_sklearn(X):
    vectorizer = DictVectorizer()
    tokens = [features for sentence in X for features in feature_dicts(sentence)]
    return vectorizer, vectorizer.fit_transform(tokens)


def templates(X):
    vectorizer = TemplateVectorizer(TEMPLATE)
    return vectorizer, vectorizer.fit_transform(X)


def templates_and_names(X):
    vectorizer, batch = templates(X)
    vectorizer.get_feature_names_out()
    return vectorizer, batch


def hashing(X):
    vectorizer = HashingTemplateVectorizer(TEMPLATE)
    return vectorizer, vectorizer.transform(X)


ROUTES = {
    "dicts, DictVectorizer": dicts_with_sklearn,
    "dicts": dicts,
    "strings": strings,
    "templates": templates,
    "templates + names": templates_and_names,
    "hashing": hashing,
}


def check(X):
    """The routes that learn give one matrix."""
    expected, reference = strings(X)
    names = expected.get_feature_names_out()
    for route in (dicts, templates):
        vectorizer, batch = route(X)
        found = vectorizer.get_feature_names_out()
        order = np.argsort(found)
        np.testing.assert_array_equal(found[order], names)
        assert (batch.X[:, order] != reference.X).nnz == 0


def measure(route):
    """Seconds of a route, and its peak memory in MB above what the process with the tokens has."""
    X, _ = fetch_conll2000(return_X_y=True)
    # Compilation takes time and memory, once.
    ROUTES[route](X[:2])
    gc.collect()
    before = peak_memory()
    return seconds_of(lambda: ROUTES[route](X), CALLS), peak_memory() - before


def measure_all(repeat):
    """Results of each route, the routes in turn, every run in a process of its own."""
    results = {route: [] for route in ROUTES}
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for _ in range(repeat):
            for route in ROUTES:
                results[route].append(pool.apply(measure, (route,)))
                print(route, *results[route][-1], flush=True)
    return results


def measure_transforms(X, test, repeat):
    """Tokens a second of new sentences, and the milliseconds of one sentence alone; medians."""
    vectorizer, _ = templates(X)
    reference, _ = dicts(X)
    routes = {
        "dicts": lambda part: reference.transform([feature_dicts(s) for s in part]),
        "templates": vectorizer.transform,
    }
    found = {}
    for route, run in routes.items():
        times = []
        for _ in range(repeat):
            start = time.perf_counter()
            run(test)
            middle = time.perf_counter()
            for sentence in test[:500]:
                run([sentence])
            times.append((middle - start, (time.perf_counter() - middle) / 500))
        whole, single = np.median(times, axis=0)
        found[route] = sum(map(len, test)) / whole, 1000 * single
    return found


def write_page(results, transforms, path):
    n_turns = len(results["dicts"])
    lines = [
        "# Features by templates",
        "",
        "From token lists to the sparse matrix, the 19 templates of text chunking on the training",
        "part of CoNLL-2000: features made in Python, as dicts or lists of strings, and",
        "scikit-learn's `DictVectorizer` or our `SequenceVectorizer`, beside `TemplateVectorizer`.",
        f"Medians of {n_turns} fresh processes in turn, on one thread, and ratios within a turn",
        f"(median, and range); of each process the median of {CALLS} calls. Our matrices are the",
        "same. Memory is the peak above what the process had with the tokens loaded. Written by",
        "`benchmarks/templates.py`.",
        "",
        "| | seconds | times faster than dicts, `DictVectorizer` | than dicts | peak memory, MB |",
        "|---|---:|---:|---:|---:|",
    ]
    for route, runs in results.items():
        seconds, memory = np.array(runs).T
        cells = []
        for other in ("dicts, DictVectorizer", "dicts"):
            ratios = np.array(results[other])[:, 0] / seconds
            cells.append(f"{np.median(ratios):.1f} ({ratios.min():.1f}-{ratios.max():.1f})")
        row = f"| {route} | {np.median(seconds):.3f} | {' | '.join(cells)} |"
        lines.append(f"{row} {np.median(memory):.0f} |")
    lines += [
        "",
        "New sentences, the test part, all at once and one at a time:",
        "",
        "| | tokens a second | ms a sentence alone |",
        "|---|---:|---:|",
    ]
    for route, (rate, single) in transforms.items():
        lines.append(f"| {route} | {rate:,.0f} | {single:.2f} |")
    lines += ["", f"Python {platform.python_version()}, {platform.machine()}."]
    path.write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5, help="turns (default 5)")
    parser.add_argument("--page", type=Path, default=PAGE, help="where to write the tables")
    arguments = parser.parse_args()
    # First of all: a new process starts with the peak of the one that starts it.
    results = measure_all(arguments.repeat)
    X, _ = fetch_conll2000(return_X_y=True)
    test, _ = fetch_conll2000(subset="test", return_X_y=True)
    check(X)
    write_page(results, measure_transforms(X, test, arguments.repeat), arguments.page)


if __name__ == "__main__":
    main()
