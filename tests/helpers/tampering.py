"""Stored estimators with one thing changed in their files, loaded and used.

Run as a program, because what is not checked may end the process: ``python tampering.py``. It
prints a line for every change that led to anything but a ValueError or right answers. With a number
n, ``python tampering.py 3``, it tries every n-th change only.
"""

import faulthandler
import io
import json
import sys
import warnings
import zipfile
from itertools import islice

import numpy as np
import scipy.sparse as sp
import skops.io as sio
from sklearn.pipeline import Pipeline, make_pipeline

from helpers.kernels import all_kernels
from skstruct import (
    SDCACRF,
    AROWTagger,
    CRFTagger,
    EmbeddingVectorizer,
    HashingTemplateVectorizer,
    MIRATagger,
    NBestReranker,
    PerceptronTagger,
    SequenceBatch,
    SequenceUnion,
    SequenceVectorizer,
    SGDReranker,
    TemplateVectorizer,
    VRDAReranker,
    WordVectorizer,
    crfsuite,
)

DICTS = [[{"w": "a", "v": np.array([0.5])}, {"w": "b"}], [{"w": "b", "n": 2.5}, {"w": "a"}]]
TOKENS = [[("a", "x"), ("b", "y")], [("b", "y"), ("c", "x")]]
LABELS = [["A", "B"], ["B", "A"]]
GROUPS = [[{"a": 1.0}, {"b": 2.0}], [{"a": 0.5}, {"b": 1.0}, {"c": 1.0}]] * 3
ORACLES = [0, 1] * 3


def observed_batch():
    """Tokens whose transitions have features."""
    edges = np.arange(8.0).reshape(4, 2)
    return SequenceBatch(np.eye(4, 3), [0, 2, 4], transition_X=edges)


def wide_batch():
    """Tokens with so many features that weights are stored without their zeros."""
    return SequenceBatch(sp.csr_array(np.eye(4, 3000)), [0, 2, 4])


def marginals(model, X):
    """Marginals of all tokens."""
    return np.concatenate(list(model.predict_proba(X)))


def learnt_further(tagger, X):
    """Marginals before and after another portion."""
    before = marginals(tagger, X)
    return np.concatenate([before, marginals(tagger.partial_fit(X, LABELS), X)])


def vectorized(vectorizer, X):
    """Matrix of the batch."""
    batch = vectorizer.transform(X)
    matrix = batch.X.toarray() if sp.issparse(batch.X) else batch.X
    return (
        matrix if batch.transition_X is None else np.hstack([matrix, batch.transition_X.toarray()])
    )


