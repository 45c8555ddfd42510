"""Values in error messages: the same text with every version of numpy."""

import datetime

import numpy as np
import pytest

from skstruct import CRFTagger, SequenceBatch, SequenceVectorizer, TemplateVectorizer
from skstruct.metrics import chunk_f1_score
from skstruct.rerankers.descent import PerceptronReranker
from skstruct.utils.messages import short_repr

ROWS = SequenceBatch(np.eye(3), [0, 2, 3])
VALUES = [
    (np.float64(1.5), "1.5"),
    (np.float32(0.5), "0.5"),
    (np.int64(-2), "-2"),
    (np.bool_(True), "True"),
    (np.complex128(1 + 2j), "(1+2j)"),
    (np.str_("a"), "'a'"),
    (np.bytes_(b"a"), "b'a'"),
    (np.longdouble(0.5), "0.5"),
    (np.datetime64("2020-01-01"), "'2020-01-01'"),
    ([np.float64(1), (np.str_("b"),), {np.int8(1): np.float64("nan")}], "[1.0, ('b',), {1: nan}]"),
    (np.array([np.float64(1), "b"], dtype=object), "array([1.0, 'b'], dtype=object)"),
    (datetime.date(2020, 1, 1), "datetime.date(2020, 1, 1)"),
    ("x" * 60, repr("x" * 60)),
    (list(range(100)), "[0, 1, 2, 3, 4, 5, ...]"),
]
FAULTS = {
    "feature": lambda: SequenceVectorizer().fit([[{"a": np.complex128(1j)}]]),
    "feature name": lambda: SequenceVectorizer().fit([[{np.float64(1): "a"}]]),
    "column": lambda: TemplateVectorizer("U:%x[0,0]").fit([[(np.float64(2.5),)]]),
    "label": lambda: CRFTagger().fit(ROWS, [["a", np.float64(2.5)], ["a"]]),
    "labels": lambda: CRFTagger().fit(ROWS, [["a", "b"], np.float64(2.5)]),
    "new label": lambda: (
        CRFTagger(warm_start=True)
        .fit(ROWS, [["a", "b"], ["a"]])
        .fit(ROWS, [["a", np.str_("c")], ["a"]])
    ),
    "class_weight": lambda: CRFTagger(class_weight={np.str_("a"): np.float64(-1)}).fit(
        ROWS, [["a", "b"], ["a"]]
    ),
    "more class_weight": lambda: CRFTagger(class_weight={np.str_("c"): 1}).fit(
        ROWS, [["a", "b"], ["a"]]
    ),
    "metric": lambda: chunk_f1_score([["O", np.int64(3)]], [["O", "O"]]),
    "oracle": lambda: PerceptronReranker().fit(ROWS, [1, np.float64(0.5)]),
    "n_best": lambda: CRFTagger().fit(ROWS, [["a", "b"], ["a"]]).predict_nbest(ROWS, np.float64(2)),
}


@pytest.mark.parametrize(("value", "text"), VALUES, ids=[text[:20] for _, text in VALUES])
def test_numpy_scalars_are_written_as_those_of_python(value, text):
    assert short_repr(value) == text


@pytest.mark.parametrize("name", FAULTS)
def test_messages_do_not_depend_on_the_version_of_numpy(name):
    """Before numpy 2, the repr of a scalar was that of Python."""
    messages = []
    for options in (
        {},
        {"legacy": "1.25"} if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else {},
    ):
        with np.printoptions(**options), pytest.raises(ValueError) as caught:  # noqa: PT011
            FAULTS[name]()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
    assert "np." not in messages[0]
