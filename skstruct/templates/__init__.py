"""Feature templates: vectorisers of columns of tokens.

`base` is the entry, and `words` makes a template of its own, with gazetteers. `syntax` parses
templates, `reader` and `values` encode a batch, `numbering` numbers the features in it and makes a
matrix of them, and `learnt` looks them up in other batches.
"""

from skstruct.templates.base import HashingTemplateVectorizer, TemplateVectorizer
from skstruct.templates.words import WordVectorizer

__all__ = [
    "HashingTemplateVectorizer",
    "TemplateVectorizer",
    "WordVectorizer",
]