def cases():
    """Fitted estimators by name, the data that they are asked about, and a function to ask."""
    observed, wide = observed_batch(), wide_batch()
    template = ["U0:%x[0,0]", "U1:%x[-1,0]/%x[0,1|prefix1]", "B1:%x[0,0]"]
    embeddings = EmbeddingVectorizer({"a": [0.5, 1.0], "b": np.ones(2)})
    lists = {"gazetteers": {"place": ["a b", "c"]}, "clusters": {"a": "0110", "b": "111"}}
    words = WordVectorizer(**lists, label_statistics=True)
    union = SequenceUnion(
        [("words", TemplateVectorizer(template[:1])), ("vectors", embeddings)],
        transformer_weights={"words": 0.5},
    )
    for kind in (PerceptronTagger, MIRATagger):
        yield kind.__name__, kind(random_state=0).partial_fit(DICTS, LABELS), DICTS, learnt_further
    sgd = CRFTagger(solver="sgd", average=True, random_state=0, constraint="IOB1")
    yield "sgd", sgd.partial_fit(wide, [["O", "I"], ["I", "O"]]), wide, marginals
    tagger = PerceptronTagger(random_state=0).partial_fit(observed, LABELS)
    yield "transition features", tagger, observed, learnt_further
    tagger = AROWTagger(random_state=0).partial_fit(observed, LABELS)
    yield "variances", tagger, observed, learnt_further
    yield "CRFTagger", CRFTagger(max_iter=3).fit(observed, LABELS), observed, marginals
    yield "wide", CRFTagger(max_iter=3).fit(wide, LABELS), wide, marginals
    yield "SDCACRF", SDCACRF(random_state=0, max_iter=2).fit(DICTS, LABELS), DICTS, marginals
    numbers = CRFTagger(max_iter=3).fit(np.eye(4), [3, 1, 1, 2])
    yield "rows", numbers, np.eye(4), lambda model, X: model.predict_proba(X)
    pipeline = make_pipeline(TemplateVectorizer(template), CRFTagger(max_iter=3))
    yield "pipeline", pipeline.fit(TOKENS, LABELS), TOKENS, marginals
    yield "SequenceVectorizer", SequenceVectorizer().fit(DICTS), DICTS, vectorized
    hashing = HashingTemplateVectorizer(template, n_features=8)
    for vectorizer in (TemplateVectorizer(template), words, hashing, union):
        yield type(vectorizer).__name__, vectorizer.fit(TOKENS, LABELS), TOKENS, vectorized
    voting = VRDAReranker(prediction="vote", random_state=0, max_iter=3).fit(GROUPS, ORACLES)
    yield "vote", voting, GROUPS, lambda model, X: np.concatenate(model.decision_function(X))
    reranker = SGDReranker(random_state=0, max_iter=2, baseline="a").fit(GROUPS, ORACLES)
    yield "SGDReranker", reranker, GROUPS, lambda model, X: model.predict(X)
    nbest = NBestReranker(CRFTagger(max_iter=2), n_best=3, cv=2).fit(DICTS * 4, LABELS * 4)
    yield "NBestReranker", nbest, DICTS, lambda model, X: np.concatenate(model.predict(X))
    crf = crfsuite.CRF("lbfgs", max_iterations=1).fit(DICTS, LABELS, DICTS, LABELS)
    yield "CRF", crf, DICTS, lambda model, X: np.concatenate(model.predict(X))
    crf = crfsuite.CRF("arow", max_iterations=1).fit(DICTS, LABELS)
    yield "CRF arow", crf, DICTS, lambda model, X: np.concatenate(model.predict(X))
    yield "SequenceBatch", wide, None, lambda batch, X: batch.X.toarray()


def changed_arrays(array):
    """Other arrays, each with what is different.

    And whether answers have to stay the same if the array is accepted: because its numbers are the
    same, or because they are none that can be right. None where other answers may be right.
    """
    dtypes = {"f": ("f2", "f4", "longdouble", ">f8", "c16"), "i": ("i2", "u8", "f8", ">i8")}
    dtypes |= {"u": ("u2", "i8", ">u8"), "b": ("i1", "f8")}
    for dtype in dtypes.get(array.dtype.kind, ()):
        other = array.astype(dtype)
        yield dtype, other, True if np.array_equal(other, array) else None
    yield "strings", array.astype(str), True
    yield "another axis", array[None], True
    if array.size:
        yield "no axis", array.ravel()[0], True
    if array.ndim:
        yield "empty", array[:0], True
        yield "shorter", array[:-1], True
        yield "longer", np.concatenate([array, array]), True
    if array.ndim > 1:
        yield "transposed", array.T, None
        yield "other order", array.copy("F" if array.flags.c_contiguous else "C"), True
    yield from changed_numbers(array)


