"""What benchmarks share: stamps of tables, the correction of p, and calls of parts of a run."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

# Behind all others, so that the package under test stays the one that is installed.
sys.path.append(str(Path(__file__).parents[2]))
pytest.importorskip("benchmarks")
from benchmarks.common import processes
from benchmarks.common.report import Report, corrected
from benchmarks.common.significance import compare, compare_seeds
from benchmarks.common.stamps import code_hash, describe, new_stamp, read_stamps
from benchmarks.which_tagger.child import pack_mistakes
from benchmarks.which_tagger.plan import Runs, TaggerRecords
from benchmarks.which_tagger.report import pair_table
from benchmarks.which_tagger.systems import PAIRS, REFERENCE

GENERATED = Path(__file__).parents[2] / "docs" / "benchmarks" / "generated"


def naive(pvalues):
    """Benjamini and Hochberg: the least n p / rank over all p that are as large or larger."""
    n = len(pvalues)
    ordered = sorted(pvalues)
    return [
        min(min(1.0, n * q / rank) for rank, q in enumerate(ordered, 1) if q >= p) for p in pvalues
    ]


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_false_discovery_rate(n):
    rng = np.random.default_rng(n)
    tests = {f"test {i}": p for i, p in enumerate(rng.choice(np.geomspace(0.0005, 1, 30), n))}
    found = corrected(tests)
    assert list(found) == list(tests)
    assert_allclose(list(found.values()), naive(list(tests.values())))


def test_no_tests_need_no_correction():
    assert corrected({}) == {}


def test_every_table_and_figure_says_when_it_was_measured():
    files = [path for ending in ("md", "svg") for path in GENERATED.glob(f"*/*.{ending}")]
    assert files
    assert [path for path in files if path.stem not in read_stamps(path.parent)] == []


def test_what_is_written_again_from_old_runs_keeps_its_date(tmp_path):
    old = {**new_stamp(), "date": "2020-01-01", "code": "of another time"}
    Report(tmp_path, "command", old).write("first", "text")
    again = Report(tmp_path, "command")
    again.write("first", "text")
    again.write("second", "text")
    assert read_stamps(tmp_path) == {"first": old, "second": old}
    assert describe(old).startswith("Measured on 2020-01-01 at commit")
    assert "code has changed" in describe(old)
    assert "code has changed" not in describe(new_stamp())


def test_the_hash_of_the_code_leaves_out_words_and_what_is_not_timed(tmp_path):
    def hash_of(kernel, word="", *, room="chain"):
        root = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        (root / "skstruct" / room).mkdir(parents=True)
        text = f'"""{word}"""\n\ndef f(x):\n    """{word}"""\n    return x + {kernel}  # {word}\n'
        (root / "skstruct" / room / "dense.py").write_text(text, encoding="utf-8")
        return code_hash(root)

    assert hash_of(1) == hash_of(1, "sum")
    assert hash_of(1) != hash_of(2)
    assert hash_of(1, room="datasets") == hash_of(2, room="datasets")


def test_parts_of_quick_runs_are_called_in_one_process(monkeypatch, capsys):
    def main():
        print("not read")
        print(json.dumps([os.getpid(), *sys.argv[1:]]))

    monkeypatch.setitem(sys.modules, "benchmarks.part", SimpleNamespace(main=main))
    monkeypatch.setattr(processes, "_shares", False)
    given = list(sys.argv)
    processes.share_process()
    assert processes.run_child("part", "--folder", Path("a"), 3) == [
        os.getpid(),
        *("--folder", "a", "3"),
    ]
    assert sys.argv == given
    assert capsys.readouterr().out == ""


def labellings(rng, n, accuracy):
    """True labels of n tokens, each a sequence, and a labelling of that accuracy."""
    true = [["A"] if bit else ["B"] for bit in rng.random(n) < 0.5]
    other = {"A": "B", "B": "A"}
    wrong = rng.permutation(n) >= accuracy * n
    return true, [[other[t]] if w else [t] for (t,), w in zip(true, wrong, strict=True)]


def test_a_difference_has_to_show_with_each_pair_of_seeds():
    true = labellings(np.random.default_rng(0), 100, 1)[0]
    better = [labellings(np.random.default_rng(0), 100, a)[1] for a in (0.97, 0.95, 0.96)]
    worse = [labellings(np.random.default_rng(0), 100, a)[1] for a in (0.8, 0.82)]
    found = compare_seeds(true, better, worse, "token_accuracy")
    assert found.p < 0.001
    assert_allclose(found.difference, 0.96 - 0.81)
    # One seed that is much worse: the systems are not told apart, whatever a pair of seeds says.
    unstable = [better[0], worse[0]]
    assert compare_seeds(true, unstable, [better[1]], "token_accuracy").p == 1
    assert compare_seeds(true, unstable, unstable, "token_accuracy").p == 1


def test_runs_of_the_same_draw_are_compared_with_each_other():
    true, *_ = labellings(np.random.default_rng(0), 100, 1)
    low, middle, high = (labellings(np.random.default_rng(0), 100, a)[1] for a in (0.6, 0.75, 0.9))
    runs, others = [high, middle], [middle, low]
    found = compare_seeds(true, runs, others, "token_accuracy", paired=True)
    pairs = [compare(true, *pair, "token_accuracy").p for pair in zip(runs, others, strict=True)]
    assert found.p == max(pairs) < 0.05
    assert_allclose(found.difference, 0.15)
    # Across the draws, the two in the middle are the same.
    assert compare_seeds(true, runs, others, "token_accuracy").p == 1
    with pytest.raises(ValueError, match="argument"):
        compare_seeds(true, runs, others[:1], "token_accuracy", paired=True)


def test_finished_runs_are_tested_without_being_timed_again(tmp_path, monkeypatch):
    true, predicted = labellings(np.random.default_rng(1), 50, 0.9)
    head = {"kind": "run", "corpus": "c", "seed": 0}
    tagger = {**head, "system": "CRFTagger", "parameters": {}, "score": 90.0, "seconds": 1.0}
    kept = [
        {**head, "system": REFERENCE, "score": 100.0, "mistakes": pack_mistakes(true, true)},
        {**tagger, "p": 0.5},
        {**tagger, "system": "MIRATagger", "seed": 1, "score": 80.0},
    ]
    records = TaggerRecords(tmp_path / "runs.jsonl", kept)

    class Corpus:
        groups, measure = None, "token_accuracy"

    runs = Runs("c", Corpus, records, tmp_path)
    runs._test_labels = true
    found = {"score": 90.0, "seconds": 99.0, "mistakes": pack_mistakes(true, predicted)}
    monkeypatch.setattr(runs, "_child", lambda *_: dict(found))
    runs.test_all(["CRFTagger", "MIRATagger"], 3)
    (run,) = records.runs_of("c", "CRFTagger")
    assert (run["seconds"], run["reference"]) == (1.0, REFERENCE)
    assert_allclose(run["difference"], -10)
    assert run["p"] != 0.5
    # Another score: the labels are not those of the run.
    assert records.find(kind="test", corpus="c", system="MIRATagger", seed=1) is None
    monkeypatch.setattr(runs, "_child", lambda *_: pytest.fail("tested twice"))
    runs.test_all(["CRFTagger"], 3)


def test_pairs_of_taggers_are_tested_with_the_labels_of_both(tmp_path, monkeypatch):
    true, predicted = labellings(np.random.default_rng(1), 50, 0.8)
    scores = {"SAPOTagger": 100.0, "CRFTagger": 80.0, "SAPOTagger, tuned": 100.0}
    head = {"kind": "run", "corpus": "c", "seed": 0, "parameters": {}}
    kept = [{**head, "system": system, "score": score} for system, score in scores.items()]
    records = TaggerRecords(tmp_path / "runs.jsonl", kept)

    class Corpus:
        groups, measure, title = None, "token_accuracy", "Corpus"

    runs = Runs("c", Corpus, records, tmp_path)
    runs._test_labels = true

    def child(_, system, *__):
        labels = true if scores[system] == 100 else predicted
        return {"score": scores[system], "mistakes": pack_mistakes(true, labels)}

    monkeypatch.setattr(runs, "_child", child)
    for pair in PAIRS:
        runs.test_pair(*pair, 1)
    # Of the tuned pair, one has no runs.
    (record,) = [record for record in records if record["kind"] == "pair"]
    assert record["p"] < 0.01
    assert pair_table(records, {"c": Corpus}).splitlines()[-1].startswith("| Corpus | +20.00 | 0.0")
    monkeypatch.setattr(runs, "_child", lambda *_: pytest.fail("tested twice"))
    runs.test_pair(*PAIRS[0], 1)
