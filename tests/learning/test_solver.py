"""The table of solvers says what each of them does."""

import inspect
import warnings

import numpy as np
import pytest
from helpers.marks import compiled
from sklearn.exceptions import ConvergenceWarning

from skstruct import CRFTagger, SequenceBatch
from skstruct.learning.solver import (
    ABILITIES,
    SOLVERS,
    Solution,
    load,
    require,
    support_table,
)

# A value of each parameter that asks for the ability.
ASKING = {
    "l1": {"l1": 0.1},
    "no_l2": {"l2": 0},
    "min_freq": {"min_freq": 2},
    "constraint": {"constraint": np.ones((2, 2), bool)},
    "learn_scheme": {"learn_scheme": "IOBES"},
    "label_cost": {"label_cost": {(0, 1): 2.0}},
    "order": {"order": 2},
    "early_stopping": {"early_stopping": True},
    "settling": {"stop_when_settled": True},
    "warm_start": {"warm_start": True},
    "average": {"average": True},
    "structure_alpha": {"structure_alpha": 2},
    "mini_length": {"mini_length": 2},
    "no_tol": {"tol": None},
}
# SGD is compiled for it.
COMPILES = pytest.mark.slow
X = SequenceBatch.from_lengths(np.eye(24)[:, :6] + np.eye(24, 6, -6), [3] * 8)
Y = [[0, 1, i % 2] for i in range(8)]


@pytest.fixture(params=SOLVERS)
def solver(request):
    if request.param == "crfsuite":
        pytest.importorskip("pycrfsuite")
    return request.param


def fit(solver, X=X, y=Y, params=None, **validation):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        tagger = CRFTagger(solver=solver, max_iter=3, random_state=0)
        return tagger.set_params(**(params or {})).fit(X, y, **validation)


def test_every_parameter_that_asks_for_an_ability_is_tried():
    by_parameter = {name for name, ability in ABILITIES.items() if ability.parameter}
    assert ASKING.keys() == by_parameter
    for name, params in ASKING.items():
        ability = ABILITIES[name]
        assert ability.is_asked_for(params[ability.parameter])
        assert not ability.is_asked_for(CRFTagger().get_params()[ability.parameter])


@pytest.mark.parametrize("ability", [compiled(a) if a == "order" else a for a in ASKING])
def test_parameters_are_refused_or_obeyed(solver, ability):
    if ability in SOLVERS[solver].supports:
        chunks = [[("O", "S-X")[k] for k in labels] for labels in Y]
        y = chunks if ability == "learn_scheme" else Y
        assert fit(solver, y=y, params=ASKING[ability]).coef_.shape == (2, 6)
        return
    name = ABILITIES[ability].parameter
    with pytest.raises(ValueError, match=rf"{name}.* needs solver=.*, not '{solver}'"):
        fit(solver, params=ASKING[ability])


@pytest.mark.parametrize(
    ("ability", "changes", "message"),
    [
        pytest.param(
            *("partial_labels", {"y": [[0, None, 1], *Y[1:]]}, "Sequence 0, token 1"),
            marks=COMPILES,
        ),
        pytest.param(
            "transition_features",
            {"X": SequenceBatch(X.X, X.offsets, transition_X=np.ones((24, 1)))},
            "transition features .* needs solver='lbfgs' or 'sgd'",
            marks=COMPILES,
        ),
        (
            "validation_set",
            {"X_val": X, "y_val": Y},
            "X_val and y_val need solver=.*, not 'crfsuite'",
        ),
    ],
)
def test_data_are_refused_or_learned_from(solver, ability, changes, message):
    if ability in SOLVERS[solver].supports:
        fit(solver, **changes)
        return
    with pytest.raises(ValueError, match=message):
        fit(solver, **changes)


def test_what_a_fit_leaves(solver):
    supports = SOLVERS[solver].supports
    tagger = fit(solver)
    assert hasattr(tagger, "suboptimality_bound_") == ("bound" in supports)
    assert hasattr(tagger, "partial_fit") == ("partial_fit" in supports)


def test_modules_of_solvers(solver):
    module = load(solver)
    assert set(module.Settings._fields) <= CRFTagger().get_params().keys()
    names = ["training_set", "model", "settings", "start", "monitor"]
    assert list(inspect.signature(module.solve).parameters) == names


def test_solutions_need_weights_history_and_epochs_only():
    solution = Solution(chain=None, history={}, n_iter=1)
    assert solution.bound is solution.n_weights is solution.notice is None


def test_messages_name_all_solvers_that_could():
    with pytest.raises(ValueError, match=r"^l1=1 needs solver='lbfgs' or 'crfsuite', not 'sgd'\.$"):
        require("sgd", "l1", "l1=1")
    with pytest.raises(ValueError, match=r"solver='lbfgs', 'sag' or 'sgd', not 'oeg'"):
        require("oeg", "constraint", "constraint='IOB2'")
    require("sgd", "average", "average=True")


def test_the_table_has_a_row_for_each_ability():
    rows = support_table()
    assert len(rows) == len(ABILITIES)
    assert {len(row) for row in rows} == {1 + len(SOLVERS)}
    assert dict(zip(SOLVERS, rows[0][1:], strict=True))["lbfgs"] is True


def test_too_few_iterations_are_told(solver):
    X, y = [[["a"], ["b"]], [["b"], ["c"]]] * 4, [["x", "y"], ["y", "y"]] * 4
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        CRFTagger(solver=solver, max_iter=1, random_state=0).fit(X, y)
