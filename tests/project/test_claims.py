"""Figures of README, home and guide: each sentence names the generated file that it comes from.

A sentence with a measured figure has an entry in `SOURCES`, whose function looks the figure up in
that file: after a new measurement the tests say which sentence is no longer true. Other figures,
such as settings, are in `NOT_MEASURED`.
"""

import re
from pathlib import Path

import pytest
from scipy.stats import false_discovery_control

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "docs" / "benchmarks" / "generated"
NUMBER = (
    r"\d[\d.,]*|half|third|quarter|fifth|sixth|tenth|two|three|four|five|six|seven|eight|ten"
    "|twenty|thirty|hundred"
)
UNIT = (
    r"times|percent|%|points|s\b|ms\b|µs|microseconds|milliseconds|MB|MiB|GB|seconds|minutes|hours"
)
GAIN = r"by|gains?|loses?|costs?|ahead|within|above|below"
FIGURE = re.compile(
    rf"\b({NUMBER})[\s-]+({UNIT})|\d[\d.]* ?%|\d+th\b"
    r"|(a|six) (third|quarter|fifth|sixth|tenth|half|hundredth)s? (of|more|less)"
    r"|F1 (is|of|rises|from|on) (a|`|\d)"
    r"|\bp [<=≤≥>] \d"
    rf"|\b({GAIN})( up to| about| at most)? [.\d]*\.\d"
    r"|halves|[Hh]alf (as|the|a point)|[Tt]wice (as|the)|doubles"
    r"|\d bytes a weight|\bin \d+\.\d"
)


class Table:
    """A generated file: the numbers in a cell of the first row with a text."""

    def __init__(self, name):
        self.lines = (GENERATED / name).read_text(encoding="utf-8").splitlines()

    def __call__(self, text, column, place=0):
        row = next(line for line in self.lines if text in line)
        cell = row.strip("| ").split(" | ")[column]
        return float(re.findall(r"[-+]?\d[\d,]*\.?\d*", cell)[place].replace(",", ""))

    def column(self, text, column):
        """Numbers of all rows with a text, the first of each cell."""
        cells = [line.strip("| ").split(" | ")[column] for line in self.lines if text in line]
        return [float(re.search(r"[-+]?\d+\.?\d*", cell)[0]) for cell in cells]


def within(value, low, high):
    return low <= value <= high


def ratio_of_searches(system, other, low, high):
    """The file of searches, and a check of the ratio of the CPU times of two of its systems."""
    return "sweeps/conll2000-1500.md", lambda t: within(t(system, 1) / t(other, 1), low, high)


