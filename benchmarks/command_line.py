"""Seconds of the commands: training, evaluation and tagging of CoNLL-2000, and a single sentence.

    python -m benchmarks.command_line

The commands of the guide's tutorial, each a process of its own, with its seconds of processor time
and of the clock, and imports beside them, which show where the time of short ones goes. What they
print is printed.
"""

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import data_folder, load_quick, write_sentences
from benchmarks.common.report import machine, median_and_range, table

SENTENCE = "Rockwell NNP\nsaid VBD\nthe DT\nagreement NN\nholds VBZ\n. .\n"
COMMANDS = {
    "show the help": "--help",
    "train": "train train.txt -m chunker.skops -p l2=0.5 -j 2",
    "evaluate": "evaluate -m chunker.skops test.txt",
    "show": "show chunker.skops --label B-NP -n 3",
    "tag the test set": "tag -m chunker.skops test.txt -o tagged.txt",
    "tag a sentence": "tag -m chunker.skops sentence.txt",
}
IMPORTS = {"import of the package": "skstruct", "import of scikit-learn": "sklearn.base"}
QUICK = ("show the help", "train", "tag a sentence", "import of the package")
OFTEN = ("show the help", "tag a sentence", *IMPORTS)


def write_files(folder, quick):
    """Files of the corpus, and a sentence."""
    for part in ("train", "test"):
        if quick:
            write_sentences(*load_quick()[part], folder / f"{part}.txt")
        else:
            # Recognised as compressed by their content.
            shutil.copy(data_folder() / "conll2000" / f"{part}.txt.gz", folder / f"{part}.txt")
    (folder / "sentence.txt").write_text(SENTENCE)


def run(arguments, folder):
    """Output of a Python process, and its seconds of the processor and of the clock."""
    before, begin = _child_seconds(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    seconds = _child_seconds() - before, time.perf_counter() - begin
    return done.stderr + done.stdout, seconds


def _child_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    """Run the commands, and write the table."""
    arguments = parse(make_parser(__doc__, repeat=9))
    rows, processes = [], {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, arguments.quick)
        for title, command in COMMANDS.items():
            processes[title] = f"skstruct {command}", ["-m", "skstruct", *command.split()]
        for title, module in IMPORTS.items():
            processes[title] = f"import {module}", ["-c", f"import {module}"]
        for title, (shown, process) in processes.items():
            if arguments.quick and title not in QUICK:
                continue
            n_runs = arguments.repeat if title in OFTEN else 1
            runs = [run(process, folder) for _ in range(n_runs)]
            print(f"$ {shown}\n{runs[-1][0]}", flush=True)
            columns = zip(*(seconds for _, seconds in runs), strict=True)
            rows.append([title, f"`{shown}`", *(median_and_range(c, 2) for c in columns)])
    with open_report("command_line", arguments) as report:
        note = f"Medians and ranges; {arguments.repeat} runs of short commands. {machine()}"
        head = ["", "", "processor, s", "clock, s"]
        report.write("seconds", table(head, rows, left=(0, 1)), note)


if __name__ == "__main__":
    main()
