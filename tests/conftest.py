"""What has to be settled before numba is imported, and how hard hypothesis tries."""

import hashlib
import os
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A dozen small matrix products are not worth a thread each.
for _library in ("OMP", "OPENBLAS", "MKL", "BLIS"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")


def kernel_cache():
    """Folder for compiled kernels that belongs to exactly these sources and settings.

    Numba looks at the file of a cached function and not at those of the functions it calls, and
    ignores settings such as NUMBA_BOUNDSCHECK, so a folder that outlives a change lies.
    """
    kernels = Path(find_spec("skstruct").origin).parent / "kernels"
    key = hashlib.sha256(sys.version.encode())
    for path in sorted(kernels.rglob("*.py")):
        key.update(f"{path.relative_to(kernels)}\0".encode() + path.read_bytes() + b"\0")
    for name in sorted(os.environ):
        if name.startswith("NUMBA_") and name != "NUMBA_CACHE_DIR":
            key.update(f"{name}={os.environ[name]}\0".encode())
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    return Path(tempfile.gettempdir()) / f"skstruct-kernels-{user}-{key.hexdigest()[:16]}"


if "numba" in sys.modules:
    raise RuntimeError("numba was imported before tests/conftest.py could set its cache folder.")
os.environ["NUMBA_CACHE_DIR"] = str(kernel_cache())

_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", derandomize=True, max_examples=50, **_common)
settings.register_profile("thorough", max_examples=2000, **_common)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(scope="session")
def addresses():
    """Postal addresses as sequences of attribute strings, and their labels."""
    from skstruct.datasets import load_addresses

    tokens, labels = load_addresses(return_X_y=True)
    return [[_attributes(sequence, t) for t in range(len(sequence))] for sequence in tokens], labels


def _attributes(tokens, t):
    def around(shift):
        return tokens[t + shift].lower() if 0 <= t + shift < len(tokens) else ""

    shape = "".join("X" if c.isupper() else "9" if c.isdigit() else "x" for c in tokens[t][:4])
    return [f"word={around(0)}", f"before={around(-1)}", f"after={around(1)}", f"shape={shape}"]