# Part of the sentence, the file of `docs/benchmarks/generated`, and what that file has to say.
SOURCES = {
    "takes no more than three times as long as ``predict_proba``": (
        "choosing/times.md",
        lambda t: max(t(name, 2) for name in ("spans", "margin", "entropy", "random")) <= 3,
    ),
    "a third of the weights is dropped, and accuracy falls by 2.5 points": (
        "which_tagger/scores.md",
        lambda t: within(t("lbfgs |", 3) - t("lbfgs, weights dropped", 3), 2.45, 2.55),
    ),
    "ten to twenty seconds longer than later ones": (
        "cold_start/seconds.md",
        lambda t: within(t("PerceptronTagger", 5), 9, 22) and within(t("SDCACRF", 5), 9, 22),
    ),
    "ten to twenty seconds longer than the second one": (
        "cold_start/seconds.md",
        lambda t: within(t("PerceptronTagger", 5), 9, 22) and within(t("SDCACRF", 5), 9, 22),
    ),
    "The import of a tagger takes some 1.4 seconds": (
        "cold_start/seconds.md",
        lambda t: within(t("CRFTagger", 1), 1.35, 1.45),
    ),
    "partitions of 1,100 sentences cost at most 0.3 points": (
        "distributed/mixing.md",
        lambda t: all(
            t(name, 1) - t(name, 4) <= 0.3 for name in ("perceptron", "MIRA", "SAPO", "CRF")
        ),
    ),
    ":doc:`127 bytes a weight": ("distributed/memory.md", lambda t: t("| 64 |", 4) == 127),
    "which halves the overhead of an evaluation": (
        "distributed/seconds.md",
        lambda t: all(
            within(
                (t(f"CoNLL-2000 | {n} partitions, straight", 3) - 1)
                / (t(f"CoNLL-2000 | {n} partitions, through", 3) - 1),
                0.4,
                0.6,
            )
            for n in (2, 8, 64)
        ),
    ),
    "50 million tokens need a tenth more memory than 5 million": (
        "larger_data/memory.md",
        lambda t: within(t("two workers | 50", 3) / t("two workers | 5 ", 3), 1.05, 1.15),
    ),
    "makes the same features about thirty times faster": (
        "templates/routes.md",
        lambda t: within(t("| templates |", 3), 25, 35),
    ),
    "On a large corpus this is about thirty times faster": (
        "templates/routes.md",
        lambda t: within(t("| templates |", 3), 25, 35),
    ),
    "finds the same in a quarter of the time": ratio_of_searches(
        "CRFTaggerCV", "GridSearchCV, dicts", 0.2, 0.3
    ),
    "which takes a quarter of the time of a grid search": ratio_of_searches(
        "CRFTaggerCV", "GridSearchCV, dicts", 0.2, 0.3
    ),
    "which saves about 7 % of the time of a search": ratio_of_searches(
        "GridSearchCV, batch", "GridSearchCV, dicts", 0.91, 0.95
    ),
    "which saves about 50 % of the rest": ratio_of_searches(
        "batch, tol=1e-2", "GridSearchCV, batch", 0.45, 0.55
    ),
    "at least 9 times faster than with sklearn-crfsuite": (
        "sweeps/others.md",
        lambda t: min(t.column("conll", 4)) >= 9,
    ),
    "A grid search is 10 to 14 times faster": (
        "sweeps/conll2002-esp.md",
        lambda t: within(t("batch, tol=1e-2", 3), 10, 14.5),
    ),
    "learning takes hardly longer than in memory: 7 % at most": (
        "streams/accuracy.md",
        lambda t: all(
            t(f"{name} | stream, hashed", 4) / t(f"{name} | in memory, hashed", 4) < 1.075
            for name in ("averaged perceptron", "CRF by SGD")
        ),
    ),
    "L-BFGS is more than 50 times faster, and prediction more than 20 times": (
        "label_sets/microseconds.md",
        lambda t: t("| 1001 |", 4) > 50 and min(t("| 1001 |", c) for c in (7, 10)) > 20,
    ),
    "with uniform sampling in 11.7, 31.3 and 64.0": (
        "sdca_paper/methods_by_updates.md",
        lambda t: (
            [t(n, 2, i) for n in ("SDCA, gap", "SDCA, uniform") for i in range(3)]
            == [7.4, 15.8, 25.1, 11.7, 31.3, 64.0]
        ),
    ),
    "the average is hardly ever told from the vote": (
        "rerank/conll2000.md",
        lambda t: (
            t("| hinge | 0 | 93.02", 8) == 0.01 and within(t("| hinge | 0 | 93.02", 9), 11, 13)
        ),
    ),
    "On trees it is ahead by 0.36 with the hinge loss": (
        "rerank/parse.md",
        lambda t: round(t("VRDA, average (hinge)", 2) - t("VRDA, vote (hinge)", 2), 2) == 0.36,
    ),
    "On trees it is 0.47 better": (
        "rerank/summary.md",
        lambda t: round(t("Parsing", 3) - t("Parsing", 2), 2) == 0.47 and t("Parsing", 4) == 0.01,
    ),
    "with a tenth it is not told from the perceptron on trees (p = 0.93)": (
        "rerank/summary.md",
        lambda t: round(t("Parsing", 6), 2) == 0.93 and round(t("ATIS", 4), 2) == 0.34,
    ),
    "A tenth is **not** enough on ATIS, where it costs 0.28 points": (
        "rerank/summary.md",
        lambda t: round(t("ATIS", 5) - t("ATIS", 2), 2) == 0.28 and t("ATIS", 6) == 0.001,
    ),
    "Truncated gradient with a tenth of the weights is much worse": (
        "rerank/atis.md",
        lambda t: t("| a tenth |", 5) == 6.82,
    ),
    "the last predictor is unstable": (
        "rerank/parse.md",
        lambda t: t("VRDA, last (hinge)", 2) < t("VRDA, average (hinge)", 2),
    ),
    "by half a point on CoNLL-2000, by two on Spanish names": (
        "rerank/summary.md",
        lambda t: (
            within(t("CoNLL-2000", 2) - t("CoNLL-2000", 1), 0.45, 0.55)
            and within(t("Spanish", 2) - t("Spanish", 1), 1.9, 2.1)
        ),
    ),
    "the average of all predictors is not told from the vote": (
        "rerank/parse.md",
        lambda t: t("VRDA, vote (hinge)", 2) > t("VRDA, last (hinge)", 2),
    ),
    "SAPO with ``n_best=5`` scores on text within 0.07": (
        "search_based/scores.md",
        lambda t: all(t("| SAPO |", c) - t("CRF by L-BFGS", c) < 0.075 for c in range(1, 6)),
    ),
    "which may be chance once p is corrected for the seven tasks (p = 0.06)": (
        "search_based/duel.md",
        lambda t: all(0.055 < p < 0.065 for p in sorted(corrected(t.column("±", 4)))[:3]),
    ),
    "With dense features neither is ahead (p ≥ 0.19)": (
        "search_based/duel.md",
        lambda t: min(corrected(t.column("±", 4))[-2:]) >= 0.185,
    ),
    "``n_best=1`` is worse than 5 on six of the seven tasks (p < 0.01)": (
        "search_based/n.md",
        lambda t: next(line for line in t.lines if "| n = 1 |" in line).count("**5**") == 6,
    ),
    "SAPO and the CRF profit on biomedical names and signals, by 0.5 to 2.2 (p < 0.01)": (
        "search_based/scores.md",
        lambda t: all(
            0.45 <= t(f"| {name}, averaged |", c) - t(f"| {name} |", c) <= 2.25
            for name in ("SAPO", "CRF")
            for c in (4, 7)
        ),
    ),
    "is better than SAPO on word segmentation (p < 0.01)": (
        "search_based/scores.md",
        lambda t: round(t("MIRA-Nbest-Avg |", 5) - t("| SAPO |", 5), 2) == 0.51,
    ),
    "Word segmentation improved, by 0.4 with the CRF and 1.2 with the perceptron (p ≤ 0.006)": (
        "search_based/cut_chosen.md",
        lambda t: (t("AS", 2), t("AS", 5)) == (0.41, 1.16),
    ),
    "more accurate on signals, by 0.6 to 3.1 (five seeds, p < 0.02)": (
        "structure/scores.md",
        lambda t: all(
            0.55 <= t(f"HAPT | {name} | tokens and edges", 6) <= 3.14
            and t(f"HAPT | {name} | tokens and edges", 7) < 0.02
            for name in ("Perceptron", "MIRA", "SAPO", "CRF")
        ),
    ),
    "A CRF that averages its weights gains 1.0 there, which may be chance (p ≥ 0.05)": (
        "structure/scores.md",
        lambda t: (
            round(t("HAPT | CRF, averaged | tokens and edges", 6), 1) == 1.0
            and t("HAPT | CRF, averaged | tokens and edges", 7) >= 0.05
        ),
    ),
    "an averaged CRF gains 0.3 by pieces (p < 0.01), and one by its last weights 0.8": (
        "structure/scores.md",
        lambda t: (
            round(t("JNLPBA | CRF, averaged | tokens and edges", 6), 1) == 0.3
            and t("JNLPBA | CRF, averaged | tokens and edges", 7) < 0.01
            and round(t("JNLPBA | CRF | tokens and edges", 6), 1) == 0.8
            and round(
                t("JNLPBA | CRF, averaged | tokens and edges", 3)
                - t("JNLPBA | CRF | tokens and edges", 3),
                1,
            )
            >= 0.8
        ),
    ),
    "where one learner each gains 0.6 to 1.2": (
        "second_order/orders.md",
        lambda t: (
            t("JNLPBA | IOB2 | Perceptron", 7) > 0.6
            and t("JNLPBA | IOBES | Perceptron", 7) > 0.6
            and max(t.column("Spanish | IOB", 7)) == 1.16
        ),
    ),
    "`SAPOTagger` loses 2.9 to 3.5 on": (
        "second_order/orders.md",
        lambda t: t("JNLPBA | IOBES | SAPO", 7) == -2.88 and t("JNLPBA | IOB2 | SAPO", 7) == -3.5,
    ),
    "which hardly matters below 0.01": (
        "sdca_paper/precisions.md",
        lambda t: all(
            within(t("| 1e-06 |", c, i) / t("| 0.01 |", c, i), 0.85, 1.15)
            for c in range(1, 5)
            for i in range(2)
        ),
    ),
}


