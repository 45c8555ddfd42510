"""Processes of joblib end when the one that started them is killed."""

import os
import subprocess
import sys
import time

import pytest

PROGRAM = """
import os, time
from joblib import Parallel
from skstruct.utils.parallel import in_process

def task(number):
    print(os.getpid(), flush=True)
    time.sleep(60)

if __name__ == "__main__":
    Parallel(n_jobs=2)(in_process(task)(number) for number in range(2))
"""


def is_alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_processes_end_with_their_parent(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    parent = subprocess.Popen(
        [sys.executable, tmp_path / "program.py"], stdout=subprocess.PIPE, text=True
    )
    children = [int(parent.stdout.readline()) for _ in range(2)]
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 20
    while any(map(is_alive, children)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
