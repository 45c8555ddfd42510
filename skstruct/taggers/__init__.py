"""The taggers: estimators that label sequences."""
