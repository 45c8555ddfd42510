from .hashing import HashingTemplateVectorizer
from .vectorizers import TemplateVectorizer
from .words import WordVectorizer

__all__ = [
    "HashingTemplateVectorizer",
    "TemplateVectorizer",
    "WordVectorizer",
]
