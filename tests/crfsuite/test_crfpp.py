"""Text models of CRF++, against the scores that its format defines, torn apart, and written."""

import pickle
import tracemalloc
from itertools import product

import numpy as np
import pytest
from helpers.marks import compiled
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skstruct import CRFTagger, MIRATagger, PerceptronTagger, TemplateVectorizer, crfpp

MACROS = {
    "%x[0,0]": (0, 0),
    "%x[-1,0]": (-1, 0),
    "%x[1,0]": (1, 0),
    "%x[1,1]": (1, 1),
    "%x[0,1]": (0, 1),
}


def expand(line, sentence, t):
    """A template's feature at a token, by replacing text."""
    for macro, (row, column) in MACROS.items():
        place = t + row
        if place < 0:
            value = f"_B{place}"
        elif place >= len(sentence):
            value = f"_B+{place - len(sentence) + 1}"
        else:
            value = sentence[place][column]
        line = line.replace(macro, value)
    return line


class Naive:
    """CRF++ in the plainest words: a sum of weights by name, and every labelling compared."""

    def __init__(self, text):
        head, labels, lines, names, *weights = text.split("\n\n")
        self.factor = float(head.split("cost-factor: ")[1].split()[0])
        self.labels = labels.split("\n")
        self.lines = lines.split("\n")
        self.places = {n: int(i) for i, _, n in (x.partition(" ") for x in names.split("\n"))}
        self.weights = [float(w) for w in weights[0].split()]

    def score(self, sentence, codes):
        n, total = len(self.labels), 0.0
        for t, code in enumerate(codes):
            for line in self.lines:
                place = self.places.get(expand(line, sentence, t))
                if place is None:
                    continue
                if line[0] == "U":
                    total += self.weights[place + code]
                elif t > 0:
                    total += self.weights[place + codes[t - 1] * n + code]
        return self.factor * total

    def marginals(self, sentence):
        n = len(self.labels)
        result = np.zeros((len(sentence), n))
        for codes in product(range(n), repeat=len(sentence)):
            for t, code in enumerate(codes):
                result[t, code] += np.exp(self.score(sentence, codes))
        return result / result.sum(axis=1, keepdims=True)


def text_model(lines, sentences, labels, seed=0, factor=1.0):
    """A file with random weights of the features that occur in some sentences."""
    rng = np.random.default_rng(seed)
    names = sorted({expand(line, s, t) for line in lines for s in sentences for t in range(len(s))})
    sizes = [len(labels) if name[0] == "U" else len(labels) ** 2 for name in names]
    # CRF++ numbers features as they come, and lists them by name.
    order = rng.permutation(len(names))
    places = np.empty(len(names), int)
    places[order] = np.concatenate([[0], np.cumsum(np.array(sizes)[order])[:-1]])
    header = f"version: 100\ncost-factor: {factor:g}\nmaxid: {sum(sizes)}\nxsize: 2\n"
    sections = [
        header,
        "\n".join(labels) + "\n",
        "\n".join(lines) + "\n",
        "\n".join(f"{place} {name}" for place, name in zip(places, names, strict=True)) + "\n",
        "\n".join(f"{weight:.16f}" for weight in rng.normal(size=sum(sizes))) + "\n",
    ]
    return "\n".join(sections)


SENTENCES = [
    [("a", "b/c"), ("a/b", "c")],
    [("a", "x"), ("é", "\u2028"), ("b", "x"), ("a", "x")],
    [("b", "")],
]
LABELS = ["O", "B-X", "I-X"]
TEMPLATES = {
    "words": ["U00:%x[0,0]", "U01:%x[-1,0]", "B"],
    "names that split in several ways": ["U00:%x[0,0]/%x[0,1]", "U01:%x[-1,0]%x[0,0]", "B"],
    "names that lines share": ["U:%x[0,0]", "U:%x[-1,0]", "U:%x[1,1]", "U", "B", "B2"],
    "names of other lines": ["U%x[0,0]", "U:%x[0,0]", "Ua", "U:a", "B"],
    "lines that stand twice": ["U00:%x[0,0]", "U00:%x[0,0]", "B", "B"],
    "blanks at the end": ["U00:%x[0,0] ", "U00:%x[0,0]", "U01:%x[-1,0]/%x[0,0]  ", "B "],
    "no pairs": ["U00:%x[0,1]x"],
    "pairs that depend on tokens": ["U00:%x[0,0]", "B01:%x[0,0]", "B02:%x[-1,0]/%x[0,1]"],
    "pairs of both sorts": ["U00:%x[0,0]", "B", "B01:%x[-1,0]", "B01:%x[-1,0]", "B"],
    "pairs whose names other lines make": ["U:%x[0,0]", "B", "B%x[0,1]", "B%x[0,0]", "B%x[1,1]/"],
}


