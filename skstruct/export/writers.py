"""Files of exported models: the runtime word for word, and the data of the model below it."""

import base64
import json
import zlib
from importlib import resources
from pathlib import Path

from skstruct.export.model import describe_model
from skstruct.export.runtime import END
from skstruct.utils.files import write_whole
from skstruct.utils.persistence import set_module

# What could end a string, a template or a script in one of the languages. In JSON these characters
# stand in strings only, where they may be written as escapes.
_ESCAPED = {ord(c): f"\\u{ord(c):04x}" for c in "'`$<>&\x7f"}

_PYTHON = '''"""Tagger by skstruct {version}: {n_labels} labels, {n_weights} weights, {dtype}.

Functions ``tag``, ``probabilities``, ``spans`` and ``nbest`` take the tokens of a sentence.
``python FILE < text`` tags text. Python {python} or later is all that it needs.
"""

{runtime}

# ------------------------------------------------------------------------------------- the model

model = Tagger(verified(r'{data}', {length}, {checksum}))
tag, probabilities, spans, nbest = model.tag, model.probabilities, model.spans, model.nbest
if __name__ == "__main__":
    main(model)
{end}
'''
_JAVASCRIPT = """/**
 * Tagger by skstruct {version}: {n_labels} labels, {n_weights} weights, {dtype}.
 *
 * Functions `tag`, `probabilities`, `spans` and `nbest` take the tokens of a sentence.
 */

// A file that was cut off lacks what is exported here, and does not run at all.
export {{ model, tag, probabilities, spans, nbest }};

{runtime}
// ------------------------------------------------------------------------------------- the model

const model = new Tagger(verified(String.raw`{data}`, {length}, {checksum}));
const tag = (tokens) => model.tag(tokens);
const probabilities = (tokens) => model.probabilities(tokens);
const spans = (tokens, threshold) => model.spans(tokens, threshold);
const nbest = (tokens, n) => model.nbest(tokens, n);
"""
_TYPES = """
export declare const model: Tagger;
export declare function tag(tokens: Token[]): Label[];
export declare function probabilities(tokens: Token[]): Map<Label, number>[];
export declare function spans(tokens: Token[], threshold?: number): Span[];
export declare function nbest(tokens: Token[], n?: number): Labelling[];
"""


@set_module("skstruct.export")
def write_python(estimator, path, *, dtype="float32", date=None):
    """Write a tagger to a Python file that needs no package.

    The file has the functions ``tag(tokens)``, ``probabilities(tokens)``, ``spans(tokens,
    threshold)`` and ``nbest(tokens, n)`` for the tokens of one sentence, and is a command: ``python
    parser.py < text``. It runs in Python 3.11 or later, on any platform.

    Parameters
    ----------
    estimator : estimator
        Fitted tagger of feature dicts or attribute strings; or a pipeline of `TemplateVectorizer`,
        `WordVectorizer` or `SequenceVectorizer` and a tagger. A search or `SpanTaggerCV` around
        them and the drop-in `skstruct.crfsuite.CRF` will do as well.
    path : str or path-like
        The file.
    dtype : {"float32", "float64"}, default="float32"
        Precision of the weights in the file. With "float64", they are the estimator's.
    date : str, default=None
        Written into the data as it is. By default none: two exports of a model are the same.

    Returns
    -------
    size : int
        Bytes of the file.

    Raises
    ------
    ValueError
        If the estimator has what files have not: functions of yours, hashed features, vectors and
        other numbers without names, features of transitions, or a reranker. The message says what
        to do instead.

    See Also
    --------
    write_javascript : The same in JavaScript.
    skstruct.crfsuite.write_model : For CRFsuite's own programs.

    Notes
    -----
    A `SpanTaggerCV` gives ``tag`` its labels and ``spans`` its threshold. Weights of zero are left
    out, and so are features without a weight. Files carry the tables of characters that their
    features need, so that capitals, digits and lower case do not depend on the version of Unicode.

    Examples
    --------
    >>> import runpy, tempfile
    >>> from pathlib import Path
    >>> from sklearn.pipeline import make_pipeline
    >>> from skstruct import CRFTagger, WordVectorizer
    >>> from skstruct.export import write_python
    >>> tagger = make_pipeline(WordVectorizer(), CRFTagger(l2=0.1))
    >>> tagger = tagger.fit([["in", "New", "York"]], [["O", "B-LOC", "I-LOC"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "places.py"
    ...     size = write_python(tagger, path)
    ...     places = runpy.run_path(str(path))
    >>> places["tag"](["in", "New", "York"])
    ['O', 'B-LOC', 'I-LOC']
    """
    return _write(path, _as_python(_model_text(estimator, dtype, date)))


