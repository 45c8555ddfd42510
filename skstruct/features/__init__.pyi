from .dicts import SequenceVectorizer, read_tokens
from .embeddings import EmbeddingVectorizer
from .union import SequenceUnion

__all__ = [
    "EmbeddingVectorizer",
    "SequenceUnion",
    "SequenceVectorizer",
    "read_tokens",
]
