"""Exported files: every sentence of every corpus against the library, and speed, sizes and memory.

    python -m benchmarks.export
    python -m benchmarks.export --only conll2000 --marginals 20
    python -m benchmarks.export --speed
    python -m benchmarks.export --write

Agreement: a model of each plan learns from some sentences of a corpus and is exported to Python and
JavaScript, in double and in single precision. All sentences of the corpus are tagged, by the
library, by Python and by node. In double precision, labels have to be equal but where the scores of
the two best labellings differ by less than 1e-9, and marginals have to be equal to 1e-9; with
`--marginals 20`, those of every twentieth sentence are compared. `--sentences 1000` tags only so
many, from all over a corpus. `--python 20` has Python tag only every twentieth sentence, and node
all of them: a corpus with hundreds of labels takes Python hours. Every finished plan is added to a
file in the results folder, and is not made again. `--write` makes the tables of these.

Speed: a sentence of 24 tokens with 11 attributes each and 9 labels, by the exported files, the
library and python-crfsuite; what is installed, CPU time to the first label of a process, memory.
"""

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.common.commandline import GENERATED, make_parser, open_report, parse, results_folder
from benchmarks.common.corpora import (
    TWO_FILES,
    columns,
    fetch_chunking,
    fetch_entities,
    load_quick,
    read_jnlpba,
)
from benchmarks.common.features import feature_dicts, tutorial_features, word_features
from benchmarks.common.processes import peak_memory, run_child
from benchmarks.common.report import machine, median, table
from benchmarks.common.runs import Records, read_runs, write_runs

NAME = "export"
CORPORA = {
    "conll2000": fetch_chunking,
    "conll2002-esp": partial(fetch_entities, "esp"),
    "conll2002-ned": partial(fetch_entities, "ned"),
    "jnlpba": read_jnlpba,
    "brown-pos": columns("brown-pos", **TWO_FILES),
    "ud-english-ewt": columns("ud-english-ewt", train="train", dev="dev", test="test"),
    "wordseg-as": columns("wordseg-as", **TWO_FILES),
}
# Features, tagger and its parameters, by corpus. Each corpus has all kinds of features, and each
# tagger has some corpora.
PLANS = {
    "conll2000": [
        ("words", "CRFTagger", {"constraint": "IOB2"}),
        ("template", "SAPOTagger", {}),
        ("dicts", "CRFTagger", {"fit_intercept": False}),
    ],
    "conll2002-esp": [
        ("words", "SpanTaggerCV", {}),
        ("template", "CRFTagger", {"order": 2, "constraint": "IOB2"}),
        ("dicts", "PerceptronTagger", {"constraint": "IOB2"}),
    ],
    "conll2002-ned": [
        ("words", "AROWTagger", {}),
        ("template", "CRFTagger", {"constraint": "IOB2"}),
        ("dicts", "MIRATagger", {}),
    ],
    "jnlpba": [
        ("words", "CRFTagger", {"constraint": "IOB2"}),
        ("template", "PerceptronTagger", {"order": 2}),
        ("dicts", "SDCACRF", {}),
    ],
    "brown-pos": [
        ("words", "PerceptronTagger", {}),
        ("template", "AROWTagger", {}),
        ("dicts", "CRFTagger", {"max_iter": 5}),
    ],
    "ud-english-ewt": [
        ("words", "SDCACRF", {}),
        ("template", "CRFTagger", {}),
        ("dicts", "SAPOTagger", {}),
    ],
    "wordseg-as": [
        ("words", "CRFTagger", {"order": 2}),
        ("template", "MIRATagger", {}),
        ("dicts", "CRFTagger", {}),
    ],
}
QUICK = {"addresses": (load_quick, [("words", "CRFTagger", {}), ("dicts", "PerceptronTagger", {})])}
N_TRAIN, N_ITERATIONS = 2000, 10
CLEAR = 1e-9
# Sentences that the process in another language gets at once.
_BLOCK = 500
_IN_PYTHON = """
import json, runpy, sys
names = runpy.run_path(sys.argv[1])
for number, line in enumerate(sys.stdin):
    tokens = json.loads(line)
    found = [names["tag"](tokens)]
    if number % int(sys.argv[2]) == 0:
        labels = names["model"].labels
        found.append([[p[label] for label in labels] for p in names["probabilities"](tokens)])
    print(json.dumps(found))
"""
_IN_NODE = """
import { createInterface } from "node:readline";
const m = await import(process.argv[1]);
let number = 0;
for await (const line of createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const tokens = JSON.parse(line);
  const found = [m.tag(tokens)];
  if (number++ % Number(process.argv[2]) === 0) {
    found.push(m.probabilities(tokens).map((p) => m.model.labels.map((label) => p.get(label))));
  }
  console.log(JSON.stringify(found));
}
"""


