from .reading import read_model
from .writing import write_model

__all__ = ["read_model", "write_model"]