@pytest.mark.parametrize("lines", TEMPLATES.values(), ids=TEMPLATES)
@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_reads_what_the_format_says(lines, factor):
    text = text_model(lines, SENTENCES, LABELS, factor=factor)
    naive = Naive(text)
    unknown = [[("new", "x"), ("a", "new")], [("a/b", "b/c"), ("b", "x"), ("_B-1", "_B+1")]]
    model = crfpp.read_model(text.encode())
    tagger = model[-1]
    for sentence in SENTENCES + unknown:
        expected = naive.marginals(sentence)[:, np.argsort(LABELS)]
        assert_allclose(model.predict_proba([sentence])[0], expected, atol=1e-12)
        best = max(naive.score(sentence, c) for c in product(range(3), repeat=len(sentence)))
        found = [LABELS.index(label) for label in model.predict([sentence])[0]]
        assert naive.score(sentence, found) == pytest.approx(best, abs=1e-12)
    names = [name for name in naive.places if name[0] == "U"]
    assert sorted(model[0].get_feature_names_out()) == sorted(names)
    assert tagger.classes_.tolist() == sorted(LABELS)


def test_paths_and_encodings(tmp_path):
    text = text_model(TEMPLATES["words"], SENTENCES, LABELS)
    path = tmp_path / "model.txt"
    path.write_bytes(text.encode())
    expected = crfpp.read_model(text.encode()).predict(SENTENCES).tolist()
    assert crfpp.read_model(path).predict(SENTENCES).tolist() == expected
    assert crfpp.read_model(str(path)).predict(SENTENCES).tolist() == expected
    windows = text.replace("\n", "\r\n").encode()
    assert crfpp.read_model(windows).predict(SENTENCES).tolist() == expected
    wide = text.encode("utf-16")
    assert crfpp.read_model(wide, encoding="utf-16").predict(SENTENCES).tolist() == expected
    with pytest.raises(ValueError, match="not a text model of CRF\\+\\+ in the encoding 'utf-8'"):
        crfpp.read_model(text.encode("latin-1", "replace") + b"\xff")


def test_like_a_fitted_pipeline():
    """The weights of a tagger, written as CRF++ would, give the same tagger."""
    lines, y = TEMPLATES["words"], [["O", "B-X"], ["O", "B-X", "I-X", "O"], ["O"]]
    vectorizer = TemplateVectorizer(lines)
    batch = vectorizer.fit_transform(SENTENCES)
    tagger = CRFTagger(fit_intercept=False, l2=0.1).fit(batch, y)
    names, n = vectorizer.get_feature_names_out(), 3
    places = [f"{i * n} {name}" for i, name in enumerate(names)]
    weights = [*tagger.coef_.T.ravel(), *tagger.transition_.ravel()]
    sections = [
        f"version: 100\ncost-factor: 1\nmaxid: {len(weights)}\nxsize: 2",
        "\n".join(tagger.classes_),
        "\n".join(lines),
        "\n".join([f"{len(names) * n} B", *places]),
        "\n".join(map(repr, map(float, weights))),
    ]
    model = crfpp.read_model(("\n\n".join(sections) + "\n").encode())
    for ours, expected in zip(
        model.predict_proba(SENTENCES), tagger.predict_proba(batch), strict=True
    ):
        assert_allclose(ours, expected, rtol=1e-12)


def test_pairs_that_depend_on_tokens_are_features_of_transitions():
    text = text_model(TEMPLATES["pairs that depend on tokens"], SENTENCES, LABELS)
    vectorizer, tagger = crfpp.read_model(text.encode())
    names = vectorizer.get_transition_feature_names_out()
    assert sorted(names) == sorted(name for name in Naive(text).places if name[0] == "B")
    batch = vectorizer.transform(SENTENCES)
    assert batch.n_transition_features == len(names) == tagger.n_transition_features_in_
    assert tagger.transition_coef_.shape == (3, 3, len(names))
    assert np.all(tagger.transition_ == 0)


def test_models_with_features_of_transitions_are_stored():
    text = text_model(TEMPLATES["pairs of both sorts"], SENTENCES, LABELS)
    model = crfpp.read_model(text.encode())
    again = pickle.loads(pickle.dumps(model))
    for ours, expected in zip(
        again.predict_proba(SENTENCES), model.predict_proba(SENTENCES), strict=True
    ):
        assert_allclose(ours, expected, rtol=1e-15)


def test_without_features_of_tokens():
    text = "version: 100\ncost-factor: 1\nmaxid: 1\nxsize: 1\n\nO\n\nU:%x[0,0]\nB\n\n0 B\n\n0.5\n"
    with pytest.raises(ValueError, match="it has no features of tokens"):
        crfpp.read_model(text.encode())


