"""What `import skstruct` imports: all that fits and predictions need."""

import subprocess
import sys

import pytest

import skstruct


def run(code):
    """What a fresh process prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_name_is_there():
    assert set(skstruct.__all__) <= set(dir(skstruct))
    for name in skstruct.__all__:
        assert getattr(skstruct, name).__name__.rpartition(".")[2] == name
    assert isinstance(skstruct.__version__, str)


# The steps that compile ahead of time call every estimator; the rest is what they leave out.
CALLS = """
import sys, tempfile, warnings
import numpy as np
import skstruct
from skstruct import datasets, metrics, model_selection, streams

warnings.simplefilter("ignore")
before = set(sys.modules)

from skstruct.ahead.workload import run_step, steps
for step in steps():
    if step.typical or step.estimator == "CRFTagger" and "solver" in step.title:
        run_step(step)

X = [[{"word": "time", "n": 1.5}, {"word": "flies"}], [{"word": "fruit"}, {"word": "flies"}]] * 3
y = [["B-A", "I-A"], ["O", "B-A"]] * 3
texts = [[token["word"] for token in tokens] for tokens in X]
with tempfile.TemporaryDirectory() as folder:
    drop_in = skstruct.crfsuite.CRF(max_iterations=5, all_possible_states=True)
    drop_in.fit(X, y).predict_marginals(X)
    tagger = skstruct.CRFTagger(max_iter=5, fit_intercept=False).fit(X, y)
    skstruct.crfsuite.write_model(tagger, f"{folder}/model")
    tagger = skstruct.crfsuite.Tagger()
    tagger.open(f"{folder}/model")
    tagger.tag(X[0])
    stream = skstruct.PerceptronTagger(random_state=0)
    streams.fit_stream(
        stream, lambda epoch: [(X, y)], classes=["B-A", "I-A", "O"], X_val=X, y_val=y,
        n_epochs=2,
    )
crf = skstruct.CRFTagger(
    max_iter=5, constraint="IOB2", class_weight="balanced", n_jobs=2, random_state=0
)
crf.fit(X, y, X_val=X, y_val=y).predict_nbest(X)
crf.fit(X, [["B-A", None], ["O", "B-A"]] * 3).score(X, y)
crf.predict(X, known=[["B-A", None], [None, None]] * 3)
crf.set_params(constraint=None).fit(np.eye(6), list("abcabc")).predict_proba(np.eye(6))
union = skstruct.SequenceUnion([("a", skstruct.WordVectorizer()), ("b", skstruct.WordVectorizer())])
union.fit_transform(texts)
metrics.chunk_report(y, y)
metrics.paired_permutation_test(y, y, y, random_state=0)
datasets.load_addresses()
skstruct.SequenceVectorizer().fit_transform(X)._repr_html_()
"""


@pytest.mark.slow
def test_fits_and_predictions_import_nothing():
    """A fork, or a Ctrl-C, in the midst of an import leaves modules that are never complete."""
    ours = {"numba", "llvmlite", "numpy", "scipy", "skstruct", "sklearn", "skops", "joblib"}
    late = run(CALLS + "print(*sys.modules.keys() - before)").split()
    assert not [name for name in late if name.partition(".")[0] in ours]


def test_skops_is_imported_for_files_only():
    """It imports as much again as scikit-learn."""
    assert run("import sys, skstruct; print('skops.io' in sys.modules)") == "False\n"


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
