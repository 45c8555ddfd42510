"""Training of rerankers."""
