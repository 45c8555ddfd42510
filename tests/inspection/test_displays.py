"""Displays: what their artists show is what estimators and predictions say."""

import subprocess
import sys

import numpy as np
import pytest
from helpers.learners import TAGGERS, labelled_sequences
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import calibration_curve
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from skstruct import (
    SDCACRF,
    CRFTagger,
    PerceptronReranker,
    PerceptronTagger,
    SequenceBatch,
    SequenceVectorizer,
    crfsuite,
    inspection,
)
from skstruct.inspection import (
    CalibrationDisplay,
    ChunkConfusionDisplay,
    FeatureWeightsDisplay,
    LabelConfusionDisplay,
    PenaltyPathDisplay,
    SequenceProbabilityDisplay,
    SpanThresholdDisplay,
    TrainingCurveDisplay,
    TransitionDisplay,
    feature_weights,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def figures():
    from matplotlib import pyplot as plt

    yield plt
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return labelled_sequences(60)


@pytest.fixture(scope="module")
def tagger(data):
    return CRFTagger(l2=0.1).fit(*data)


@pytest.fixture(scope="module")
def pipeline(data):
    steps = [("features", SequenceVectorizer()), ("tagger", CRFTagger(l2=0.1))]
    return Pipeline(steps).fit(*data)


def tick_labels(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


# ------------------------------------------------------------------------------------ transitions


@pytest.mark.parametrize("name", TAGGERS)
def test_transitions_of_every_tagger(name, data):
    tagger = TAGGERS[name]().fit(*data)
    display = TransitionDisplay.from_estimator(tagger)
    assert_array_equal(display.im_.get_array(), tagger.transition_)
    assert tick_labels(display.ax_.xaxis) == tick_labels(display.ax_.yaxis) == ["A", "B", "C"]
    limit = np.abs(tagger.transition_).max()
    assert display.im_.get_clim() == (-limit, limit)
    for (i, j), text in np.ndenumerate(display.text_):
        assert text.get_text() == f"{tagger.transition_[i, j]:.1f}".replace("-0.0", "0.0")
        assert text.get_position() == (j, i)


def test_transitions_of_chunk_labels_are_sorted_by_type():
    y = [["B-NP", "I-NP", "B-VP", "I-VP", "O"]] * 3
    X = SequenceBatch.from_lengths(np.tile(np.eye(5), (3, 1)), [5, 5, 5])
    tagger = PerceptronTagger(random_state=0).fit(X, y)
    display = TransitionDisplay.from_estimator(tagger, include_ends=True)
    labels = ["O", "B-NP", "I-NP", "B-VP", "I-VP"]
    assert tick_labels(display.ax_.yaxis) == ["(start)", *labels]
    assert tick_labels(display.ax_.xaxis) == [*labels, "(end)"]
    shown = display.im_.get_array()
    codes = [tagger.classes_.tolist().index(label) for label in labels]
    assert_array_equal(shown[1:, :-1], tagger.transition_[np.ix_(codes, codes)])
    assert_array_equal(shown[0, :-1], tagger.start_[codes])
    assert_array_equal(shown[1:, -1], tagger.end_[codes])
    assert shown.mask[0, -1]


def test_impossible_transitions_are_left_out(data):
    X, _ = data
    y = [["B-P"] + ["I-P"] * (len(x) - 1) for x in X]
    tagger = CRFTagger(constraint="IOB2").fit([*X, X[0]], [*y, ["O"] * len(X[0])])
    display = TransitionDisplay.from_estimator(tagger, labels=["O", "I-P"])
    assert display.im_.get_array().mask.tolist() == [[False, True], [False, False]]
    assert display.text_[0, 1] is None
    assert display.ax_.patch.get_hatch()


@pytest.mark.parametrize("labels", [[], "AB"])
def test_labels_to_show_are_a_list(tagger, labels):
    for display in (TransitionDisplay, FeatureWeightsDisplay):
        with pytest.raises(ValueError, match="labels must be a list of at least one label, got"):
            display.from_estimator(tagger, labels=labels)


def test_few_numbers_in_many_cells():
    display = TransitionDisplay(
        np.eye(13), from_labels=list(range(13)), to_labels=list(range(13))
    ).plot(colorbar=False)
    assert display.text_ is None
    assert len(display.figure_.axes) == 1
    assert display.plot(include_values=True, values_format=".2f").text_[0, 0].get_text() == "1.00"


# ---------------------------------------------------------------------------------------- features


def test_bars_are_weights(pipeline):
    display = FeatureWeightsDisplay.from_estimator(pipeline, labels=["C", "A"], n_features=3)
    assert [axes.get_title() for axes in display.axes_] == ["C", "A"]
    for label, axes, bars in zip("CA", display.axes_, display.bars_, strict=True):
        table = feature_weights(pipeline, labels=[label], n_features=3)
        assert_array_equal([bar.get_width() for bar in bars], table["weight"])
        assert tick_labels(axes.yaxis) == table["feature"].tolist()
        colors = {bar.get_width() > 0: bar.get_facecolor() for bar in bars}
        assert colors[True] != colors[False]
        assert axes.yaxis_inverted()


def test_given_axes(pipeline, figures):
    figure, axes = figures.subplots(1, 3)
    display = FeatureWeightsDisplay.from_estimator(pipeline, ax=axes)
    assert display.axes_ == list(axes)
    assert display.figure_ is figure
    with pytest.raises(ValueError, match="ax has 3 axes, but there are 1 panels"):
        FeatureWeightsDisplay.from_estimator(pipeline, labels=["A"], ax=axes)
    _, ax = figures.subplots()
    assert TransitionDisplay.from_estimator(pipeline, ax=ax).ax_ is ax
    assert FeatureWeightsDisplay.from_estimator(pipeline, ax=ax).ax_ is ax
    assert SequenceProbabilityDisplay.from_predictions([[1.0]], classes=["A"], ax=ax).ax_ is ax


def test_axes_that_do_not_fit(pipeline, figures):
    figure = figures.figure()
    with pytest.raises(TypeError, match=r"ax must be Axes, .*, got Figure"):
        TransitionDisplay.from_estimator(pipeline, ax=figure)
    with pytest.raises(ValueError, match="ax cannot be divided into 3 panels"):
        FeatureWeightsDisplay.from_estimator(pipeline, ax=figure.add_axes([0, 0, 1, 1]))


def test_dollar_signs_are_no_mathematics():
    tags = ["$^$", "B-$_$", "O"]
    X, y = [[[f"w={tag}"] for tag in tags]] * 2, [tags] * 2
    tagger = CRFTagger().fit(X, y)
    displays = [
        FeatureWeightsDisplay.from_estimator(tagger),
        TransitionDisplay.from_estimator(tagger),
        SequenceProbabilityDisplay.from_estimator(tagger, X, tokens=tags),
        LabelConfusionDisplay.from_estimator(tagger, X, y),
        LabelConfusionDisplay.from_estimator(tagger, X, y).plot(),
        ChunkConfusionDisplay.from_predictions([["B-$^$"]], [["B-$^$"]]),
        CalibrationDisplay.from_estimator(tagger, X, y, label="$^$"),
    ]
    for display in displays:
        display.figure_.canvas.draw()
    assert tick_labels(displays[1].ax_.yaxis) == ["$^$", "B-$_$", "O"]


# -------------------------------------------------------------------------------- training curves


def test_curves_are_the_history(data, pipeline):
    X, y = data
    sag = CRFTagger(solver="sag", random_state=0).fit(X, y)
    models = {"by all": pipeline, "by one": sag}
    display = TrainingCurveDisplay.from_estimator(models, y=["objective", "relative_gap"])
    history = sag.history_
    known = np.isfinite(history["objective"])
    assert 1 < known.sum() < len(known)
    line = display.lines_[0]["by one"]
    assert_array_equal(line.get_xdata(), history["epoch"][known])
    assert_array_equal(line.get_ydata(), history["objective"][known])
    gap = display.lines_[1]["by one"].get_ydata()
    assert_array_equal(gap, (history["bound"] / history["objective"])[known])
    assert [axes.get_yscale() for axes in display.axes_] == ["linear", "log"]
    legend = display.axes_[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["by all", "by one"]


@pytest.mark.parametrize("x", ["epoch", "time", "updates"])
@pytest.mark.parametrize("y", ["objective", "gap", "weight_norm", "validation_score"])
def test_axes_of_curves(data, x, y):
    X, labels = data
    tagger = SDCACRF(random_state=0).fit(X[:40], labels[:40], X_val=X[40:], y_val=labels[40:])
    search = GridSearchCV(SDCACRF(random_state=0), {"l2": [1.0]}, cv=2).fit(X, labels)
    display = TrainingCurveDisplay.from_estimator(tagger, x=x, y=y)
    (line,) = display.lines_[0].values()
    assert_array_equal(line.get_xdata(), tagger.history_[x])
    assert_array_equal(line.get_ydata(), tagger.history_[y])
    both = TrainingCurveDisplay.from_estimator([tagger, search], x=x, y=y)
    expected = ["SDCACRF"] if y == "validation_score" else ["SDCACRF", "SDCACRF 2"]
    assert list(both.lines_[0]) == expected


def test_curves_of_a_reranker():
    X = [[{"a": 1}, {"b": 1}], [{"b": 1}, {"a": 1, "c": 1}]]
    reranker = PerceptronReranker(random_state=0).fit(X, [0, 1])
    display = TrainingCurveDisplay.from_estimator(reranker, y="mistakes")
    assert_array_equal(
        display.lines_[0]["PerceptronReranker"].get_ydata(), reranker.history_["mistakes"]
    )


def test_curves_of_nested_estimators_and_of_the_drop_in(data):
    search = GridSearchCV(CRFTagger(), {"l2": [0.1, 1.0]}, cv=2)
    outer = make_pipeline(SequenceVectorizer(), search).fit(*data)
    inner = make_pipeline(SequenceVectorizer(), make_pipeline(CRFTagger())).fit(*data)
    drop_in = crfsuite.CRF(max_iterations=3).fit(*data)
    display = TrainingCurveDisplay.from_estimator([outer, inner, drop_in])
    assert list(display.lines_[0]) == ["CRFTagger", "CRFTagger 2", "CRF"]
    expected = outer[-1].best_estimator_.history_["objective"]
    assert_array_equal(display.lines_[0]["CRFTagger"].get_ydata(), expected)


def test_lines_can_have_another_label(tagger):
    curves = TrainingCurveDisplay.from_estimator(tagger, label="x")
    assert curves.lines_[0]["CRFTagger"].get_label() == "x"
    path = PenaltyPathDisplay(np.ones(2), np.ones(1), np.ones((1, 2)), np.ones((1, 2)))
    assert path.plot(label="x").lines_[0].get_label() == "x"
    spans = SpanThresholdDisplay([0.1, 0.9], [0.9, 0.2], [0.1, 0.5]).plot(label="x")
    assert [text.get_text() for text in spans.ax_.get_legend().get_texts()] == ["x"]


def test_unknown_columns_and_estimators(tagger):
    for estimators, columns in (([], "objective"), (tagger, [])):
        with pytest.raises(ValueError, match="There is nothing to plot: pass an estimator, and a"):
            TrainingCurveDisplay.from_estimator(estimators, y=columns)
    with pytest.raises(ValueError, match=r"No history has 'epoch' and 'dual'. There are: bound, "):
        TrainingCurveDisplay.from_estimator(tagger, y="dual")
    with pytest.raises(TypeError, match="SequenceVectorizer has no history"):
        TrainingCurveDisplay.from_estimator(SequenceVectorizer())


# -------------------------------------------------------------------------------------- confusion


def test_confusion_of_labels(data, pipeline):
    X, y = data
    predicted = pipeline.predict(X)
    display = LabelConfusionDisplay.from_estimator(pipeline, X, y, normalize=None)
    expected = np.zeros((3, 3), dtype=int)
    for true, pred in zip(y, predicted, strict=True):
        for a, b in zip(true, pred, strict=True):
            expected["ABC".index(a), "ABC".index(b)] += 1
    assert_array_equal(display.confusion_matrix, expected)
    assert_allclose(display.im_.get_array(), expected / expected.sum(axis=1, keepdims=True))
    assert tick_labels(display.ax_.xaxis) == ["A", "B", "C"]
    shares = LabelConfusionDisplay.from_predictions(y, predicted, normalize="true")
    assert_allclose(shares.confusion_matrix, expected / expected.sum(axis=1, keepdims=True))


def test_confusion_of_numbers_and_unknown_labels():
    y_true, y_pred = np.array([[10, 2], [2, 3]]), np.array([[10, 3], [2, 3]])
    display = LabelConfusionDisplay.from_predictions(y_true, y_pred)
    assert display.display_labels == ["2", "3", "10"]
    assert display.confusion_matrix.tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 1]]
    partly = LabelConfusionDisplay.from_predictions([["A", None]], [["A", "B"]])
    assert partly.confusion_matrix.tolist() == [[1]]
    flat = LabelConfusionDisplay.from_predictions(["A", "B"], np.array(["A", "A"]))
    assert flat.confusion_matrix.tolist() == [[1, 0], [1, 0]]


def test_confusion_of_chunks():
    y_true = [["B-PER", "I-PER", "O", "B-LOC"], ["B-ORG", "O", "O", "B-PER"]]
    y_pred = [["B-PER", "I-PER", "O", "B-ORG"], ["B-ORG", "I-ORG", "B-LOC", "B-PER"]]
    display = ChunkConfusionDisplay.from_predictions(y_true, y_pred)
    assert display.display_labels == ["LOC", "ORG", "PER", "(none)"]
    # The second true ORG is one token long, the predicted one two: neither has a counterpart.
    expected = [[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 2, 0], [1, 1, 0, 0]]
    assert display.confusion_matrix.tolist() == expected
    few = ChunkConfusionDisplay.from_predictions(y_true, y_pred, labels=["PER"])
    assert few.confusion_matrix.tolist() == [[2, 0], [0, 0]]
    texts = [[text.get_text() for text in row] for row in few.text_]
    assert texts == [["2", ""], ["", ""]]
    odd = ChunkConfusionDisplay.from_predictions([["B-(none)", "O"]], [["B-A", "B-(none)"]])
    assert odd.confusion_matrix.tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]


