"""Public paths of classes: what stored models name, and where the names of older models lead.

pickle and skops store a class as the name of a module and the name of the class in it. So that
classes can move from file to file, public ones name the package that exports them, and paths in
models stored before lead to where the classes are today.
"""

from importlib import import_module
from importlib.util import spec_from_loader

__all__ = ["MOVED", "MovedClasses", "set_module"]

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
        "Chain": "skstruct.kernels.chain.scores:Chain",
        "EdgeChain": "skstruct.kernels.chain.scores:TransitionChain",
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
