"""Smoke tests: every benchmark runs with ``--quick`` and writes its tables."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Tables that a quick run writes, and packages that it needs.
BENCHMARKS = {
    "baselines": ({"seconds"}, ()),
    "cold_start": ({"seconds"}, ()),
    "crf_optimum": ({"addresses"}, ("pycrfsuite",)),
    "online_epochs": ({"epochs"}, ("pycrfsuite",)),
    "parallel_learning": ({"shards"}, ()),
    "streams": ({"memory", "accuracy"}, ()),
    "larger_data": ({"memory", "scores"}, ("distributed",)),
    "scale_plan": ({"units", "shares", "plan"}, ()),
    "distributed": (
        {"evaluations", "traffic", "mixing", "mixing_traffic"} | {"seconds", "start", "memory"},
        ("distributed",),
    ),
    "dicts": ({"addresses"}, ("pycrfsuite",)),
    "sweeps": (
        {"addresses", "addresses_scores", "others", "tokens", "tokens_scores"},
        ("sklearn_crfsuite",),
    ),
    "short_calls": ({"speeds", "first"}, ("sklearn_crfsuite",)),
    "one_sentence": ({"strings", "dicts", "batches", "service"}, ("sklearn_crfsuite",)),
    "label_sets": ({"microseconds", "online"}, ()),
    "what_goes_in": ({"scores", "gains", "kinds", "times", "sentences"}, ("matplotlib",)),
    "command_line": ({"seconds"}, ()),
    "templates": ({"routes", "new_sentences"}, ()),
    "whole_process": ({"addresses"}, ("pycrfsuite", "sklearn_crfsuite")),
    "tutorial_line": (
        {
            *("seconds_tutorial", "seconds_defaults", "seconds_tolerance", "speed"),
            *("objectives", "scores", "memory"),
        },
        ("pycrfsuite", "sklearn_crfsuite"),
    ),
    "which_tagger": (
        {"sizes", "scores", "seconds", "tuned", "systems"},
        ("matplotlib", "pycrfsuite"),
    ),
    "neural": (
        {"sizes", "scores", "differences", "epochs", "systems"},
        ("matplotlib", "torch"),
    ),
    "annotators": ({"scores", "gains"}, ()),
    "choosing": ({"scores", "gains", "times"}, ()),
    "conformal": ({"splits", "bounds"}, ()),
    "vectors": (
        {
            *("fits", "dense", "memory", "sentence", "scale", "static", "static_gains"),
            *("states", "states_gains", "own_text", "own_text_gains"),
        },
        (),
    ),
    "export": ({"agreement", "speeds", "sizes"}, ("pycrfsuite",)),
    "label_errors": ({"label_sequences", "label_spans"}, ()),
    "sapo_objective": ({"objective"}, ("matplotlib",)),
    "sdca_paper": ({"optimum", "methods_by_updates", "gaps", "estimates"}, ("matplotlib",)),
    "sdca_test_error": ({"errors"}, ("matplotlib",)),
    "structure": (
        {"sizes", "scores", "edges", "lengths", "times", "convergence", "figures", "paper"},
        ("matplotlib",),
    ),
    "second_order": (
        {"sizes", "counts", "orders", "best", "alternatives", "seconds", "chosen"},
        (),
    ),
    "search_based": ({"scores", "duel", "n", "cut_crf"}, ("matplotlib",)),
    "rerank": ({"summary", "scale", "addresses"}, ("matplotlib",)),
}


def environment():
    """Environment of a subprocess that imports the package under test, not that of the folder.

    Compiled kernels are cached by the path of their source, so only the same package finds those
    that other tests have compiled.
    """
    package = Path(find_spec("skstruct").origin).parent.parent
    paths = os.pathsep.join([str(package), str(ROOT)])
    return {**os.environ, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / "benchmarks").is_dir(), reason="needs the folder of the benchmarks")
@pytest.mark.parametrize("name", BENCHMARKS)
def test_quick_run_writes_its_tables(name, tmp_path):
    tables, packages = BENCHMARKS[name]
    for package in packages:
        pytest.importorskip(package)
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--output", str(tmp_path)]
    run = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
    assert tables <= {path.stem for path in tmp_path.glob("*.md")}
    for table in tables:
        lines = (tmp_path / f"{table}.md").read_text(encoding="utf-8").splitlines()
        assert lines[0] == f"<!-- Written by: python -m benchmarks.{name} -->"
        assert any(line.startswith("| ") for line in lines)


def test_every_benchmark_is_tested():
    folder = ROOT / "benchmarks"
    modules = {path.stem for path in folder.glob("*.py")}
    packages = {path.parent.name for path in folder.glob("*/__main__.py")}
    assert modules | packages == {"__init__", *BENCHMARKS}


def test_pages_include_what_the_benchmarks_write():
    pages = ROOT / "docs" / "benchmarks"
    included = {
        line.split()[1]
        for page in pages.glob("*.md")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("```{include}")
    }
    generated = {str(path.relative_to(pages)) for path in pages.glob("generated/*/*.md")}
    assert included == generated
