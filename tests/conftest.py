"""Threads of linear algebra, how hard hypothesis tries, seeds, and a corpus."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# A dozen small matrix products are not worth a thread each.
for _library in ("OMP", "OPENBLAS", "MKL", "BLIS"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", derandomize=True, max_examples=30, **_common)
settings.register_profile("thorough", max_examples=2000, **_common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_collection_modifyitems(items):
    """Tests that take long come first, so that no process waits for one at the end."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish():
    """Modules of tests call no kernels when they are imported, as they are by every process."""
    from skstruct.compiled.cache import loaded_kernels

    if loaded_kernels:
        raise pytest.UsageError(f"The import of a test has called {loaded_kernels[0].kernel}.")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Fixtures draw no random numbers without a seed."""
    return (yield from _without_global_draws())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Tests draw no random numbers without a seed."""
    return (yield from _without_global_draws())


def _without_global_draws():
    # The generator that `random_state=None` stands for.
    before = np.random.get_state()  # noqa: NPY002
    result = yield
    after = np.random.get_state()  # noqa: NPY002
    if before[2] != after[2] or not np.array_equal(before[1], after[1]):
        raise AssertionError("Random numbers were drawn without a seed: give random_state.")
    return result


@pytest.fixture(scope="session")
def addresses():
    """Postal addresses as sequences of attribute strings, and their labels."""
    from skstruct.datasets import load_addresses

    tokens, labels = load_addresses(return_X_y=True)
    return [[_attributes(sequence, t) for t in range(len(sequence))] for sequence in tokens], labels


@pytest.fixture
def values_without_limit(monkeypatch):
    """Let values of features be as large as it takes for weights to overflow."""
    monkeypatch.setattr("skstruct.input.scale.LARGEST", float("inf"))


def _attributes(tokens, t):
    def around(shift):
        return tokens[t + shift].lower() if 0 <= t + shift < len(tokens) else ""

    shape = "".join("X" if c.isupper() else "9" if c.isdigit() else "x" for c in tokens[t][:4])
    return [f"word={around(0)}", f"before={around(-1)}", f"after={around(1)}", f"shape={shape}"]