class Agreement(Records):
    """Finished plans."""

    names = ("corpus", "features", "tagger", "parameters", "limit")


def make_model(features, tagger, parameters):
    """Estimator of a plan, and the function that makes its tokens of those of the corpus."""
    from sklearn.pipeline import make_pipeline

    import skstruct

    parameters = {"max_iter": N_ITERATIONS, **parameters}
    if tagger == "SpanTaggerCV":
        inner = skstruct.CRFTagger(**parameters)
    else:
        inner = getattr(skstruct, tagger)(**parameters)
        if "random_state" in inner.get_params():
            inner.set_params(random_state=0)
    if features == "words":
        inner = make_pipeline(skstruct.WordVectorizer(label_statistics=True), inner)
    elif features == "template":
        inner = make_pipeline(skstruct.TemplateVectorizer(min_freq=2), inner)
    return skstruct.SpanTaggerCV(inner, cv=2) if tagger == "SpanTaggerCV" else inner


def as_dicts(tokens):
    """Feature dicts of a sentence, of the tutorial where tokens are pairs."""
    is_pair = not isinstance(tokens[0], str) and len(tokens[0]) == 2
    if is_pair:
        return feature_dicts(tutorial_features, tokens)
    words = [token if isinstance(token, str) else token[0] for token in tokens]
    return feature_dicts(word_features, [(word,) for word in words])


