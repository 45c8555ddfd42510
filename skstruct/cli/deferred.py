"""Imports that wait until they are used.

scikit-learn imports `scipy.stats` and pandas, which take longer than all else that tagging imports,
and tagging uses neither.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType

__all__ = ["defer"]


def defer(*names):
    """Import modules when an attribute of theirs is first asked for.

    Only for a process of our own: for code that looks into `sys.modules`, the stand-in of a module
    is not the module.

    Parameters
    ----------
    names : str
        Those that are imported already, or not installed, are left alone.
    """
    for name in names:
        if name not in sys.modules and find_spec(name) is not None:
            sys.modules[name] = _StandIn(name)


class _StandIn(ModuleType):
    def __init__(self, name):
        super().__init__(name)
        # The import statement asks for it, which is no use of the module.
        del self.__spec__

    def __getattr__(self, attribute):
        if attribute == "__spec__":
            raise AttributeError(attribute)
        name = self.__name__
        if sys.modules.get(name) is self:
            del sys.modules[name]
        return getattr(import_module(name), attribute)
