"""Options that all benchmarks share."""

import argparse
import tempfile
from contextlib import contextmanager
from pathlib import Path

from benchmarks.common.processes import share_process
from benchmarks.common.report import Report
from benchmarks.common.stamps import new_stamp, read_stamps

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "docs" / "benchmarks" / "generated"
RESULTS = ROOT / "benchmarks" / "results"


def make_parser(doc, *, repeat=None):
    """Parser with the options of every benchmark; `doc` is the docstring of its module."""
    parser = argparse.ArgumentParser(description=doc.strip().splitlines()[0])
    parser.add_argument(
        "--quick",
        action="store_true",
        help="smoke test of less than a minute: tiny corpus, one repetition, nothing kept",
    )
    parser.add_argument("--output", type=Path, help="folder for tables and figures")
    if repeat is not None:
        parser.add_argument("--repeat", type=int, default=repeat, help=f"default {repeat}")
    return parser


def parse(parser):
    """Parsed command line; a quick run is repeated once, in one process."""
    arguments = parser.parse_args()
    if arguments.quick:
        share_process()
        if "repeat" in arguments:
            arguments.repeat = 1
    return arguments


@contextmanager
def open_report(name, arguments):
    """Report of a benchmark: in the folder given, else in the documentation.

    A quick run never writes into the documentation: without a folder, its report is temporary.
    """
    command = f"python -m benchmarks.{name}"
    # Tables of runs that were made before are as old as these.
    runs = RESULTS / name if getattr(arguments, "results", None) is None else arguments.results
    reports = getattr(arguments, "write", False) or getattr(arguments, "action", "") == "report"
    stamp = read_stamps(runs).get("runs") if reports else new_stamp()
    if arguments.output:
        yield Report(arguments.output, command, stamp)
    elif arguments.quick:
        with tempfile.TemporaryDirectory() as folder:
            yield Report(Path(folder), command, stamp)
    else:
        yield Report(GENERATED / name, command, stamp)


@contextmanager
def results_folder(name, arguments):
    """Folder of the finished runs: that of `--results`, or a temporary one in a quick run."""
    if arguments.quick:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    else:
        folder = arguments.results or RESULTS / name
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
