"""Runs in processes of their own: time, peak memory, and systems that take turns."""

import io
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from time import perf_counter

# Whether children are called in this process: in quick runs, whose times and sizes nobody reads,
# imports would take most of the time.
_shares = False


class Clock:
    """Seconds of the named parts of a run, and the peak of memory by the end of each.

    With `whole`, the first part begins with the process: it includes the start of Python and all
    imports.
    """

    def __init__(self, *, whole=False):
        self.seconds, self.memory = {}, {}
        self._since = perf_counter() - (seconds_since_start() if whole else 0.0)

    def lap(self, part):
        """End a part; the next one begins."""
        now = perf_counter()
        self.seconds[part] = now - self._since
        self.memory[part] = peak_memory()
        self._since = now


def seconds_since_start():
    """Age of this process, to a hundredth of a second; 0 where the system does not tell."""
    status = Path("/proc/self/stat")
    if not status.exists():
        return 0.0
    # The name of the command, in brackets, may have spaces in it.
    ticks = int(status.read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def peak_memory():
    """Peak of the resident set of this process so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        # Unlike this entry, getrusage begins with the peak of the parent process.
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def seconds_of(function, n_calls, clock=perf_counter):
    """Median of the seconds that calls of a function take."""
    seconds = []
    for _ in range(n_calls):
        start = clock()
        function()
        seconds.append(clock() - start)
    return statistics.median(seconds)


def share_process():
    """Have `run_child` call modules in this process from now on."""
    global _shares
    _shares = True


def is_quick():
    """Return True in a quick run."""
    return _shares


def n_swaps(number):
    """Number of swaps of a permutation test; few in quick runs, of which tests took the most."""
    return min(number, 99) if is_quick() else number


def run_child(module, *arguments, timeout=None, alone=False):
    """Run a module of this package in a fresh process; return the JSON of its last line.

    Quick runs call its `main` in this process, unless it has to be `alone`. It raises
    subprocess.TimeoutExpired after `timeout` seconds.
    """
    name, arguments = f"benchmarks.{module}", list(map(str, arguments))
    if _shares and not alone:
        output = _output_of(import_module(name).main, [module, *arguments])
    else:
        command = [sys.executable, "-m", name, *arguments]
        options = {"check": True, "stdout": subprocess.PIPE, "text": True, "timeout": timeout}
        output = subprocess.run(command, **options).stdout
    return json.loads(output.splitlines()[-1])


def _output_of(function, arguments):
    """What a function prints that reads these arguments of the command line."""
    output, before = io.StringIO(), sys.argv
    sys.argv = arguments
    try:
        with redirect_stdout(output):
            function()
    finally:
        sys.argv = before
    return output.getvalue()


def take_turns(systems, run, repeat, *, warm=()):
    """Results of ``run(system)`` of each system, as a dict of lists.

    The systems take turns, so that a machine that gets slower gets slower for all of them. Those
    to `warm` run once before, unmeasured, which fills the cache of compiled kernels.
    """
    for system in warm:
        run(system)
    results = {system: [] for system in systems}
    for turn in range(1, repeat + 1):
        for system in systems:
            results[system].append(run(system))
            print(turn, system, results[system][-1], flush=True)
    return results