# ---------------------------------------------------------------------- damaged and hostile files


TEXT = text_model(TEMPLATES["names that lines share"], SENTENCES, LABELS)
TEXTS = [TEXT, text_model(TEMPLATES["pairs of both sorts"], SENTENCES, LABELS)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("maxid: ", "maxid: 1", "weights, but maxid in its header is 1"),
        ("maxid: ", "maxid: x", "maxid is 'x"),
        ("cost-factor: 1", "cost-factor: inf", "a weight or the cost-factor is NaN or infinite"),
        ("xsize: 2", "xsize: 0", "xsize in its header is 0"),
        ("xsize: 2\n", "", "xsize is None"),
        ("xsize: 2", "xsize: 1", "its template uses column 1, but xsize in its header is 1"),
        ("B-X\n", "O\n", "it has no labels, or lists a label twice"),
        ("U:%x[0,0]\n", "", "comes from no line"),
        (" U:a\n", " Q:a\n", "Q:a' is not a feature"),
        (" U:b\n", " U:a\n", "'U:a' is listed twice"),
        ("U:%x[0,0]\n", "U:%x[0,\n", "cannot read"),
        ("U:%x[0,0]\n", "U:%x[0,0] #1\n", r"takes the whole line 'U:%x\[0,0\] #1' of the template"),
    ],
)
def test_messages(old, new, message):
    assert old in TEXT
    text = TEXT.replace(old, new, 1)
    if message == "comes from no line":
        text = text.replace("U:%x[-1,0]\n", "").replace("U:%x[1,1]\n", "")
    with pytest.raises(ValueError, match=message):
        crfpp.read_model(text.encode())


def test_places_that_overlap_are_refused():
    lines = TEXT.split("\n")
    names = [i for i, line in enumerate(lines) if " U" in line]
    place = lines[names[0]].split(" ")[0]
    lines[names[1]] = f"{place} {lines[names[1]].split(' ', 1)[1]}"
    with pytest.raises(ValueError, match="start at"):
        crfpp.read_model("\n".join(lines).encode())


@pytest.fixture(scope="module", autouse=True)
def _load_kernels():
    """What is loaded only once is no memory that a model takes."""
    crfpp.read_model(TEXT.encode())


def read_or_refuse(content):
    tracemalloc.start()
    try:
        model = crfpp.read_model(content)
    except ValueError:
        return None
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 100 * len(content) + 2**19
    return model


@given(st.data())
def test_cut_and_flipped(data):
    content = bytearray(data.draw(st.sampled_from(TEXTS)).encode())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    for _ in range(data.draw(st.integers(0, 4))):
        if content:
            place = data.draw(st.integers(0, len(content) - 1))
            content[place] = data.draw(st.integers(0, 255))
    model = read_or_refuse(bytes(content))
    if model is not None:
        assert len(model.predict([[("a", "x")] * 3])[0]) == 3


@given(st.text(alphabet="UB%x[0,]:\n 12", max_size=80))
def test_noise(noise):
    assert read_or_refuse(noise.encode()) is None
    assert read_or_refuse(("version: 100\n" + noise).encode()) is None


def test_names_that_could_be_split_in_very_many_ways():
    """A name that fits a long template nearly, but not quite, must not take for ever."""
    line = "U" + "a".join(["%x[0,0]"] * 30) + "b"
    name = "U" + "a" * 2000
    text = f"version: 100\ncost-factor: 1\nmaxid: 1\nxsize: 1\n\nO\n\n{line}\n\n0 {name}\n\n0.5\n"
    with pytest.raises(ValueError, match="comes from no line"):
        crfpp.read_model(text.encode())


# Writing. -----------------------------------------------------------------------------------------

TEXTS_OF_TOKENS = [[("a", "x"), ("b", "y"), ("a", "x")], [("b", "x")], [("c", "y"), ("a", "y")]]
LABELS_OF_TOKENS = [["O", "B-X", "I-X"], ["B-X"], ["I-X", "O"]]


def fitted(tagger, lines):
    return make_pipeline(TemplateVectorizer(lines), tagger).fit(TEXTS_OF_TOKENS, LABELS_OF_TOKENS)


