"""Messages of fits: lines with the time left, tables of numbers, records of the logger."""

import logging
import re

import pytest
from helpers.learners import RERANKERS, TAGGERS, groups_of_candidates, labelled_sequences

from skstruct import CRFTagger, PerceptronTagger
from skstruct.learning.monitor import Monitor, Stopping, duration, epochs_to_gap

LEARNERS = {**TAGGERS, **RERANKERS}
LINE = re.compile(
    r"(?P<name>\w+): epoch +(?P<epoch>\d+) of (?P<max_iter>[\d,]+) +[\d.]+ s elapsed"
    r"(  (about|at most) +[\d.]+ s left)?(?P<numbers>(  \w+ \S+)*)"
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(params=LEARNERS)
def learner(request):
    return LEARNERS[request.param]


def fit(estimator):
    data = groups_of_candidates() if hasattr(estimator, "rank") else labelled_sequences()
    return estimator.fit(*data)


def printed(capsys):
    """Lines about epochs and the end of the fit."""
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if not line.startswith(("Compiling", "Marginals"))]


def monitor_of(columns, tol=1e-3, **options):
    """Monitor of a fit that has gone so far."""
    monitor = Monitor(stopping=Stopping(tol=tol), **options)
    for k in range(len(columns["epoch"])):
        monitor.add(**{name: values[k] for name, values in columns.items() if name != "time"})
    monitor.history["time"][:] = columns["time"]
    return monitor


def history_of(**columns):
    return monitor_of(columns).history


# ----------------------------------------------------------------------------------------- lines


def test_silent_by_default(learner, capsys):
    fit(learner())
    assert capsys.readouterr().out == ""


def test_a_line_for_each_epoch(learner, capsys):
    estimator = fit(learner(verbose=1))
    *lines, end = printed(capsys)
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), lines
    assert [int(match["epoch"]) for match in found] == estimator.history_["epoch"].tolist()
    assert {match["name"] for match in found} == {type(estimator).__name__}
    assert len({line.index("elapsed") for line in lines}) == 1
    assert re.fullmatch(rf"\w+: finished, {estimator.n_iter_} epochs in [\d.]+ s", end)


def test_the_numbers_of_the_history(learner, capsys):
    estimator = fit(learner(verbose=2))
    *lines, end = printed(capsys)
    assert end.startswith(f"{type(estimator).__name__}: finished")
    others = [name for name in estimator.history_ if name not in ("epoch", "time")]
    for k, line in enumerate(lines):
        found = dict(pair.split(" ") for pair in LINE.fullmatch(line)["numbers"].split("  ")[1:])
        assert list(found) == others
        for name, text in found.items():
            if name != "verified":
                expected = estimator.history_[name][k]
                assert float(text.replace(",", "")) == pytest.approx(expected, 1e-5, nan_ok=True)


def test_the_logger_gets_the_same(capsys, caplog):
    caplog.set_level(logging.DEBUG, "skstruct")
    for verbose, level in ((1, logging.INFO), (2, logging.DEBUG), (0, None)):
        caplog.clear()
        fit(PerceptronTagger(max_iter=3, tol=None, random_state=0, verbose=verbose))
        logged = [record for record in caplog.records if "epoch" in record.getMessage()]
        texts = {
            record_level: [r.getMessage() for r in logged if r.levelno == record_level]
            for record_level in (logging.INFO, logging.DEBUG)
        }
        assert len(texts[logging.INFO]) == 4
        assert len(texts[logging.DEBUG]) == 3
        assert all("weight_norm" in text for text in texts[logging.DEBUG])
        lines = printed(capsys)
        if level is None:
            assert lines == []
        else:
            assert lines[0] == texts[level][0]


def test_numbers_are_logged_at_level_debug(caplog):
    caplog.set_level(logging.INFO, "skstruct")
    fit(PerceptronTagger(max_iter=2, tol=None, random_state=0))
    assert not [r for r in caplog.records if "weight_norm" in r.getMessage()]


def test_the_same_bits_whatever_is_said(capsys):
    models = [fit(CRFTagger(max_iter=20, verbose=verbose)) for verbose in (0, 1, 2)]
    assert len({model.coef_.tobytes() for model in models}) == 1


def test_partial_fit_counts_its_calls(capsys):
    X, y = labelled_sequences()
    tagger = PerceptronTagger(verbose=1, random_state=0)
    tagger.partial_fit(X, y).partial_fit(X, y)
    lines = printed(capsys)
    assert [line[:25] for line in lines] == [f"PerceptronTagger: epoch {k}" for k in (1, 2)]
    assert "left" not in "".join(lines)


# ------------------------------------------------------------------------------------- time left


def test_time_left_at_the_pace_of_late():
    """A first epoch that compiles for a minute says nothing about the next."""
    monitor = monitor_of({"epoch": [1, 2, 3], "time": [60.0, 61.0, 62.0]}, max_iter=10)
    assert monitor._time_left().endswith("  at most    7.0 s left")
    assert monitor_of({"epoch": [1], "time": [60.0]}, max_iter=10)._time_left() == ""


def test_time_left_of_a_gap_that_closes():
    """A gap that halves with every epoch has a hundredth of it left after log2(100) epochs."""
    columns = {
        "epoch": list(range(1, 7)),
        "time": [2.0 * k for k in range(1, 7)],
        "objective": [1.0] * 6,
        "gap": [2.0**-k for k in range(6)],
    }
    monitor = monitor_of(columns, tol=2.0**-5 / 100, max_iter=1000)
    assert epochs_to_gap(monitor.history, 2.0**-5 / 100) == pytest.approx(6.644, abs=1e-3)
    assert monitor._time_left() == "  about   13.3 s left"
    assert epochs_to_gap(monitor.history, 1.0) == 0.0
    # Not more than max_iter leaves.
    assert monitor_of(columns, tol=1e-9, max_iter=8)._time_left() == "  at most    4.0 s left"


def test_no_guess_without_a_gap_that_closes():
    columns = {"epoch": [1, 2, 3], "time": [1.0, 2.0, 3.0], "objective": [1.0] * 3}
    assert epochs_to_gap(history_of(**columns), 0.1) is None
    assert epochs_to_gap(history_of(**columns, bound=[1.0, 2.0, 3.0]), 0.1) is None
    assert epochs_to_gap(history_of(**columns, gap=[3.0, 2.0, 1.0]), None) is None
    assert epochs_to_gap(history_of(**columns, gap=[3.0, None, 1.0]), 0.1) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.04, "0.0 s"), (12.34, "12.3 s"), (75, "1:15"), (3599.6, "1:00:00"), (7384, "2:03:04")],
)
def test_durations(seconds, text):
    assert duration(seconds) == text
