"""Figures of README, home and guide: each sentence names the generated file that it comes from.

A sentence with a measured figure has an entry in `SOURCES`. Other figures, such as settings, are in
`NOT_MEASURED`.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "docs" / "benchmarks" / "generated"
NUMBER = (
    r"\d[\d.,]*|half|third|quarter|fifth|sixth|tenth|two|three|four|five|six|seven|eight|ten"
    "|twenty|thirty|hundred"
)
UNIT = (
    r"times|percent|%|points|s\b|ms\b|µs|microseconds|milliseconds|MB|MiB|GB|seconds|minutes|hours"
)
FIGURE = re.compile(
    rf"\b({NUMBER})[\s-]+({UNIT})|\d[\d.]* ?%|\d+th\b"
    r"|a (third|quarter|fifth|sixth|tenth|half|hundredth) of|F1 (of|rises|from) (a|`|\d)"
)
# Part of the sentence, and the file of `docs/benchmarks/generated`.
SOURCES = {
    "ten to twenty seconds longer than later ones": "cold_start/seconds.md",
    "takes some twenty seconds longer than the second one": "cold_start/seconds.md",
    "``import skstruct`` takes some two seconds": "cold_start/seconds.md",
    "which is .1 to 6 % above the minimum": "tutorial_line/objectives.md",
    "ends the fit near the minimum, in a third of the time": "tutorial_line/seconds.md",
    "partitions of 1,100 sentences cost at most 0.3 points": "distributed/mixing.md",
    "makes the same features about thirty times faster": "templates/routes.md",
    "On a large corpus this is about thirty times faster": "templates/routes.md",
    "finds the same in a quarter of the time": "sweeps/conll2000-1500.md",
    "which takes a quarter of the time of a grid search": "sweeps/conll2000-1500.md",
    "which saves a fifth of the time of a search": "sweeps/conll2000-1500.md",
    "With 1,001 labels this is some 15 to 30 times faster": "label_sets/microseconds.md",
    "the average is as good as the vote or better": "rerank/summary.md",
    "A tenth is **not** enough on ATIS": "rerank/summary.md",
    "Truncated gradient with a tenth of the weights": "rerank/summary.md",
    "the last predictor is unstable": "rerank/summary.md",
    "94.9 % of the parts of speech of EWT are right": "word_features/scores.md",
}
# Settings, arithmetic, output of a command, and what a reader does.
NOT_MEASURED = {
    "training, evaluation and tuning in five minutes",
    "from tokens to a report in five minutes",
    "gives it up if that takes more than 15 seconds",
    "It fits the tagger six times",
    "within three times ``delta`` of the minimum",
    "with fewer than 50,000 tokens times ``c2``",
    "43% of 2183 12% of 3166",
    "has found less than a tenth of the names",
    "epoch 12 of 1,000 3.1 s elapsed",
    "``l2`` of a tenth of the data weighs ten times as much",
    "with ten times the data, the same ``l2``",
    "Ten iterations reduced the objective by less than a hundredth",
    "a fit takes a third of the iterations or fewer",
    "Its gradients are small, so it needs an `eta` ten times smaller",
    "With 22 labels, a million tokens need 2.1 GB",
    "with 92 labels, 34.6 GB",
    "leaves a third of the triples",
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


def test_every_source_is_generated_and_still_claimed(claims):
    for part, name in SOURCES.items():
        assert (GENERATED / name).is_file(), name
        assert any(part in sentence for _, sentence in claims), part
    for part in NOT_MEASURED:
        assert any(part in sentence for _, sentence in claims), part


@pytest.mark.parametrize("page", ["index.rst", "guide/taggers.rst", "benchmarks/which_tagger.md"])
def test_all_pages_give_the_same_advice(page):
    if not GENERATED.is_dir():
        pytest.skip("needs the repository")
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert text.count("generated/which_tagger/advice.md") == 1
    # Beside the table, no page says what to take first.
    assert not re.search(r"start here|start with|try it next|[Tt]ake `?SAPOTagger", text)


@pytest.mark.parametrize(
    ("name", "file"), [("advice", "which_tagger/advice.md"), ("speed", "tutorial_line/seconds.md")]
)
def test_tables_of_the_readme_are_those_of_the_benchmarks(name, file):
    if not GENERATED.is_dir():
        pytest.skip("needs the repository")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme.split(f"<!-- begin: {name} -->")[1].split(f"<!-- end: {name} -->")[0]
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    written = (GENERATED / file).read_text(encoding="utf-8").splitlines()
    assert rows == [line for line in written if line.startswith("|")]
    assert len(rows) > 2
