"""What to label next, in simulation: F1 by the number of labelled tokens, beside random choice.

    python -m benchmarks.choosing
    python -m benchmarks.choosing --only conll2002-esp --seeds 2
    python -m benchmarks.choosing --times
    python -m benchmarks.choosing --write

Labels of a pool are hidden. The first 1,000 tokens are random sentences. In each round a tagger
learns from all that is labelled, a strategy chooses sentences until there are twice as many tokens,
and their labels are shown. Finished runs are kept in ``benchmarks/results/choosing``, and
``--write`` writes the tables from them. ``--times`` measures what a choice among 100,000 sentences
costs, beside `predict_proba`.
"""

from functools import partial
from itertools import chain, cycle, islice
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.common.corpora import columns, load_quick
from benchmarks.common.report import machine, mean_and_deviation, table
from benchmarks.common.runs import Records

BUDGETS, QUICK_BUDGETS = (1_000, 2_000, 4_000, 8_000), (150, 300)
POOL, TEST = 2_000, 800
SEEDS = 5
# Sentences of the pool whose choices are timed, of those that the tagger learns from, and chosen.
TIMED, TIMED_TRAINING, TIMED_CHOSEN, TURNS = 100_000, 2_000, 500, 2
QUICK_TIMED = 200
RANDOM = "random"
STRATEGIES = {
    RANDOM: {"strategy": "random", "diverse": False},
    "longest first": None,
    "spans": {"strategy": "spans"},
    "spans, near copies": {"strategy": "spans", "diverse": False},
    "margin": {"strategy": "margin"},
    "entropy": {"strategy": "entropy"},
}
TASKS = {
    "conll2000": columns("conll2000", train="train", test="test"),
    "conll2002-esp": columns("conll2002-esp", train="train", test="testb"),
    "conll2002-ned": columns("conll2002-ned", train="train", test="testb"),
    "jnlpba": columns("jnlpba", train="train", test="test"),
    "wordseg-as": columns("wordseg-as", train="train", test="test"),
}
QUICK = {"addresses": load_quick}


class Runs(Records):
    """Finished runs."""

    names = ("corpus", "strategy", "seed")


def words_of(X):
    """Words of sentences whose tokens may have tags."""
    return [[token if isinstance(token, str) else token[0] for token in tokens] for tokens in X]


def order_of(strategy, model, pool, n, seed):
    """Numbers of sentences of the pool, in the order in which they are to be labelled."""
    from skstruct.model_selection import choose_sequences

    if strategy is None:
        return np.argsort([-len(tokens) for tokens in pool], kind="stable")
    return choose_sequences(model, pool, n, random_state=seed, **strategy)[0]


def simulate(parts, strategy, seed, budgets):
    """F1 on the test set with each number of labelled tokens."""
    from sklearn.pipeline import make_pipeline

    from skstruct import CRFTagger, WordVectorizer
    from skstruct.metrics import chunk_f1_score

    rng = np.random.default_rng(seed)
    (X, y), (X_test, y_test) = parts["train"], parts["test"]
    chosen = rng.permutation(len(X))[:POOL]
    X, y = words_of([X[i] for i in chosen]), [y[i] for i in chosen]
    X_test, y_test = words_of(X_test[:TEST]), y_test[:TEST]
    lengths = np.array(list(map(len, X)))
    labelled, found, model = [], [], None
    for budget in budgets:
        left = np.setdiff1d(np.arange(len(X)), labelled)
        n_tokens = lengths[labelled].sum() if labelled else 0
        if model is None:
            order = np.arange(len(left))
        else:
            n = int(2 * (budget - n_tokens) / lengths.mean()) + 1
            order = order_of(strategy, model, [X[i] for i in left], min(n, len(left)), seed)
        for i in left[order].tolist():
            if n_tokens >= budget:
                break
            labelled.append(i)
            n_tokens += lengths[i]
        model = make_pipeline(WordVectorizer(), CRFTagger())
        model.fit([X[i] for i in labelled], [y[i] for i in labelled])
        f1 = chunk_f1_score(y_test, model.predict(X_test))
        found.append({"tokens": int(n_tokens), "sentences": len(labelled), "f1": float(f1)})
    return found


