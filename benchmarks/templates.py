"""Speed and memory of feature extraction by templates, side by side in one run.

    python benchmarks/templates.py [--repetitions 5]

The 19 templates of text chunking on the training part of CoNLL-2000, from token lists to the
sparse matrix:

- strings: a Python loop that makes a list of attribute strings for each token, as python-crfsuite
  takes them, and `SequenceVectorizer`;
- dicts: the same with a dict for each token, as sklearn-crfsuite takes them;
- templates: `TemplateVectorizer`;
- templates + names: the same, and then the names of all features;
- hashing: `HashingTemplateVectorizer`.

The first three give the same matrix up to the order of columns, which is checked. Memory is the
peak of a fresh process above what it needed before, with the tokens loaded.
"""

import argparse
import gc
import multiprocessing
import resource
import time

import numpy as np

from skstruct.datasets import fetch_conll2000
from skstruct.features import SequenceVectorizer
from skstruct.templates import HashingTemplateVectorizer, TemplateVectorizer

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
    "strings": strings,
    "dicts": dicts,
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
    print(f"{reference!r}, {reference.X.nnz} entries: the same by all routes\n")


def peak(route):
    """Peak memory of a route in MB, above what the process with the tokens has."""
    X, _ = fetch_conll2000(return_X_y=True)
    # Compilation takes memory too, once.
    ROUTES[route](X[:2])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = ROUTES[route](X)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    del result
    return (after - before) / 1024


def span(ratios):
    return f"{np.median(ratios):.1f} ({ratios.min():.1f}-{ratios.max():.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5)
    repetitions = parser.parse_args().repetitions
    # First of all: a new process starts with the peak of the one that starts it.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        memory = {route: pool.apply(peak, (route,)) for route in ROUTES}
    X, _ = fetch_conll2000(return_X_y=True)
    test, _ = fetch_conll2000(subset="test", return_X_y=True)
    check(X)

    seconds, cpu_seconds = {route: [] for route in ROUTES}, {route: [] for route in ROUTES}
    for _ in range(repetitions):
        for route, run in ROUTES.items():
            gc.collect()
            start, cpu_start = time.perf_counter(), time.process_time()
            run(X)
            seconds[route].append(time.perf_counter() - start)
            cpu_seconds[route].append(time.process_time() - cpu_start)

    print(f"{'route':18} {'median s':>9} {'best s':>7} {'CPU s':>7}", end="")
    print(f" {'times faster':>18} {'by CPU time':>18} {'peak MB':>8}")
    for route in ROUTES:
        wall, cpu = np.array(seconds[route]), np.array(cpu_seconds[route])
        print(f"{route:18} {np.median(wall):9.3f} {wall.min():7.3f} {np.median(cpu):7.3f}", end="")
        ratios = (span(seconds["strings"] / wall), span(cpu_seconds["strings"] / cpu))
        print(f" {ratios[0]:>18} {ratios[1]:>18} {memory[route]:8.0f}")

    vectorizer, _ = templates(X)
    reference, _ = strings(X)
    n_tokens = sum(map(len, test))
    print(f"\ntransform of the test part, {n_tokens} tokens; one sentence at a time, the first 500")
    for route, run in {
        "strings": lambda part: reference.transform([feature_strings(s) for s in part]),
        "templates": vectorizer.transform,
    }.items():
        times = []
        for _ in range(repetitions):
            start = time.perf_counter()
            run(test)
            middle = time.perf_counter()
            for sentence in test[:500]:
                run([sentence])
            times.append((middle - start, (time.perf_counter() - middle) / 500))
        batch, single = np.median(times, axis=0)
        print(
            f"{route:18} {batch:9.3f} s  {n_tokens / batch:10.0f} tokens/s  {single * 1e3:6.2f} ms"
        )


if __name__ == "__main__":
    main()
