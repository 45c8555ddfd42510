"""The notes of a learner."""

import numpy as np

from skstruct.utils.history import History


def test_columns_are_equally_long_arrays():
    history = History()
    for epoch in range(3):
        history.add(epoch=epoch, objective=10.0 - epoch)
        history.amend(validation_score=0.5 * epoch)
    arrays = history.arrays()
    assert list(arrays) == ["epoch", "time", "objective", "validation_score"]
    assert arrays["epoch"].tolist() == [0, 1, 2]
    assert arrays["objective"].tolist() == history["objective"] == [10, 9, 8]
    assert arrays["validation_score"].tolist() == [0, 0.5, 1]
    assert arrays["time"].shape == (3,)
    assert np.all(np.diff(arrays["time"]) >= 0)
    assert arrays["time"][0] >= 0


def test_arrays_do_not_change_afterwards():
    history = History()
    history.add(epoch=1, objective=2.0)
    arrays = history.arrays()
    history.add(epoch=2, objective=1.0)
    assert arrays["epoch"].tolist() == [1]


def test_prints_only_when_verbose(capsys):
    History().add(epoch=1, mistakes=0.25)
    assert capsys.readouterr().out == ""
    History(verbose=1).add(epoch=1, mistakes=0.25)
    line = capsys.readouterr().out
    assert line.startswith("epoch 1  time ")
    assert line.endswith("mistakes 0.25\n")
