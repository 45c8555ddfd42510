"""Import of scikit-learn without `scipy.stats` and pandas, in half of the time.

`sklearn.utils.fixes`, which all of scikit-learn imports, imports `scipy.stats` for one function
that nothing here calls, and pandas, if it is installed, for none. Both are imported anyway when a
program first asks for them.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType

__all__ = ["ImportOfLess"]

NEEDLESS = ("scipy.stats", "pandas")


class ImportOfLess:
    """Importer of `sklearn.utils.fixes`, which finds stand-ins for `NEEDLESS` there meanwhile.

    It stands at the start of ``sys.meta_path``, and leaves that when its work is done.
    """

    def find_spec(self, fullname, path=None, target=None):
        """Return the spec of the one module, None for any other."""
        if fullname != "sklearn.utils.fixes":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        # Python leaves unfound what other importers have, such as those of frozen programs.
        if spec is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                del spec.loader.exec_module
                with deferred(*filter(is_left_out, NEEDLESS)):
                    execute(module)

            spec.loader.exec_module = exec_module
        return spec


def is_left_out(name):
    """Tell whether a module is not imported yet, and there to be imported later."""
    # SciPy is always there, and to look for a part of it would import it.
    return name not in sys.modules and ("." in name or PathFinder.find_spec(name) is not None)


class Deferred(ModuleType):
    """Stand-in for a module, which imports the module when something of it is asked for."""

    def __getattr__(self, name):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def deferred(*names):
    """Context in which importing these modules imports nothing."""
    found = [sys.modules.setdefault(name, Deferred(name)) for name in names]
    try:
        yield
    finally:
        # Python imports the real ones, once these are gone.
        for name, module in zip(names, found, strict=True):
            if isinstance(module, Deferred) and sys.modules.get(name) is module:
                del sys.modules[name]
