"""Recipes of the guide with packages that skstruct does not need: run where these are installed."""

import re
from pathlib import Path

import pytest

from skstruct import CRFTagger, TemplateVectorizer
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_scorer

GUIDE = Path(__file__).parents[1] / "docs" / "guide"


def recipe(page, marker):
    """The code block of a page that has a text in it."""
    text = (GUIDE / page).read_text(encoding="utf-8")
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text)
    (block,) = [block for block in blocks if marker in block]
    return re.sub(r"^   ", "", block, flags=re.MULTILINE)


def test_optuna():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    from sklearn.pipeline import Pipeline

    X, y = load_addresses(return_X_y=True)
    steps = [("features", TemplateVectorizer("U0:%x[0,0|lower]")), ("tagger", CRFTagger())]
    names = {
        "model": Pipeline(steps), "X": X[:60], "y": y[:60], "chunk_f1_scorer": chunk_f1_scorer
    }  # fmt: skip
    exec(recipe("tuning.rst", "optuna").replace("n_trials=20", "n_trials=2"), names)
    best = names["study"].best_trial
    assert len(names["study"].trials) == 2
    assert best.params.keys() == {"l2", "min_freq"}
    assert 0 < best.value <= 1
