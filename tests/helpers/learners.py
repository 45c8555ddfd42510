"""Every tagger and reranker, with a small task for each."""

from functools import partial

import numpy as np

from skstruct import (
    SDCACRF,
    AnnotatorCRF,
    AROWTagger,
    CRFTagger,
    MIRATagger,
    NBestReranker,
    PerceptronReranker,
    PerceptronTagger,
    SAPOTagger,
    SGDReranker,
    TruncatedGradientReranker,
    VRDAReranker,
)

# Few epochs, and as many as that.
TAGGERS = {
    "CRF": partial(CRFTagger, max_iter=4, tol=0),
    "CRF, L1": partial(CRFTagger, l1=0.1, max_iter=4, tol=0),
    "SAG": partial(CRFTagger, solver="sag", max_iter=4, tol=0, random_state=0),
    "OEG": partial(CRFTagger, solver="oeg", max_iter=4, tol=0, random_state=0),
    "SGD": partial(CRFTagger, solver="sgd", max_iter=4, tol=None, random_state=0),
    "annotators": partial(AnnotatorCRF, max_iter=4, tol=0),
    "SDCA": partial(SDCACRF, max_iter=4, tol=0, random_state=0),
    "perceptron": partial(PerceptronTagger, max_iter=4, tol=None, random_state=0),
    "MIRA": partial(MIRATagger, max_iter=4, tol=None, random_state=0),
    "SAPO": partial(SAPOTagger, max_iter=4, tol=None, random_state=0),
    "AROW": partial(AROWTagger, max_iter=4, tol=None, random_state=0),
}
RERANKERS = {
    "VRDA": partial(VRDAReranker, max_iter=4, random_state=0),
    "VRDA, average": partial(VRDAReranker, max_iter=4, random_state=0, prediction="average"),
    "PerceptronReranker": partial(PerceptronReranker, max_iter=4, random_state=0),
    "SGDReranker": partial(SGDReranker, max_iter=4, random_state=0),
    "TruncatedGradient": partial(TruncatedGradientReranker, max_iter=4, random_state=0),
}
STACKED = partial(
    NBestReranker, PerceptronTagger(max_iter=3, tol=None, random_state=0), n_best=3, cv=2
)


def labelled_sequences(n_sequences=30, seed=0):
    """Feature dicts and labels that no weights separate: every epoch makes mistakes."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_sequences):
        words = rng.integers(0, 8, size=rng.integers(1, 6))
        X.append([{"word": f"w{word}", "even": bool(word % 2 == 0)} for word in words])
        y.append([str(rng.choice(["A", "B", "C"], p=[0.4, 0.3, 0.3])) for _ in words])
    return X, y


def groups_of_candidates(n_groups=30, seed=0):
    """Candidates as feature dicts, and their costs."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n_groups):
        n = int(rng.integers(2, 5))
        X.append([{f"f{k}": float(rng.normal()) for k in range(4)} for _ in range(n)])
        y.append(rng.integers(0, 3, size=n) / 2.0)
    return X, y
