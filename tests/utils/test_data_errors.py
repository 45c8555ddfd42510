"""Errors that know their place: who calls says what sequences are called, and where they are."""

import pickle
from copy import copy

import numpy as np
import pytest

from skstruct import CRFTagger, DataError, PerceptronReranker, PerceptronTagger
from skstruct.crfsuite import CRF
from skstruct.utils.messages import errors_in, position

X = [[{"w": "a"}, {"w": "b"}], [{"w": "c"}]]


def test_what_users_wrote_is_not_formatted():
    error = DataError("{place}: {label} is no {token}.", 3, 4, label="{place} {0} %s")
    assert str(error) == "Sequence 3, token 4: {place} {0} %s is no token."
    assert str(DataError.of("{x}", 1)) == "Sequence 1: {x}"
    assert str(DataError.of(ValueError("{x}"))) == "{x}"


def test_units_part_and_file_stand_where_they_belong():
    error = DataError("{place} has {n} {token}s.", 0, remedy="Give each {sequence} one.", n=0)
    with pytest.raises(DataError) as raised, errors_in(units=("group", "candidate"), part="X_val"):
        raise error
    assert raised.value is error
    error.where = "a.txt, line 3"
    text = "a.txt, line 3: X_val: Group 0 has 0 candidates. Give each group one."
    for same in (error, copy(error), pickle.loads(pickle.dumps(error))):
        assert str(same) == text
        assert (same.sequence, same.token) == (0, None)


def test_a_part_of_the_data_gets_its_place_and_keeps_its_words():
    error = DataError.of(DataError("{value} is no {token}", value="{}"), 2, 5)
    error.units = "group", "candidate"
    assert str(error) == "Group 2, candidate 5: {} is no candidate"


@pytest.mark.parametrize("row", range(6))
def test_positions_are_those_of_a_list(row):
    lengths = [2, 0, 3, 1]
    places = [(i, t) for i, n in enumerate(lengths) for t in range(n)]
    assert position(np.cumsum([0, *lengths]), row) == places[row]


@pytest.mark.parametrize(
    ("fit", "at"),
    [
        (lambda: PerceptronTagger().fit(X, [["A", "B"], [None]]), (1, 0)),
        (lambda: CRFTagger().fit(X, [["A", "B"], ["A", "B"]]), (1, None)),
        (lambda: CRFTagger().fit([[{"w": "a"}, "b"]], [["A", "B"]]), (0, 1)),
        (lambda: CRFTagger(constraint="IOB2").fit(X, [["O", "I-X"], ["O"]]), (0, 1)),
        (lambda: CRFTagger().fit([[[1.0], [np.nan]]], [["A", "B"]]), (0, 1)),
        (lambda: CRF().fit(X, [["A", "B"], [3]]), (1, 0)),
        (lambda: PerceptronReranker().fit([[{"a": 1}, {"b": np.nan}]], [0]), (0, 1)),
        (lambda: PerceptronReranker().fit([[{"a": 1}, {"b": 2}]], [7]), (0, None)),
    ],
)
def test_services_read_numbers(fit, at):
    with pytest.raises(DataError) as raised:
        fit()
    assert (raised.value.sequence, raised.value.token) == at


def test_the_drop_in_has_names_of_its_own_for_held_out_data():
    y = [["A", "B"], ["A"]]
    with pytest.raises(DataError, match=r"^X_dev, y_dev: Sequence 0, token 0: feature 'w'"):
        CRF().fit(X, y, X_dev=[[{"w": np.inf}]], y_dev=[["A"]])
    with pytest.raises(DataError, match=r"^X_val, y_val: Sequence 0, token 0: feature 'w'"):
        CRFTagger().fit(X, y, X_val=[[{"w": np.inf}]], y_val=[["A"]])