def test_invalid_predictions():
    for display in (LabelConfusionDisplay, ChunkConfusionDisplay):
        with pytest.raises(ValueError, match="y_true has 1 sequences but y_pred has 2"):
            display.from_predictions([["O"]], [["O"], ["O"]])
        with pytest.raises(ValueError, match=r"y_true\[1\] has 2 labels but y_pred\[1\] has 1"):
            display.from_predictions([["O"], ["O", "O"]], [["O"], ["O"]])
    for y_true, y_pred, message in (
        ([[None]], [["A"]], "y_true has no known labels"),
        ([["A", "A"]], [["A", None]], r"y_pred\[0\] has the label None.* \(token 1\)"),
        ([["A"]], [[1]], "Some labels are str, some are numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            LabelConfusionDisplay.from_predictions(y_true, y_pred)
    with pytest.raises(ValueError, match="There are no chunks"):
        ChunkConfusionDisplay.from_predictions([["O"]], [["O"]])
    with pytest.raises(
        ValueError, match=r"y_true\[0\] is the label 'B-A', but a list of sequences"
    ):
        ChunkConfusionDisplay.from_predictions(["B-A", "I-A"], ["B-A", "B-A"])
    with pytest.raises(ValueError, match="'B-A' is a label: pass the type 'A'"):
        ChunkConfusionDisplay.from_predictions([["B-A"]], [["B-A"]], labels=["B-A"])


# ------------------------------------------------------------------------------------ calibration


def test_calibration_of_tokens(data, pipeline):
    X, y = data
    display = CalibrationDisplay.from_estimator(pipeline, X, y, n_bins=4)
    proba = np.concatenate(list(pipeline.predict_proba(X)))
    truth = np.concatenate([list(labels) for labels in y])
    correct = pipeline[-1].classes_[proba.argmax(axis=1)] == truth
    share, mean = calibration_curve(correct, proba.max(axis=1), n_bins=4)
    assert_allclose(display.line_.get_xdata(), mean)
    assert_allclose(display.line_.get_ydata(), share)
    assert display.ax_.get_xlabel() == "mean probability"


def test_calibration_of_one_label(data, tagger):
    X, y = data
    y = [[None if t == 0 else label for t, label in enumerate(labels)] for labels in y]
    display = CalibrationDisplay.from_estimator(tagger, X, y, label="B")
    known = np.concatenate([np.arange(len(labels)) > 0 for labels in y])
    proba = np.concatenate(list(tagger.predict_proba(X)))[known, 1]
    truth = np.array([label for labels in y for label in labels])[known] == "B"
    share, mean = calibration_curve(truth, proba, n_bins=5)
    assert_allclose(display.prob_true, share)
    assert_allclose(display.prob_pred, mean)


def test_calibration_of_sequences(data, tagger):
    X, y = data
    display = CalibrationDisplay.from_estimator(tagger, X, y, of="sequence", strategy="quantile")
    best = [found[0] for found in tagger.predict_nbest(X, n_best=1)]
    correct = [found.labels == labels for found, labels in zip(best, y, strict=True)]
    assert_array_equal(display.y_prob, [found.probability for found in best])
    share, _ = calibration_curve(correct, display.y_prob, n_bins=5, strategy="quantile")
    assert_allclose(display.line_.get_ydata(), share)


def test_calibration_refuses(data, tagger):
    X, y = data
    with pytest.raises(ValueError, match="of must be one of 'token', 'sequence'"):
        CalibrationDisplay.from_estimator(tagger, X, y, of="chunk")
    with pytest.raises(ValueError, match="label is for the probabilities of tokens"):
        CalibrationDisplay.from_estimator(tagger, X, y, of="sequence", label="A")
    unknown = [[None] * len(y[0]), *y[1:]]
    with pytest.raises(ValueError, match="Sequence 0 has tokens without a label"):
        CalibrationDisplay.from_estimator(tagger, X, unknown, of="sequence")
    with pytest.raises(ValueError, match="No token has a label"):
        CalibrationDisplay.from_estimator(tagger, X[:1], unknown[:1])


@pytest.mark.parametrize("of", ["token", "sequence"])
def test_calibration_refuses_labels_that_do_not_fit(data, tagger, of):
    X, y = data
    shifted = [[*y[0], y[1][0]], y[1][1:], *y[2:]]
    for labels, message in (
        (shifted, f"Sequence 0 has {len(y[0])} tokens, but {len(y[0]) + 1} labels"),
        (y[1:], "There are 60 sequences of tokens, but labels for 59"),
        (None, "y is None: pass the correct labels"),
    ):
        with pytest.raises(ValueError, match=message):
            CalibrationDisplay.from_estimator(tagger, X, labels, of=of)


# ---------------------------------------------------------------------------------- one sequence


def test_probabilities_of_a_sequence(data, pipeline):
    X, y = data
    index = next(i for i, x in enumerate(X) if len(x) == 4)
    display = SequenceProbabilityDisplay.from_estimator(
        pipeline, X, y, index=index, labels=["C", "A", "B"], tokens=list("wxyz")
    )
    expected = pipeline.predict_proba(X)[index][:, [2, 0, 1]].T
    assert_array_equal(display.im_.get_array(), expected)
    assert tick_labels(display.ax_.yaxis) == ["C", "A", "B"]
    assert tick_labels(display.ax_.xaxis) == list("wxyz")
    rows = {"C": 0, "A": 1, "B": 2}
    assert display.true_.get_offsets().tolist() == [
        [t, rows[label]] for t, label in enumerate(y[index])
    ]
    assert_array_equal(
        display.pred_.get_ydata(), [rows[label] for label in pipeline.predict(X)[index]]
    )


def test_only_likely_labels_are_shown():
    proba = np.array([[0.9, 0.04, 0.06], [0.95, 0.02, 0.03]])
    shown = SequenceProbabilityDisplay.from_predictions(proba, classes=["A", "B", "C"])
    assert shown.labels == ["A", "C"]
    assert shown.true_ is shown.pred_ is None
    assert shown.tokens == ["0", "1"]
    named = SequenceProbabilityDisplay.from_predictions(
        proba, classes=["A", "B", "C"], y_true=["A", "B"], y_pred=["A", "A"], include_values=True
    )
    assert named.labels == ["A", "B", "C"]
    assert named.text_[0, 1].get_text() == "0.95"


def test_labels_in_arrays_are_shown():
    proba = np.array([[0.9, 0.04, 0.06], [0.95, 0.02, 0.03]])
    y_true, y_pred = np.array(["A", "B"]), np.array(["A", "C"])
    shown = SequenceProbabilityDisplay.from_predictions(
        proba, classes=np.array(["A", "B", "C"]), y_true=y_true, y_pred=y_pred
    )
    assert shown.labels == ["A", "B", "C"]
    assert_array_equal(shown.pred_.get_ydata(), [0, 2])


def test_texts_of_tokens(pipeline):
    def shown(X):
        tagger = PerceptronTagger(random_state=0).fit(X, [["A", "B"], ["B", "B"]])
        return SequenceProbabilityDisplay.from_estimator(tagger, X, index=1).tokens

    assert shown([[["the", "DET"], ["cat", "NOUN"]], [["a", "DET"], ["dog", "NOUN"]]]) == [
        "a",
        "dog",
    ]
    assert shown([[{"word": "the"}, {"word": "cat"}], [{"word": "a"}, {}]]) == ["0", "1"]
    pd = pytest.importorskip("pandas")
    assert shown(pd.Series([[["a"], ["b"]], [["c"], ["d"]]], index=[1, 0])) == ["c", "d"]


def test_iterators_of_sequences():
    X, y = [[["a"], ["b"]], [["c"]]], [["A", "B"], ["A"]]
    tagger = PerceptronTagger(random_state=0).fit(X, y)
    display = SequenceProbabilityDisplay.from_estimator(tagger, iter(X), iter(y), index=-1)
    assert (display.tokens, display.y_true) == (["c"], ["A"])


def test_tokens_without_sequences():
    X = np.eye(3)
    tagger = PerceptronTagger(random_state=0).fit(X, ["A", "B", "A"])
    display = SequenceProbabilityDisplay.from_estimator(tagger, X, ["A", "B", "A"], index=1)
    assert display.y_true == ["B"]
    assert display.im_.get_array().shape == (len(display.labels), 1)


def test_sequences_that_are_not_there(data, tagger):
    X, y = data
    show = SequenceProbabilityDisplay.from_estimator
    for index in (60, -61, 1.0, "1"):
        with pytest.raises(ValueError, match=r"index=.*, but X has the sequences 0 to 59"):
            show(tagger, X, index=index)
    with pytest.raises(ValueError, match="There are 60 sequences of tokens, but labels for 3"):
        show(tagger, X, y[:3], index=5)
    with pytest.raises(ValueError, match="The sequence has no tokens"):
        show(tagger, [[], X[0]])


def test_invalid_sequences():
    for proba, classes in ([[[0.5, 0.5]], "ABC"], [[[0.5, 0.5]], "A"], [[0.5, 0.5], "AB"]):
        with pytest.raises(ValueError, match=r"proba must have shape \(length, \d\), a column for"):
            SequenceProbabilityDisplay.from_predictions(proba, classes=list(classes))
    with pytest.raises(ValueError, match="tokens has 3 entries for 1 tokens"):
        SequenceProbabilityDisplay.from_predictions([[1.0]], classes=["A"], tokens=list("abc"))
    with pytest.raises(ValueError, match="'Q' is not one of the classes"):
        SequenceProbabilityDisplay.from_predictions([[1.0]], classes=["A"], labels=["Q"])


# ---------------------------------------------------------------------------- without matplotlib


def test_matplotlib_missing(tagger, data, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    needed = r'Display needs matplotlib: pip install "skstruct\[plot\]"'
    for display in (TransitionDisplay, FeatureWeightsDisplay, TrainingCurveDisplay):
        with pytest.raises(ImportError, match=needed):
            display.from_estimator(tagger)
    for display in (LabelConfusionDisplay, CalibrationDisplay, SequenceProbabilityDisplay):
        with pytest.raises(ImportError, match=needed):
            display.from_estimator(tagger, *data)


@pytest.mark.slow
def test_import_needs_neither_matplotlib_nor_pandas():
    code = (
        "import sys; sys.modules.update(matplotlib=None, pandas=None);"
        "import skstruct.inspection as i; print(*(getattr(i, name).__name__ for name in i.__all__))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == inspection.__all__


def test_numbers_of_confusions_are_counts_and_colours_shares_of_rows():
    """A label that is in most of the tokens does not wash out the errors of others."""
    true = [["O"] * 50_000 + ["B-X"] * 100]
    found = [["O"] * 49_000 + ["B-X"] * 1_000 + ["O"] * 70 + ["B-X"] * 30]
    display = LabelConfusionDisplay.from_predictions(true, found, labels=["O", "B-X"])
    assert [text.get_text() for text in display.text_.ravel()] == ["49000", "1000", "70", "30"]
    assert_allclose(display.im_.get_array(), [[0.98, 0.02], [0.7, 0.3]])
    assert display.im_.get_clim() == (0, 1)
    # Numbers are light on dark cells, and dark on light ones.
    colours = [[text.get_color() for text in row] for row in display.text_]
    assert colours[0][0] == colours[1][0] != colours[0][1] == colours[1][1]
