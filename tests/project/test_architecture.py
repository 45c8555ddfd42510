"""The order of the rooms of the package, and the length of functions.

A room is a folder of `skstruct`, or a file beside the folders. Rooms stand on floors, and a module
imports modules of its own room and of floors below, on no account in a circle.
"""

import ast
import re
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import skstruct
from skstruct.compiled import keys

ROOT = Path(skstruct.__file__).parent

# The floors from the ground up, and the rooms on each.
FLOORS = [
    {"_pyinstaller"},
    {"utils"},
    {"compiled"},
    {"chain"},
    {"matrices"},
    {"blocks"},
    {"frames"},
    {"sequences"},
    {"input", "decoding"},
    {"features", "metrics"},
    {"datasets"},
    {"templates"},
    {"learning"},
    {"taggers"},
    {"rerankers"},
    {"streams"},
    {"crfsuite"},
    {"crfpp"},
    {"dask"},
    # It takes any estimator apart, and imports none.
    {"inspection"},
    {"spans"},
    {"conformal", "model_selection"},
    {"export"},
    # What compiles ahead of time runs every estimator.
    {"ahead"},
    {"cli"},
    {"__main__"},
]
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
MOST_LINES_OF_A_BODY = 50

# Packages that need not be installed, and what asks for them.
OPTIONAL = {
    "crfsuite": {"pycrfsuite"},
    "dask": {"dask", "distributed", "fsspec"},
    "datasets": {"spacy"},
    "inspection": {"matplotlib", "pandas"},
}
# What few fits need: storage in files, progress bars, scorers, splitters and k-means.
SLOW = {
    "features.clusters": {"sklearn", "threadpoolctl"},
    "features.statistics": {"sklearn"},
    # Files are imported more often than they are run.
    "export.runtime": {"argparse"},
    "utils.persistence": {"skops"},
    "utils.progress": {"sklearn"},
    "taggers.scoring": {"sklearn"},
}

# What is still to be put in order. Whoever does so takes it off the list.
ARROWS_TO_TURN = set()
BODIES_TO_SPLIT = set()


def all_modules():
    """Path and syntax tree of each module, by its name without ``skstruct.``, packages left out.

    A package only exports names. Whoever imports one asks for the module that has it.
    """
    modules = {}
    for path in sorted(ROOT.rglob("*.py")):
        if path.name != "__init__.py":
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            modules[name] = path, ast.parse(path.read_text(encoding="utf-8"))
    return modules


MODULES = all_modules()


def is_kernel(module):
    """Return True for a module with kernels, or with what kernels are made of."""
    return f"skstruct.{module}" in keys._FILES


