"""`WordVectorizer`: features by name against a naive twin, gazetteers, clusters, storing."""

import pickle

import numpy as np
import pytest
import skops.io
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skstruct import CRFTagger, TemplateVectorizer, WordVectorizer
from skstruct.datasets import load_addresses
from skstruct.templates.words import MARKS, Gazetteer

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

X = [
    [("Anna", "NNP"), ("flew", "VBD"), ("to", "TO"), ("New", "NNP"), ("York", "NNP")],
    [],
    [("York", "NNP"), ("4-2", "CD")],
]
PLACES = {"place": ["New York", "york", "New York City"]}
CLUSTERS = {"flew": "001011", "anna": "01"}


def naive_features(tokens, t):
    """Features at a token, in plain Python; outside, values are as CRF++ has them."""

    def at(i, function, column=0):
        place = t + i
        if place < 0:
            return f"_B{place}"
        if place >= len(tokens):
            return f"_B+{place - len(tokens) + 1}"
        return function(tokens[place][column])

    def word(value):
        return "".join("0" if c.isdigit() else c for c in value.lower())

    def kinds(value):
        return "".join(
            "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c for c in value
        )

    def shape(value):
        found = kinds(value)
        return "".join(c for c, before in zip(found, " " + found, strict=False) if c != before)

    names = [f"form:{at(0, str)}", f"shape:{at(0, kinds)}"]
    names += [f"word{i:+d}:{at(i, word)}" for i in range(-2, 3)]
    names += [f"words{i:+d}:{at(i, word)}/{at(i + 1, word)}" for i in (-1, 0)]
    for i, shortest, longest in ((0, 1, 4), (-1, 2, 3), (1, 2, 3)):
        for n in range(shortest, longest + 1):
            names.append(f"prefix{n}{i:+d}:{at(i, lambda v, n=n: v[:n])}")
            names.append(f"suffix{n}{i:+d}:{at(i, lambda v, n=n: v[-n:])}")
    names += [f"shape{i:+d}:{at(i, shape)}" for i in (-1, 0, 1)]
    names += [f"shapes{i:+d}:{at(i, shape)}/{at(i + 1, shape)}" for i in (-1, 0)]
    names.append("shapes:" + "/".join(at(i, shape) for i in (-1, 0, 1)))
    for length in (1, 2, 3):
        for first in range(-2, 4 - length):
            rows = range(first, first + length)
            name = "".join(f"{i:+d}" for i in rows)
            names.append(f"column1{name}:" + "/".join(at(i, str, 1) for i in rows))
    return {"U" + name for name in names}


words = st.text(alphabet="aBé-7\U0001f600", min_size=1, max_size=6)
sequences = st.lists(st.tuples(words, st.sampled_from(["N", "V"])), max_size=4)


@given(X=st.lists(sequences, min_size=1, max_size=3).filter(any))
@settings(max_examples=60, deadline=None)
def test_features_are_those_of_a_naive_twin(X):
    vectorizer = WordVectorizer()
    for batch in (vectorizer.fit_transform(X), vectorizer.transform(X)):
        found = vectorizer.inverse_transform(batch)
        for i, tokens in enumerate(X):
            expected = [naive_features(tokens, t) for t in range(len(tokens))]
            assert [set(features) for features in found[i]] == expected


def test_the_template_says_what_the_features_are():
    vectorizer = WordVectorizer(bigrams=False, affixes=2, gazetteers=PLACES).fit(X)
    assert "Uword-2:%x[-2,0|lower|digits]" in vectorizer.template_
    assert "Uplace+0:%x[0,2|matched]" in vectorizer.template_
    assert not any(line.startswith(("Uwords", "Uprefix3+0")) for line in vectorizer.template_)
    assert vectorizer.n_columns_ == 2
    plain = WordVectorizer().fit(X)
    twin = TemplateVectorizer(plain.template_).fit(X)
    assert plain.get_feature_names_out().tolist() == twin.get_feature_names_out().tolist()


@pytest.mark.parametrize(
    "name", ["window", "affixes", "context_affixes", "shapes", "column_window"]
)
def test_parameters_of_zero_leave_something_out(name):
    n_features = WordVectorizer().fit(X).n_features_
    assert WordVectorizer(**{name: 0}).fit(X).n_features_ < n_features


