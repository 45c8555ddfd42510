"""Large label sets: time of a token by the number of labels, with all transitions and listed ones.

    python -m benchmarks.label_sets

Made-up sentences have entities of as many types as there is room for in the label set, in IOB2.
`CRFTagger` lists the transitions that have a weight, or that a constraint leaves; the online
learners those that have got a weight so far. With the list switched off they take the road of
small label sets, to the same result. ``--part`` measures one of the two.
"""

import warnings
from contextlib import contextmanager
from time import perf_counter, process_time

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.report import machine, table
from skstruct import (
    AROWTagger,
    CRFTagger,
    MIRATagger,
    PerceptronTagger,
    SAPOTagger,
    SequenceVectorizer,
    decoding,
)
from skstruct.learning.online import OnlineLearner

LABELS = (11, 31, 101, 301, 1001, 2001)
QUICK = (11, 131)
N_SENTENCES, N_QUICK = 300, 40
LENGTH = 15
ITERATIONS = 5
# With more labels, all transitions are timed by so many iterations, calls and, for an epoch of an
# online learner, sentences.
MANY_LABELS, FEW_ITERATIONS, N_DENSE = 301, 1, 60
ONLINE = {
    "perceptron": PerceptronTagger(random_state=0),
    "MIRA": MIRATagger(random_state=0),
    "MIRA, 5 best": MIRATagger(n_best=5, random_state=0),
    "SAPO": SAPOTagger(random_state=0),
    "AROW": AROWTagger(average=False, random_state=0),
}
# Larger than any number of labels.
NEVER = 10**9


def sentences(n_labels, n_sentences):
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


def seconds(function, *, again=True):
    """Seconds of a call, by default the second of two."""
    if again:
        function()
    start = perf_counter()
    function()
    return perf_counter() - start


@contextmanager
def listed_from(fewest):
    """Context in which transitions are listed from a number of labels on; None: as always."""
    limits = decoding.LIMITS
    if fewest is not None:
        kept = {name: limit._replace(fewest_labels=fewest) for name, limit in limits.items()}
        decoding.LIMITS = kept
    try:
        yield
    finally:
        decoding.LIMITS = limits


def measure(n_labels, n_sentences, constraint, fewest):
    """Microseconds of a token: an iteration of L-BFGS, labels, marginals."""
    is_long = fewest == NEVER and n_labels > MANY_LABELS
    with listed_from(fewest):
        batch, y = sentences(n_labels, n_sentences)
        crf = CRFTagger(constraint=constraint, tol=1e-9)
        # Compiled before anything is measured; if it takes long, with fewer labels.
        for max_iter in (FEW_ITERATIONS,) if is_long else (1, ITERATIONS):
            crf.set_params(max_iter=max_iter).fit(batch, y)
        fit = np.diff(crf.history_["time"]).mean()
        calls = [lambda: crf.predict(batch), lambda: crf.predict_proba(batch)]
        by_call = [seconds(call, again=not is_long) for call in calls]
        return [1e6 * s / batch.n_rows for s in (fit, *by_call)]


@contextmanager
def timed_epochs():
    """Context in which the seconds of epochs, in time of the processor, are appended to a list.

    Without what `partial_fit` does around them: it reads the constraint, and averages all weights.
    """
    seconds, run_epoch = [], OnlineLearner.run_epoch

    def timed(*arguments):
        start = process_time()
        run_epoch(*arguments)
        seconds.append(process_time() - start)

    OnlineLearner.run_epoch = timed
    try:
        yield seconds
    finally:
        OnlineLearner.run_epoch = run_epoch


def measure_online(name, n_labels, n_sentences, constraint, fewest):
    """Microseconds of a token in the third epoch, in time of the processor.

    All transitions are timed on some of the sentences, after two epochs with lists.
    """
    batch, y = sentences(n_labels, n_sentences)
    tagger = clone(ONLINE[name]).set_params(constraint=constraint)
    classes = sorted({label for row in y for label in row})
    for _ in range(2):
        tagger.partial_fit(batch, y, classes=classes)
    part = slice(0, N_DENSE if fewest == NEVER and n_labels > MANY_LABELS else len(y))
    with listed_from(fewest):
        # Whatever is compiled is compiled before anything is measured.
        tagger.partial_fit(batch[:1], y[:1])
        with timed_epochs() as epochs:
            tagger.partial_fit(batch[part], y[part])
        return 1e6 * sum(epochs) / batch[part].n_rows


def measure_every_online(*given):
    """The same of each online learner."""
    return [measure_online(name, *given) for name in ONLINE]


def measure_all(sizes, n_sentences, measure_one):
    """Results by number of labels and constraint: all transitions, listed ones."""
    results = {}
    for n_labels in sizes:
        for constraint in (None, "IOB2"):
            found = [
                measure_one(n_labels, n_sentences, constraint, fewest) for fewest in (NEVER, None)
            ]
            results[n_labels, constraint] = found
            print(n_labels, constraint, *found, flush=True)
    return results


def write_report(results, names, table_name, report):
    """Write microseconds of a token, and how many times faster listed transitions are."""
    rows = []
    for (n_labels, constraint), (every, listed) in results.items():
        row = [n_labels, constraint or "none"]
        for slow, fast in zip(every, listed, strict=True):
            row += [f"{slow:.2f}", f"{fast:.2f}", f"{slow / fast:.1f}"]
        rows.append(row)
    head = ["labels", "constraint"]
    for name in names:
        head += [f"{name}, all", "listed", "times faster"]
    report.write(table_name, table(head, rows), machine())


def main():
    """Run the benchmark."""
    parser = make_parser(__doc__)
    parser.add_argument("--part", choices=["crf", "online"], help="default: both")
    arguments = parse(parser)
    warnings.simplefilter("ignore", ConvergenceWarning)
    sizes = (QUICK, N_QUICK) if arguments.quick else (LABELS, N_SENTENCES)
    with open_report("label_sets", arguments) as report:
        if arguments.part in (None, "crf"):
            names = "iteration", "labels", "marginals"
            write_report(measure_all(*sizes, measure), names, "microseconds", report)
        if arguments.part in (None, "online"):
            write_report(measure_all(*sizes, measure_every_online), ONLINE, "online", report)


if __name__ == "__main__":
    main()
