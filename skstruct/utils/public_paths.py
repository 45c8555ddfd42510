"""Public paths: names that packages export, and what stored models call their classes.

Packages list their names in a stub, ``__init__.pyi``, and import each when it is first asked for.

pickle and skops store a class as the name of a module and the name of the class in it. So that
classes can move from file to file, public ones name the package that exports them, and paths in
models stored before lead to where the classes are today.
"""

import ast
import os
import sys
from importlib import import_module
from importlib.util import resolve_name, spec_from_loader

__all__ = ["MOVED", "MovedClasses", "export_stub", "set_module"]

# Paths in models stored by 0.1.0.dev0 before the package had folders, and what they mean today.
# Modules that still exist have these classes themselves and are not in the table.
MOVED = {
    "skstruct._crfsuite_log": {
        "LabelScore": "skstruct.crfsuite:LabelScore",
        "TrainingLog": "skstruct.crfsuite:TrainingLog",
    },
    "skstruct._learnt_features": {"LearntFeatures": "skstruct.templates.learnt:LearntFeatures"},
    "skstruct.crf": {"CRFTagger": "skstruct:CRFTagger"},
    "skstruct.embeddings": {"EmbeddingVectorizer": "skstruct:EmbeddingVectorizer"},
    "skstruct.kernels.scores": {
        "Chain": "skstruct.chain.dense:Chain",
        "EdgeChain": "skstruct.chain.per_token:TransitionChain",
    },
    "skstruct.mira": {"MIRATagger": "skstruct:MIRATagger"},
    "skstruct.perceptron": {"PerceptronTagger": "skstruct:PerceptronTagger"},
    "skstruct.rerank": {"VRDAReranker": "skstruct:VRDAReranker"},
    "skstruct.rerank_baselines": {
        "PerceptronReranker": "skstruct:PerceptronReranker",
        "SGDReranker": "skstruct:SGDReranker",
        "TruncatedGradientReranker": "skstruct:TruncatedGradientReranker",
    },
    "skstruct.sapo": {"SAPOTagger": "skstruct:SAPOTagger"},
    "skstruct.sdca": {"SDCACRF": "skstruct:SDCACRF"},
    "skstruct.stacking": {"NBestReranker": "skstruct:NBestReranker"},
    "skstruct.tagger": {"Labelling": "skstruct:Labelling"},
    "skstruct.union": {"SequenceUnion": "skstruct:SequenceUnion"},
}


def export_stub(package):
    """Make the names in a package's stub available, each imported when it is first asked for.

    The stub is read by the package's own loader, which also finds it in a ZIP file.

    Parameters
    ----------
    package : str
        Name of the package, which is being imported.

    Returns
    -------
    getattribute, directory : callable
        The package's ``__getattr__`` and ``__dir__``.
    names : list of str
        The package's ``__all__``.
    """
    module = sys.modules[package]
    path = os.path.join(os.path.dirname(module.__file__), "__init__.pyi")
    stub = ast.parse(module.__spec__.loader.get_data(path))
    sources = {
        alias.name: resolve_name("." * node.level + (node.module or ""), package)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    def getattribute(name):
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if sources[name] == package:
            return import_module(f"{package}.{name}")
        # Kept, so that the package is not asked again.
        value = vars(module)[name] = getattr(import_module(sources[name]), name)
        return value

    return getattribute, lambda: sorted({*vars(module), *sources}), sorted(sources)


def set_module(package):
    """Decorate a class or function with the package that exports it.

    Parameters
    ----------
    package : str
        Name of the package, the ``__module__`` from then on.

    Returns
    -------
    decorator : callable
    """

    def decorate(public):
        public.__module__ = package
        return public

    return decorate


class MovedClasses:
    """Importer of the modules in `MOVED`, each of which has its moved classes and nothing else.

    It stands at the end of ``sys.meta_path``, where only names get that no other importer finds,
    and imports a class when it is asked for. The base classes of importers are left out: importing
    `importlib.abc` takes four times as long as importing skstruct.
    """

    def find_spec(self, fullname, path=None, target=None):
        """Return the spec of a module in the table, None for any other."""
        return spec_from_loader(fullname, self) if fullname in MOVED else None

    def create_module(self, spec):
        """Leave it to Python to make the module."""

    def exec_module(self, module):
        """Give the module the classes that it once had."""
        moved = MOVED[module.__name__]

        def find_class(name):
            if name not in moved:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            package, _, public = moved[name].partition(":")
            return getattr(import_module(package), public)

        module.__getattr__ = find_class