# Gazetteers and clusters. -------------------------------------------------------------------------


def naive_marks(entries, tokens):
    entries = {tuple(entry.casefold().split()) for entry in entries} - {()}
    marks, t = [], 0
    while t < len(tokens):
        lengths = [
            n
            for n in range(1, len(tokens) - t + 1)
            if tuple(word.casefold() for word in tokens[t : t + n]) in entries
        ]
        n = max(lengths, default=1)
        marks += (["S"] if n == 1 else ["B", *["I"] * (n - 2), "E"]) if lengths else [""]
        t += n
    return marks


@given(
    entries=st.lists(st.lists(st.sampled_from("aAbc"), max_size=4).map(" ".join), max_size=5),
    X=st.lists(st.lists(st.sampled_from("abBc"), max_size=7), min_size=1, max_size=4),
)
@settings(max_examples=200, deadline=None)
def test_longest_matches(entries, X):
    tokens = [word for sequence in X for word in sequence]
    values = sorted(set(tokens))
    codes = np.array([values.index(word) for word in tokens], np.int64)
    offsets = np.concatenate([[0], np.cumsum([len(sequence) for sequence in X])])
    marks, found = Gazetteer(entries)(values, codes, offsets)
    assert marks == MARKS
    expected = [mark for sequence in X for mark in naive_marks(entries, sequence)]
    assert [marks[code] for code in found] == expected


def test_gazetteers_mark_tokens_and_neighbours():
    vectorizer = WordVectorizer(gazetteers=PLACES)
    batches = vectorizer.fit_transform(X), vectorizer.transform(X)
    for found in map(vectorizer.inverse_transform, batches):
        marks = [{n for n in features if n.startswith("Uplace")} for features in found[0]]
        assert marks[0] == {"Uplace-1:_B-1"}
        assert marks[2] == {"Uplace+1:B"}
        assert marks[3] == {"Uplace+0:B", "Uplace+1:E"}
        assert marks[4] == {"Uplace-1:B", "Uplace+0:E", "Uplace+1:_B+1"}
        assert "Uplace+0:S" in found[2][0]
    new = vectorizer.inverse_transform(vectorizer.transform([[("in", "IN"), ("YORK", "NNP")]]))
    assert "Uplace+0:S" in new[0][1]


def test_clusters_are_looked_up_as_is_and_in_lower_case():
    vectorizer = WordVectorizer(clusters=CLUSTERS, cluster_prefixes=(2, 4))
    found = vectorizer.inverse_transform(vectorizer.fit_transform(X))
    assert {"Ucluster2+0:01", "Ucluster4+0:01", "Ucluster4+1:0010"} <= set(found[0][0])
    assert not any(name.startswith("Ucluster2+0") for name in found[0][2])


def test_words_alone():
    vectorizer = WordVectorizer(gazetteers=PLACES).fit([["New", "York"], ["Rome"]])
    assert vectorizer.n_columns_ == 1
    assert "Uplace+0:%x[0,1|matched]" in vectorizer.template_
    with pytest.raises(ValueError, match=r"Tokens have 2 column\(s\), but the vectorizer"):
        vectorizer.transform(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"gazetteers": {"a b": []}}, "name of a gazetteer must consist of letters, digits and _"),
        ({"gazetteers": {"a": "Rome"}}, "gazetteer 'a' must be a list of strings, got 'Rome'"),
        ({"gazetteers": {"a": iter(["Rome"])}}, "gazetteer 'a' must be a list of strings, got <"),
        ({"gazetteers": {"a": [1]}}, "entries of a gazetteer are strings, but one is 1"),
        ({"cluster_prefixes": (0,), "clusters": CLUSTERS}, "must be positive integers, got 0"),
        ({"window": -1}, "'window' parameter of WordVectorizer must be an int"),
        *(
            ({name: 2_000_000_000}, rf"'{name}' parameter .* an int in the range \[0, 1000\]")
            for name in ("window", "affixes", "context_affixes", "shapes", "column_window")
        ),
        ({"clusters": 3}, "'clusters' parameter of WordVectorizer must be"),
        ({"extra_template": 3}, "extra_template must be a string, the path of a file or a list"),
        ({"extra_template": "lines"}, "extra_template 'lines' has no macro such as"),
        ({"extra_template": ["U:%x[0,2]"]}, r"'U:%x\[0,2\]': there is no column 2; tokens have 2"),
        ({"extra_template": ["U:%x[0,0|x]"]}, r"'U:%x\[0,0\|x\]': .*x"),
        ({"min_freq": 100}, "No feature occurs in at least 100"),
    ],
)
def test_bad_parameters(parameters, message):
    vectorizer = WordVectorizer(**parameters)
    with pytest.raises(ValueError, match=message):
        vectorizer.fit(X)
    assert not hasattr(vectorizer, "template_")


