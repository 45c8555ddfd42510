"""Rerankers: estimators that choose among the candidates of a group."""
