"""Examples in the docstrings of everything public run, in a namespace of their own.

``--doctest-modules`` skips a class or function whose ``__module__`` is not the file's, and public
ones name the package that exports them.
"""

import doctest
import inspect
import io
from importlib import import_module
from importlib.util import find_spec

import pytest
from _pytest.doctest import _get_checker, get_optionflags

ROOMS = (
    "crfpp",
    "crfsuite",
    "datasets",
    "export",
    "inspection",
    "metrics",
    "streams",
    "templates",
)
if find_spec("distributed"):
    ROOMS += ("dask",)
PACKAGES = ("", *(f".{room}" for room in ROOMS))


def public_examples():
    """The docstrings with examples of all public classes, their methods, inherited ones included,
    and functions."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = {}
    for package in PACKAGES:
        module = import_module(f"skstruct{package}")
        for name in module.__all__:
            public = getattr(module, name)
            if inspect.ismodule(public):
                continue
            for kind in inspect.getmro(public) if inspect.isclass(public) else [public]:
                if getattr(kind, "__module__", "skstruct").startswith("skstruct"):
                    name = getattr(kind, "__name__", name)
                    path = f"{kind.__module__}.{name}" if callable(kind) else name
                    tests = finder.find(kind, path, module=False, globs={})
                    found |= {test.name: test for test in tests if test.examples}
    return found


EXAMPLES = public_examples()


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name, request):
    runner = doctest.DocTestRunner(
        checker=_get_checker(), optionflags=get_optionflags(request.config)
    )
    report = io.StringIO()
    runner.run(EXAMPLES[name], out=report.write)
    assert runner.failures == 0, report.getvalue()


def test_every_class_has_an_example():
    import skstruct

    for name in skstruct.__all__:
        public = getattr(skstruct, name)
        if hasattr(public, "fit") or hasattr(public, "from_lengths"):
            assert f"{public.__module__}.{name}" in EXAMPLES
