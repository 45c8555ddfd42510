from .attributes import read_tokens
from .dicts import SequenceVectorizer
from .embeddings import EmbeddingVectorizer
from .union import SequenceUnion

__all__ = [
    "EmbeddingVectorizer",
    "SequenceUnion",
    "SequenceVectorizer",
    "read_tokens",
]
