"""Speed and memory of feature extraction by templates, side by side in one run.

    python -m benchmarks.templates

The 19 templates of text chunking on the training part of CoNLL-2000, from lists of tokens to the
sparse matrix:

- dicts, DictVectorizer: a Python loop that makes a dict for each token, as sklearn-crfsuite takes
  them, and scikit-learn's vectorizer;
- dicts: the same with `SequenceVectorizer`;
- strings: the same with a list of attribute strings for each token, as python-crfsuite takes them;
- templates: `TemplateVectorizer`;
- templates + names: the same, and then the names of all features;
- hashing: `HashingTemplateVectorizer`.

Those with names give the same matrix up to the order of columns, which is checked.
"""

import gc
import multiprocessing
import time

import numpy as np
from sklearn.feature_extraction import DictVectorizer

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import CORPORA, chunking_name
from benchmarks.common.features import (
    CHUNKING,
    chunking_features,
    feature_dicts,
    feature_strings,
)
from benchmarks.common.processes import peak_memory, seconds_of, take_turns
from benchmarks.common.report import median, median_and_range, note_on_runs, ratios, table
from skstruct import SequenceVectorizer
from skstruct.templates import HashingTemplateVectorizer, TemplateVectorizer

CALLS = 3
ALONE = 500  # sentences that are vectorised one at a time


def make_dicts(X):
    """A dict for each token of each sentence."""
    return [feature_dicts(chunking_features, sentence) for sentence in X]


def dicts_with_sklearn(X):
    vectorizer = DictVectorizer()
    tokens = [features for sentence in make_dicts(X) for features in sentence]
    return vectorizer, vectorizer.fit_transform(tokens)


def dicts(X):
    vectorizer = SequenceVectorizer()
    return vectorizer, vectorizer.fit_transform(make_dicts(X))


def strings(X):
    vectorizer = SequenceVectorizer()
    lists = [feature_strings(chunking_features, sentence) for sentence in X]
    return vectorizer, vectorizer.fit_transform(lists)


def templates(X):
    vectorizer = TemplateVectorizer(CHUNKING)
    return vectorizer, vectorizer.fit_transform(X)


def templates_and_names(X):
    vectorizer, batch = templates(X)
    vectorizer.get_feature_names_out()
    return vectorizer, batch


def hashing(X):
    vectorizer = HashingTemplateVectorizer(CHUNKING)
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
    """Check that the routes with names give the same matrix."""
    expected, reference = strings(X)
    names = expected.get_feature_names_out()
    for route in (dicts, templates):
        vectorizer, batch = route(X)
        found = vectorizer.get_feature_names_out()
        order = np.argsort(found)
        np.testing.assert_array_equal(found[order], names)
        assert (batch.X[:, order] != reference.X).nnz == 0


def measure(corpus, route):
    """Seconds of a route, and its peak memory in MB above that of the process with the tokens."""
    X, _ = CORPORA[corpus]()["train"]
    # Compilation takes time and memory, once.
    ROUTES[route](X[:2])
    gc.collect()
    before = peak_memory()
    seconds = seconds_of(lambda: ROUTES[route](X), CALLS)
    return {"seconds": seconds, "memory": peak_memory() - before}


def measure_routes(corpus, repeat, quick):
    """Results of all routes, in turn, every run in a process of its own unless it is quick."""
    if quick:
        return take_turns(ROUTES, lambda route: measure(corpus, route), repeat)
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        return take_turns(ROUTES, lambda route: pool.apply(measure, (corpus, route)), repeat)


def measure_transforms(X, test, repeat):
    """Tokens a second of new sentences, and milliseconds of a sentence alone; medians."""
    vectorizer, _ = templates(X)
    reference, _ = dicts(X)
    routes = {
        "dicts": lambda part: reference.transform(make_dicts(part)),
        "templates": vectorizer.transform,
    }
    n_tokens, alone = sum(map(len, test)), test[:ALONE]
    found = {}
    for route, run in routes.items():
        times = []
        for _ in range(repeat):
            start = time.perf_counter()
            run(test)
            middle = time.perf_counter()
            for sentence in alone:
                run([sentence])
            times.append((middle - start, (time.perf_counter() - middle) / len(alone)))
        whole, single = np.median(times, axis=0)
        found[route] = n_tokens / whole, 1000 * single
    return found


def write_report(results, transforms, report):
    """Write medians, and ratios within a turn."""
    rows = []
    for route, runs in results.items():
        gains = (
            median_and_range(ratios(results[other], runs, "seconds"))
            for other in ("dicts, DictVectorizer", "dicts")
        )
        seconds, memory = median(runs, "seconds"), median(runs, "memory")
        rows.append([route, f"{seconds:.3f}", *gains, f"{memory:.0f}"])
    head = ["", "seconds", "times faster than dicts, `DictVectorizer`", "than dicts"]
    report.write("routes", table([*head, "peak memory, MB"], rows))
    rows = [[route, f"{rate:,.0f}", f"{ms:.2f}"] for route, (rate, ms) in transforms.items()]
    note = note_on_runs(len(results["dicts"]))
    report.write("new_sentences", table(["", "tokens a second", "ms a sentence alone"], rows), note)


def main():
    """Run the benchmark."""
    arguments = parse(make_parser(__doc__, repeat=5))
    corpus = chunking_name(arguments.quick)
    # First of all: a new process starts with the peak of the one that starts it.
    results = measure_routes(corpus, arguments.repeat, arguments.quick)
    parts = CORPORA[corpus]()
    X, test = parts["train"][0], parts["test"][0]
    check(X)
    transforms = measure_transforms(X, test, arguments.repeat)
    with open_report("templates", arguments) as report:
        write_report(results, transforms, report)


if __name__ == "__main__":
    main()