def corrected(pvalues):
    """The same p as `benchmarks.common.report.corrected` has."""
    return false_discovery_control(pvalues).tolist()


# Settings, arithmetic, output of a command, and what a reader does.
NOT_MEASURED = {
    '"!" if these are half of its occurrences or more',
    "training, evaluation and tuning in five minutes",
    "from tokens to a report in five minutes",
    "gives it up if that takes more than 15 seconds",
    "It fits the tagger six times",
    "within three times ``delta`` of the minimum",
    "with fewer than 50,000 tokens times ``c2``",
    "43% of 2183 12% of 3166",
    "epoch 12 of 1,000 3.1 s elapsed",
    "``l2`` of a tenth of the data weighs ten times as much",
    "with ten times the data, the same ``l2``",
    "Ten iterations reduced the objective by less than a hundredth",
    "Its gradients are small, so it needs an `eta` ten times smaller",
    "With 22 labels, a million tokens need 2.1 GB",
    "with 92 labels, 34.6 GB",
    "leaves a third of the triples",
    '``transport_dtype="float32"`` what L-BFGS sends takes half the bytes',
    '``transport_dtype="float32"`` halves the traffic',
    "It needs the 116 bytes a weight of L-BFGS",
    "keeps 116 bytes a weight in one process",
    "at most twice the classical bound of the perceptron",
    "Differences that are named without a p are marked",
    "For ``tol`` below 1e-8 pairs are stored in double precision, in twice the memory",
    "a name of one token is predicted if its probability is above 0.5",
    "with a large cost, if it is above 0.33",
    # Made by the recipe beside it.
    "``min_freq=2`` leaves these out",
}


