"""What to label next, in simulation: F1 by the number of labelled tokens, beside random choice.

    python -m benchmarks.choosing
    python -m benchmarks.choosing --only conll2002-esp --seeds 2
    python -m benchmarks.choosing --write

Labels of a pool are hidden. The first 1,000 tokens are random sentences. In each round a tagger
learns from all that is labelled, a strategy chooses sentences until there are twice as many tokens,
and their labels are shown. Finished runs are kept in ``benchmarks/results/choosing``, and
``--write`` writes the tables from them.
"""

from pathlib import Path

import numpy as np

from benchmarks.common.commandline import make_parser, open_report, parse, results_folder
from benchmarks.common.corpora import columns, load_quick
from benchmarks.common.report import machine, mean_and_deviation, table
from benchmarks.common.runs import Records

BUDGETS, QUICK_BUDGETS = (1_000, 2_000, 4_000, 8_000), (150, 300)
POOL, TEST = 2_000, 800
SEEDS = 5
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
    parser.add_argument("--write", action="store_true", help="only write tables of finished runs")
    parser.add_argument("--results", type=Path, help="folder of the finished runs")
    arguments = parse(parser)
    tasks, budgets = (QUICK, QUICK_BUDGETS) if arguments.quick else (TASKS, BUDGETS)
    names = arguments.only or list(tasks)
    with results_folder("choosing", arguments) as folder:
        runs = Runs(folder / "runs.jsonl")
        for seed in range(0 if arguments.write else 1 if arguments.quick else arguments.seeds):
            for corpus in names:
                parts = tasks[corpus]()
                for name, strategy in STRATEGIES.items():
                    key = {"corpus": corpus, "strategy": name, "seed": seed}
                    if runs.find(**key) is None:
                        run = {**key, "points": simulate(parts, strategy, seed, budgets)}
                        print(runs.add(run), flush=True)
        with open_report("choosing", arguments) as report:
            write_report(runs, report, names, budgets)


if __name__ == "__main__":
    main()
