"""What imports of the package load: all that fits and predictions of a tagger run, and no more."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

LAZY = [
    "skstruct",
    *(f"skstruct.{name}" for name in ("crfsuite", "datasets", "metrics", "model_selection")),
]


def run(code):
    """What a fresh process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", LAZY)
def test_every_name_is_there(name):
    package = import_module(name)
    assert set(package.__all__) <= set(dir(package))
    for public in package.__all__:
        assert getattr(package, public) is not None
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'Taggers'"):
        package.Taggers  # noqa: B018


@pytest.mark.parametrize("name", LAZY)
def test_names_for_type_checkers_are_those_of_the_package(name):
    package = import_module(name)
    stub = Path(package.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    exported = next(node for node in ast.parse(stub).body if isinstance(node, ast.Assign))
    assert sorted(ast.literal_eval(exported.value)) == sorted(package.__all__)


def test_names_load_on_first_use():
    loaded = run(
        "import sys, skstruct, skstruct.metrics\n"
        "print('CRFTagger' in dir(skstruct), 'numba' in sys.modules, 'sklearn' in sys.modules)\n"
        "print(skstruct.metrics.chunk_f1_score.__name__, 'numba' in sys.modules)"
    )
    assert loaded.split() == ["True", "False", "False", "chunk_f1_score", "True"]


def test_all_names_at_once():
    assert run("from skstruct import *; print(CRFTagger().l2, metrics.__name__)").split() == [
        "1.0",
        "skstruct.metrics",
    ]


# Fits and predictions, after which nothing new is in `sys.modules`.
FIT = """
import sys
{create}
y, before = [["A", "B"]] * 6, set(sys.modules)
for token in ({{"word": "a", "n": 1.5, "is": True}}, ["a", "b"]):
    X = [[token, token]] * 6
    tagger.fit(X, y).predict(X)
print(*set(sys.modules) - before)
"""
TAGGERS = {
    "tagger": "from skstruct import CRFTagger; tagger = CRFTagger()",
    "drop-in": "from skstruct.crfsuite import CRF; tagger = CRF()",
    "tutorial": "from skstruct.crfsuite import CRF; tagger = CRF(algorithm='lbfgs', c1=0.1, c2=0.1,"
    " max_iterations=100, all_possible_transitions=True)",
}


@pytest.mark.slow
@pytest.mark.parametrize("create", TAGGERS.values(), ids=TAGGERS)
def test_a_fit_imports_nothing(create):
    """The first process compiles kernels, for which numba imports parts of its own."""
    code = FIT.format(create=create)
    run(code)
    assert run(code).split() == []


# rich draws progress bars, and much of scikit-learn is for scorers and pipelines.
UNUSED = ["rich", "skops", "sklearn.metrics", "sklearn.pipeline", "sklearn.callback", "dask"]


def test_what_a_fit_does_not_need_is_not_imported():
    create = "\n".join(TAGGERS.values())
    loaded = run(f"import sys\n{create}\nprint(*sys.modules)").split()
    assert not set(UNUSED) & set(loaded)


# The steps that compile ahead of time call every tagger; the rest is what they leave out.
CALLS = """
import sys, warnings
import numpy as np
import skstruct
from skstruct import streams
from skstruct.ahead.workload import run_step, steps
from skstruct.crfsuite import CRF

for name in skstruct.__all__:
    getattr(skstruct, name)
warnings.simplefilter("ignore")
before = set(sys.modules)

for step in steps():
    if "Reranker" in step.estimator:
        continue
    if step.typical or step.estimator == "CRFTagger" and "solver" in step.title:
        run_step(step)

X = [[{"word": "time", "n": 1.5}, {"word": "flies"}], [{"word": "fruit"}, {"word": "flies"}]] * 3
y = [["B-A", "I-A"], ["O", "B-A"]] * 3
drop_in = CRF(max_iterations=5, all_possible_states=True)
drop_in.fit(X, y).predict_marginals(X)
stream = skstruct.PerceptronTagger(random_state=0)
streams.fit_stream(stream, lambda epoch: [(X, y)], classes=["B-A", "I-A", "O"], n_epochs=2)
crf = skstruct.CRFTagger(
    max_iter=5, constraint="IOB2", class_weight="balanced", n_jobs=2, random_state=0
)
crf.fit(X, y, X_val=X, y_val=y).predict_nbest(X)
crf.fit(X, [["B-A", None], ["O", "B-A"]] * 3).score(X, y)
crf.predict(X, known=[["B-A", None], [None, None]] * 3)
crf.set_params(constraint=None).fit(np.eye(6), list("abcabc")).predict_proba(np.eye(6))
"""


@pytest.mark.slow
def test_fits_and_predictions_import_nothing():
    """An import in the midst of a fit would make its first epoch slow."""
    ours = {"numba", "llvmlite", "numpy", "scipy", "skstruct", "sklearn", "skops", "joblib"}
    run(CALLS)  # compiles
    late = run(CALLS + "print(*sys.modules.keys() - before)").split()
    assert not [name for name in late if name.partition(".")[0] in ours]


OPTIONAL = [
    "dask",
    "distributed",
    "IPython",
    "matplotlib",
    "pandas",
    "polars",
    "pycrfsuite",
    "spacy",
]


@pytest.mark.slow
def test_optional_packages_may_be_missing():
    code = f"""
import sys

class Missing:
    def find_spec(self, name, *_):
        if name in {OPTIONAL}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import skstruct
X, y = [[{{"a": 1.0}}, {{"b": 1.0}}]] * 3, [["A", "B"]] * 3
print(skstruct.PerceptronTagger(random_state=0).fit(X, y).predict(X).tolist()[0])
print(skstruct.dask.DaskTagger, skstruct.inspection.TransitionDisplay)
"""
    assert run(code).startswith("['A', 'B']\n<class ")
