"""Fast reader of models in the format of skops.

skops itself imports much of scikit-learn, which takes longer than tagging a text. This reader knows
the few kinds of values that models of this package consist of, and makes objects of public classes
of this package only. What it does not know, it leaves to skops.
"""

from __future__ import annotations

import json
import zipfile
from importlib import import_module
from types import SimpleNamespace

import numpy as np

__all__ = ["UnknownContentError", "read_skops"]


class UnknownContentError(Exception):
    """A file has something that this reader does not know."""


def read_skops(path):
    """Read a stored model.

    Parameters
    ----------
    path : str

    Returns
    -------
    model : object
        For a pipeline an object with its attributes, `steps` and others.

    Raises
    ------
    UnknownContentError
        If the file has anything but values that this reader knows.
    ValueError
        If the file is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _Reader(archive).make(json.loads(archive.read("schema.json")))
    except (zipfile.BadZipFile, json.JSONDecodeError, EOFError) as error:
        raise ValueError(f"the file is damaged: {error}") from error


class _Reader:
    def __init__(self, archive):
        self._archive = archive
        self._objects = {}

    def make(self, node):
        """Make the object of a node of the schema."""
        try:
            loader, number = node["__loader__"], node.get("__id__")
            if number in self._objects:
                return self._objects[number]
            make = getattr(self, f"_{loader}")
        except (AttributeError, KeyError, TypeError):
            raise UnknownContentError from None
        found = make(node)
        if number is not None:
            self._objects[number] = found
        return found

    def _ObjectNode(self, node):
        if _name(node) == ("sklearn.pipeline", "Pipeline"):
            return self._make_pipeline(node)
        instance = (kind := _public_class(node)).__new__(kind)
        state = self.make(node["content"])
        if hasattr(instance, "__setstate__"):
            instance.__setstate__(state)
        else:
            vars(instance).update(state)
        return instance

    def _make_pipeline(self, node):
        """State of a pipeline of a vectoriser and an estimator, whose class is not imported."""
        state = SimpleNamespace(**self.make(node["content"]))
        if len(state.steps) != 2:
            raise UnknownContentError
        return state

    def _DictNode(self, node):
        kinds = {(key["__module__"], key["__class__"]) for key in node["key_types"]["content"]}
        if _name(node) != ("builtins", "dict") or not kinds <= {("builtins", "str")}:
            raise UnknownContentError
        return {key: self.make(value) for key, value in node["content"].items()}

    def _ListNode(self, node):
        return [self.make(value) for value in node["content"]]

    def _TupleNode(self, node):
        if _name(node) != ("builtins", "tuple"):
            raise UnknownContentError
        return tuple(self.make(value) for value in node["content"])

    def _JsonNode(self, node):
        if not node.get("is_json"):
            raise UnknownContentError
        return json.loads(node["content"])

    def _NdArrayNode(self, node):
        if node["type"] != "numpy":
            raise UnknownContentError
        with self._archive.open(node["file"]) as file:
            array = np.load(file, allow_pickle=False)
        module, kind = _name(node)
        if (module, kind) == ("numpy", "ndarray"):
            return array
        if module == "numpy" and isinstance(getattr(np, kind, None), type):
            return getattr(np, kind)(array)
        raise UnknownContentError

    def _TypeNode(self, node):
        if _name(node) in (("numpy", "float64"), ("numpy", "float32")):
            return getattr(np, node["__class__"])
        raise UnknownContentError


def _name(node):
    return node["__module__"], node["__class__"]


def _public_class(node):
    """Class of an object, which has a public name of this package."""
    module, name = _name(node)
    if module in ("skstruct", "skstruct.crfsuite"):
        package = import_module(module)
        if name in package.__all__ and isinstance(kind := getattr(package, name), type):
            return kind
    raise UnknownContentError
