"""Exported files against the estimators that they were made of, in Python and in node."""

import importlib.util
import json
import random
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib import resources

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from helpers.exported import ask_node, ask_python, newest_python, node
from helpers.marks import compiled
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler

import skstruct
from skstruct import (
    ConformalTagger,
    CRFTagger,
    EmbeddingVectorizer,
    HashingTemplateVectorizer,
    LabelStatistics,
    NBestReranker,
    PerceptronReranker,
    PerceptronTagger,
    SequenceUnion,
    SequenceVectorizer,
    SpanTaggerCV,
    TemplateVectorizer,
    TokenTransformer,
    WordVectorizer,
    crfpp,
)
from skstruct.cli.main import main as command
from skstruct.crfsuite import CRF, read_model, write_model
from skstruct.datasets import load_addresses
from skstruct.export import runtime, write_javascript, write_json, write_python
from skstruct.export.writers import write_by_ending
from skstruct.templates.syntax import _compiled, read_pattern

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
needs_node = pytest.mark.skipif(node() is None, reason="needs node 18 or later")
N_TRAIN, N_TEST = 80, 80
WORDS, LABELS = load_addresses(return_X_y=True)
# Few labels: of second order there are as many transitions as triples of them.
TYPES = {"NUMBER", "STREET", "CITY"}
LABELS = [[label if label[2:] in TYPES else "O" for label in sequence] for sequence in LABELS]
PATTERNS = [r"^\u", r"\d\d?$", r"^\L*$", r"\p", "a*e.?", r"\D\w*\s?", r"[\.]", r"\A\U?", "^$"]
TEMPLATE = [
    "U0:%x[0,0]",
    "U1:%x[-1,0|lower]/%x[0,0|lower]/%x[1,0|lower]",
    "U2:%x[-3,1]%x[3,1]",
    "U3:%x[@1,0]|%x[@-2,0|shape]|%x[@9,1]|%x[@-9,1]",
    "U4:%X[0,0|prefix3]",
    "U5:%x[0,0|suffix2]/%x[0,0|length]",
    "U6:%x[0,0|digits|shortshape]",
    "U7",
    "U8:%x[0,0]%x[0,1]",
    *(f'U9{i}:%t[0,0,"{pattern}"]' for i, pattern in enumerate(PATTERNS)),
    *(f'U5{i}:%M[-1,0,"{pattern}"]' for i, pattern in enumerate(PATTERNS)),
    "B",
]
HOSTILE = [
    *("'", '"', "'''", '"""', "\\", "\\\\'", "\n", "\r", "\r\n", "\t", "\0", "\x7f", "\x85", " "),
    *(
        "*/",
        "/*",
        "//",
        "`",
        "${globalThis.hacked = 1}",
        "`;globalThis.hacked = 1;`",
        "]]>",
        "<!--",
    ),
    *("</script><script>globalThis.hacked = 1</script>", "\u2028", "\u2029", "\ufeff", "{data}"),
    *(
        "__proto__",
        "constructor",
        "toString",
        "hasOwnProperty",
        "%x[0,0]",
        "# The end of the model.",
    ),
    *("\ud800", "\udfff", "\U0001f600", "\U0001d400", "\u0130", "\u00df", "\ufb01", "\u01c5"),
    *(
        "\u03a3",
        "\u039f\u03a3",
        "\u039f\u03a3.",
        "\u039f\u03a3\u0301\u03b1",
        "\u1e9e",
        "\u0661",
        "\u00b2",
    ),
    *(
        '"""\nimport sys; sys.hacked = 1\n"""',
        "'''\nimport sys; sys.hacked = 1\n'''",
        "key:value=x",
    ),
]


def with_shape(tokens):
    return [(word, word[:1].upper()) for word in tokens]


def as_strings(tokens):
    return [[f"w={word}", f"end={word[-2:]}", f"same={word == word.lower()}"] for word in tokens]


def as_dicts(tokens):
    return [
        {
            "word": word,
            "length": len(word) / 7,
            "capital": word[:1].isupper(),
            "ends": [word[-1:], word[-2:]],
            "next": {"word": after, "deep": {"first": after[:1]}},
        }
        for word, after in zip(tokens, [*tokens[1:], "END"], strict=True)
    ]


