"""Short calls beside CRFsuite's: one sentence, by its length, the number of labels and the input.

    python -m benchmarks.short_calls
    python -m benchmarks.short_calls --quick

Models of 2 labels (words of Chinese: a word begins or goes on), 9 (Spanish entities), 49 (English
parts of speech, Penn tags) and 271 (these, with the last letter of frequent words), learnt in ten
iterations and stored. python-crfsuite and this package read the same file, and take turns in one
process. A figure is the time of the one divided by that of the other, each the best of many rounds
of the same call. More than one: this package is faster. First calls are those of a process of its
own each, with compiled kernels on the disk. Needs the extra `bench`.
"""

import json
import tempfile
from collections import Counter
from itertools import chain
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import data_folder, load_quick, read_columns
from benchmarks.common.processes import run_child
from benchmarks.common.report import machine, table

LENGTHS = (1, 2, 3, 6, 20, 100, 1000)
QUICK_LENGTHS = (1, 6)
N_SENTENCES = 1_500
SECONDS, QUICK_SECONDS = 0.4, 0.01
ITERATIONS = 10
OURS, THEIRS = "skstruct", "python-crfsuite"


def segments(columns, label):
    """Two labels of Chinese characters."""
    return "B" if label in "BS" else "I"


CORPORA = {
    2: ("wordseg-as", "train", 1, segments),
    9: ("conll2002-esp", "train", 1, lambda columns, label: label),
    49: ("ud-english-ewt", "train", 2, lambda columns, label: columns[1]),
    271: ("ud-english-ewt", "train", 2, lambda columns, label: "|".join((columns[1], label))),
}


def read(n_labels, n_sentences):
    """Words and labels of the first sentences of a corpus; of packaged addresses for None."""
    if n_labels is None:
        X, y = load_quick()["train"]
        return [[word for word, _ in sentence] for sentence in X], y
    name, part, n_columns, label_of = CORPORA[n_labels]
    found = read_columns(data_folder() / name, {part: part}, n_columns)[part]
    X, y = (list(values[:n_sentences]) for values in found)
    words = [[token if isinstance(token, str) else token[0] for token in s] for s in X]
    labels = [list(map(label_of, *pair)) for pair in zip(X, y, strict=True)]
    if n_labels == 271:
        finer = [
            [f"{label}|{word[-1:].lower()}" for word, label in zip(*pair, strict=True)]
            for pair in zip(words, labels, strict=True)
        ]
        kept = {label for label, _ in Counter(chain.from_iterable(finer)).most_common(210)}
        labels = [
            [a if a in kept else b for a, b in zip(*pair, strict=True)]
            for pair in zip(finer, labels, strict=True)
        ]
    return words, labels


def features(words, t, n):
    """The first so many features of a token, in pairs of name and value."""
    near = [words[t + i] if 0 <= t + i < len(words) else "" for i in range(-2, 3)]
    word = near[2]
    found = {"w": word, "p": near[1], "q": near[3], "s3": word[-3:], "lower": word.lower()}
    found |= {f"prefix{i}": word[:i] for i in range(1, 4)}
    found |= {f"suffix{i}": word[-i:] for i in range(1, 3)}
    found |= {"pp": near[0], "qq": near[4], "pw": "|".join(near[1:3]), "wq": "|".join(near[2:4])}
    found |= {"pq": near[1] + "|" + near[3], "plower": near[1].lower(), "qlower": near[3].lower()}
    found |= {"psuffix": near[1][-2:], "qsuffix": near[3][-2:], "bias": "1"}
    return list(found.items())[:n]


def strings(words, n):
    """Lists of attribute strings."""
    return [[f"{k}:{v}" for k, v in features(words, t, n)] for t in range(len(words))]


def dicts(words, n):
    """Dicts of strings."""
    return [dict(features(words, t, n)) for t in range(len(words))]


def mixed(words, n):
    """Dicts of strings, two bools and a number."""
    return [
        {**token, "title": word.istitle(), "digit": word.isdigit(), "length": float(len(word))}
        for token, word in zip(dicts(words, n - 3), words, strict=True)
    ]


INPUTS = [("strings", strings, 4), ("dicts", dicts, 4), ("strings", strings, 20)]
INPUTS += [("mixed dicts", mixed, 20)]


def calls(theirs, ours, sentence):
    """The calls to compare: pairs of functions, by their names."""
    labels = ours["tagger"].tag(sentence)

    def marginals(tagger):
        tagger.set(sentence)
        for t, label in enumerate(labels):
            tagger.marginal(label, t)

    single = {
        name: tuple(lambda crf=crf, name=name: getattr(crf, name)(sentence) for crf in pair)
        for name in ("predict_single", "predict_marginals_single")
        for pair in [(theirs["crf"], ours["crf"])]
    }
    return {
        "`Tagger.tag`": tuple(lambda t=t["tagger"]: t.tag(sentence) for t in (theirs, ours)),
        "`set`, `marginal`": tuple(lambda t=t["tagger"]: marginals(t) for t in (theirs, ours)),
        "`predict_single`": single["predict_single"],
        "`predict` of a list of one": tuple(
            lambda crf=t["crf"]: crf.predict([sentence]) for t in (theirs, ours)
        ),
        "`predict_marginals_single`": single["predict_marginals_single"],
    }


