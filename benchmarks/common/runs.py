"""Finished runs, kept as lines of JSON so that a benchmark can go on where it stopped."""

import gzip
import json

from benchmarks.common.stamps import keep_stamp, new_stamp


def read_runs(path):
    """Runs of a file, which may be compressed; none where there is no file."""
    if not path.exists():
        return []
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write_runs(path, runs):
    """Write a file of runs."""
    path.write_text(_lines(runs), encoding="utf-8")


def write_compressed(path, runs):
    """Write a file of runs, the same bytes for the same runs."""
    path.write_bytes(gzip.compress(_lines(runs).encode(), mtime=0))


def _lines(runs):
    return "".join(json.dumps(run) + "\n" for run in runs)


def append_run(path, run):
    """Add a run to a file, and stamp it: tables of these runs are as old as the last of them."""
    with path.open("a", encoding="utf-8") as file:
        file.write(_lines([run]))
    keep_stamp(path.parent, "runs", new_stamp())


class Records:
    """Records of finished runs and of what was chosen, found by some of their entries.

    They are read from `kept`, which came with the repository, and from `path`, where new ones are
    added. A class of them names the entries in `names`; a record need not have all. Entries can
    have any value that JSON has.
    """

    names = ()

    def __init__(self, path, kept=()):
        self.path = path
        self._found = {self._key(record): record for record in [*kept, *read_runs(path)]}

    def __len__(self):
        return len(self._found)

    def __iter__(self):
        return iter(self._found.values())

    def _key(self, record):
        return json.dumps([record.get(name) for name in self.names], sort_keys=True)

    def find(self, **entries):
        """The record with these entries, and none of the other names; None if there is none."""
        return self._found.get(self._key(entries))

    def add(self, record):
        """Keep a record, and return it."""
        append_run(self.path, record)
        self._found[self._key(record)] = record
        return record