@set_module("skstruct.export")
def write_javascript(estimator, path, *, dtype="float32", date=None):
    """Write a tagger to a JavaScript file that imports nothing, and its types beside it.

    The file is an ES module for browsers and node 18 or later. It exports ``tag(tokens)``,
    ``probabilities(tokens)``, ``spans(tokens, threshold)`` and ``nbest(tokens, n)``.

    Parameters
    ----------
    estimator, dtype, date
        As of `write_python`.
    path : str or path-like
        The file, whose name ends in ".js" or ".mjs". The types are written to a file that ends in
        ".d.ts" or ".d.mts".

    Returns
    -------
    size : int
        Bytes of the file, without the types.

    Raises
    ------
    ValueError
        If the name has another ending, or as `write_python` does.

    See Also
    --------
    write_python : The same in Python.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skstruct import CRFTagger
    >>> from skstruct.export import write_javascript
    >>> tagger = CRFTagger().fit([[["word=a"], ["word=cat"]]], [["DET", "NOUN"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     size = write_javascript(tagger, Path(folder) / "parser.mjs")
    ...     print(*sorted(path.name for path in Path(folder).iterdir()))
    parser.d.mts parser.mjs
    """
    path = Path(path)
    types = {".js": ".d.ts", ".mjs": ".d.mts"}.get(path.suffix)
    if types is None:
        raise ValueError(f"{path} is to be an ES module: let its name end in .js or .mjs.")
    size = _write(path, _as_javascript(_model_text(estimator, dtype, date)))
    _write(path.with_suffix(types), _runtime("runtime.d.ts") + _TYPES)
    return size


@set_module("skstruct.export")
def write_json(estimator, path, *, dtype="float32", date=None):
    """Write the data of a tagger to a JSON file, for pages that have the runtime already.

    Parameters
    ----------
    estimator, path, dtype, date
        As of `write_python`.

    Returns
    -------
    size : int
        Bytes of the file.

    Raises
    ------
    ValueError
        As `write_python` does.

    See Also
    --------
    write_javascript : Data and runtime in one file, whose ``parseModel`` reads these files, too.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from skstruct import CRFTagger
    >>> from skstruct.export import write_json
    >>> tagger = CRFTagger().fit([[["word=a"], ["word=cat"]]], [["DET", "NOUN"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.json"
    ...     size = write_json(tagger, path)
    ...     file = json.loads(path.read_text())
    >>> json.loads(file["data"])["labels"]
    ['DET', 'NOUN']
    """
    found = _model_text(estimator, dtype, date)
    file = {name: found[name] for name in ("version", "length", "checksum", "data")}
    return _write(path, json.dumps(file) + "\n")


_WRITERS = {
    ".py": write_python,
    ".js": write_javascript,
    ".mjs": write_javascript,
    ".json": write_json,
}
ENDINGS = tuple(_WRITERS)


def write_by_ending(estimator, path, **options):
    """Write the kind of file that the ending of its name says; return its size."""
    write = _WRITERS.get(Path(path).suffix)
    if write is None:
        raise ValueError(f"{path}: the name of an exported file ends in {', '.join(ENDINGS)}.")
    return write(estimator, path, **options)


def _model_text(estimator, dtype, date):
    """Data of a model as text, and what the first lines of a file say."""
    data = describe_model(estimator, dtype, date)
    text = json.dumps(data, separators=(",", ":")).translate(_ESCAPED)
    if json.loads(text) != data:
        raise ValueError(
            "A label or a feature has halves of characters (surrogates) side by side, which JSON "
            "joins. Correct the text that the model was trained on."
        )
    return {
        "version": data["skstruct"],
        "dtype": dtype,
        "n_labels": len(data["labels"]),
        "n_weights": _n_weights(data),
        "data": text,
        "length": len(text),
        "checksum": zlib.crc32(text.encode("ascii")),
    }


def _n_weights(data):
    """Number of the weights of features."""
    _, _, (code, values) = data["weights"]
    return len(base64.b64decode(values)) // {"f": 4, "d": 8}[code]


def _runtime(name):
    return (resources.files("skstruct.export") / name).read_text(encoding="utf-8")


def _as_python(found):
    end = END.decode("ascii")
    return _PYTHON.format(**found, runtime=_runtime("runtime.py"), python="3.11", end=end)


def _as_javascript(found):
    return _JAVASCRIPT.format(**found, runtime=_runtime("runtime.js"))


def _write(path, text):
    content = text.encode("utf-8")
    write_whole(path, content)
    return len(content)
