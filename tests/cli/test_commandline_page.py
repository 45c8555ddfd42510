"""The tutorial of the command line: its commands run, in order, on a part of the corpus."""

import gzip
import os
import re
import shlex
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from helpers.seeds import global_seed

from skstruct.__main__ import main
from skstruct.datasets import fetch_conll2000, load_addresses

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "commandline.rst"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PAGE.exists(), reason="needs the documentation"),
    pytest.mark.skipif(os.name == "nt", reason="needs a shell"),
]


def commands():
    """Commands of the page, in order."""
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(r"^   \$ (.*)$", text, re.MULTILINE)


def write_part(path, subset, size):
    """A part of the corpus; where it is not at hand, addresses with an invented column."""
    try:
        X, y = fetch_conll2000(subset=subset, download_if_missing=False, return_X_y=True)
    except OSError:
        addresses, y = load_addresses(return_X_y=True)
        X = [
            [(word, "NN" if word.isalpha() else "CD") for word in address] for address in addresses
        ]
        y = [[label.replace("CITY", "NP") for label in labels] for labels in y]
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for tokens, labels in islice(zip(X, y, strict=True), size):
            rows = zip(tokens, labels, strict=True)
            file.writelines(f"{word} {tag} {label}\n" for (word, tag), label in rows)
            file.write("\n")


def run_here(command, capsys):
    """Exit status, output and messages of a command without a shell's signs, in this process."""
    with global_seed():
        status = main(shlex.split(command)[1:])
    return status, *capsys.readouterr()


def test_commands_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = commands()
    assert len(found) > 10
    script = tmp_path / "skstruct"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m skstruct "$@"\n')
    script.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    outputs = {}
    for command in found:
        if command.startswith("curl "):
            names = re.search(r"/\{(.*)\}\.txt\.gz", command)[1].split(",")
            assert names == ["train", "test"]
            for name, size in zip(names, (60, 15), strict=True):
                write_part(tmp_path / f"{name}.txt.gz", name, size)
            # Of two annotators.
            for name in ("ann", "bob"):
                write_part(tmp_path / f"{name}.txt", "train", 15)
            continue
        # Workers of joblib that other tests have started are in another folder.
        if set(command) & set("|>") or " -j " in command:
            options = {"shell": True, "env": environment, "capture_output": True, "text": True}
            done = subprocess.run(command, **options)
            status, output, messages = done.returncode, done.stdout, done.stderr
        else:
            status, output, messages = run_here(command, capsys)
        assert status == 0, (command, messages)
        assert "Error" not in messages, (command, messages)
        outputs[command] = output
    evaluated = outputs["skstruct evaluate -m chunker.skops test.txt.gz"]
    assert re.search(r"^chunk f1: [01]\.\d{4}$", evaluated, re.MULTILINE)
    (tagged,) = (outputs[command] for command in found if command.startswith("printf"))
    assert [line.split()[0] for line in tagged.splitlines() if line] == [
        *("Rockwell", "said", "the", "agreement", "holds")
    ]
    tagged = {path.name for path in (tmp_path / "tagged").iterdir()}
    assert tagged == {"train.txt.gz", "test.txt.gz"}
    assert (tmp_path / "plain.crfsuite").read_bytes()[:4] == b"lCRF"
