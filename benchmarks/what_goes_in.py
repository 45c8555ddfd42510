"""Scores by what goes in: words, statistics of labels, chunks above a threshold, costs.

    python -m benchmarks.what_goes_in
    python -m benchmarks.what_goes_in --only jnlpba 0.05 0.2
    python -m benchmarks.what_goes_in --sentences
    python -m benchmarks.what_goes_in --write

Learns from 5, 20 and 100 % of the training sentences of each corpus, drawn at random, and for the
picture from 125 to 2,000 sentences of three of them, with three seeds each. Scores the test set
once. Everything has its defaults, so that nothing is chosen here. Finished runs are kept in
``benchmarks/results``, cheap ones are made first, and `--only` names a corpus and maybe shares or
numbers of sentences. `--sentences` measures the time of one sentence. `--write` makes the tables
of the runs that are complete.
"""

import base64
import warnings
import zlib
from collections import defaultdict
from functools import cache
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.pipeline import make_pipeline

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.common.corpora import TWO_FILES, choose, columns, load_quick
from benchmarks.common.processes import n_swaps
from benchmarks.common.report import corrected, machine, mean_and_deviation, table
from benchmarks.common.runs import Records
from skstruct import CRFTagger, SpanTaggerCV, WordClusters, WordVectorizer
from skstruct.datasets import load_addresses
from skstruct.metrics.chunks import count_chunks_of_sequences, extract_chunks

NAME = "what_goes_in"
SHARES, SEEDS = (0.05, 0.2, 1.0), 3
N_SWAPS = 1999
PLAIN = "words"
# Steps, each with the one that it is compared with.
COMPARED = {
    "statistics": PLAIN,
    "clusters of the drawn": PLAIN,
    "clusters": PLAIN,
    "statistics, clusters": "statistics",
    "cost": PLAIN,
    "spans": PLAIN,
    "statistics, spans": "spans",
    "statistics, clusters, spans": "statistics, spans",
}
STEPS = (PLAIN, *COMPARED)
# Parts of speech are no chunks.
OF_TOKENS = (PLAIN, "statistics", "clusters", "statistics, clusters")
KINDS = ("rare", "ambiguous", "other")


def split_addresses():
    """Addresses that come with the package: the last 138 are for tests."""
    X, y = load_addresses(return_X_y=True)
    return {"train": (X[:400], y[:400]), "test": (X[400:], y[400:])}


# Title, reader, and whether labels are those of tokens.
CORPORA = {
    "conll2002-esp": (
        "Spanish names",
        columns("conll2002-esp", train="train", test="testb"),
        False,
    ),
    "conll2002-ned": ("Dutch names", columns("conll2002-ned", train="train", test="testb"), False),
    "jnlpba": ("JNLPBA", columns("jnlpba", **TWO_FILES), False),
    "conll2000": ("Phrases", columns("conll2000", **TWO_FILES), False),
    "addresses": ("Addresses", split_addresses, False),
    "wordseg-as": ("Chinese words", columns("wordseg-as", **TWO_FILES), False),
    "ud-english-ewt": ("EWT, parts of speech", columns("ud-english-ewt", **TWO_FILES), True),
    "brown-pos": ("Brown, parts of speech", columns("brown-pos", **TWO_FILES), True),
}
# Every character is in a word: no label says that a word was missed.
NOTHING_MISSED = {"wordseg-as"}
# Numbers of sentences in the picture, its corpora and its steps.
SIZES = (125, 500, 2000)
CURVES = ("conll2002-ned", "jnlpba", "conll2000")
ON_CURVES = (PLAIN, "statistics", "statistics, clusters", "statistics, clusters, spans")
# What one sentence is timed on: corpora, share of the sentences learnt from, sentences, those of so
# many tokens, and turns.
TIMED, TIMED_SHARE = ("conll2002-ned", "jnlpba", "conll2000"), 0.05
TIMED_SENTENCES, TIMED_TOKENS, TURNS = 20, 24, 100
QUICK = {"addresses": ("Addresses", load_quick, False)}


def make(step, clusters):
    """The model of a step."""
    clusters = clusters if "clusters" in step else None
    words = WordVectorizer(label_statistics="statistics" in step, clusters=clusters)
    tagger = CRFTagger(label_cost={"missed": 2} if "cost" in step else None)
    model = make_pipeline(words, tagger)
    return SpanTaggerCV(model, cv=3) if "spans" in step else model