@pytest.mark.parametrize(
    "lines",
    [
        ["U00:%x[0,0]", "U01:%x[-1,0]"],
        ["U00:%x[0,0]", "U00:%x[0,0]", "U", "B", "B"],
        ["B07", "U00:%x[0,0]/%x[0,1]", "B01:%x[ 0 , 1 ]"],
    ],
)
@pytest.mark.parametrize(
    "tagger",
    [
        CRFTagger(l2=0.1),
        CRFTagger(l1=0.1, l2=0, fit_intercept=False),
        PerceptronTagger(random_state=0),
        compiled(MIRATagger(random_state=0)),
    ],
    ids=lambda tagger: str(tagger)[:20],
)
def test_written_models_have_the_same_marginals(tagger, lines, tmp_path):
    model = fitted(tagger, lines)
    crfpp.write_model(model, tmp_path / "model.txt")
    naive = Naive((tmp_path / "model.txt").read_text("utf-8"))
    new = [[("a", "new"), ("new", "x"), ("b", "y")], [("c", "x")]]
    for sentence in [*TEXTS_OF_TOKENS, *new]:
        (expected,) = model.predict_proba([sentence])
        order = [naive.labels.index(label) for label in model.classes_]
        assert_allclose(naive.marginals(sentence)[:, order], expected, atol=1e-9)
    again = crfpp.read_model(tmp_path / "model.txt")
    for a, b in zip(again.predict_proba(new), model.predict_proba(new), strict=True):
        assert_allclose(a, b, atol=1e-12)


def test_read_models_are_written_as_they_were(tmp_path):
    model = crfpp.read_model(text_model(["U00:%x[0,0]", "B"], SENTENCES, LABELS).encode())
    crfpp.write_model(model, tmp_path / "model.txt")
    again = crfpp.read_model(tmp_path / "model.txt")
    assert again[0].template_ == model[0].template_
    for a, b in zip(again[1]._chain(), model[1]._chain(), strict=True):
        np.testing.assert_array_equal(a, b)


def test_features_without_weights_are_left_out(tmp_path):
    model = fitted(CRFTagger(l1=0.6, l2=0), ["U00:%x[0,0]", "U01:%x[0,1]"])
    crfpp.write_model(model, tmp_path / "model.txt")
    n_used = int(np.any(model[1].coef_, axis=0).sum())
    again = crfpp.read_model(tmp_path / "model.txt")
    names = [name for name in again[0].get_feature_names_out() if name[1] in "0"]
    assert len(names) == n_used < model[0].n_features_


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["U0:%x[0,0|lower]"], r"Template line 1, 'U0:%x\[0,0\|lower\]': CRF\+\+ has only macros"),
        (["U0:%x[0,0]", 'U1:%t[0,0,"a"]'], "Template line 2, .*CRF.. has only macros"),
        (["U0:%x[@1,0]"], "CRF.. has only macros"),
        (["U0:%x[5,0]"], "looks at most 4 tokens ahead and back, not 5"),
        (["*0:%x[0,0]"], "lines of CRF.. start with U or B"),
        (["u0:%x[0,0]"], "lines of CRF.. start with U or B"),
        (["U 0:%x[0,0]"], "does not support blanks"),
        (["U_BIAS", "U0:%x[0,0]"], "The template makes the feature 'U_BIAS'"),
    ],
)
def test_templates_that_crfpp_does_not_have(lines, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        crfpp.write_model(fitted(CRFTagger(), lines), tmp_path / "model.txt")
    assert not any(tmp_path.iterdir())


def test_models_that_crfpp_does_not_have(tmp_path):
    path, lines = tmp_path / "model.txt", ["U0:%x[0,0]"]
    with pytest.raises(ValueError, match="pass a Pipeline of a TemplateVectorizer and a tagger"):
        crfpp.write_model(fitted(CRFTagger(), lines)[1], path)
    possible = np.ones((3, 3), dtype=bool)
    possible[0, 0] = False
    with pytest.raises(ValueError, match="Fit the tagger without a constraint"):
        crfpp.write_model(fitted(CRFTagger(constraint=possible), lines), path)
    tokens = make_pipeline(TemplateVectorizer(lines), CRFTagger())
    with pytest.raises(ValueError, match="The feature 'U0:New York' has a blank"):
        crfpp.write_model(tokens.fit([["New York", "is"]], [["B", "O"]]), path)
    for y, wrong in ([1, 2], "1"), (["a b", "O"], "'a b'"):
        with pytest.raises(ValueError, match=f"Labels must be strings without blanks .* {wrong}"):
            crfpp.write_model(tokens.fit([["a", "b"]], [y]), path)
    for word, encoding in ("€", "latin-1"), ("¥", "shift_jis"), ("\ud800", "utf-8"):
        model = tokens.fit([[word, "b"]], [["A", "B"]])
        with pytest.raises(ValueError, match=rf"Line \d+ of the model: .* in {encoding}"):
            crfpp.write_model(model, path, encoding=encoding)
    with pytest.raises(NotFittedError):
        crfpp.write_model(make_pipeline(TemplateVectorizer(lines), CRFTagger()), path)
    assert not any(tmp_path.iterdir())
