"""What importing skstruct does, and does not do."""

import subprocess
import sys

import pytest

import skstruct


def loaded_by(statement):
    """Names of the modules that a fresh process has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return set(result.stdout.split())


def test_names_are_loaded_when_they_are_asked_for():
    assert not {"importlib.abc", "numba", "sklearn", "skstruct.taggers.base"} & loaded_by(
        "import skstruct"
    )
    modules = loaded_by("from skstruct import MIRATagger, TemplateVectorizer, datasets")
    assert {"skstruct.taggers.mira", "skstruct.templates", "skstruct.datasets"} <= modules
    needless = {"sklearn.metrics", "sklearn.model_selection", "sklearn.datasets", "pooch"}
    assert not (needless | {"skstruct.taggers.crf", "skstruct.rerankers.vrda"}) & modules


def test_every_name_is_there():
    assert set(skstruct.__all__) <= set(dir(skstruct))
    for name in skstruct.__all__:
        assert getattr(skstruct, name).__name__.rpartition(".")[2] == name
    assert isinstance(skstruct.__version__, str)


def test_scikit_learn_is_imported_without_what_nothing_here_calls():
    modules = loaded_by("from skstruct import CRFTagger")
    assert "sklearn.utils.fixes" in modules
    assert not {name for name in modules if name.startswith(("scipy.stats", "pandas"))}


# Ways to come by `scipy.stats` and by pandas, each in a fresh process.
WAYS_TO_STATS = [
    "import skstruct, sklearn.utils, scipy; stats = scipy.stats",
    "import skstruct, sklearn.utils, scipy.stats.distributions; stats = scipy.stats",
    "from scipy import stats; import skstruct, sklearn.utils",
    # Another thread may ask while scikit-learn is being imported.
    "from skstruct.utils.startup import deferred\n"
    "with deferred('scipy.stats'): import scipy.stats as stats",
    "from skstruct.utils.startup import deferred\n"
    "with deferred('scipy.stats'): from scipy.stats import norm\nfrom scipy import stats",
]
WAYS_TO_PANDAS = [
    "import skstruct, sklearn.utils, pandas",
    "import pandas, skstruct, sklearn.utils",
    "import skstruct, sklearn.utils.fixes\n"
    "pandas = getattr(sklearn.utils.fixes, 'pd', None) or __import__('pandas')",
    "from skstruct.utils.startup import deferred\nwith deferred('pandas'): import pandas",
    "from skstruct.utils.startup import deferred\n"
    "with deferred('pandas'): import pandas.api.types\nimport pandas",
]


@pytest.mark.parametrize("statement", WAYS_TO_STATS)
def test_scipy_stats_is_there_when_it_is_asked_for(statement):
    code = f"""{statement}
import sys
import numpy as np
from sklearn.utils.fixes import _mode
assert stats.norm.cdf(0.0) == 0.5, stats
assert _mode(np.array([1, 2, 2]))[0] == 2
assert type(sys.modules["scipy.stats"]) is type(sys)
assert sys.modules["scipy.stats"].norm is stats.norm
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("statement", WAYS_TO_PANDAS)
def test_pandas_is_there_when_it_is_asked_for(statement):
    pytest.importorskip("pandas")
    code = f"""{statement}
import sys
from sklearn.utils import check_array
frame = pandas.DataFrame({{"a": [1.0, 2.0]}})
assert check_array(frame).sum() == 3.0
assert type(sys.modules["pandas"]) is type(sys)
assert sys.modules["pandas"].DataFrame is type(frame)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_pandas_may_be_missing():
    """What cannot be imported later is not promised either."""
    code = """
import sys
from importlib.machinery import PathFinder
import skstruct
find = PathFinder.find_spec
PathFinder.find_spec = lambda name, *rest: None if name == "pandas" else find(name, *rest)
import sklearn.utils.fixes
assert getattr(sklearn.utils.fixes, "pd", None) is None
"""
    subprocess.run([sys.executable, "-c", code], check=True)
