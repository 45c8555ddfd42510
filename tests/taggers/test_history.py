"""The notes of a learner."""

import numpy as np

from skstruct.learning.monitor import Monitor


def test_columns_are_equally_long_arrays():
    monitor = Monitor()
    for epoch in range(3):
        monitor.add(epoch=epoch, objective=10.0 - epoch)
        monitor.add_score(0.5 * epoch)
    arrays = monitor.arrays()
    assert list(arrays) == ["epoch", "time", "objective", "validation_score"]
    assert arrays["epoch"].tolist() == [0, 1, 2]
    assert arrays["objective"].tolist() == monitor.history["objective"] == [10, 9, 8]
    assert arrays["validation_score"].tolist() == [0, 0.5, 1]
    assert arrays["time"].shape == (3,)
    assert np.all(np.diff(arrays["time"]) >= 0)
    assert arrays["time"][0] >= 0


def test_arrays_do_not_change_afterwards():
    monitor = Monitor()
    monitor.add(epoch=1, objective=2.0)
    arrays = monitor.arrays()
    monitor.add(epoch=2, objective=1.0)
    assert arrays["epoch"].tolist() == [1]


def test_the_last_entry():
    monitor = Monitor()
    monitor.add(epoch=1, objective=3.0)
    monitor.add(epoch=2, objective=2.0)
    monitor.add_score(0.5)
    last = monitor.last()
    assert last.pop("time") == monitor.history["time"][-1]
    assert last == {"epoch": 2, "objective": 2.0, "validation_score": 0.5}
    assert "objective" in monitor.history
    assert "gap" not in monitor.history
