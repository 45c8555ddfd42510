from .fitting import fit_stream, iter_batches

__all__ = ["fit_stream", "iter_batches"]
