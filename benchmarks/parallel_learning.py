"""Gain and cost of learning in parallel: iterative parameter mixing of the online taggers.

    python -m benchmarks.parallel_learning

On CoNLL-2000 chunking each tagger learns with one, two and four shards (`n_jobs`), the same number
of epochs. With two processors, four shards cannot be faster than two; they show how much accuracy
it costs to mix more shards.
"""

import numpy as np

from benchmarks.common.chunking import EPOCHS
from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import CORPORA, chunking_name
from benchmarks.common.features import crfsuite_attributes
from benchmarks.common.report import machine, median_and_range, table
from skstruct import CRFTagger, MIRATagger, PerceptronTagger, SAPOTagger, SequenceVectorizer
from skstruct.metrics import chunk_f1_score

SHARDS = (1, 2, 4)
TAGGERS = {
    "Averaged perceptron": PerceptronTagger(),
    "MIRA, 5 best, averaged": MIRATagger(n_best=5),
    "SAPO, 5 best": SAPOTagger(n_best=5),
    "CRF, SGD": CRFTagger(solver="sgd"),
}


def load(corpus):
    """Training and test set as sequence batches."""
    parts = [
        ([crfsuite_attributes(tokens) for tokens in X], y) for X, y in CORPORA[corpus]().values()
    ]
    vectorizer = SequenceVectorizer().fit(parts[0][0])
    return [(vectorizer.transform(X), y) for X, y in parts]


def measure(tagger, n_jobs, seed, train, test):
    """Seconds of an epoch (median of a run), and F1 of the test set, in per cent."""
    tagger.set_params(n_jobs=n_jobs, max_iter=EPOCHS, tol=None, random_state=seed).fit(*train)
    seconds = np.diff(tagger.history_["time"], prepend=0.0)
    return float(np.median(seconds)), 100 * chunk_f1_score(test[1], tagger.predict(test[0]))


def measure_all(corpus, repeat):
    """Results by tagger and number of shards; the numbers of shards take turns."""
    train, test = load(corpus)
    results = {}
    for name, tagger in TAGGERS.items():
        for n_jobs in SHARDS:  # compiled, and threads started, before anything is measured
            measure(tagger, n_jobs, 0, (train[0][:100], train[1][:100]), test)
        for seed in range(repeat):
            for n_jobs in SHARDS:
                found = measure(tagger, n_jobs, seed, train, test)
                results.setdefault((name, n_jobs), []).append(found)
                print(name, n_jobs, *found, flush=True)
    return results


def write_report(results, repeat, report):
    """Write medians over the seeds, and ratios to one shard with the same seed."""
    rows = []
    for (name, n_jobs), runs in results.items():
        seconds, f1 = np.transpose(runs)
        alone = np.transpose(results[name, 1])[0]
        gain = median_and_range(alone / seconds, digits=2)
        score = f"{f1.mean():.2f} ({f1.min():.2f}-{f1.max():.2f})"
        rows.append([name, n_jobs, f"{np.median(seconds):.3f}", gain, score])
    head = ["", "shards", "an epoch, s", "times faster", "F1 on test, %"]
    report.write("shards", table(head, rows), f"{repeat} seeds. {machine()}")


def main():
    """Run the benchmark."""
    arguments = parse(make_parser(__doc__, repeat=3))
    results = measure_all(chunking_name(arguments.quick), arguments.repeat)
    with open_report("parallel_learning", arguments) as report:
        write_report(results, arguments.repeat, report)


if __name__ == "__main__":
    main()
