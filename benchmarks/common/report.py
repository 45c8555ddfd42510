"""Tables in Markdown and figures, as the pages of the documentation include them."""

import os
import platform

import numpy as np

from benchmarks.common.stamps import keep_stamp, new_stamp, read_stamps


class Report:
    """A folder of generated files, each of which names the command that wrote it.

    With `stamp`, files are stamped as measured then; without, they keep the stamps that they have.
    """

    def __init__(self, folder, command, stamp=None):
        self.folder, self.command, self.stamp = folder, command, stamp
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, name, *parts):
        """Write paragraphs and tables into the file ``name.md``."""
        text = "\n\n".join([f"<!-- Written by: {self.command} -->", *parts]) + "\n"
        (self.folder / f"{name}.md").write_text(text, encoding="utf-8")
        self._keep_stamp(name)
        print(self.folder / f"{name}.md", flush=True)

    def write_into(self, page, name, text):
        """Replace what stands between two comments of a page that cannot include files."""
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        before, rest = page.read_text(encoding="utf-8").split(begin)
        after = rest.split(end)[1]
        page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")

    def save_figure(self, name, figure):
        """Save a figure as ``name.svg``, without what differs from one run to the next."""
        import matplotlib

        # Text instead of outlines: the files are a third of the size.
        style = {"svg.hashsalt": "skstruct", "svg.fonttype": "none"}
        with matplotlib.rc_context(style):
            figure.savefig(
                self.folder / f"{name}.svg", metadata={"Date": None}, bbox_inches="tight"
            )
        self._keep_stamp(name)

    def _keep_stamp(self, name):
        stamps = read_stamps(self.folder)
        # A new table of old runs is as old as the newest of them.
        newest = max(stamps.values(), key=lambda stamp: stamp["date"], default=None)
        stamp = self.stamp or stamps.get(name) or newest or new_stamp()
        keep_stamp(self.folder, name, stamp)


def table(head, rows, left=(0,)):
    """Markdown table; columns are aligned to the right, but for those listed in `left`."""
    rule = ["---" if column in left else "---:" for column in range(len(head))]
    lines = [head, rule, *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def earlier_rows(path):
    """Rows of the table of an earlier report, by their first cells."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return {row[0]: row for row in rows}


def corrected(tests):
    """The p of named tests, corrected for their number by their false discovery rate.

    Benjamini and Hochberg's procedure; `tests` and the result are dicts.
    """
    # Processes whose imports are measured have this module, too.
    from scipy.stats import false_discovery_control

    values = false_discovery_control(list(tests.values())) if tests else []
    return dict(zip(tests, map(float, values), strict=True))


def median_and_range(values, digits=1):
    """Text such as "4.7 (4.4-5.6)"; of one value, without a range."""
    middle, low, high = (f"{f(values):.{digits}f}" for f in (np.median, np.min, np.max))
    return f"{middle} ({low}-{high})" if len(values) > 1 else middle


def mean_and_deviation(values, form=".2f"):
    """Text such as "94.71 ± 0.05", with the standard deviation; of one value, without it."""
    spread = f" ± {np.std(values, ddof=1):{form}}" if len(values) > 1 else ""
    return f"{np.mean(values):{form}}{spread}"


def rows_of_medians(rows, results):
    """Rows of a table with a column for each system; blank where results lack an entry.

    `rows` maps the title of each row to an entry of the results and its format.
    """
    found = []
    for title, (key, form) in rows.items():
        values = [median(runs, key) for runs in results.values()]
        found.append([title, *("" if v is None else form.format(v) for v in values)])
    return found


def gain(theirs, ours, key):
    """Text on how many times better an entry of our results is than theirs, turn by turn."""
    # Speeds, unlike times and memory, are better where they are larger.
    pair = (ours, theirs) if key == "tokens per second" else (theirs, ours)
    return median_and_range(ratios(*pair, key))


def ratios(slow, fast, key):
    """Ratios of an entry of the results of two systems, turn by turn."""
    return [a[key] / b[key] for a, b in zip(slow, fast, strict=True)]


def median(results, key):
    """Median of an entry of results; None where one of them is without it."""
    values = [result.get(key) for result in results]
    return None if None in values else float(np.median(values))


def note_on_runs(n_turns):
    """Sentence on the number of runs, and the machine."""
    runs = "One run of each" if n_turns == 1 else f"Medians of {n_turns} runs of each"
    return f"{runs}, in turn. {machine()}"


def machine():
    """Python version, processor type and count."""
    count = os.cpu_count()
    processors = "one processor" if count == 1 else f"{count} processors"
    return f"Python {platform.python_version()}, {platform.machine()}, {processors}."
