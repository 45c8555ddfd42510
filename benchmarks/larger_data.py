"""A corpus of any size, learnt from as a stream and by shards on a cluster of two workers.

    python -m benchmarks.larger_data
    python -m benchmarks.larger_data --stream 1 5 --cluster 1 5

The corpus is made up: sentences of a hidden chain, whose states are the pairs of part of speech and
chunk label of CoNLL-2000, with their frequencies, transitions and words. In one token of fifty, the
word is followed by a number from a Pareto distribution, so that the vocabulary grows with the
corpus. Files of a million tokens are drawn one by one, each from its own seed: a small corpus is
the beginning of a large one. Test sentences come from the same chain.

An averaged perceptron learns it in two ways, with hashed features. A stream reads the files batch
by batch, once, in one process. `DaskTagger` reads each file as a partition on one of two workers
with a thread each, and makes several epochs, mixing the weights. Workers keep up to half a gigabyte
of partitions in memory and the rest on disk.

Every run is a process of its own. Memory is the peak of the resident set of a process, with all
that it has imported.
"""

import json
import os
import tempfile
from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import CORPORA, chunking_name
from benchmarks.common.features import CHUNKING
from benchmarks.common.processes import peak_memory, run_child, take_turns
from benchmarks.common.report import machine, median, table

# Files of the corpus.
SIZES = {"stream": (1, 5, 50), "cluster": (1, 5, 50)}
FILE, QUICK_FILE = 1_000_000, 2_000  # tokens
N_FEATURES = 2**16
BATCH = 1000
EPOCHS = {"stream": 1, "cluster": 3}
# Sentences drawn side by side, and the longest that there can be.
SIDE_BY_SIDE, LONGEST = 20_000, 150
NUMBERED, TAIL = 0.02, 0.8
# Of the memory of a worker, what partitions may take.
WORKER = {"memory_limit": "2GiB", "threads_per_worker": 1, "dashboard_address": ":0"}
MEMORY = {"target": 0.25, "spill": 0.5, "pause": False, "terminate": False}


# The corpus. --------------------------------------------------------------------------------------


class HiddenChain:
    """Chain of states, each with words, whose frequencies are those of a corpus.

    Parameters
    ----------
    X, y : list
        Sentences of pairs of word and tag, and their labels.
    """

    def __init__(self, X, y):
        states = [
            [(tag, label) for (_, tag), label in zip(*pair, strict=True)]
            for pair in zip(X, y, strict=True)
        ]
        self.names = sorted(set(chain.from_iterable(states)))
        number = {name: i for i, name in enumerate(self.names)}
        self._end = end = len(number)
        counts = np.zeros((end + 1, end + 1))
        words = [{} for _ in number]
        for tokens, names in zip(X, states, strict=True):
            codes = [end, *(number[name] for name in names), end]
            np.add.at(counts, (codes[:-1], codes[1:]), 1)
            for (word, _), code in zip(tokens, codes[1:], strict=False):
                words[code][word] = words[code].get(word, 0) + 1
        self._next = _cumulative(counts)
        self._words = [word for of_state in words for word in of_state]
        self._state_of_word = np.repeat(np.arange(end), [len(of_state) for of_state in words])
        shares = [np.cumsum(list(of.values())) / sum(of.values()) for of in words]
        self._word = np.concatenate([i + share for i, share in enumerate(shares)])
        ends = [" ".join(self.names[i]) + "\n" for i in self._state_of_word]
        lines = [f"{word} {end}" for word, end in zip(self._words, ends, strict=True)]
        # Once more for last tokens, which an empty line follows.
        self._lines = np.array([*lines, *(line + "\n" for line in lines)], dtype=object)
        self._ends = [*ends, *(end + "\n" for end in ends)]

    def draw(self, rng):
        """Text of some sentences, and the number of their tokens."""
        paths = self._paths(rng)
        inside = paths >= 0
        last = inside & ~np.pad(inside[:, 1:], ((0, 0), (0, 1)))
        states = paths[inside]
        words = np.searchsorted(self._word, states + rng.random(len(states)), side="right")
        places = words + len(self._words) * last[inside]
        lines = self._lines[places]
        numbered = np.flatnonzero(rng.random(len(states)) < NUMBERED)
        numbers = (rng.pareto(TAIL, len(numbered)) * 10).clip(max=1e12).astype(np.int64)
        lines[numbered] = [
            f"{self._words[word]}{number} {self._ends[place]}"
            for word, number, place in zip(
                words[numbered].tolist(), numbers.tolist(), places[numbered].tolist(), strict=True
            )
        ]
        return "".join(lines.tolist()), len(states)

    def _paths(self, rng):
        """States of sentences, a row each, -1 after the last token."""
        paths = np.full((SIDE_BY_SIDE, LONGEST), -1, np.int32)
        going, states = np.arange(SIDE_BY_SIDE), np.full(SIDE_BY_SIDE, self._end)
        for t in range(LONGEST):
            drawn = np.searchsorted(self._next, states + rng.random(len(states)), side="right")
            states = drawn - states * (self._end + 1)
            goes_on = states != self._end
            going, states = going[goes_on], states[goes_on]
            paths[going, t] = states
        return paths[paths[:, 0] >= 0]


