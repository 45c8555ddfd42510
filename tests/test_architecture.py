"""The order of the rooms of the package, and the size of what is in them.

A room is a folder of `skstruct`, or a file beside the folders. Rooms stand on floors, and a module
imports modules of its own room and of floors below, on no account in a circle.
"""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import skstruct
import skstruct.kernels

ROOT = Path(skstruct.__file__).parent

# The floors from the ground up: rooms and the number of lines that a module there may have.
# Kernels state the formulas they compute, which takes room.
FLOORS = [
    {"_pyinstaller": 50},
    {"utils": 250},
    {"compiled": 200},
    {"kernels._jit": 50},
    {"kernels.vector": 400},
    {"kernels.chain": 400},
    {"kernels.online": 400, "kernels.dual": 400, "kernels.rerank": 400, "kernels.templates": 400},
    {"kernels.likelihood": 400},
    {"frames": 350},
    {"sequences": 400},
    {"input": 410, "decoding": 150},
    {"features": 400, "metrics": 400},
    {"datasets": 400},
    {"model_selection": 200},
    {"templates": 400},
    {"solvers": 400},
    {"online": 400},
    {"taggers": 400},
    {"rerankers": 400},
    {"streams": 400},
    {"crfsuite": 410},
    {"crfpp": 400},
    {"dask": 350},
    # It takes any estimator apart, and imports none.
    {"inspection": 250},
    # What compiles ahead of time runs every estimator.
    {"ahead": 250},
    {"cli": 250},
    {"__main__": 100},
]
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
MOST_LINES = {room: lines for rooms in FLOORS for room, lines in rooms.items()}
MOST_FILES = 15
MOST_LINES_OF_A_BODY = 50

# Modules that a program loads which imports one estimator, packages included. Kernels are loaded
# when they are first called.
MOST_LOADED = {"PerceptronTagger": 32, "CRFTagger": 46, "VRDAReranker": 22}

# What is still to be put in order. Whoever does so takes it off the list.
ARROWS_TO_TURN = set()
FILES_TO_SPLIT = set()
BODIES_TO_SPLIT = set()


def all_modules():
    """Path and syntax tree of each module, by its name without ``skstruct.``, packages left out.

    A package only exports names, lazily. Whoever imports one asks for the module that has it.
    """
    modules = {}
    for path in sorted(ROOT.rglob("*.py")):
        if path.name != "__init__.py":
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            modules[name] = path, ast.parse(path.read_text(encoding="utf-8"))
    return modules


MODULES = all_modules()


def module_of_kernels():
    """Module of each name that `skstruct.kernels` exports."""
    stub = ast.parse((ROOT / "kernels" / "__init__.pyi").read_text(encoding="utf-8"))
    return {
        alias.name: f"kernels.{node.module}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


KERNELS = module_of_kernels()


def kernels_used(tree):
    """Nodes like ``kernels.decode_best``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "kernels":
            yield node


def room_of(module):
    """The longest room that a module is in."""
    rooms = [room for room in FLOOR_OF if module == room or module.startswith(f"{room}.")]
    assert rooms, f"{module} is in no room: tests/test_architecture.py lists them."
    return max(rooms, key=len)


def imports_of(tree):
    """Modules of ours that a tree imports, and whether each import waits in a function."""
    lazy = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.Lambda))
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole path"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names += [node.module] * len(names)
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if name.removeprefix("skstruct.") in MODULES and name.startswith("skstruct."):
                yield name.removeprefix("skstruct."), id(node) in lazy
    for node in kernels_used(tree):
        yield KERNELS[node.attr], id(node) in lazy


ARROWS = {
    (module, target): lazy
    for module, (_, tree) in MODULES.items()
    for target, lazy in sorted(imports_of(tree))
}


def test_no_circle():
    graph = {module: set() for module in MODULES}
    for module, target in ARROWS:
        graph[module].add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_arrows_go_down():
    wrong = {}
    for (module, target), lazy in ARROWS.items():
        a, b = room_of(module), room_of(target)
        if a != b and FLOOR_OF[a] <= FLOOR_OF[b]:
            wrong[module, target] = "in a function" if lazy else "at the top"
    assert set(wrong) == ARROWS_TO_TURN, wrong


def test_kernels_are_exported_and_used():
    """Outside of `kernels`, they go by the name of the package, so that they are loaded late."""
    used = set()
    for module, (_, tree) in MODULES.items():
        if module.split(".")[0] != "kernels":
            used |= {node.attr for node in kernels_used(tree)}
    assert used == set(KERNELS)
    for name in used:
        assert getattr(skstruct.kernels, name) is not None
    for module, target in ARROWS:
        if room_of(target).startswith("kernels.") and not module.startswith("kernels."):
            assert target in KERNELS.values(), (module, target)


def test_modules_import_no_packages():
    """They name the module itself, so that the arrows above are all."""
    for module, (_, tree) in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "skstruct":
                for alias in node.names:
                    names = {node.module, f"{node.module}.{alias.name}"}
                    if names == {"skstruct", "skstruct.kernels"}:
                        continue  # arrows by what is used of it
                    assert names & {f"skstruct.{name}" for name in MODULES}, (module, node.module)


def test_lines_of_modules():
    long = {
        module
        for module, (path, _) in MODULES.items()
        if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES[room_of(module)]
    }
    assert long == FILES_TO_SPLIT


def test_files_of_folders():
    for folder in {path.parent for path, _ in MODULES.values()}:
        assert len(list(folder.glob("*.py"))) <= MOST_FILES, folder


def test_lines_of_bodies():
    long = set()
    for module, (_, tree) in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                body = node.body[ast.get_docstring(node) is not None :]
                if body and node.end_lineno - body[0].lineno >= MOST_LINES_OF_A_BODY:
                    long.add(f"{module}.{node.name}")
    assert long == BODIES_TO_SPLIT


@pytest.mark.parametrize("name", MOST_LOADED)
def test_modules_that_an_estimator_loads(name):
    code = f"import sys; from skstruct import {name}; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    names = result.stdout.split()
    loaded = [name for name in names if name.split(".")[0] == "skstruct"]
    assert len(loaded) <= MOST_LOADED[name], sorted(loaded)
    assert "numba" not in names


@pytest.mark.skipif(
    not (ROOT.parent / "CONTRIBUTING.md").exists(), reason="the package is installed without"
)
def test_map_names_every_file():
    """The map in CONTRIBUTING.md has a row for each room with the names of its files."""
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = {}
    for first, rest in re.findall(r"^\|([^|]*)\|(.*)\|$", text, re.MULTILINE):
        for room in re.findall(r"`([\w/.]+)`", first):
            room = room.removesuffix("/").removesuffix(".py").replace("/", ".")
            rows[room] = set(re.findall(r"`([\w-]+)(?:\.py)?`", first + rest))
    for module in MODULES:
        room = room_of(module)
        stem = module.rpartition(".")[2]
        assert room in rows, f"no row for {room}"
        assert room == module or stem in rows[room], f"{stem} is not in the row of {room}"


def test_no_test_imports_another():
    """What several need is in `helpers`, `naive` or `strategies`."""
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            assert not [name for name in names if name.startswith("test_")], path.name