def changed_numbers(array):
    """Arrays of the same shape and type, as of `changed_arrays`."""
    if array.dtype.kind in "iu":
        largest = np.iinfo(array.dtype).max // 2
        # Bytes and hashes may be any.
        same = True if array.dtype.kind == "i" else None
        yield f"all {largest}", np.full_like(array, largest), same
        yield f"the last {largest}", with_last(array, largest), same
    if array.dtype.kind == "i":
        yield "all -3", np.full_like(array, -3), True
        yield "the last -3", with_last(array, -3), True
    if array.dtype.kind == "f":
        yield "a NaN", with_last(array, np.nan), True
        yield "infinite", with_last(array, np.inf), True
        # Transitions may be impossible, and weights large.
        yield "all impossible", np.full_like(array, -np.inf), None
        yield "one impossible", with_last(array, -np.inf), None
        yield "large", with_last(array, 1e308), None
    if array.dtype.kind == "U":
        points = np.full(array.size * array.dtype.itemsize // 4, 0x110005, np.uint32)
        yield "characters", points.view(array.dtype).reshape(array.shape), True
        yield "the same labels", np.full_like(array, array.ravel()[0]), True


def with_last(array, number):
    """The array with another last number."""
    other = array.copy()
    other[(-1,) * array.ndim if array.size else ...] = number
    return other


def changed_nodes(node, path="", *, params):
    """Other contents of the nodes of a schema, with parameters or without.

    Yields path, node and content.
    """
    loader = node.get("__loader__") if isinstance(node, dict) else None
    if loader == "JsonNode":
        values = ["-3", "1000000000000000000", "1.5", '"x"', "null", "[]", "NaN"]
        # One for each parameter, some for what is learnt.
        name = path.rpartition("/")[2]
        is_learnt = name.strip("_") != name
        for value in values[:5] if is_learnt else [values[len(path) % len(values)]] * params:
            yield path, node, value
    if loader == "ListNode" and node["content"] and params:
        yield path, node, node["content"][:-1]
    if loader == "DictNode":
        for name in node["content"] if params else ():
            left = {key: value for key, value in node["content"].items() if key != name}
            yield f"{path} without {name}", node, left
    for name, child in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(child, (dict, list)) and name != "key_types":
            below = path if name == "content" else f"{path}/{name}"
            yield from changed_nodes(child, below, params=params)


class Archive:
    """A stored estimator, taken apart."""

    def __init__(self, estimator):
        self._data = sio.dumps(estimator)
        self._trusted = sio.get_untrusted_types(data=self._data)
        with zipfile.ZipFile(io.BytesIO(self._data)) as archive:
            self._files = {name: archive.read(name) for name in archive.namelist()}
        self._schema = json.loads(self._files["schema.json"])

    def load(self, changes):
        """Load it with some files changed."""
        buffer = io.BytesIO(self._data)
        with zipfile.ZipFile(buffer, "a") as archive:
            for name, content in changes.items():
                # The last file of a name counts.
                archive.writestr(name, content)
        return sio.loads(buffer.getvalue(), trusted=self._trusted)

    def changes(self, *, params):
        """All changes: what is different, the files, and as `changed_arrays` says."""
        for name, content in self._files.items():
            if name.endswith(".npy"):
                array = np.load(io.BytesIO(content))
                for what, other, same in changed_arrays(array):
                    file = io.BytesIO()
                    np.save(file, other)
                    yield f"{array.dtype}{array.shape}: {what}", {name: file.getvalue()}, same
        for path, node, content in changed_nodes(self._schema, params=params):
            before, node["content"] = node["content"], content
            changed = json.dumps(self._schema).encode()
            node["content"] = before
            yield f"{path}: {str(content)[:40]}", {"schema.json": changed}, None


def shorten_histories(estimator):
    """Drop histories, which are all alike."""
    parts = [step for _, step in getattr(estimator, "steps", ())]
    for part in (estimator, *vars(estimator).values(), *parts):
        if hasattr(part, "history_"):
            part.history_ = {}


def n_compiled():
    """Number of types that kernels have been compiled for."""
    return sum(len(kernel.overloads) for kernel in all_kernels())


def complaint(archive, files, same, ask, X, expected):
    """What is wrong with the answers that a changed file leads to, None if nothing is."""
    before = n_compiled()
    try:
        found = ask(archive.load(files), X)
    except ValueError:
        found = expected
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    # Parameters may ask for other kernels.
    if n_compiled() > before and "schema.json" not in files:
        return "kernels were compiled anew"
    if same and not np.array_equal(found, expected):
        return "other answers"
    return None


def main(every=1):
    """Print a line for every change with a wrong result, of those that are tried."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    faulthandler.enable()
    # Parameters are all read in the same way, and steps of a pipeline are scikit-learn's.
    n_changes, n_wrong, kinds = 0, 0, {MIRATagger, NBestReranker, Pipeline}
    for name, estimator, X, ask in cases():
        if name != "CRFTagger":
            shorten_histories(estimator)
        archive = Archive(estimator)
        expected = ask(archive.load({}), X)
        changes = archive.changes(params=type(estimator) not in kinds)
        for what, files, same in islice(changes, None, None, every):
            n_changes += 1
            wrong = complaint(archive, files, same, ask, X, expected)
            if wrong is not None:
                n_wrong += 1
                print(f"{name}: {what}: {wrong}", flush=True)
        kinds.add(type(estimator))
    print(f"{n_changes} changes, {n_wrong} with a wrong result")
    return n_wrong > 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