def _cumulative(counts):
    """Cumulative shares of each row, plus its number: one sorted array for all rows."""
    shares = np.cumsum(counts, axis=1) / counts.sum(axis=1, keepdims=True)
    return (shares + np.arange(len(counts))[:, None]).ravel()


def write_files(source, n_files, n_tokens, seed, folder):
    """Write files of so many tokens or a few more; return their paths."""
    folder.mkdir()
    paths = []
    for number in range(n_files):
        rng = np.random.default_rng([seed, number])
        paths.append(folder / f"{number:04}.conll")
        missing = n_tokens
        with paths[-1].open("w", encoding="utf-8") as file:
            while missing > 0:
                text, n = source.draw(rng)
                if n > missing:
                    # As many sentences as it takes.
                    text, n = _cut(text, missing)
                file.write(text)
                missing -= n
    return paths


def _cut(text, n_tokens):
    """The first sentences of a text, with at least so many tokens, and how many these are."""
    sentences = text.split("\n\n")
    ends = np.cumsum([sentence.count("\n") + 1 for sentence in sentences])
    n = int(np.searchsorted(ends, n_tokens)) + 1
    return "\n\n".join([*sentences[:n], ""]), int(ends[n - 1])


# Learning. ----------------------------------------------------------------------------------------


def vectorizer():
    from skstruct import HashingTemplateVectorizer

    return HashingTemplateVectorizer(CHUNKING, n_features=N_FEATURES)


def learn_stream(paths, classes):
    """Tagger that has read the files once, with what it took."""
    from skstruct import PerceptronTagger
    from skstruct.datasets import iter_conll
    from skstruct.streams import fit_stream

    def batches(epoch):
        return chain.from_iterable(iter_conll(path, batch_size=BATCH) for path in paths)

    start = perf_counter()
    tagger = fit_stream(
        PerceptronTagger(random_state=0),
        batches,
        vectorizer=vectorizer(),
        classes=classes,
        n_epochs=EPOCHS["stream"],
    )
    return tagger, {"seconds": perf_counter() - start, "driver": peak_memory()}


@contextmanager
def two_workers(folder):
    """Client of a cluster of two workers."""
    import dask
    from distributed import Client, LocalCluster

    memory = {f"distributed.worker.memory.{name}": value for name, value in MEMORY.items()}
    with (
        dask.config.set({"temporary-directory": str(folder), **memory}),
        LocalCluster(n_workers=2, **WORKER) as cluster,
        Client(cluster) as client,
    ):
        yield client


def learn_on_cluster(paths, classes):
    """Tagger that has learnt from partitions, with what it took."""
    from skstruct import PerceptronTagger
    from skstruct.dask import DaskTagger, read_conll

    tagger = PerceptronTagger(max_iter=EPOCHS["cluster"], tol=None, random_state=0)
    with tempfile.TemporaryDirectory() as folder, two_workers(folder) as client:
        start = perf_counter()
        model = DaskTagger(tagger, vectorizer=vectorizer(), client=client)
        model.fit(*read_conll([str(path) for path in paths]), classes=classes)
        seconds = perf_counter() - start
        workers = max(client.run(peak_memory).values())
        epochs = model.estimator_.history_["time"]
        return model.estimator_, {
            "seconds": seconds,
            "epoch": float(epochs[-1] - epochs[0]) / max(len(epochs) - 1, 1),
            "driver": peak_memory(),
            "worker": workers,
        }


