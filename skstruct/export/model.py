"""Models as data: what `runtime.py` and `runtime.js` need of an estimator."""

import base64
import sys

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

import skstruct
from skstruct.crfsuite.estimator import CRF
from skstruct.export.features import describe_features, require_known
from skstruct.input.schemes import scheme_named
from skstruct.inspection.models import find_tagger
from skstruct.matrices import as_dense
from skstruct.metrics.chunks import reading_of_labels
from skstruct.spans import SpanTaggerCV
from skstruct.taggers.base import BaseTagger
from skstruct.utils.messages import check_choice

DTYPES = ("float32", "float64")
_TYPE_CODES = {"u1": "B", "u2": "H", "u4": "I", "f4": "f", "f8": "d"}


def describe_model(estimator, dtype, date):
    """Data of a fitted estimator, all of it JSON.

    Parameters
    ----------
    estimator : estimator
        As of `skstruct.export.write_python`.
    dtype : {"float32", "float64"}
    date : str or None

    Returns
    -------
    data : dict

    Raises
    ------
    ValueError
        If it cannot be exported; the message says what to do instead.
    """
    check_choice("dtype", dtype, DTYPES)
    if not (date is None or isinstance(date, str)):
        raise ValueError(f"date must be a string or None, got {date!r}.")
    chosen, vectorizer, tagger = _take_apart(estimator)
    labels = tagger.classes_.tolist()
    features = describe_features(vectorizer)
    names, weights = _named_weights(vectorizer, tagger, np.dtype(dtype))
    return {
        "skstruct": skstruct.__version__,
        "date": date,
        "labels": labels,
        **features,
        **_describe_chain(tagger._chain(), np.dtype(dtype)),
        **_describe_chunks(tuple(labels)),
        **_describe_choice(chosen),
        **names,
        "weights": weights,
    }


def _take_apart(estimator):
    """`SpanTaggerCV` or None, vectoriser and tagger of an estimator."""
    chosen, steps = None, []
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "steps"):
            check_is_fitted(estimator)
            steps += _flat(estimator.steps[:-1])
            estimator = estimator.steps[-1][1]
        elif isinstance(estimator, SpanTaggerCV):
            check_is_fitted(estimator)
            chosen, estimator = estimator, estimator.estimator_
        else:
            break
    return chosen, *_vectoriser_and_tagger(steps, estimator)


def _flat(steps):
    """Steps of pipelines in pipelines, without those that do nothing."""
    for _, step in steps:
        if hasattr(step, "steps"):
            yield from _flat(step.steps)
        elif step is not None and step != "passthrough":
            yield step


def _vectoriser_and_tagger(steps, estimator):
    kind = type(estimator).__name__
    if hasattr(estimator, "rank") or hasattr(estimator, "reranker"):
        raise ValueError(
            f"{kind} cannot be exported: files have no rerankers. Export the tagger that makes its "
            "candidates, and tag with that."
        )
    if hasattr(estimator, "estimator_") and not isinstance(estimator, (CRF, BaseTagger)):
        raise ValueError(
            f"{kind} cannot be exported, since files have only what a tagger predicts. Export its "
            "estimator_."
        )
    tagger = find_tagger(estimator).tagger
    if not steps:
        steps = [vars(tagger)["vectorizer_"]] if "vectorizer_" in vars(tagger) else []
    if not steps:
        raise ValueError(
            f"This {kind} was fitted on numbers, and files have no names for these. Export a "
            "pipeline of a vectoriser and a tagger, or fit on feature dicts."
        )
    if tagger._scheme_learnt is not None:
        raise ValueError(
            "The tagger has learnt labels of another scheme (learn_scheme), which files do not "
            "have. Fit it with learn_scheme=None, on labels of that scheme to have the same model."
        )
    if tagger._n_transition_features is not None:
        raise ValueError(
            "The model has features of transitions, which cannot be exported. Fit without lines "
            "such as B01:%x[0,0], and with U lines and order=2 instead."
        )
    for step in steps:
        require_known(step)
    if len(steps) > 1:
        names = ", ".join(type(step).__name__ for step in steps)
        raise ValueError(f"The pipeline has the steps {names} before the tagger; export needs one.")
    return steps[0], tagger


