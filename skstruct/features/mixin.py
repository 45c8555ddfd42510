"""Features of the input of taggers and rerankers: recorded in `fit`, checked afterwards."""

from __future__ import annotations

import numpy as np

from skstruct.features.dicts import SequenceVectorizer
from skstruct.sequences import SequenceBatch
from skstruct.utils.declared import Count, Objects, Part


class FeatureInput:
    """Mixin for estimators that accept feature dicts, attribute strings or numbers.

    With ``reset=True``, as in `fit`, the features of X are recorded in ``vectorizer_``,
    ``n_features_in_`` and ``feature_names_in_``. Otherwise, X must have the same features, or a
    ValueError names the difference.
    """

    _stored = {
        "n_features_in_": Count(),
        "vectorizer_": Part("known_codes", feature_names_="n_features_in_"),
        "feature_names_in_": Objects("n_features_in_"),
    }
    # True if `_fit` learns weights of transition features.
    _learns_transition_features = False

    @property
    def _n_transition_features(self):
        """Number of transition features; None where transitions have none."""
        return vars(self).get("n_transition_features_in_")

    def _forget(self, *names):
        """Remove attributes of an earlier fit."""
        for name in names:
            vars(self).pop(name, None)

    def _vectorize(self, X, *, reset):
        if reset:
            self.vectorizer_ = SequenceVectorizer()
            return self.vectorizer_._fit(X)
        if not hasattr(self, "vectorizer_"):
            raise ValueError(
                f"X has feature dicts or attribute strings, but this {type(self).__name__} was "
                f"fitted on numbers: pass a SequenceBatch or matrices with "
                f"{self.n_features_in_} features."
            )
        return self.vectorizer_.transform(X)

    def _keep_features_of(self, batch):
        """Drop features of dicts that occur in no row of a batch; return the reduced batch."""
        if "vectorizer_" not in vars(self):
            return batch
        used = np.unique(batch.X.indices)
        names = self.vectorizer_.restrict(used, indices=True).feature_names_
        more = {"feature_names": names, "keep_zeros": batch.keep_zeros}
        batch = SequenceBatch(batch.X[:, used], batch.offsets, **more)
        self._check_features(batch, reset=True)
        return batch

    def _check_features(self, batch, *, reset):
        if reset:
            self.n_features_in_ = batch.n_features
            self._forget("feature_names_in_")
            if batch.feature_names is not None:
                self.feature_names_in_ = batch.feature_names
            return
        if batch.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {batch.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        names = getattr(self, "feature_names_in_", None)
        if names is not None and batch.feature_names is not None:
            same = names is batch.feature_names or np.array_equal(names, batch.feature_names)
            if not same:
                raise ValueError(
                    f"The feature names of X differ from those that this {type(self).__name__} was "
                    "fitted with."
                )

    def _check_transition_features(self, batch, *, reset):
        if reset:
            self._forget("n_transition_features_in_")
            if batch.transition_X is not None:
                if not self._learns_transition_features:
                    raise ValueError(
                        f"{type(self).__name__} does not support transition features: pass a "
                        "SequenceBatch without transition_X."
                    )
                self.n_transition_features_in_ = batch.n_transition_features
            return
        expected = self._n_transition_features
        found = None if batch.transition_X is None else batch.n_transition_features
        if found != expected:
            raise ValueError(
                f"X has {found or 'no'} transition features, but {type(self).__name__} is "
                f"expecting {expected or 'none'} as input: they are the columns of the "
                "transition_X of a SequenceBatch."
            )
