"""The kernels of the package, wherever they stand."""

import ast
import sys
from pathlib import Path

from skstruct.chain.family import Family
from skstruct.compiled.jit import Kernel


def modules():
    """All modules of the package that have been imported, by name."""
    return {name: m for name, m in sys.modules.items() if name.partition(".")[0] == "skstruct"}


def all_kernels():
    """Set of all kernels, members of families among them."""
    found = set()
    for module in modules().values():
        for value in vars(module).values():
            members = [value]
            if isinstance(value, Family):
                members = [*value.members.values(), value.default]
            found.update(member for member in members if isinstance(member, Kernel))
    return found


def kernels_that_python_calls():
    """Set of the kernels that are named in a function that is none."""
    found = set()
    for module in modules().values():
        kernels = {name: k for name, k in vars(module).items() if isinstance(k, Kernel)}
        if kernels:
            tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
            found |= {kernels[name] for name in _names_outside(tree, kernels) if name in kernels}
    return found


def _names_outside(node, kernels):
    """Names below a node, without those in the bodies of kernels."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and child.name in kernels:
            continue
        if isinstance(child, ast.Name):
            yield child.id
        yield from _names_outside(child, kernels)