def kernels_of(tree):
    """Functions that are compiled, by their decorators."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            if any(re.match(r"\w*jit\b|family|needed|creating|\w+\.of\(", d) for d in decorators):
                yield node


def room_of(module):
    """The longest room that a module is in."""
    rooms = [room for room in FLOOR_OF if module == room or module.startswith(f"{room}.")]
    assert rooms, f"{module} is in no room: tests/project/test_architecture.py lists them."
    return max(rooms, key=len)


def imports_of(tree):
    """Modules of ours that a tree imports."""
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
                yield name.removeprefix("skstruct.")


ARROWS = {(module, target) for module, (_, tree) in MODULES.items() for target in imports_of(tree)}


def test_no_circle():
    graph = {module: set() for module in MODULES}
    for module, target in sorted(ARROWS):
        graph[module].add(target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_arrows_go_down():
    wrong = set()
    for module, target in sorted(ARROWS):
        a, b = room_of(module), room_of(target)
        if a != b and FLOOR_OF[a] <= FLOOR_OF[b]:
            wrong.add((module, target))
    assert wrong == ARROWS_TO_TURN


def test_functions_import_optional_and_slow_packages_only():
    """Imports in the midst of a fit would make its first epoch slow."""
    for module, (path, tree) in MODULES.items():
        lines = path.read_text(encoding="utf-8").splitlines()
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        for node in {node for function in functions for node in ast.walk(function)}:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                names = [getattr(node, "module", None) or alias.name for alias in node.names]
                packages = {name.partition(".")[0] for name in names}
                optional = packages <= OPTIONAL.get(room_of(module), set())
                assert optional or packages <= SLOW.get(module, set()), (module, node.lineno)
                why = "# optional" if optional else "# slow"
                assert why in lines[node.lineno - 1], (module, node.lineno)


def test_only_the_compiler_ahead_of_time_changes_filters_of_warnings():
    """They are those of all threads, and threads that restore them in turn lose some."""
    named = {"catch_warnings", "simplefilter", "filterwarnings"}
    assert {m for m, (_, tree) in MODULES.items() if named & {*names_in(tree)}} == {
        "ahead.warm",
        "ahead.workload",
    }


def test_kernels_are_used():
    """Each of them is named somewhere else in the package."""
    named = Counter()
    for _, tree in MODULES.values():
        named.update(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    for module, (_, tree) in MODULES.items():
        for kernel in kernels_of(tree):
            # Members of families go by the name of the family.
            if not any(".of(" in ast.unparse(d) for d in kernel.decorator_list):
                assert named[kernel.name], (module, kernel.name)


def test_what_kernels_name_is_of_kernels():
    """The text of all that they are made of is part of the key under which they are kept."""
    for module, (_, tree) in MODULES.items():
        imported = {
            alias.asname or alias.name: node.module
            for node in tree.body
            if isinstance(node, ast.ImportFrom) and node.module.startswith("skstruct.")
            for alias in node.names
        }
        for kernel in kernels_of(tree):
            for statement in kernel.body:
                for name in names_in(statement) & set(imported):
                    home = imported[name].removeprefix("skstruct.")
                    assert is_kernel(home), (module, kernel.name, name)


def test_modules_import_no_packages():
    """They name the module itself, so that the arrows above are all."""
    for module, (_, tree) in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "skstruct":
                for alias in node.names:
                    names = {node.module, f"{node.module}.{alias.name}"}
                    assert names & {f"skstruct.{name}" for name in MODULES}, (module, node.module)


# Records of chains, and what only some kinds of them have.
RECORDS = {
    node.name
    for module, (_, tree) in MODULES.items()
    if is_kernel(module)
    for node in ast.walk(tree)
    if isinstance(node, ast.ClassDef)
    and any(isinstance(base, ast.Name) and base.id == "NamedTuple" for base in node.bases)
}
OF_SOME = {"transition2_", "transition_coef_", "transition_weights", "triple", "transitions"}
# The names that attributes have by which users know the weights of pairs and of triples.
NAMES_FOR_USERS = {"cli.show"}
# Templates of transition features are no chains.
EXEMPT = {"chain", "templates"}


def tells_chains_apart(node):
    """Return True for a node that asks for the kind of a chain, and not for what it can do."""
    match node:
        case ast.Call(func=ast.Name("isinstance" | "issubclass"), args=[_, kinds]):
            return bool(RECORDS & names_in(kinds))
        case ast.Call(func=ast.Name("hasattr" | "getattr"), args=[_, ast.Constant(name), *_]):
            return name in OF_SOME
        case ast.Compare(
            left=ast.Attribute(attr="order" | "_order") | ast.Name("order"),
            comparators=[ast.Constant()],
            ops=[ast.Eq() | ast.NotEq()],
        ):
            return True
        case ast.Compare(left=left, comparators=[right], ops=[ast.Is() | ast.IsNot()]):
            return bool((RECORDS | OF_SOME) & (names_in(left) | names_in(right)))
    return False


def names_in(tree):
    """Last parts of all names below a node."""
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def asks_for_shape(node):
    """Return True for a node that looks at the length of a record, or at a number of dimensions."""
    match node:
        case ast.Attribute(attr="ndim"):
            return True
        case ast.Compare(left=ast.Call(func=ast.Name("len"), args=[what])):
            return bool({"state", "chain", "edges", "factors", "features"} & names_in(what))
    return False


def test_nothing_tells_chains_apart():
    """Whatever differs is a member of the protocol, or an attribute of the class of the weights."""
    for module, (_, tree) in MODULES.items():
        for node in ast.walk(tree):
            if module.split(".")[0] not in EXEMPT and module not in NAMES_FOR_USERS:
                assert not tells_chains_apart(node), (module, node.lineno)
        # The rows of `compiled` are no chains.
        if room_of(module) != "compiled":
            for node in [tree] if room_of(module) == "chain" else kernels_of(tree):
                for part in ast.walk(node):
                    assert not asks_for_shape(part), (module, part.lineno)


@pytest.mark.parametrize(
    "line",
    [
        "isinstance(rows, TransitionRows)",
        "hasattr(tagger, 'transition2_')",
        "getattr(rows, 'transitions', None)",
        "model.order == 2",
        "chain.triple is None",
        "kind is scores.Chain",
    ],
)
def test_a_branch_that_tells_chains_apart_is_found(line):
    assert any(map(tells_chains_apart, ast.walk(ast.parse(line))))


@pytest.mark.parametrize("line", ["len(state) > 5", "scores.ndim == 3"])
def test_a_branch_on_shapes_is_found(line):
    assert any(map(asks_for_shape, ast.walk(ast.parse(line))))


def test_lines_of_bodies():
    long = set()
    for module, (_, tree) in MODULES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                body = node.body[ast.get_docstring(node) is not None :]
                if body and node.end_lineno - body[0].lineno >= MOST_LINES_OF_A_BODY:
                    long.add(f"{module}.{node.name}")
    assert long == BODIES_TO_SPLIT


@pytest.mark.skipif(
    not (ROOT.parent / "CONTRIBUTING.md").exists(), reason="the package is installed without"
)
def test_the_picture_shows_every_room():
    """The picture in CONTRIBUTING.md names the rooms, and the lines below it files that exist."""
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    picture = text.partition("```text")[2].partition("```")[0]
    folders = {path.name for path in ROOT.iterdir() if (path / "__init__.py").exists()}
    assert folders - {"_pyinstaller"} <= set(re.findall(r"\w+", picture))
    section = text.partition("## Find the way")[2].partition("## Add to it")[0]
    for name in re.findall(r"`(\w+/\w+\.py)`", section):
        assert name.startswith("tests/") or (ROOT / name).exists(), name


def test_no_test_imports_another():
    """What several need is in `helpers`, `naive` or `strategies`."""
    for path in sorted(Path(__file__).parents[1].rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            assert not [name for name in names if name.startswith("test_")], path.name