def measure_times(tasks, n_sentences, n_turns):
    """Seconds of processor of each way to score a pool, in turn; the least of some turns.

    The pool is the training sentences of all corpora, repeated where they are too few; the tagger
    has learnt from Dutch names, where they are among them.
    """
    from sklearn.pipeline import make_pipeline

    from skstruct import CRFTagger, WordVectorizer
    from skstruct.model_selection import choose_sequences

    parts = {name: read()["train"] for name, read in tasks.items()}
    X, y = parts.get("conll2002-ned") or next(iter(parts.values()))
    model = make_pipeline(WordVectorizer(), CRFTagger())
    model.fit(words_of(X[:TIMED_TRAINING]), y[:TIMED_TRAINING])
    sentences = list(chain.from_iterable(words_of(X) for X, _ in parts.values()))
    pool = list(islice(cycle(sentences), n_sentences))
    calls = {"predict_proba": lambda: model.predict_proba(pool)}
    for strategy in ("spans", "margin", "entropy", "random"):
        calls[strategy] = partial(choose_sequences, model, pool, TIMED_CHOSEN, strategy=strategy)
    model.predict_proba(pool[:10])
    seconds = {name: [] for name in calls}
    for _ in range(n_turns):
        for name, call in calls.items():
            start = process_time()
            call()
            seconds[name].append(process_time() - start)
    return {name: min(values) for name, values in seconds.items()}, sum(map(len, pool))


def write_times(report, tasks, n_sentences, n_turns):
    """Write seconds, and how many times those of `predict_proba` they are."""
    seconds, n_tokens = measure_times(tasks, n_sentences, n_turns)
    plain = seconds["predict_proba"]
    rows = [[name, f"{value:.1f}", f"{value / plain:.2f}"] for name, value in seconds.items()]
    note = (
        f"{n_sentences:,} sentences, {n_tokens:,} tokens, {TIMED_CHOSEN} chosen. "
        f"Least of {n_turns} turns. {machine()}"
    )
    report.write("times", table(["", "seconds", "times `predict_proba`"], rows), note)


def write_report(runs, report, names, budgets):
    """Write F1 with each budget, and the gains over random choice."""
    scores, gains = [], []
    seeds = sorted({run["seed"] for run in runs})
    for corpus in names:
        found = {
            strategy: [runs.find(corpus=corpus, strategy=strategy, seed=seed) for seed in seeds]
            for strategy in STRATEGIES
        }
        if any(run is None for some in found.values() for run in some):
            continue
        f1 = {
            strategy: 100 * np.array([[point["f1"] for point in run["points"]] for run in some])
            for strategy, some in found.items()
        }
        for strategy, values in f1.items():
            # All begin with the same random sentences.
            row = [mean_and_deviation(column, ".1f") for column in values.T[1:]]
            scores.append([corpus, strategy, *row, found[strategy][0]["points"][-1]["sentences"]])
            if strategy != RANDOM:
                gain = (values - f1[RANDOM]).T[1:]
                gains.append([corpus, strategy, *(mean_and_deviation(g, ".1f") for g in gain)])
    head = ["", "strategy", *(f"{budget:,} tokens" for budget in budgets[1:])]
    note = f"{len(seeds)} seeds, means and standard deviations. {machine()}"
    report.write("scores", table([*head, "sentences"], scores, left=(0, 1)), note)
    report.write("gains", table(head, gains, left=(0, 1)), note)


def main():
    """Run the benchmark."""
    parser = make_parser(__doc__)
    parser.add_argument("--only", nargs="+", choices=list(TASKS), help="only these corpora")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"default {SEEDS}")
    parser.add_argument("--times", action="store_true", help="only measure times")
    parser.add_argument("--write", action="store_true", help="only write tables of finished runs")
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    arguments = parse(parser)
    tasks, budgets = (QUICK, QUICK_BUDGETS) if arguments.quick else (TASKS, BUDGETS)
    names = arguments.only or list(tasks)
    with results_folder("choosing", arguments) as folder:
        runs = Runs(folder / "runs.jsonl")
        n_seeds = 1 if arguments.quick else arguments.seeds
        for seed in range(0 if arguments.write or arguments.times else n_seeds):
            for corpus in names:
                parts = tasks[corpus]()
                for name, strategy in STRATEGIES.items():
                    key = {"corpus": corpus, "strategy": name, "seed": seed}
                    if runs.find(**key) is None:
                        run = {**key, "points": simulate(parts, strategy, seed, budgets)}
                        print(runs.add(run), flush=True)
        with open_report("choosing", arguments) as report:
            if not arguments.times:
                write_report(runs, report, names, budgets)
            if arguments.times or arguments.quick:
                n_sentences, n_turns = (QUICK_TIMED, 1) if arguments.quick else (TIMED, TURNS)
                write_times(report, {name: tasks[name] for name in names}, n_sentences, n_turns)


if __name__ == "__main__":
    main()
