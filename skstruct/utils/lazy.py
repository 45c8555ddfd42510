"""Packages whose public names are imported when they are first used.

A stub, ``__init__.pyi``, lists the names by the imports that define them. It is what type checkers
and editors read (SPEC 1 of Scientific Python).
"""

import ast
import sys
from importlib import import_module, resources


def import_on_use(package):
    """What a package needs to import its public names when they are first used.

    Parameters
    ----------
    package : str
        Name of the package.

    Returns
    -------
    all_ : list of str
        The names, for ``__all__``.
    getattr_, dir_ : callable
        Functions ``__getattr__`` and ``__dir__`` of the package.
    """
    stub = (resources.files(package) / "__init__.pyi").read_text(encoding="utf-8")
    home_of = {
        alias.name: statement.module
        for statement in ast.parse(stub).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }

    def getattr_(name):
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = home_of[name]
        # A name of the package itself is a module in it.
        value = import_module(f"{package}.{name}" if home == package else home)
        if home != package:
            value = getattr(value, name)
        setattr(sys.modules[package], name, value)
        return value

    def dir_():
        return sorted({*vars(sys.modules[package]), *home_of})

    return list(home_of), getattr_, dir_
