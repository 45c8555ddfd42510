"""Feature templates: vectorisers of columns of tokens.

`vectorizers` is the entry, and `words` makes a template of its own, with gazetteers. `syntax`
parses templates, `reader` numbers the values in a batch, `numbering` the features that these make,
and `learnt` looks features up in other batches.
"""

from skstruct.templates.vectorizers import HashingTemplateVectorizer, TemplateVectorizer
from skstruct.templates.words import WordVectorizer

__all__ = [
    "HashingTemplateVectorizer",
    "TemplateVectorizer",
    "WordVectorizer",
]
