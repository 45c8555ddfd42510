"""Finished runs, kept as lines of JSON so that a benchmark can go on where it stopped."""

import json


def read_runs(path):
    """Runs of a file; none where there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def append_run(path, run):
    """Add a run to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(run) + "\n")