def read(corpus, features, quick, limit):
    """All sentences of a corpus, those to learn from first, and the labels of these.

    With a limit, so many sentences are left, from all over the corpus.
    """
    parts = (QUICK[corpus][0] if quick else CORPORA[corpus])()
    X = [tokens for X, _ in parts.values() for tokens in X if len(tokens)]
    y = [labels for labels in next(iter(parts.values()))[1] if len(labels)][:N_TRAIN]
    prepare = as_dicts if features == "dicts" else list
    X_train = [prepare(tokens) for tokens in X[: len(y)]]
    if limit is not None:
        X = X[:: max(1, len(X) // limit)][:limit]
    return X_train, y, [prepare(tokens) for tokens in X]


def answers(path, X, every):
    """Labels and marginals by a file, sentence by sentence; marginals of every so many."""
    command = [sys.executable, "-I", "-c", _IN_PYTHON]
    if path.suffix == ".mjs":
        command = [shutil.which("node"), "--input-type=module", "-e", _IN_NODE]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as lines:
        lines.writelines(json.dumps(tokens) + "\n" for tokens in X)
        lines.seek(0)
        process = subprocess.Popen(
            [*command, path, str(every)], stdin=lines, stdout=subprocess.PIPE, text=True
        )
        for line in process.stdout:
            yield json.loads(line)
        if process.wait():
            raise RuntimeError(f"{path.name} has failed.")


def compare(estimator, X, path, every, expected):
    """How labels and marginals by a file differ from those of the estimator."""
    labels, largest, differ = expected, 0.0, []
    block = every * _BLOCK
    for number, (found, *proba) in enumerate(answers(path, X, every)):
        if number % block == 0:
            some = X[number : number + block : every]
            weighed = iter(getattr(estimator, "estimator_", estimator).predict_proba(some))
        if found != list(labels[number]):
            differ.append(number)
        if proba:
            wanted = next(weighed)
            gap = np.abs(np.reshape(proba[0], wanted.shape) - wanted).max()
            largest = max(largest, float(gap))
    if number + 1 != len(X):
        raise RuntimeError(f"{path.name} has answered {number + 1} of {len(X)} sentences.")
    return differ, largest


def count_unclear(estimator, X, numbers):
    """Sentences among some whose two best labellings are equally good but for rounding."""
    from skstruct import predict_nbest

    if not numbers or hasattr(estimator, "best_threshold_"):
        return 0
    best = predict_nbest(estimator, [X[i] for i in numbers], 2)
    return sum(len(two) > 1 and two[0].score - two[1].score < CLEAR for two in best)


def run_plan(corpus, features, tagger, parameters, every, limit, quick, in_python=1):
    """Compare the files of one plan, that of Python on every so many sentences; return a record."""
    from skstruct.export.writers import write_by_ending

    X_train, y, X = read(corpus, features, quick, limit)
    estimator = make_model(features, tagger, parameters).fit(X_train, y)
    expected = estimator.predict(X)
    record = {
        "corpus": corpus,
        "features": features,
        "tagger": tagger,
        "parameters": parameters,
        "limit": limit,
        "sentences": len(X),
        "every": every,
        "in Python": len(X[::in_python]),
    }
    with tempfile.TemporaryDirectory() as folder:
        for dtype in ("float64", "float32"):
            for ending in (".py", ".mjs")[: 1 + (shutil.which("node") is not None)]:
                if (dtype, ending) == ("float32", ".py"):
                    continue
                path = Path(folder) / f"model{ending}"
                write_by_ending(estimator, path, dtype=dtype)
                tagged = slice(None, None, in_python if ending == ".py" else 1)
                differ, largest = compare(estimator, X[tagged], path, every, expected[tagged])
                record[f"{dtype}{ending}"] = {
                    "differ": len(differ),
                    "unclear": count_unclear(estimator, X[tagged], differ),
                    "which": differ[:100],
                    "largest": largest,
                }
    return record


def agreement_table(records):
    """Table of finished plans, of each the one of the most sentences."""
    head = [
        *("corpus", "features", "tagger", "sentences", "in Python", "marginals of every"),
        "Python: labels differ",
        *("node: labels differ", "of these unclear", "largest difference of a marginal"),
        "single precision: labels differ",
    ]
    largest, rows = {}, []
    for record in records:
        name = json.dumps([record[entry] for entry in Agreement.names[:4]])
        largest[name] = max(record, largest.get(name, record), key=lambda r: r["sentences"])
    for record in largest.values():
        options = ", ".join(f"{k}={v}" for k, v in record["parameters"].items() if k != "max_iter")
        python, node, single = (
            record.get(name) for name in ("float64.py", "float64.mjs", "float32.mjs")
        )
        both = [part for part in (python, node) if part]
        rows.append(
            [
                record["corpus"],
                record["features"],
                f"`{record['tagger']}`" + (f" ({options})" if options else ""),
                f"{record['sentences']:,}",
                f"{record.get('in Python', record['sentences']):,}",
                record["every"],
                python["differ"],
                node["differ"] if node else "",
                sum(part["unclear"] for part in both),
                f"{max(part['largest'] for part in both):.0e}",
                single["differ"] if single else "",
            ]
        )
    return table(head, rows, left=(0, 1, 2))


# ----------------------------------------------------------------------------------------- speed

LENGTH, N_ATTRIBUTES, N_SENTENCES = 24, 11, 40
SYSTEMS = ("library", "exported file", "python-crfsuite")
PACKAGES = {"library": "skstruct", "exported file": None, "python-crfsuite": "python-crfsuite"}


def attribute_strings(tokens):
    """Eleven attributes of each word."""
    words = ["", *(token if isinstance(token, str) else token[0] for token in tokens), ""]
    return [
        [
            *(f"w={word}", f"l={word.lower()}", f"s3={word[-3:]}", f"s2={word[-2:]}"),
            *(
                f"p3={word[:3]}",
                f"t={word.istitle()}",
                f"u={word.isupper()}",
                f"d={word.isdigit()}",
            ),
            *(f"-1={words[i - 1]}", f"+1={words[i + 1]}", f"-1t={words[i - 1].istitle()}"),
        ]
        for i, word in enumerate(words[1:-1], start=1)
    ]


def fit_for_speed(quick):
    """Tagger of attribute strings without biases, as CRFsuite's, and sentences to tag."""
    from skstruct import CRFTagger

    if quick:
        X, y = load_quick()["train"]
    else:
        X, y = fetch_entities("esp")["train"]
        X, y = X[:5000], y[:5000]
    strings = [attribute_strings(tokens) for tokens in X]
    tagger = CRFTagger(fit_intercept=False, max_iter=20).fit(strings, y)
    sentences = [one for one in strings if len(one) >= LENGTH or quick][:N_SENTENCES]
    return tagger, [one[:LENGTH] for one in sentences]


def opened(system, folder):
    """Function that tags a sentence, of a system in a process that has imported nothing yet."""
    if system == "library":
        import skops.io

        types = ["skstruct.CRFTagger", "skstruct.SequenceVectorizer"]
        tagger = skops.io.load(folder / "model.skops", trusted=types)
        return lambda tokens: tagger.predict([tokens])[0]
    if system == "exported file":
        sys.path.insert(0, str(folder))
        return __import__("exported_model").tag
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(folder / "model.crfsuite"))
    return tagger.tag


def run_system(system, folder):
    """Figures of one system, for a process of its own."""
    sentences = json.loads((folder / "sentences.json").read_text())
    before, begin = peak_memory(), process_time()
    tag = opened(system, folder)
    tag(sentences[0])
    first = process_time() - begin
    best = np.inf
    for _ in range(7):
        start = process_time()
        for tokens in sentences:
            tag(tokens)
        best = min(best, (process_time() - start) / len(sentences))
    return {"first": 1e3 * first, "memory": peak_memory() - before, "sentence": 1e3 * best}


_TIME_IN_NODE = """
import { readFileSync } from "node:fs";
const begin = process.cpuUsage();
const { tag } = await import(process.argv[1]);
const sentences = JSON.parse(readFileSync(process.argv[2], "utf8"));
tag(sentences[0]);
const used = process.cpuUsage(begin);
const first = (used.user + used.system) / 1000;
let best = Infinity;
for (let turn = 0; turn < 50; turn++) {
  const start = performance.now();
  for (const tokens of sentences) tag(tokens);
  best = Math.min(best, (performance.now() - start) / sentences.length);
}
console.log(JSON.stringify({ first, memory: process.memoryUsage().rss / 2 ** 20, sentence: best }));
"""


def run_node(folder):
    """Figures of the exported file in node."""
    command = [shutil.which("node"), "--input-type=module", "-e", _TIME_IN_NODE]
    command += [folder / "exported_model.mjs", folder / "sentences.json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def installed_megabytes(package):
    """Size of a package and of all that it requires, as they are installed."""
    if package is None:
        return 0.0
    from packaging.requirements import Requirement

    found, queue = {}, [package]
    while queue:
        name = queue.pop()
        if name in found:
            continue
        try:
            dist = distribution(name)
        except PackageNotFoundError:
            found[name] = 0
            continue
        paths = {path.locate() for path in dist.files or ()}
        found[name] = sum(path.stat().st_size for path in map(Path, paths) if path.is_file())
        for text in dist.requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                queue.append(needed.name)
    return sum(found.values()) / 1e6


def measure_speed(quick, repeat):
    """Tables of the speed of systems, and of the sizes of files."""
    import skops.io

    from skstruct.crfsuite import write_model
    from skstruct.export import write_javascript, write_python

    tagger, sentences = fit_for_speed(quick)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_python(tagger, folder / "exported_model.py")
        write_javascript(tagger, folder / "exported_model.mjs")
        write_model(tagger, folder / "model.crfsuite")
        skops.io.dump(tagger, folder / "model.skops")
        (folder / "sentences.json").write_text(json.dumps(sentences))
        # As an import leaves it.
        subprocess.run([sys.executable, "-m", "compileall", "-q", folder], check=True)
        systems = [s for s in SYSTEMS if s != SYSTEMS[2] or find_spec("pycrfsuite")]
        runs = {
            system: [run_child("export", "--system", system, folder) for _ in range(repeat)]
            for system in systems
        }
        if shutil.which("node"):
            runs["exported file, node"] = [run_node(folder) for _ in range(repeat)]
        files = ("model.skops", "model.crfsuite", "exported_model.py", "exported_model.mjs")
        contents = {name: (folder / name).read_bytes() for name in files}
    n_weights = np.count_nonzero(tagger.coef_)
    rows = [
        [
            system,
            f"{installed_megabytes(PACKAGES.get(system)):,.0f}",
            f"{min(run['first'] for run in found):,.0f}",
            f"{median(found, 'memory'):,.0f}",
            f"{min(run['sentence'] for run in found):.3f}",
            f"{1e3 / min(run['sentence'] for run in found):,.0f}",
        ]
        for system, found in runs.items()
    ]
    head = ["", "MB installed", "ms of CPU to the first label", "MiB of memory", "ms a sentence"]
    speeds = table([*head, "sentences a second"], rows)
    sizes = [
        [name, f"{len(content) / 1e3:,.0f}", f"{len(gzip.compress(content)) / 1e3:,.0f}"]
        for name, content in contents.items()
    ]
    note = f"{n_weights:,} weights of features; the best of {repeat} processes. {machine()}"
    return (speeds, note), (table(["", "kB", "kB gzipped"], sizes), note)


def main():
    """Run the benchmark."""
    parser = make_parser(__doc__, repeat=5)
    parser.add_argument("--only", nargs="+", choices=CORPORA, help="only these corpora")
    parser.add_argument("--marginals", type=int, default=1, help="of every so many sentences")
    parser.add_argument("--sentences", type=int, help="of each corpus; by default all")
    parser.add_argument("--python", type=int, default=1, help="tags every so many sentences")
    parser.add_argument("--speed", action="store_true", help="only speed and sizes")
    parser.add_argument("--agreement", action="store_true", help="only agreement")
    parser.add_argument("--results", type=Path, help="folder of finished plans")
    parser.add_argument("--write", action="store_true", help="tables of finished plans")
    parser.add_argument("--system", nargs=2, help="figures of one system, in this process")
    arguments = parse(parser)
    if arguments.system:
        print(json.dumps(run_system(arguments.system[0], Path(arguments.system[1]))))
        return
    quick = arguments.quick
    with results_folder(NAME, arguments) as folder:
        kept = GENERATED / NAME / "plans.jsonl"
        records = Agreement(folder / "plans.jsonl", [] if quick else read_runs(kept))
        plans = {name: plan for name, (_, plan) in QUICK.items()} if quick else PLANS
        for corpus, plan in plans.items():
            if arguments.write or arguments.speed or corpus not in (arguments.only or plans):
                continue
            for features, tagger, parameters in plan:
                entries = {"corpus": corpus, "features": features, "tagger": tagger}
                limit = arguments.sentences
                if records.find(**entries, parameters=parameters, limit=limit) is None:
                    every = arguments.marginals
                    chosen = corpus, features, tagger, parameters
                    records.add(run_plan(*chosen, every, limit, quick, arguments.python))
        with open_report(NAME, arguments) as report:
            if not arguments.speed:
                report.write("agreement", agreement_table(records), machine())
            if arguments.write:
                write_runs(kept, list(records))
            elif not arguments.agreement:
                speeds, sizes = measure_speed(quick, arguments.repeat)
                report.write("speeds", *speeds)
                report.write("sizes", *sizes)


if __name__ == "__main__":
    main()
