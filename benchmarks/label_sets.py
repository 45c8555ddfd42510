"""Large label sets: time of a token by the number of labels, with all transitions and listed ones.

    python -m benchmarks.label_sets

Made-up sentences have entities of as many types as there is room for in the label set, in IOB2.
`CRFTagger` lists the transitions that have a weight, or that a constraint leaves. With the list
switched off it takes the road of small label sets, to the same result.
"""

import warnings
from time import perf_counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.report import machine, table
from skstruct import CRFTagger, PerceptronTagger, SequenceVectorizer, decoding

LABELS = (11, 31, 101, 301, 1001, 2001)
QUICK = (11, 71)
N_SENTENCES = 300
LENGTH = 15
ITERATIONS = 5
# Larger than any number of labels.
NEVER = 10**9


def sentences(n_labels, n_sentences=N_SENTENCES):
    """Attribute strings and labels; most entities stand between other words."""
    rng = np.random.default_rng(0)
    n_types = n_labels // 2
    X, y = [], []
    for _ in range(n_sentences):
        words, labels = [], []
        while len(words) < LENGTH:
            after_entity = bool(labels) and labels[-1] != "O"
            if rng.random() < (0.95 if after_entity else 0.6):
                words.append(f"w{rng.integers(3000)}")
                labels.append("O")
                continue
            kind = rng.integers(n_types)
            for part in range(rng.integers(1, 4)):
                words.append(f"e{kind}-{rng.integers(3)}")
                labels.append(f"{'I' if part else 'B'}-{kind}")
        around = ["", *words, ""]
        X.append([["", f"w={b}", f"before={a}", f"after={c}"] for a, b, c in windows(around)])
        y.append(labels)
    # Every label occurs.
    X += [[["", f"w=e{kind}-0"], ["", f"w=e{kind}-1"]] for kind in range(n_types)]
    y += [[f"B-{kind}", f"I-{kind}"] for kind in range(n_types)]
    return SequenceVectorizer().fit_transform(X), y


def windows(words):
    """Each word between its neighbours."""
    return zip(words, words[1:], words[2:], strict=False)


def seconds(function):
    """Seconds of a call, the second of two."""
    function()
    start = perf_counter()
    function()
    return perf_counter() - start


def measure(n_labels, constraint, fewest):
    """Microseconds of a token: an iteration of L-BFGS, labels, marginals."""
    few, decoding._FEWEST_LABELS = decoding._FEWEST_LABELS, fewest
    try:
        batch, y = sentences(n_labels)
        crf = CRFTagger(constraint=constraint, tol=1e-9)
        for max_iter in (1, ITERATIONS):  # compiled before anything is measured
            crf.set_params(max_iter=max_iter).fit(batch, y)
        fit = np.diff(crf.history_["time"]).mean()
        calls = [lambda: crf.predict(batch), lambda: crf.predict_proba(batch)]
        return [1e6 * s / batch.n_rows for s in (fit, *map(seconds, calls))]
    finally:
        decoding._FEWEST_LABELS = few


def measure_perceptron(n_labels):
    """Microseconds of a token in an epoch."""
    batch, y = sentences(n_labels)
    perceptron = PerceptronTagger(max_iter=3, tol=None, random_state=0)
    perceptron.fit(batch, y)
    return 1e6 * np.diff(perceptron.history_["time"]).mean() / batch.n_rows


def measure_all(sizes):
    """Results by number of labels and constraint: all transitions, listed ones."""
    results = {}
    for n_labels in sizes:
        for constraint in (None, "IOB2"):
            results[n_labels, constraint] = [
                measure(n_labels, constraint, fewest) for fewest in (NEVER, decoding._FEWEST_LABELS)
            ]
            print(n_labels, constraint, *results[n_labels, constraint], flush=True)
    return results, {n_labels: measure_perceptron(n_labels) for n_labels in sizes}


def write_report(results, perceptron, report):
    """Write microseconds of a token, and how many times faster listed transitions are."""
    rows = []
    for (n_labels, constraint), (every, listed) in results.items():
        row = [n_labels, constraint or "none"]
        for slow, fast in zip(every, listed, strict=True):
            row += [f"{slow:.2f}", f"{fast:.2f}", f"{slow / fast:.1f}"]
        rows.append([*row, f"{perceptron[n_labels]:.1f}" if constraint is None else ""])
    head = ["labels", "constraint"]
    for name in ("iteration", "labels", "marginals"):
        head += [f"{name}, all", "listed", "times faster"]
    head.append("epoch of the perceptron")
    report.write("microseconds", table(head, rows), machine())


def main():
    """Run the benchmark."""
    arguments = parse(make_parser(__doc__))
    warnings.simplefilter("ignore", ConvergenceWarning)
    results, perceptron = measure_all(QUICK if arguments.quick else LABELS)
    with open_report("label_sets", arguments) as report:
        write_report(results, perceptron, report)


if __name__ == "__main__":
    main()