WORD_FEATURES = WordVectorizer(
    gazetteers={
        "street": ["Harbour Road", "road", "High Street"],
        "city": ["\u03a3", "Wellington"],
    },
    clusters={"road": "001\U0001f600101", "Street": "0011", "\u03c3": "1"},
    cluster_prefixes=(2, 4, 9),
    label_statistics=True,
    extra_template=["Uextra:%x[1,0|lower|cluster4]", "Umark:%x[0,1|matched]/%x[0,0|length]"],
)
OPTIONS = {"max_iter": 15, "tol": 1e-2}
CELLS = {
    "words": (make_pipeline(WORD_FEATURES, CRFTagger(**OPTIONS)), list),
    "template": (make_pipeline(TemplateVectorizer(TEMPLATE), CRFTagger(**OPTIONS)), with_shape),
    "constrained": (CRFTagger(constraint="IOB2", **OPTIONS), as_strings),
    "dicts": (CRFTagger(fit_intercept=False, **OPTIONS), as_dicts),
    "single": (make_pipeline(SequenceVectorizer(dtype=np.float32), CRFTagger(**OPTIONS)), as_dicts),
    "second order": (
        CRFTagger(order=2, constraint="IOB2", all_possible_transitions=True, **OPTIONS),
        as_strings,
    ),
    "perceptron": (PerceptronTagger(max_iter=3, tol=None, random_state=0), as_dicts),
    "threshold": (SpanTaggerCV(CRFTagger(**OPTIONS), cv=2, thresholds=[0.3]), as_strings),
    "threshold of a pipeline": (
        SpanTaggerCV(make_pipeline(WordVectorizer(), CRFTagger(order=2, **OPTIONS)), cv=2),
        list,
    ),
    "drop-in": (CRF(max_iterations=15), as_dicts),
}
SECOND_ORDER = "second order", "threshold of a pipeline"


# Ending of the files, how to ask them, and what runs them, if it is here.
LANGUAGES = {
    "python": (".py", ask_python, lambda: sys.executable),
    "newest python": (".py", lambda jobs: ask_python(jobs, newest_python()), newest_python),
    "node": (".mjs", ask_node, node),
}


@pytest.fixture(scope="module")
def fitted():
    """Function that gives the estimator of a cell, and the sentences to tag."""

    @cache
    def fit_cell(name):
        estimator, features = CELLS[name]
        X = [features(tokens) for tokens in WORDS[: N_TRAIN + N_TEST]]
        return clone(estimator).fit(X[:N_TRAIN], LABELS[:N_TRAIN]), [[], *X[N_TRAIN:]]

    return fit_cell


def tagger_and_batch(estimator, X):
    fitted = skstruct.inspection.models.find_tagger(getattr(estimator, "estimator_", estimator))
    return fitted.tagger, fitted.transform(X)


