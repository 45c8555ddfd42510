"""Other programs: installed where SKSTRUCT_PEERS says, and run in a process of their own."""

import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest


class Peer:
    """A Python package beside the one under test.

    Where it is not installed, pip puts it into the folder that SKSTRUCT_PEERS names. The test that
    needs it is skipped where neither is to be had.
    """

    def __init__(self, module, *requirements, options=()):
        self._folder = None
        if find_spec(module) is not None:
            return
        if "SKSTRUCT_PEERS" not in os.environ:
            pytest.skip(f"needs {requirements[0]} or SKSTRUCT_PEERS")
        self._folder = Path(os.environ["SKSTRUCT_PEERS"]) / module.lower()
        if not self._folder.exists():
            install([*options, *requirements], self._folder)

    def run(self, code, **values):
        """Run Python code with the values as variables; what it prints is returned."""
        before = "".join(f"{name} = {value!r}\n" for name, value in values.items())
        if self._folder:
            before += f"import sys\nsys.path.append({str(self._folder)!r})\n"
        found = subprocess.run(
            [sys.executable, "-"], input=before + code, capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stdout + found.stderr
        return found.stdout


def install(arguments, folder):
    """Let pip fill a folder, which is there only once it is complete: tests run in parallel."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        filled = Path(temporary) / "packages"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--target", str(filled), *arguments]
        found = subprocess.run(command, capture_output=True, text=True, check=False)
        if found.returncode:
            pytest.skip(f"{folder.name} cannot be installed: {found.stderr[-300:]}")
        # Another process may have been faster.
        with suppress(OSError):
            filled.rename(folder)


def crfpp():
    """CRF++. To build it from its source distribution takes an installed CRF++: wheels only."""
    return Peer("CRFPP", "crfpy==0.0.0.3", options=["--only-binary=:all:"])


def wapiti():
    """Wapiti, which is compiled while it is installed."""
    return Peer("wapiti", "libwapiti==0.2.1", "six")
