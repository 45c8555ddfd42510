"""When, where and on what code a table was measured, and whether the code has changed since.

Each folder of generated files has a file of stamps, one for each table and figure. The
documentation prints them below the tables (`docs/conf.py`).
"""

import ast
import hashlib
import json
import os
import platform
import subprocess
from datetime import date
from functools import cache
from pathlib import Path

from benchmarks.common.processes import is_quick

ROOT = Path(__file__).parents[2]
FILE = "measured.json"
# Parts of the package that no benchmark times or scores.
UNTIMED = {"_pyinstaller", "ahead", "datasets", "inspection", "metrics"}


@cache
def code_hash(root=ROOT):
    """Hash of the package without comments, docstrings and what no benchmark times."""
    digest = hashlib.sha256()
    package = Path(root) / "skstruct"
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        if place.parts[0] not in UNTIMED:
            digest.update(f"{place.as_posix()}\n{_code(path)}\n".encode())
    return digest.hexdigest()[:16]


def _code(path):
    """Code of a module, without comments and docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


def new_stamp():
    """Stamp of what is measured now; of a quick run, which nobody reads, the date alone."""
    if is_quick():
        return {"date": date.today().isoformat()}
    return {
        "date": date.today().isoformat(),
        "commit": _commit(),
        "processor": f"{_processor()}, {os.cpu_count()} processors",
        "python": platform.python_version(),
        "code": code_hash(),
    }


def read_stamps(folder):
    """Stamps of the files in a folder, by the file's name without its ending."""
    path = Path(folder) / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def keep_stamp(folder, name, stamp):
    """Keep the stamp of a file."""
    stamps = {**read_stamps(folder), name: stamp}
    text = json.dumps(stamps, indent=1, sort_keys=True)
    (Path(folder) / FILE).write_text(text + "\n", encoding="utf-8")


def describe(stamp):
    """Sentence for readers of a page."""
    changed = "" if stamp["code"] == code_hash() else " The code has changed since."
    when = f"on {stamp['date']} at commit {stamp['commit']}"
    # The oldest tables come from a time without stamps, and have only their date from history.
    if "processor" not in stamp:
        return f"Written {when}.{changed}"
    return f"Measured {when}, {stamp['processor']}, Python {stamp['python']}.{changed}"


def _commit():
    """Commit that is checked out, with a plus sign if files differ from it."""
    try:
        found = [
            subprocess.run(
                ["git", *command], cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout.strip()
            for command in (("rev-parse", "--short=8", "HEAD"), ("status", "--porcelain", "-uno"))
        ]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found[0] + "+" * bool(found[1])


def _processor():
    """Name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(": ")[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
