from .hashing import HashingTemplateVectorizer
from .vectorizers import TemplateVectorizer

__all__ = [
    "HashingTemplateVectorizer",
    "TemplateVectorizer",
]