def run_one(way, n_files, folder):
    """Learn from the first files of a folder in this process; return what it took."""
    from skstruct.datasets import read_conll
    from skstruct.metrics import chunk_f1_score

    paths = sorted((folder / "train").glob("*.conll"))[:n_files]
    classes = (folder / "labels").read_text().split()
    learn = {"stream": learn_stream, "cluster": learn_on_cluster}[way]
    tagger, results = learn(paths, classes)
    X, y = read_conll(folder / "test" / "0000.conll")
    batch = vectorizer().transform(X)
    return {
        **results,
        "accuracy": tagger.score(batch, y),
        "f1": chunk_f1_score(y, tagger.predict(batch)),
    }


# The runs. ----------------------------------------------------------------------------------------


def run_all(arguments, systems, n_tokens):
    """Results of all runs, and the seconds a million tokens that writing the corpus took."""
    source = HiddenChain(*CORPORA[chunking_name(arguments.quick)]()["train"])
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        folder = Path(folder)
        start = perf_counter()
        n_files = max(n for _, n in systems)
        paths = write_files(source, n_files, n_tokens, 0, folder / "train")
        writing = perf_counter() - start
        write_files(source, 1, max(n_tokens // 10, 1000), 1, folder / "test")
        (folder / "labels").write_text("\n".join(sorted({label for _, label in source.names})))
        megabytes = [path.stat().st_size / 1e6 for path in paths]

        def run(options):
            return run_child("larger_data", "--folder", folder, "--run", *options)

        warm = () if arguments.quick else [(way, 1) for way in EPOCHS]
        results = take_turns(systems, run, 1, warm=warm)
        return results, writing / len(paths), float(np.mean(megabytes))


def processors():
    """Sentence on the processors that this process and its children may use."""
    usable = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count()))(0)
    return f"All processes of a run shared {len(usable)} of them."


def write_report(results, writing, megabytes, n_tokens, report):
    """Write memory, time and scores by the size of the corpus."""
    memory, scores = [], []
    for (way, n_files), runs in results.items():
        size, seconds = f"{n_files * n_tokens / 1e6:g}", median(runs, "seconds")
        driver, worker, epoch = (median(runs, key) for key in ("driver", "worker", "epoch"))
        name = {"stream": "stream", "cluster": "two workers"}[way]
        cells = [
            f"{driver:,.0f}",
            "" if worker is None else f"{worker:,.0f}",
            f"{seconds:,.0f}" if seconds > 10 else f"{seconds:.1f}",
            "" if epoch is None else f"{epoch:.1f}",
            f"{n_files * n_tokens / seconds:,.0f}",
        ]
        memory.append([name, size, *cells])
        percent = [f"{100 * median(runs, key):.2f}" for key in ("accuracy", "f1")]
        scores.append([name, size, EPOCHS[way], *percent])
    head = ["", "million tokens", "process, MiB", "larger worker, MiB", "s"]
    head += ["of it an epoch, s", "tokens a second"]
    note = (
        f"One run of each. A file has {n_tokens:,} tokens and {megabytes:.1f} MB, and was written "
        f"in {writing:.1f} s. {machine()} {processors()}"
    )
    report.write("memory", table(head, memory), note)
    head = ["", "million tokens", "epochs", "token accuracy, %", "chunk F1, %"]
    report.write("scores", table(head, scores))


def main():
    """Run the benchmark, or one run of it in this process."""
    parser = make_parser(__doc__)
    for way, sizes in SIZES.items():
        parser.add_argument(
            f"--{way}", nargs="+", type=int, default=sizes, help="millions of tokens"
        )
    parser.add_argument("--scratch", type=Path, help="folder for the corpus, which is removed")
    parser.add_argument("--run", nargs=2, metavar=("WAY", "FILES"))
    parser.add_argument("--folder", type=Path, help="where --run finds the corpus")
    arguments = parse(parser)
    if arguments.run:
        way, n_files = arguments.run
        print(json.dumps(run_one(way, int(n_files), arguments.folder)))
        return
    n_tokens = QUICK_FILE if arguments.quick else FILE
    sizes = {way: (2,) if arguments.quick else getattr(arguments, way) for way in SIZES}
    systems = sorted(((way, n) for way in SIZES for n in sizes[way]), key=itemgetter(1))
    results, writing, megabytes = run_all(arguments, systems, n_tokens)
    with open_report("larger_data", arguments) as report:
        write_report(results, writing, megabytes, n_tokens, report)


if __name__ == "__main__":
    main()