def _packed(values, kind):
    """Numbers as text: the code of their type, and their bytes."""
    values = np.ascontiguousarray(values, dtype=f"<{kind}")
    return [_TYPE_CODES[kind], base64.b64encode(values.tobytes()).decode("ascii")]


def _counts(values):
    """Numbers from zero on as text, in as few bytes as they need."""
    return _packed(values, np.min_scalar_type(int(np.max(values, initial=0))).str[1:])


def _rounded(values, dtype):
    with np.errstate(over="ignore"):
        rounded = np.asarray(values, dtype=dtype)
    if not np.array_equal(np.isfinite(rounded), np.isfinite(values)):
        raise ValueError('Weights are too large for dtype="float32": pass dtype="float64".')
    return rounded


def _rows(matrix, dtype):
    """Rows of numbers, most of them zero, as `runtime.py` reads them."""
    rows = sp.csr_matrix(_rounded(matrix, dtype)) if not sp.issparse(matrix) else matrix
    counts = np.diff(rows.indptr)
    return [_counts(counts), _counts(rows.indices), _packed(rows.data, dtype.str[1:])]


def _describe_chain(chain, dtype):
    kind = dtype.str[1:]
    # Fields after the first five belong to other kinds of chains.
    more = {name: _rows(part, dtype) for name, part in list(chain._asdict().items())[5:]}
    return {
        "bias": _packed(_rounded(chain.intercept, dtype), kind),
        "start": _packed(_rounded(chain.start, dtype), kind),
        "end": _packed(_rounded(chain.end, dtype), kind),
        "transition": _rows(chain.transition, dtype),
        "triple": None,
        **more,
    }


def _named_weights(vectorizer, tagger, dtype):
    """Names of the features with a weight, those that begin alike together, and the weights."""
    coef = sp.csr_matrix(as_dense(tagger.coef_, "coef_").T)
    coef.data = _rounded(coef.data, dtype)
    coef.eliminate_zeros()
    coef.sort_indices()
    columns = np.flatnonzero(np.diff(coef.indptr))
    names = vectorizer.get_feature_names_out()
    if len(names) != coef.shape[0]:
        raise ValueError(
            f"The tagger has {coef.shape[0]} features and its vectoriser {len(names)}: they are "
            "not of one fit."
        )
    return _grouped(names[columns].tolist()), _rows(coef[columns], dtype)


def _grouped(names):
    """Names in groups: their beginning, and one text of what follows it in each of them."""
    used = set().union(*names)
    between = next(c for c in map(chr, range(10, sys.maxunicode)) if c not in used)
    groups = []
    for name in names:
        first = min((i for i in map(name.find, ":=") if i >= 0), default=-1) + 1
        prefix, rest = name[:first], name[first:]
        if groups and groups[-1][0] == prefix:
            groups[-1][1].append(rest)
        else:
            groups.append([prefix, [rest]])
    texts = [[prefix, between.join(rests)] for prefix, rests in groups]
    return {"names": texts, "between": between}


def _describe_chunks(labels):
    """How labels are read as chunks; where they cannot be, the reason."""
    try:
        types, reading, separable = reading_of_labels(labels)
    except ValueError as error:
        return {"chunks": None, "no_chunks": str(error)}
    goes_on = reading.goes_on[:-1, :-1]
    chunks = {
        "types": list(types),
        "kinds": reading.kinds.tolist(),
        "separable": separable.tolist(),
        "goes_on": [np.flatnonzero(row).tolist() for row in goes_on],
    }
    return {"chunks": chunks, "no_chunks": None}


def _describe_choice(chosen):
    """Threshold of spans; of a `SpanTaggerCV` also how their labels are written."""
    if chosen is None:
        return {"threshold": 0.5, "scheme": None}
    scheme = scheme_named(chosen.scheme_)
    return {"threshold": chosen.best_threshold_, "scheme": list(scheme or ())}