@pytest.mark.parametrize(
    "name", [compiled(name) if name in SECOND_ORDER else name for name in CELLS]
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_files_answer_as_the_estimator(language, name, fitted, tmp_path):
    ending, ask, program = LANGUAGES[language]
    if program() is None:
        pytest.skip(f"there is no {language} here")
    estimator, X = fitted(name)
    write_by_ending(estimator, tmp_path / f"cell{ending}", dtype="float64")
    (found,) = ask([(tmp_path / f"cell{ending}", X)])
    tagger, batch = tagger_and_batch(estimator, X)
    best = tagger.predict_nbest(batch, 2)
    # Of labellings that are equally good but for rounding, either may come first.
    clear = [len(two) < 2 or two[0].score - two[1].score > 1e-9 for two in best]
    assert sum(clear) > 0.95 * len(X)
    is_chosen = hasattr(estimator, "best_threshold_")
    spans = estimator.predict_spans(X) if is_chosen else tagger.predict_spans(batch)
    expected = zip(
        estimator.predict(X), tagger.predict_proba(batch), spans, best, clear, found, strict=True
    )
    for labels, proba, chunks, two, is_clear, answer in expected:
        if is_clear or is_chosen:
            assert answer["labels"] == list(labels)
        np.testing.assert_allclose(
            np.reshape(answer["proba"], proba.shape), proba, rtol=0, atol=1e-9
        )
        assert [tuple(span[:3]) for span in answer["spans"]] == [span[:3] for span in chunks]
        np.testing.assert_allclose(
            [span[3] for span in answer["spans"]], [span[3] for span in chunks], rtol=0, atol=1e-9
        )
        np.testing.assert_allclose(
            [labelling[1:] for labelling in answer["nbest"]],
            [labelling[1:] for labelling in two],
            rtol=1e-9,
            atol=1e-9,
        )
        if is_clear:
            assert answer["nbest"][0][0] == list(two[0].labels)


FEW = [["in", "Rome"], ["in", "New", "York"], ["old"]]
FEW_LABELS = [["O", "B-LOC"], ["O", "B-LOC", "I-LOC"], ["O"]]


def few_strings():
    return [[[word, word[:1]] for word in tokens] for tokens in FEW]


def of_search(tmp_path):
    pipeline = make_pipeline(make_pipeline("passthrough", WordVectorizer()), CRFTagger())
    return GridSearchCV(pipeline, {"crftagger__l2": [0.1]}, cv=2).fit(FEW, FEW_LABELS), FEW


def of_crfsuite_file(tmp_path):
    write_model(CRFTagger(fit_intercept=False).fit(few_strings(), FEW_LABELS), tmp_path / "m")
    return read_model(tmp_path / "m"), few_strings()


def of_crfpp_file(tmp_path):
    X, lines = [[(word,) for word in tokens] for tokens in FEW], ["U0:%x[0,0]", "U1:%x[-1,0]", "B"]
    tagger = CRFTagger(fit_intercept=False, all_possible_states=True, all_possible_transitions=True)
    crfpp.write_model(
        make_pipeline(TemplateVectorizer(lines), tagger).fit(X, FEW_LABELS), tmp_path / "m"
    )
    return crfpp.read_model(tmp_path / "m"), X


def of_sparse_weights(tmp_path):
    tagger = CRFTagger(l1=0.1).fit(few_strings(), FEW_LABELS)
    tagger.coef_ = sp.csc_matrix(tagger.coef_)
    return tagger, few_strings()


def of_no_weights(tmp_path):
    return CRFTagger(l1=100.0).fit(few_strings(), FEW_LABELS), few_strings()


def of_numbers_as_labels(tmp_path):
    labels = [[len(label) for label in sequence] for sequence in FEW_LABELS]
    return SpanTaggerCV(CRFTagger(), cv=2).fit(few_strings(), labels), few_strings()


@pytest.mark.parametrize(
    "make",
    [
        of_search,
        of_crfsuite_file,
        of_crfpp_file,
        of_sparse_weights,
        of_no_weights,
        of_numbers_as_labels,
    ],
)
def test_estimators_of_all_origins(make, tmp_path):
    estimator, X = make(tmp_path)
    tagger, _ = tagger_and_batch(estimator, X)
    before = joblib.hash(tagger._chain()), joblib.hash(tagger.coef_)
    expected = [list(labels) for labels in estimator.predict(X)]
    for path in [tmp_path / "a.py", tmp_path / "a.mjs"][: 1 + (node() is not None)]:
        write_by_ending(estimator, path)
        (found,) = (ask_python if path.suffix == ".py" else ask_node)([(path, X)])
        assert [answer["labels"] for answer in found] == expected
    assert (joblib.hash(tagger._chain()), joblib.hash(tagger.coef_)) == before


def generated(n, seed):
    """Sentences of hostile words, and of characters from all of Unicode."""
    rng = random.Random(seed)
    known = [chr(c) for c in range(0x3000)] + [chr(c) for c in range(0xFB00, 0xFE10)]

    def word():
        kind = rng.random()
        if kind < 0.3:
            return rng.choice(HOSTILE)
        if kind < 0.5:
            return "".join(map(chr, rng.choices(range(0x110000), k=rng.randrange(4))))
        return "".join(rng.choices(known, k=rng.randrange(6)))

    return [[word() for _ in range(rng.randrange(9))] for _ in range(n)]


def is_told_in_full(word):
    """Return True unless JSON would join halves of characters in a word."""
    return json.loads(json.dumps(word)) == word


@pytest.mark.parametrize(
    "vectorizer", [TemplateVectorizer(TEMPLATE), WORD_FEATURES], ids=["T", "W"]
)
def test_features_are_the_same_whatever_the_characters(vectorizer, tmp_path):
    X = [list(filter(is_told_in_full, tokens)) for tokens in generated(300, 0)]
    X = [
        with_shape(tokens) if vectorizer is not WORD_FEATURES else tokens for tokens in X if tokens
    ]
    y = [["a" if i % 2 else "b" for i in range(len(tokens))] for tokens in X]
    pipeline = make_pipeline(
        clone(vectorizer), PerceptronTagger(max_iter=1, tol=None, random_state=0)
    )
    pipeline.fit(X, y)
    learnt = pipeline[0].inverse_transform(pipeline[0].transform(X))
    known = set(pipeline[0].get_feature_names_out())
    assert len(known) > 2000
    files = [tmp_path / "a.py", tmp_path / "a.mjs"]
    for path in files[: 1 + (node() is not None)]:
        write_by_ending(pipeline, path)
        (found,) = (ask_python if path.suffix == ".py" else ask_node)([(path, X)])
        for tokens, answer in zip(learnt, found, strict=True):
            for features, names in zip(tokens, answer["features"], strict=True):
                assert Counter(name for name in names if name in known) == features


def test_patterns_match_as_regular_expressions():
    rng = random.Random(0)
    atoms = [".", "a", "b", "1", r"\a", r"\d", r"\l", r"\U", r"\W", r"\p", r"\S", r"\.", "$"]
    texts = ["".join(rng.choices("abAB12. -", k=rng.randrange(9))) for _ in range(60)]
    n_found = 0
    for _ in range(300):
        body = "".join(rng.choice(atoms) + rng.choice(["", "", "*", "?"]) for _ in range(4))
        pattern = rng.choice(["", "^"]) + body + rng.choice(["", "$"])
        tests, at_start, at_end = read_pattern(pattern)
        # In a pattern of its own, "$" would be the end.
        tests = [
            ("$".__eq__ if atom == "$" else _compiled(atom).fullmatch, often)
            for atom, often in tests
        ]
        find = runtime._search(tests, at_start, at_end)
        for text in texts:
            match = _compiled(pattern).search(text)
            n_found += match is not None
            assert find(text) == (match and match.group()), (pattern, text)
    assert n_found > 1000


def test_complements_in_patterns_may_be_repeated():
    assert _compiled(r"^\D*$").search("ab1") is None
    assert _compiled(r"^\D*$").search("abc")
    assert _compiled(r"^\D?1").search("1")


@pytest.fixture(scope="module")
def hostile():
    """Tagger whose features and labels are hostile texts."""
    X = [[[word], [f"{word}{word}", "x"]] for word in HOSTILE]
    return CRFTagger(max_iter=15, tol=1e-2).fit(X, [[word, "x"] for word in HOSTILE]), X


def test_hostile_texts_are_data(hostile, tmp_path):
    tagger, X = hostile
    for path in [tmp_path / "a.py", tmp_path / "a.mjs"][: 1 + (node() is not None)]:
        write_by_ending(tagger, path, date='"""\n*/ hacked')
        (found,) = (ask_python if path.suffix == ".py" else ask_node)([(path, X)])
        assert [answer["labels"] for answer in found] == tagger.predict(X).tolist()
        assert [answer["labels"][0] for answer in found] == HOSTILE
        text = path.read_bytes().decode("ascii")
        assert "</script" not in text
        assert all("hacked" not in line for line in text.splitlines() if "verified(" not in line)
    assert not hasattr(sys, "hacked")


def test_a_file_has_the_runtime_word_for_word(hostile, tmp_path):
    for name, path in (("runtime.py", "a.py"), ("runtime.js", "a.js"), ("runtime.d.ts", "a.d.ts")):
        if path != "a.d.ts":
            write_by_ending(hostile[0], tmp_path / path)
        text = (resources.files("skstruct.export") / name).read_text(encoding="utf-8")
        assert text in (tmp_path / path).read_text(encoding="utf-8")
    first = (tmp_path / "a.py").read_bytes()
    assert skstruct.__version__ in first.decode().partition('"""\n\n')[0]
    assert write_python(hostile[0], tmp_path / "b.py") == len(first)
    assert (tmp_path / "b.py").read_bytes() == first


def cut(path, share):
    content = path.read_bytes()
    lines = content.splitlines(keepends=True)
    # At the end of a line, where the rest may well be a program.
    kept = b"".join(lines[: max(1, int(len(lines) * share))])
    shorter = path.with_name(f"cut{path.suffix}")
    shorter.write_bytes(kept if share < 1 else content[: -len(lines[-1]) - 5])
    return shorter


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.9, 0.99, 1])
def test_a_file_that_was_cut_off_does_not_run(share, hostile, tmp_path):
    path = tmp_path / "a.py"
    write_python(hostile[0], path)
    for arguments in ([cut(path, share)], ["-c", "import cut"]):
        done = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert "Error" in done.stderr