# --------------------------------------------------------------------------------------- the runs


class StepRecords(Records):
    """Finished runs."""

    names = ("corpus", "share", "seed", "step")


def pack(counts):
    """Counts of sentences as a string."""
    return base64.b64encode(zlib.compress(np.asarray(counts, "<u2").tobytes(), 9)).decode()


def unpack(text):
    """Counts of sentences, of shape (n_sentences, 3)."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), "<u2").reshape(-1, 3).astype(int)


def count_of(y_true, y_pred, of_tokens):
    """Correct, predicted and true chunks of each sentence; of parts of speech, tokens."""
    if not of_tokens:
        return count_chunks_of_sequences(y_true, y_pred, "conlleval")
    hits = [sum(map(str.__eq__, *pair)) for pair in zip(y_true, y_pred, strict=True)]
    return np.array([[n, len(y), len(y)] for n, y in zip(hits, y_true, strict=True)])


def kinds_of_words(X, y, of_tokens):
    """Kind of each word: "ambiguous" with several types, "rare" with one token at most."""
    types = defaultdict(list)
    for words, labels in zip(X, y, strict=True):
        for word, label in zip(words, labels, strict=True):
            types[word.lower()].append(label if of_tokens else label[2:])

    def kind(word):
        found = types.get(word.lower(), ())
        return "rare" if len(found) < 2 else "ambiguous" if len(set(found)) > 1 else "other"

    return cache(kind)


def recall_by_kind(kind, test, predicted, of_tokens):
    """Found and all chunks, or tokens, by the kind of the words in them; rare words come first."""
    found = {one: [0, 0] for one in KINDS}
    for words, labels, answers in zip(*test, predicted, strict=True):
        if of_tokens:
            pairs = zip(words, labels, answers, strict=True)
            units = [([word], label == answer) for word, label, answer in pairs]
        else:
            known = set(extract_chunks(answers))
            units = [(words[c[0] : c[1]], c in known) for c in extract_chunks(labels)]
        for inside, is_found in units:
            kinds = set(map(kind, inside))
            which = found[next(one for one in KINDS if one in kinds)]
            which[0] += is_found
            which[1] += 1
    return found


def as_words(pair):
    """Sentences of words alone."""
    X, y = pair
    X = [[token if isinstance(token, str) else token[0] for token in tokens] for tokens in X]
    return X, list(map(list, y))


def make_run(step, drawn, raw, test, of_tokens):
    """Fit a step, and score it."""
    start = process_time()
    if "clusters" in step:
        raw = WordClusters(random_state=0).fit(drawn[0] if "drawn" in step else raw).clusters_
    model = make(step, raw).fit(*drawn)
    seconds = process_time() - start
    predicted = [list(labels) for labels in model.predict(test[0])]
    kinds = kinds_of_words(*drawn, of_tokens)
    return {
        "counts": pack(count_of(test[1], predicted, of_tokens)),
        "kinds": recall_by_kind(kinds, test, predicted, of_tokens),
        "fit": round(seconds, 2),
    }


def seeds_of(share, n_seeds):
    """Seeds of a share: all sentences are the same with each."""
    return range(1 if share == 1 else n_seeds)


def steps_of(name, of_tokens, share):
    """Steps of a corpus, for a share of the sentences or their number."""
    if share > 1:
        return ON_CURVES
    steps = OF_TOKENS if of_tokens else STEPS
    return [step for step in steps if step != "cost" or name not in NOTHING_MISSED]


def make_runs(records, corpora, chosen, n_seeds):
    """Make the runs that are missing, the smallest shares first."""
    read = cache(lambda name: {part: as_words(p) for part, p in corpora[name][1]().items()})
    for share, name in sorted({(share, name) for name, share in chosen}):
        of_tokens = corpora[name][2]
        for seed, step in product(seeds_of(share, n_seeds), steps_of(name, of_tokens, share)):
            head = {"corpus": name, "share": share, "seed": seed, "step": step}
            if records.find(**head):
                continue
            parts = read(name)
            drawn, rng = parts["train"], np.random.default_rng(seed)
            if share != 1:
                size = share if share > 1 else round(share * len(drawn[0]))
                drawn = choose(drawn, size, rng)
            run = make_run(step, drawn, parts["train"][0], parts["test"], of_tokens)
            records.add({**head, **run, "machine": machine()})
            score = float(f1(unpack(run["counts"]).sum(axis=0)))
            print(f"{name}, {share:g}, seed {seed}, {step}: {score:.2f}", flush=True)


def time_sentences(parts, share, n_turns):
    """Microseconds of processor of a sentence alone by step.

    The mean over sentences of the least of some turns, in which all steps take turns.
    """
    size = round(share * len(parts["train"][0]))
    drawn = choose(parts["train"], size, np.random.default_rng(0))
    clusters = WordClusters(random_state=0).fit(parts["train"][0]).clusters_
    models = {step: make(step, clusters).fit(*drawn) for step in ON_CURVES}
    nearest = sorted(parts["test"][0], key=lambda tokens: abs(len(tokens) - TIMED_TOKENS))
    sentences = nearest[:TIMED_SENTENCES]
    least = {step: np.full(len(sentences), np.inf) for step in models}
    for _, i, step in product(range(n_turns), range(len(sentences)), models):
        start = process_time()
        models[step].predict([sentences[i]])
        least[step][i] = min(least[step][i], process_time() - start)
    found = [f"{1e6 * seconds.mean():.0f}" for seconds in least.values()]
    return [f"{np.mean(list(map(len, sentences))):.0f}", *found]


def write_sentences(corpora, names, report, share, n_turns):
    """Write the table of the time of one sentence."""
    rows = []
    for name in names:
        parts = {part: as_words(pair) for part, pair in corpora[name][1]().items()}
        rows.append([corpora[name][0], *time_sentences(parts, share, n_turns)])
    note = f"Least of {n_turns} turns. {machine()}"
    report.write("sentences", table(["", "tokens", *ON_CURVES], rows), note)


# ------------------------------------------------------------------------------------- the report


def f1(counts):
    """F1 of summed counts, in per cent; the accuracy, where they are those of tokens."""
    correct, predicted, true = np.moveaxis(np.asarray(counts), -1, 0)
    return 200 * correct / np.maximum(predicted + true, 1)


def permuted_p(counts, others):
    """Two-sided p of the difference of two steps; a sentence is swapped with all its seeds.

    The difference is that of the mean F1 over the seeds; counts have the shape (n_seeds,
    n_sentences, 3).
    """
    rng, shift = np.random.default_rng(0), others - counts
    found = abs(float(np.mean(f1(counts.sum(axis=1)) - f1(others.sum(axis=1)))))
    n_as_large, n = 0, n_swaps(N_SWAPS)
    for _ in range(n):
        moved = shift[:, rng.random(counts.shape[1]) < 0.5].sum(axis=1)
        first, second = counts.sum(axis=1) + moved, others.sum(axis=1) - moved
        n_as_large += abs(np.mean(f1(first) - f1(second))) >= found - 1e-9
    return (1 + n_as_large) / (1 + n)


def complete_cells(records, corpora, shares, n_seeds):
    """Runs of each corpus and share, by step; only of those that are complete."""
    cells = {}
    for name, share in product(corpora, shares):
        runs = {
            step: [
                records.find(corpus=name, share=share, seed=seed, step=step)
                for seed in seeds_of(share, n_seeds)
            ]
            for step in steps_of(name, corpora[name][2], share)
        }
        if all(None not in found for found in runs.values()):
            cells[name, share] = runs
    return cells


def write_report(cells, corpora, report):
    """Write the tables."""
    if not cells:
        raise SystemExit("No share of a corpus is complete.")
    counts = {
        (cell, step): np.array([unpack(run["counts"]) for run in found])
        for cell, runs in cells.items()
        for step, found in runs.items()
    }
    p = corrected(
        {
            (cell, step): permuted_p(counts[cell, step], counts[cell, COMPARED[step]])
            for cell, step in counts
            if step in COMPARED
        }
    )
    found = {key: f1(one.sum(axis=1)) for key, one in counts.items()}
    scores, gains, kinds, times = [], [], [], []
    for cell, runs in cells.items():
        title = f"{corpora[cell[0]][0]}, {cell[1]:.0%}"
        scores.append([title, *(score(found.get((cell, step))) for step in STEPS)])
        row = []
        for step, before in COMPARED.items():
            if step in runs:
                gain = found[cell, step].mean() - found[cell, before].mean()
                row.append(f"{gain:+.2f} ({p[cell, step]:.3f})")
            else:
                row.append("")
        gains.append([title, *row])
        kinds.append([title, *(recalls(runs, kind) for kind in KINDS)])
        times.append([title, *(seconds(runs.get(step)) for step in STEPS)])
    report.write("scores", table(["", *STEPS], scores), machines(cells))
    report.write("gains", table(["", *COMPARED], gains))
    report.write("kinds", table(["", *KINDS], kinds))
    report.write("times", table(["", *STEPS], times), machines(cells))


def score(values):
    """Mean over the seeds, blank where a step has no runs."""
    return "" if values is None else mean_and_deviation(values)


def recalls(runs, kind):
    """Recall with words, and with statistics, of chunks of a kind; their share."""

    def total(step, column):
        return sum(run["kinds"][kind][column] for run in runs[step])

    n = total(PLAIN, 1)
    everything = sum(run["kinds"][one][1] for run in runs[PLAIN] for one in KINDS)
    if n == 0:
        return ""
    found = [f"{100 * total(step, 0) / n:.1f}" for step in (PLAIN, "statistics")]
    return f"{' to '.join(found)} ({n / everything:.0%})"


def seconds(runs):
    """Seconds of processor of a fit, the mean over the seeds."""
    return "" if runs is None else f"{np.mean([run['fit'] for run in runs]):.1f}"


def draw_curves(cells, corpora):
    """Figure of F1 by the number of sentences, a panel for each corpus."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator, ScalarFormatter

    names = list(dict.fromkeys(name for name, _ in cells))
    figure = Figure(figsize=(3.2 * len(names), 3.2), layout="constrained")
    panels = figure.subplots(1, len(names), squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        sizes = [size for cell, size in cells if cell == name]
        for step in ON_CURVES:
            runs = [cells[name, size][step] for size in sizes]
            means = [np.mean([f1(unpack(run["counts"]).sum(axis=0)) for run in r]) for r in runs]
            axes.plot(sizes, means, marker=".", label=step)
        axes.set(xscale="log", xticks=sizes, title=corpora[name][0], xlabel="sentences")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_locator(NullLocator())
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("chunk F1 of the test set")
    lines, steps = figure.axes[0].get_legend_handles_labels()
    figure.legend(lines, steps, loc="outside lower center", ncols=len(steps), frameon=False)
    return figure


def machines(cells):
    """Sentence on the machines."""
    found = {run["machine"] for runs in cells.values() for group in runs.values() for run in group}
    return " ".join(sorted(found))


def selection(only, corpora, shares):
    """Pairs of a corpus and a share, as chosen by the options `--only`."""
    if only is None:
        curves = set(product(CURVES, SIZES)) if corpora is CORPORA else set()
        return curves | set(product(corpora, shares))
    return {
        (name, number if number <= 1 else int(number))
        for name, *found in only
        for number in (map(float, found) if found else shares)
    }


def main():
    """Make runs, or write the report."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", action="append", metavar=("CORPUS", "SHARE"))
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    parser.add_argument("--sentences", action="store_true", help="only time single sentences")
    parser.add_argument("--write", action="store_true", help="write the report, make no runs")
    arguments = parse(parser)
    # That a tagger finds no names is what is measured.
    warnings.filterwarnings("ignore", "Predictions for .* hold .* chunks", UserWarning)
    corpora, shares, n_seeds = CORPORA, SHARES, SEEDS
    if arguments.quick:
        corpora, shares, n_seeds = QUICK, (0.5, 1.0), 2
    with results_folder(NAME, arguments) as folder:
        records = StepRecords(folder / "runs.jsonl")
        if arguments.quick or not (arguments.write or arguments.sentences):
            make_runs(records, corpora, selection(arguments.only, corpora, shares), n_seeds)
        if arguments.quick or arguments.sentences:
            with open_report(NAME, arguments) as report:
                timed, n_turns = (list(corpora), 1) if arguments.quick else (TIMED, TURNS)
                share = shares[0] if arguments.quick else TIMED_SHARE
                write_sentences(corpora, timed, report, share, n_turns)
        if arguments.quick or arguments.write:
            with open_report(NAME, arguments) as report:
                write_report(complete_cells(records, corpora, shares, n_seeds), corpora, report)
                curves, sizes = (list(corpora), shares) if arguments.quick else (CURVES, SIZES)
                found = complete_cells(records, {c: corpora[c] for c in curves}, sizes, n_seeds)
                if found:
                    report.save_figure("curves", draw_curves(found, corpora))


if __name__ == "__main__":
    main()
