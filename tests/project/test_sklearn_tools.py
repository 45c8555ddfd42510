"""The table "Which of scikit-learn's tools take sequences": a check of each of its rows."""

import re
from pathlib import Path

import numpy as np
import pytest
import sklearn.model_selection as selection
from sklearn import metrics
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import (
    RFE,
    SelectFromModel,
    SelectKBest,
    SequentialFeatureSelector,
    VarianceThreshold,
)
from sklearn.inspection import permutation_importance
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler

from skstruct import PerceptronTagger, SequenceVectorizer
from skstruct.datasets import load_addresses
from skstruct.metrics import chunk_f1_scorer

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "selection.rst"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="needs the documentation")

WORDS, Y = load_addresses(return_X_y=True)
WORDS, Y = WORDS[:90], Y[:90]
X = [[{"word": token, "end": token[-2:]} for token in row] for row in WORDS]
GROUPS = np.arange(90) // 3
TAGGER = PerceptronTagger(max_iter=2, tol=None, random_state=0)
GRID = {"max_iter": [1, 2]}
SCORED = {"cv": 3, "scoring": chunk_f1_scorer, "error_score": "raise"}


def features(rows):
    return [[{"word": token} for token in row] for row in rows]


def halving(name):
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401

    return getattr(selection, name)(TAGGER, GRID, random_state=0, **SCORED).fit(X, Y)


def score(tool, *arguments, **more):
    found = getattr(selection, tool)(TAGGER, X, Y, *arguments, **SCORED, **more)
    assert np.all(np.isfinite(found[-1] if isinstance(found, tuple) else found))


def folds(splitter, groups=None):
    scores = selection.cross_val_score(TAGGER, X, Y, groups=groups, **{**SCORED, "cv": splitter})
    assert len(scores) == splitter.get_n_splits(X, Y, groups)


def fit(estimator):
    return estimator.fit(X, Y).predict(X)


def searched(search):
    assert search.fit(X, Y).best_score_ > 0


def row_of_pipeline():
    model = make_pipeline(FunctionTransformer(features), SequenceVectorizer(), TAGGER)
    assert len(model.fit(WORDS, Y).predict(WORDS)) == len(WORDS)


# What is done for each name of the first column, where the table says "as they are".
TAKEN = {
    "Pipeline": row_of_pipeline,
    "FunctionTransformer": row_of_pipeline,
    "GridSearchCV": lambda: searched(selection.GridSearchCV(TAGGER, GRID, **SCORED)),
    "RandomizedSearchCV": lambda: searched(
        selection.RandomizedSearchCV(TAGGER, GRID, n_iter=2, random_state=0, **SCORED)
    ),
    "HalvingGridSearchCV": lambda: halving("HalvingGridSearchCV"),
    "HalvingRandomSearchCV": lambda: halving("HalvingRandomSearchCV"),
    "cross_val_score": lambda: score("cross_val_score"),
    "cross_validate": lambda: selection.cross_validate(TAGGER, X, Y, **SCORED),
    "cross_val_predict": lambda: selection.cross_val_predict(TAGGER, X, Y, cv=3),
    "learning_curve": lambda: score("learning_curve", train_sizes=[0.5, 1.0]),
    "validation_curve": lambda: selection.validation_curve(
        TAGGER, X, Y, param_name="max_iter", param_range=[1, 2], **SCORED
    ),
    "permutation_test_score": lambda: selection.permutation_test_score(
        TAGGER, X, Y, groups=list(map(len, Y)), cv=2, n_permutations=2, random_state=0
    ),
    "train_test_split": lambda: selection.train_test_split(X, Y, random_state=0),
    "KFold": lambda: folds(selection.KFold(3, shuffle=True, random_state=0)),
    "ShuffleSplit": lambda: folds(selection.ShuffleSplit(2, random_state=0)),
    "GroupKFold": lambda: folds(selection.GroupKFold(3), GROUPS),
    "TimeSeriesSplit": lambda: folds(selection.TimeSeriesSplit(3)),
}

# The same where it says "not".
REFUSED = {
    "StratifiedKFold": lambda: list(selection.StratifiedKFold(3).split(X, Y)),
    "StratifiedGroupKFold": lambda: list(selection.StratifiedGroupKFold(3).split(X, Y, GROUPS)),
    "stratify=": lambda: selection.train_test_split(X, Y, stratify=Y),
    'scoring="accuracy"': lambda: selection.cross_val_score(
        TAGGER, X, Y, scoring="accuracy", error_score="raise"
    ),
    '"f1_macro"': lambda: selection.cross_val_score(
        TAGGER, X, Y, scoring="f1_macro", error_score="raise"
    ),
    "classification_report": lambda: metrics.classification_report(Y, Y),
    "confusion_matrix": lambda: metrics.confusion_matrix(Y, Y),
    "VotingClassifier": lambda: fit(VotingClassifier([("a", TAGGER), ("b", TAGGER)])),
    "BaggingClassifier": lambda: fit(BaggingClassifier(TAGGER, n_estimators=2)),
    "StackingClassifier": lambda: fit(StackingClassifier([("a", TAGGER), ("b", TAGGER)])),
    **{
        type(step).__name__: lambda step=step: step.fit(SequenceVectorizer().fit_transform(X), Y)
        for step in (
            *(MaxAbsScaler(), StandardScaler(with_mean=False), VarianceThreshold()),
            *(TruncatedSVD(2), SelectKBest(), RFE(TAGGER), SequentialFeatureSelector(TAGGER)),
        )
    },
    "SelectFromModel": lambda: SelectFromModel(TAGGER).fit(X, Y).transform(X),
    "FeatureUnion": lambda: FeatureUnion([("a", SequenceVectorizer())]).fit_transform(X),
    "CalibratedClassifierCV": lambda: fit(CalibratedClassifierCV(TAGGER)),
    "TunedThresholdClassifierCV": lambda: fit(selection.TunedThresholdClassifierCV(TAGGER)),
    "permutation_importance": lambda: permutation_importance(TAGGER.fit(X, Y), X, Y),
}


def table():
    """Names in the first column, and whether the second says that they take sequences."""
    text = PAGE.read_text(encoding="utf-8").partition("   * - Tool\n")[2].partition("\nFolds\n")[0]
    for tools, answer in re.findall(r"^   \* - (.*)\n     - (.*)$", text, re.MULTILINE):
        names = re.findall(r"``(.+?)``", tools.partition("without")[0])
        if "halving searches" in tools:
            names += ["HalvingGridSearchCV", "HalvingRandomSearchCV"]
        assert answer.startswith(("as they are", "not; ")), answer
        yield from ((name, answer.startswith("as")) for name in names)


def test_every_row_of_the_table_is_tried():
    rows = dict(table())
    assert {name for name, takes in rows.items() if takes} == TAKEN.keys()
    assert {name for name, takes in rows.items() if not takes} == REFUSED.keys()


@pytest.mark.parametrize("name", TAKEN)
def test_tools_that_take_sequences(name):
    TAKEN[name]()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_tools_that_do_not(name):
    with pytest.raises((ValueError, TypeError, AttributeError)) as raised:
        REFUSED[name]()
    # The errors are scikit-learn's, or that of a batch that is taken for an array.
    is_ours = "skstruct" in raised.traceback[-1].path.parts
    assert is_ours == ("TokenTransformer" in str(raised.value)), raised.value