@needs_node
def test_a_module_that_was_cut_off_does_not_run(hostile, tmp_path):
    path = tmp_path / "a.mjs"
    write_javascript(hostile[0], path)
    for i, share in enumerate([0.3, 0.6, 0.9, 0.99, 1]):
        cut(path, share).rename(tmp_path / f"cut{i}.mjs")
    code = """
        for (let i = 0; i < 5; i++) {
          try { await import(`./cut${i}.mjs`); console.log("runs"); }
          catch (error) { console.log(error.name); }
        }
        const whole = await import("./a.mjs");
        console.log(whole.tag([]).length);
    """
    command = [node(), "--input-type=module", "-e", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["SyntaxError"] * 5 + ["0"], done.stderr


def test_data_that_were_changed_are_refused(hostile, tmp_path):
    path = tmp_path / "a.py"
    write_python(hostile[0], path)
    text = path.read_text(encoding="utf-8")
    place = text.index('"labels":[') + 12
    path.write_text(text[:place] + "?" + text[place + 1 :], encoding="utf-8")
    with pytest.raises(AssertionError, match="cut off or changed: copy the file"):
        ask_python([(path, [])])


def test_json_has_the_same_data(hostile, tmp_path):
    assert write_json(hostile[0], tmp_path / "a.json") == (tmp_path / "a.json").stat().st_size
    file = json.loads((tmp_path / "a.json").read_text(encoding="ascii"))
    data = runtime.verified(file["data"], file["length"], file["checksum"])
    assert runtime.Tagger(data).tag(hostile[1][0]) == [HOSTILE[0], "x"]


def fit_numbers():
    return CRFTagger().fit([np.eye(2)], [["a", "b"]])


def fit(*steps, X=(("a", "b"),), y=(("a", "b"),)):
    X, y = list(map(list, X)), list(map(list, y))
    return make_pipeline(*steps, CRFTagger()).fit(X, y)


def shout(word):
    return word.upper()


LINE = "U1:%x[0,0|shout]"
REFUSED = {
    r"fitted on numbers.*Export a pipeline": fit_numbers,
    r"HashingTemplateVectorizer .*TemplateVectorizer": lambda: fit(
        HashingTemplateVectorizer("U:%x[0,0]")
    ),
    r"line 2, 'U1:%x\[0,0\|shout\]': 'shout' is a function of yours.*Leave it out": lambda: fit(
        TemplateVectorizer(["U0:%x[0,0]", LINE], functions={"shout": shout})
    ),
    r"FunctionTransformer cannot be exported.*Files are written for": lambda: fit(
        FunctionTransformer(), WordVectorizer()
    ),
    r"EmbeddingVectorizer .*no vectors": lambda: fit(EmbeddingVectorizer({"a": [1.0], "b": [0.0]})),
    r"SequenceUnion .*one vectoriser": lambda: fit(SequenceUnion([("words", WordVectorizer())])),
    r"TokenTransformer .*leave it out": lambda: fit(
        WordVectorizer(), TokenTransformer(MaxAbsScaler())
    ),
    r"LabelStatistics .*label_statistics=True": lambda: fit(
        LabelStatistics(), TemplateVectorizer()
    ),
    r"normalize, which cannot be exported.*str.lower": lambda: fit(
        WordVectorizer(label_statistics=LabelStatistics(normalize=shout))
    ),
    r"features of transitions.*order=2": lambda: fit(
        TemplateVectorizer(["U0:%x[0,0]", "B0:%x[0,0]"]), X=(("a", "b"),) * 2, y=(("a", "b"),) * 2
    ),
    r"'v' is an array of numbers": lambda: CRFTagger().fit([[{"v": np.ones(2)}]], [["a"]]),
    r"rerankers. Export the tagger": lambda: NBestReranker(CRFTagger()),
    r"PerceptronReranker .*rerankers": PerceptronReranker,
    r"ConformalTagger .*Export its estimator_": lambda: ConformalTagger(
        CRFTagger(), max_chunks=1, alpha=0.2, random_state=0
    ).fit([[["in"], ["Rome"]], [["Rome"]], [["in"]]] * 20, [["O", "B-LOC"], ["B-LOC"], ["O"]] * 20),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_exported_is_refused(message, tmp_path):
    estimator = REFUSED[message]()
    with pytest.raises(ValueError, match=message):
        write_python(estimator, tmp_path / "a.py")
    assert not list(tmp_path.iterdir())


def test_what_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        write_python(make_pipeline(WordVectorizer(), CRFTagger()), tmp_path / "a.py")
    with pytest.raises(TypeError, match="Expected a fitted tagger"):
        write_python(MaxAbsScaler(), tmp_path / "a.py")


def test_half_characters_that_json_would_join_are_refused(tmp_path):
    tagger = CRFTagger().fit([[["\ud83d" + "\ude00"], ["b"]]], [["a", "b"]])
    with pytest.raises(ValueError, match="surrogates"):
        write_python(tagger, tmp_path / "a.py")


def test_weights_that_single_precision_has_not_are_refused(tmp_path):
    tagger = CRFTagger().fit([[["a"], ["b"]]], [["x", "y"]])
    tagger.coef_ = tagger.coef_ * 1e60
    with pytest.raises(ValueError, match='dtype="float64"'):
        write_python(tagger, tmp_path / "a.py")
    assert write_python(tagger, tmp_path / "a.py", dtype="float64")
    with pytest.raises(ValueError, match="dtype must be one of"):
        write_python(tagger, tmp_path / "a.py", dtype="float16")
    with pytest.raises(ValueError, match=r"ES module: let its name end in .js or .mjs"):
        write_javascript(tagger, tmp_path / "a.ts")


WRONG = [
    ("template", "Rome", "tokens is"),
    ("template", [["Rome"]], r"Token 0 is .*expected 2 column"),
    ("template", [["a", "b"], ["a", None]], r"Token 1 has the column"),
    ("dicts", [{"a": "b"}, {"a": None}], r"Token 1: feature .*a.* is .*expected a string"),
    ("dicts", ["Rome"], r"Token 0 is .*Rome"),
]


@pytest.mark.parametrize(("name", "tokens", "message"), WRONG)
def test_wrong_tokens_are_named(name, tokens, message, fitted, tmp_path):
    write_python(fitted(name)[0], tmp_path / "a.py")
    write_javascript(fitted(name)[0], tmp_path / "a.mjs")
    found = ask_python([(tmp_path / "a.py", [tokens])])[0]
    if node() is not None:
        found += ask_node([(tmp_path / "a.mjs", [tokens])])[0]
    for answer in found:
        with pytest.raises(ValueError, match=message):
            raise ValueError(answer.get("error", ""))


def test_numbers_that_are_too_large_are_named(tmp_path):
    tagger = CRFTagger(max_iter=2).fit([[{"n": 1}, {"n": 2}]] * 3, [["A", "B"]] * 3)
    write_python(tagger, tmp_path / "a.py")
    spec = importlib.util.spec_from_file_location("exported", tmp_path / "a.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for value in (10**400, np.inf):
        with pytest.raises(ValueError, match=r"Token 0: feature 'n' is .* finite number"):
            module.tag([{"n": value}])


def test_no_labelling_is_an_error():
    chain = runtime._Chain.__new__(runtime._Chain)
    never = [[-np.inf, -np.inf], [-np.inf, -np.inf]]
    chain.labels, *chain._steps = runtime._steps(2, never, None)
    for search in (runtime._best_states, runtime._forward):
        with pytest.raises(ValueError, match="leaves no labelling"):
            search(chain, [[0.0, 0.0], [0.0, 0.0]])


def tag_text(path, text, *options):
    done = subprocess.run(
        [sys.executable, path, *options], input=text.encode(), capture_output=True, check=False
    )
    return done.returncode, done.stdout.decode().splitlines(), done.stderr.decode()


def test_a_file_is_a_command(fitted, tmp_path):
    (words, _), (columns, _), (strings, _) = (
        fitted(n) for n in ("words", "template", "constrained")
    )
    for name, estimator in (("w", words), ("c", columns), ("s", strings)):
        write_python(estimator, tmp_path / f"{name}.py")
    tokens = ["12", "Harbour", "Road", "Wellington"]
    labels = words.predict([tokens])[0]
    wanted = [f"{token}\t{label}" for token, label in zip(tokens, labels, strict=True)]
    for mark in ("", "\ufeff"):
        assert tag_text(tmp_path / "w.py", mark + " ".join(tokens)) == (0, [*wanted, ""], "")
    code, lines, _ = tag_text(tmp_path / "w.py", " ".join(tokens), "--probabilities")
    proba = words.predict_proba([tokens])[0].max(axis=1)
    assert [line.split("\t")[2] for line in lines[:-1]] == [f"{p:.6f}" for p in proba]
    code, lines, _ = tag_text(tmp_path / "w.py", " ".join(tokens), "--spans", "--threshold", "0.2")
    spans = skstruct.predict_spans(words, [tokens], threshold=0.2)[0]
    assert [line.split("\t")[:3] for line in lines[:-1]] == [list(map(str, s[:3])) for s in spans]
    assert lines[0].split("\t")[4] == " ".join(tokens[spans[0].start : spans[0].end])
    pairs = with_shape(tokens)
    code, lines, _ = tag_text(tmp_path / "c.py", "\n".join(map(" ".join, pairs)) + "\n\n")
    assert [line.split("\t")[1] for line in lines[:-1]] == columns.predict([pairs])[0]
    given = as_strings(tokens)
    code, lines, _ = tag_text(tmp_path / "s.py", "\n".join(map("\t".join, given)) + "\n")
    assert [line.split("\t")[1] for line in lines[:-1]] == strings.predict([given])[0]
    code, _, error = tag_text(tmp_path / "c.py", "one\n")
    assert (code, error[:14]) == (2, "Error: Token 0")


def test_single_precision_is_half_as_large_and_nearly_the_same(fitted, tmp_path):
    estimator, X = fitted("words")
    sizes = [
        write_python(estimator, tmp_path / f"{dtype}.py", dtype=dtype)
        for dtype in ("float32", "float64")
    ]
    assert sizes[0] < 0.8 * sizes[1]
    (found,) = ask_python([(tmp_path / "float32.py", X)])
    labels = [answer["labels"] for answer in found]
    assert sum(a != b for a, b in zip(labels, estimator.predict(X), strict=True)) <= 1
    proba = np.concatenate([answer["proba"] for answer in found if answer["proba"]])
    wanted = np.concatenate(list(estimator.predict_proba(X)))
    assert 0 < np.abs(proba - wanted).max() < 1e-4


@pytest.mark.parametrize("ending", [".py", ".mjs", ".json"])
def test_commands(ending, fitted, tmp_path, capsys):
    import skops.io

    model, (estimator, _) = str(tmp_path / "model.skops"), fitted("words")
    skops.io.dump(estimator, model)
    one, other, third = (str(tmp_path / f"{name}{ending}") for name in "abc")
    assert command(["export", model, "-o", one]) == 0
    size = (tmp_path / f"a{ending}").stat().st_size
    assert f"{size:,} bytes" in capsys.readouterr().out
    assert command(["convert", model, other]) == 0
    write_by_ending(estimator, third)
    contents = {(tmp_path / f"{name}{ending}").read_bytes() for name in "abc"}
    assert len(contents) == 1
    assert command(["export", model, "-o", one, "--dtype", "float64", "--date", "2026-11-29"]) == 0
    assert "2026-11-29" in (tmp_path / f"a{ending}").read_text()
    assert command(["export", model, "-o", str(tmp_path / "a.txt")]) == 2
    assert "ends in .py" in capsys.readouterr().err
