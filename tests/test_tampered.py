"""Stored models and checkpoints that were tampered with: a ValueError, or right answers."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("skops.io")

PROGRAM = Path(__file__).parent / "helpers" / "tampering.py"


def test_whatever_is_changed_is_refused_or_harmless():
    """In a process of its own, which a crash would end."""
    run = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    assert run.returncode == 0, [*lines, run.stderr[-2000:]]
    n_changes, what = lines[-1].split(" changes, ")
    assert what == "0 with a wrong result"
    assert int(n_changes) > 4000
