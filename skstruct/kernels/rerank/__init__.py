"""Training of rerankers, and voting of their predictors."""