def sentences(path):
    """Sentences of a page, without code and what is generated."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"(?s)<!-- begin.*?<!-- end.*?-->|```.*?```", "", text)
    text = re.sub(r"(?m)^ *(>>>|\.\.\. ).*$", "", text)
    for paragraph in re.split(r"\n\s*\n", text):
        yield from re.split(r"(?<=[.;])\s+", " ".join(paragraph.split()))


@pytest.fixture(scope="module")
def claims():
    """Sentences with a figure, by page."""
    if not GENERATED.is_dir():
        pytest.skip("needs the repository")
    pages = [ROOT / "README.md", ROOT / "docs" / "index.rst"]
    pages += sorted((ROOT / "docs" / "guide").glob("*.*"))
    return [(p.name, s) for p in pages for s in sentences(p) if FIGURE.search(s)]


def test_every_figure_has_its_source(claims):
    known = [*SOURCES, *NOT_MEASURED]
    unknown = [claim for claim in claims if not any(part in claim[1] for part in known)]
    assert not unknown


def test_every_source_is_still_claimed(claims):
    for part in [*SOURCES, *NOT_MEASURED]:
        assert any(part in sentence for _, sentence in claims), part


@pytest.mark.parametrize("part", SOURCES)
def test_the_source_says_so(part):
    if not GENERATED.is_dir():
        pytest.skip("needs the repository")
    name, says_so = SOURCES[part]
    assert says_so(Table(name)), name


@pytest.mark.parametrize("page", ["index.rst", "guide/choosing.rst", "benchmarks/which_tagger.md"])
def test_all_pages_give_the_same_advice(page):
    if not GENERATED.is_dir():
        pytest.skip("needs the repository")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert text.count("generated/which_tagger/advice.md") == 1
    # Beside the table, no page says what to take first.
    assert not re.search(r"start here|start with|try it next|[Tt]ake `?SAPOTagger", text)


def rows_of(text):
    """Cells of the rows of a Markdown table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [line.strip("| ").split(" | ") for line in lines[2:]]


@pytest.mark.parametrize(
    ("name", "file"), [("advice", "which_tagger/advice.md"), ("speed", "tutorial_line/speed.md")]
)
def test_tables_of_the_readme_are_those_of_the_benchmarks(name, file):
    if not GENERATED.is_dir():
        pytest.skip("needs the repository")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = rows_of(readme.split(f"<!-- begin: {name} -->")[1].split(f"<!-- end: {name} -->")[0])
    written = rows_of((GENERATED / file).read_text(encoding="utf-8"))
    if name == "speed":
        # The last column is the one of another peer.
        peer = rows_of((GENERATED / "tutorial_line" / "peer.md").read_text(encoding="utf-8"))
        last = [row[4] for row in shown[: len(peer)]]
        assert last == [row[4].partition(" (")[0] for row in peer]
        shown = [row[:4] for row in shown]
    assert shown == [row[: len(shown[0])] for row in written]
    assert len(shown) > 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_bars_are_those_of_the_table(theme):
    if not GENERATED.is_dir():
        pytest.skip("needs the repository")
    picture = (ROOT / "docs" / "_static" / f"speed-{theme}.svg").read_text(encoding="utf-8")
    drawn = re.findall(r">([\d.]+) times<", picture)
    rows = rows_of((GENERATED / "tutorial_line" / "speed.md").read_text(encoding="utf-8"))
    assert drawn == [row[1] for row in rows[: len(drawn)]]
    assert len(drawn) > 4