def test_bad_tokens_are_named():
    with pytest.raises(ValueError, match="Sequence 0, token 1"):
        WordVectorizer().fit([["a", None]])
    with pytest.raises(NotFittedError):
        WordVectorizer().transform(X)


# As an estimator. ---------------------------------------------------------------------------------


def test_other_parameters_take_effect_at_the_next_fit():
    vectorizer = WordVectorizer(clusters=CLUSTERS).fit(X)
    vectorizer.set_params(clusters={"to": "1"}).fit(X)
    found = vectorizer.inverse_transform(vectorizer.transform(X))
    assert "Ucluster4+0:1" in found[0][2]
    assert not any(name.startswith("Ucluster4+0") for name in found[0][1])


CHANGES = {
    "other lists": {"gazetteers": {"place": ["york"], "x": []}, "clusters": {"new": "1"}},
    "no lists": {"gazetteers": None, "clusters": None},
    "other prefixes": {"cluster_prefixes": (1,)},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("stored_before", [False, True])
def test_changes_take_no_effect_before_the_next_fit(change, stored_before):
    vectorizer = WordVectorizer(gazetteers={"place": ["New York"]}, clusters=dict(CLUSTERS))
    expected = vectorizer.fit_transform(X)
    if stored_before:
        vectorizer = pickle.loads(pickle.dumps(vectorizer))
    vectorizer.gazetteers["place"].append("lives")
    vectorizer.clusters["lives"] = "1111"
    vectorizer.set_params(**CHANGES[change])
    with pytest.raises(ValueError, match="Sequence 0, token 1"):
        vectorizer.fit([["a", None]])
    stored = pickle.loads(pickle.dumps(vectorizer))
    for same in (vectorizer, stored):
        assert_same(same.transform(X), expected)
        assert same.get_params() == vectorizer.get_params()
    assert_same(stored.fit_transform(X), WordVectorizer(**vectorizer.get_params()).fit_transform(X))


def test_clones_have_the_same_lists():
    vectorizer = WordVectorizer(gazetteers=PLACES, clusters=CLUSTERS).fit(X)
    copy = clone(vectorizer)
    assert copy.get_params() == vectorizer.get_params()
    assert not hasattr(copy, "template_")


@pytest.mark.parametrize("fitted", [False, True])
def test_stored_lists_are_packed(fitted):
    gazetteers = {"place": [f"place {i}" for i in range(2000)]}
    clusters = {f"word{i}": bin(i)[2:] for i in range(2000)}
    vectorizer = WordVectorizer(gazetteers=gazetteers, clusters=clusters)
    if fitted:
        vectorizer.fit(X)
    stored = skops.io.dumps(vectorizer)
    assert len(stored) < 200_000
    types = skops.io.get_untrusted_types(data=stored)
    assert types == ["skstruct.WordVectorizer"]
    for same in (skops.io.loads(stored, trusted=types), pickle.loads(pickle.dumps(vectorizer))):
        assert same.gazetteers == gazetteers
        assert same.clusters == clusters
        if fitted:
            assert (same.transform(X).X != vectorizer.transform(X).X).nnz == 0
        same.fit(X)
        assert same.template_


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_threads_change_nothing(n_jobs):
    X, _ = load_addresses(return_X_y=True)
    X = [list(address) for address in X] * 4
    a, b = (WordVectorizer(n_jobs=n).fit(X).transform(X).X for n in (1, n_jobs))
    assert (a != b).nnz == 0


def test_in_a_grid_search():
    X, y = load_addresses(return_X_y=True)
    pipeline = make_pipeline(WordVectorizer(), CRFTagger(max_iter=5, tol=1.0))
    grid = {"wordvectorizer__affixes": [0, 3], "wordvectorizer__window": [0, 1]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X[:60], y[:60])
    assert search.best_score_ > 0.5
    assert len(set(search.cv_results_["mean_test_score"])) > 1


def test_lines_that_repeat_another_are_left_out():
    rng = np.random.default_rng(0)
    X = [["".join(rng.choice(list("甲乙丙丁戊"), 1)) for _ in range(10)] for _ in range(120)]
    vectorizer = WordVectorizer()
    batch = vectorizer.fit_transform(X)
    names = {line.partition(":")[0] for line in vectorizer.template_}
    assert not any(name.startswith(("Uprefix", "Usuffix")) for name in names)
    assert {"Uform", "Uword-1", "Uword+2", "Uwords-1", "Ushape", "B"} <= names
    # What is left is what a template of these lines makes, of new data too.
    twin = TemplateVectorizer(vectorizer.template_)
    assert_same(batch, twin.fit_transform(X))
    new = [["甲", "乙丙"], ["x1"]]
    assert_same(vectorizer.transform(new), twin.transform(new))
    # Of what was left out nothing is lost: those columns are others again.
    whole = TemplateVectorizer(vectorizer._make_lines(1)).fit_transform(X)
    columns = {column.tobytes() for column in batch.X.toarray().T}
    assert {column.tobytes() for column in whole.X.toarray().T} == columns


def test_lines_stay_where_words_are_longer_or_few():
    words = ["a", "Anna", "lives", "in", "York", "1999"]
    for n, others in ((1, ["甲", "乙"]), (300, words)):
        vectorizer = WordVectorizer().fit([others * 2] * n)
        assert "Uprefix2+0:%x[0,0|prefix2]" in vectorizer.template_
    # Gazetteers without a match, or with few, do not repeat each other.
    names = {"place": ["York"], "person": ["Anna"], "none": ["nowhere"], "other": ["nothing"]}
    vectorizer = WordVectorizer(gazetteers=names).fit([words * 2] * 300)
    for name in names:
        assert f"U{name}+0:" in " ".join(vectorizer.template_)


def test_lines_of_the_user_are_added(tmp_path):
    lines = ['Ucapital:%t[0,0,"^\\u"]', "Ujump:%x[-2,0]/%x[0,1]", "Uplace:%x[2,2|matched]"]
    (tmp_path / "lines").write_text("# mine\n" + "\n".join(lines))
    plain = WordVectorizer(gazetteers=PLACES).fit(X)
    for source in (lines, "\n".join(lines), tmp_path / "lines", str(tmp_path / "lines")):
        vectorizer = WordVectorizer(gazetteers=PLACES, extra_template=source)
        batch = vectorizer.fit_transform(X)
        names = set(vectorizer.get_feature_names_out())
        more = names - set(plain.get_feature_names_out())
        assert {"Ucapital:true", "Ucapital:false", "Ujump:Anna/TO", "Uplace:B"} <= more
        assert all(name.startswith(("Ucapital:", "Ujump:", "Uplace:")) for name in more)
        assert_same(batch, vectorizer.transform(X))
    same = skops.io.loads(skops.io.dumps(vectorizer), trusted=["skstruct.WordVectorizer"])
    assert_same(batch, same.transform(X))
    vectorizer = WordVectorizer(extra_template=["B1:%x[0,1]"]).fit(X)
    assert vectorizer.transform(X).n_transition_features == 4


def test_lines_of_the_user_stay_though_they_are_alike():
    # Each is "false" nearly everywhere, which is no reason to leave one of them out.
    X = [["a", "b", "c", "d"] * 30] * 20 + [["1", "-"]]
    lines = ['Udigit:%t[0,0,"^\\d"]', 'Udash:%t[0,0,"^\\p"]']
    vectorizer = WordVectorizer(extra_template=lines).fit(X)
    assert set(lines) <= set(vectorizer.template_)
    assert {"Udigit:true", "Udash:true"} <= set(vectorizer.get_feature_names_out())


def assert_same(batch, other):
    assert batch.X.shape == other.X.shape
    assert (batch.X != other.X).nnz == 0
