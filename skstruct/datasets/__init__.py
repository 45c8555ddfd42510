"""Data sets, and readers and writers of annotated text.

`loaders` has the data that come with the package, and the public corpora, which are downloaded
once. `conll` reads files with one token a line, `conllu` treebanks and `annotations` the exports of
annotation tools. `spans` converts labels to spans, documents of spaCy and numbers, and back.
"""

from skstruct.utils.lazy import import_on_use

__all__, __getattr__, __dir__ = import_on_use(__name__)