def times_in_turn(functions, seconds):
    """Best time of a call of each function, in turn."""
    best = [float("inf")] * len(functions)
    start, n_rounds = perf_counter(), 0
    while n_rounds < 3 or perf_counter() - start < seconds:
        for i, function in enumerate(functions):
            begin = perf_counter()
            function()
            once = perf_counter() - begin
            # Short calls are repeated: reading the clock takes as long as some of them.
            repeats = int(2e-5 / once) + 1
            begin = perf_counter()
            for _ in range(repeats):
                function()
            best[i] = min(best[i], (perf_counter() - begin) / repeats)
        n_rounds += 1
    return best


def measure(n_labels, title, make, n, lengths, seconds, n_sentences):
    """Rows of ratios of one model and one kind of input: one row for each call."""
    import pycrfsuite
    import sklearn_crfsuite

    from skstruct.crfsuite import CRF, Tagger

    words, y = read(n_labels, n_sentences)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        crf = CRF(max_iterations=ITERATIONS, c1=0.05, c2=0.1, model_filename=path)
        crf.fit([make(sentence, n) for sentence in words], y)
        theirs = {"tagger": pycrfsuite.Tagger(), "crf": sklearn_crfsuite.CRF(model_filename=path)}
        ours = {"tagger": Tagger(), "crf": CRF(model_filename=path)}
        for tagger in (theirs["tagger"], ours["tagger"]):
            tagger.open(path)
        stream = list(chain.from_iterable(words))
        found = {}
        for length in lengths:
            for name, pair in calls(theirs, ours, make(stream[:length], n)).items():
                a, b = times_in_turn(pair, seconds)
                found.setdefault(name, []).append(f"{a / b:.2f}")
        theirs["tagger"].close()
    n_found = len(ours["tagger"].labels())
    return [[f"{n_found} labels, {n} {title}, {name}", *row] for name, row in found.items()]


def first_calls(path, system):
    """Milliseconds of the first calls with a model file, after the imports."""
    if system == OURS:
        from skstruct.crfsuite import Tagger
    else:
        from pycrfsuite import Tagger
    sentence, tagger, found = strings(["the", "old", "man"], 4), Tagger(), []

    def marginal():
        tagger.set(sentence)
        return tagger.marginal(tagger.labels()[0], 0)

    for call in (lambda: tagger.open(path), lambda: tagger.tag(sentence), marginal):
        start = perf_counter()
        call()
        found.append(1e3 * (perf_counter() - start))
    return [*found, sum(found)]


def measure_first(n_labels, n_sentences, repeat):
    """Rows of the first calls with a model of attribute strings: medians of fresh processes."""
    from skstruct.crfsuite import CRF

    words, y = read(n_labels, n_sentences)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model")
        crf = CRF(max_iterations=ITERATIONS, c1=0.05, c2=0.1, model_filename=path)
        crf.fit([strings(sentence, 4) for sentence in words], y)
        for system in (OURS, THEIRS):
            options = ("--first", system, "--model", path)
            runs = [run_child("short_calls", *options) for _ in range(repeat)]
            medians = [f"{median(values):,.1f}" for values in zip(*runs, strict=True)]
            yield [f"{len(crf.classes_)} labels, {system}", *medians]


def main():
    """Run the benchmark."""
    parser = make_parser(__doc__, repeat=5)
    parser.add_argument("--first", choices=(OURS, THEIRS), help="only first calls, in this process")
    parser.add_argument("--model", help="model file for --first")
    arguments = parse(parser)
    if arguments.first:
        print(json.dumps(first_calls(arguments.model, arguments.first)))
        return
    corpora, lengths, seconds = CORPORA, LENGTHS, SECONDS
    if arguments.quick:
        corpora, lengths, seconds = [None], QUICK_LENGTHS, QUICK_SECONDS
    rows = [
        row
        for n_labels in corpora
        for title, make, n in INPUTS
        for row in measure(n_labels, title, make, n, lengths, seconds, N_SENTENCES)
    ]
    first = [row for k in corpora for row in measure_first(k, N_SENTENCES, arguments.repeat)]
    head = ["times CRFsuite's speed", *(f"{n} token{'s' * (n > 1)}" for n in lengths)]
    of_first = ["milliseconds", "`open`", "`tag`", "`set` and `marginal`", "together"]
    with open_report("short_calls", arguments) as report:
        report.write("speeds", table(head, rows), machine())
        report.write("first", table(of_first, first), machine())


if __name__ == "__main__":
    main()
