"""Import of scikit-learn without `scipy.stats`, in half of the time.

`sklearn.utils.fixes`, which all of scikit-learn imports, imports `scipy.stats` for one function
that nothing here calls. SciPy imports its subpackages anyway when they are first asked for.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType

__all__ = ["ImportWithoutStats"]

STATS = "scipy.stats"


class ImportWithoutStats:
    """Importer of `sklearn.utils.fixes`, which finds an empty `scipy.stats` there meanwhile.

    It stands at the start of ``sys.meta_path``, and leaves that when its work is done.
    """

    def find_spec(self, fullname, path=None, target=None):
        """Return the spec of the one module, None for any other."""
        if fullname != "sklearn.utils.fixes":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        # Python leaves unfound what other importers have, such as those of frozen programs.
        if spec is not None and STATS not in sys.modules:
            execute = spec.loader.exec_module

            def exec_module(module):
                del spec.loader.exec_module
                with stats_deferred():
                    execute(module)

            spec.loader.exec_module = exec_module
        return spec


class Deferred(ModuleType):
    """Stand-in for a module, which imports the module when something of it is asked for."""

    def __getattr__(self, name):
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def stats_deferred():
    """Context in which ``import scipy.stats`` imports nothing."""
    deferred = sys.modules.setdefault(STATS, Deferred(STATS))
    try:
        yield
    finally:
        # SciPy imports the real one, once this is gone.
        if isinstance(deferred, Deferred) and sys.modules.get(STATS) is deferred:
            del sys.modules[STATS]
