"""Exported files asked for their answers, in this Python, in the newest one and in node."""

import json
import os
import shutil
import subprocess
import sys
from functools import cache

# Both read a list of jobs from standard input, each a file and its sentences, and print for each
# sentence its features, labels, marginals, spans and two best labellings, or the error.
_IN_PYTHON = """
import json, runpy, sys

def answers(names, tokens):
    model = names["model"]
    try:
        proba = names["probabilities"](tokens)
        return {
            "features": model.features(tokens),
            "labels": names["tag"](tokens),
            "proba": [[p[label] for label in model.labels] for p in proba],
            "spans": [list(span) for span in names["spans"](tokens)] if model._chunks else [],
            "nbest": [list(found) for found in names["nbest"](tokens, 2)],
        }
    except ValueError as error:
        return {"error": str(error)}

for path, sentences in json.load(sys.stdin):
    names = runpy.run_path(path)
    print(json.dumps([answers(names, tokens) for tokens in sentences]))
"""
_IN_NODE = """
import { readFileSync } from "node:fs";

function answers(m, tokens) {
  try {
    let spans = [];
    try {
      spans = m.spans(tokens).map((s) => [s.start, s.end, s.type, s.probability]);
    } catch (error) {
      if (error.constructor !== Error) throw error;
    }
    return {
      features: m.model.features(tokens),
      labels: m.tag(tokens),
      proba: m.probabilities(tokens).map((p) => m.model.labels.map((label) => p.get(label))),
      spans,
      nbest: m.nbest(tokens, 2).map((found) => [found.labels, found.score, found.probability]),
    };
  } catch (error) {
    return { error: error.message };
  }
}

for (const [path, sentences] of JSON.parse(readFileSync(0, "utf8"))) {
  const m = await import(path);
  console.log(JSON.stringify(sentences.map((tokens) => answers(m, tokens))));
}
"""


@cache
def newest_python():
    """Newest Python on the path that runs, or None if this one is the newest."""
    for minor in range(sys.version_info[1] + 5, sys.version_info[1], -1):
        path = shutil.which(f"python3.{minor}")
        if (
            path
            and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0
        ):
            return path
    return None


@cache
def node():
    """Path of node 18 or later, or None."""
    path = shutil.which("node")
    found = path and subprocess.run(
        [path, "--version"], capture_output=True, text=True, check=False
    )
    return path if found and int(found.stdout[1:].partition(".")[0]) >= 18 else None


def ask_python(jobs, executable=sys.executable):
    """Answers of Python files: `jobs` are pairs of a path and a list of sentences."""
    # Without the environment of the tests: files need no package.
    return _ask([executable, "-I", "-c", _IN_PYTHON], jobs)


def ask_node(jobs):
    """Answers of JavaScript files."""
    return _ask([node(), "--input-type=module", "-e", _IN_NODE], jobs)


def _ask(command, jobs):
    text = json.dumps([[str(path), sentences] for path, sentences in jobs])
    env = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        command, input=text, capture_output=True, text=True, encoding="utf-8", check=False, env=env
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.rstrip("\n").split("\n")]
