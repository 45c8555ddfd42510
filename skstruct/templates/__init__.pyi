from .vectorizers import HashingTemplateVectorizer, TemplateVectorizer

__all__ = [
    "HashingTemplateVectorizer",
    "TemplateVectorizer",
]
