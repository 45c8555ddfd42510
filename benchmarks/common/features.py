"""Features of tokens: in Python for CRFsuite, and as templates for `TemplateVectorizer`."""

from itertools import groupby

# Text chunking: what the 19 templates of CRFsuite's example look at, as rows and columns.
NEIGHBOURS = [*((row,) for row in range(-2, 3)), (-1, 0), (0, 1)]
TAG_NEIGHBOURS = [
    *((row,) for row in range(-2, 3)),
    *((row, row + 1) for row in range(-2, 2)),
    *((row, row + 1, row + 2) for row in range(-2, 1)),
]
CHUNKING_PLACES = [
    [(row, column) for row in rows]
    for column, places in enumerate((NEIGHBOURS, TAG_NEIGHBOURS))
    for rows in places
]


def template_lines(name, places, functions=""):
    """Template lines ``name00:%x[row,column]/...``, one for each list of places."""
    return [
        f"{name}{i:02}:" + "/".join(f"%x[{row},{column}{functions}]" for row, column in tuples)
        for i, tuples in enumerate(places)
    ]


CHUNKING = template_lines("U", CHUNKING_PLACES)
# CRFsuite's names of the same features.
COLUMN_NAMES = ("w", "pos")
CRFSUITE_NAMES = [
    "|".join(f"{COLUMN_NAMES[column]}[{row}]" for row, column in places)
    for places in CHUNKING_PLACES
]


def crfsuite_attributes(tokens):
    """Attribute strings of each token of a sentence, as CRFsuite's chunking example makes them."""
    last = len(tokens) - 1
    lists = []
    for position in range(len(tokens)):
        strings = []
        for places, name in zip(CHUNKING_PLACES, CRFSUITE_NAMES, strict=True):
            found = [(position + row, column) for row, column in places]
            if found[0][0] >= 0 and found[-1][0] <= last:
                strings.append(name + "=" + "|".join([tokens[p][c] for p, c in found]))
        if position == 0:
            strings.append("__BOS__")
        if position == last:
            strings.append("__EOS__")
        lists.append(strings)
    return lists


def outside(t, length):
    """Stand-in for a token outside of the sentence, as in CRF++; None for one inside."""
    if t < 0:
        return f"_B{t}"
    return f"_B+{t - length + 1}" if t >= length else None


def shape(word):
    """Kinds of characters of a word, without repetitions: "Xx-9" of "Boeing-747"."""

    def kind(c):
        if c.isalpha():
            return "X" if c.isupper() else "x"
        return "9" if c.isdigit() else c

    return "".join(c for c, _ in groupby(map(kind, word)))


# Functions of a sentence and a position: pairs of the name and the value of each feature. ---------


def chunking_features(sentence, t):
    """Features of text chunking, those of `CHUNKING`."""
    for i, places in enumerate(CHUNKING_PLACES):
        values = []
        for row, column in places:
            edge = outside(t + row, len(sentence))
            values.append(edge or sentence[t + row][column])
        yield f"U{i:02}", "/".join(values)


SPELLING_TESTS = {"isupper": str.isupper, "istitle": str.istitle, "isdigit": str.isdigit}


def entity_features(sentence, t):
    """Features of named entities, those of sklearn-crfsuite's tutorial."""
    word, tag = sentence[t]
    yield "U", "bias"
    yield "Ulower", word.lower()
    yield "Usuffix3", word[-3:]
    yield "Usuffix2", word[-2:]
    for name, test in SPELLING_TESTS.items():
        if test(word):
            yield f"U{name}", "True"
    yield "Utag", tag
    yield "Utag2", tag[:2]
    for row in (-1, 1):
        edge = outside(t + row, len(sentence))
        word, tag = (edge, edge) if edge else sentence[t + row]
        yield f"U{row:+}lower", edge or word.lower()
        yield f"U{row:+}tag", tag
        yield f"U{row:+}tag2", edge or tag[:2]
        for name in ("istitle", "isupper"):
            if edge or SPELLING_TESTS[name](word):
                yield f"U{row:+}{name}", edge or "True"


def tutorial_features(sentence, t):
    """Features of sklearn-crfsuite's tutorial as it writes them; of the tag, where there is one."""
    word, *tags = sentence[t]
    yield "bias", 1.0
    yield "word.lower()", word.lower()
    yield "word[-3:]", word[-3:]
    yield "word[-2:]", word[-2:]
    for name, test in SPELLING_TESTS.items():
        yield f"word.{name}()", test(word)
    for tag in tags:
        yield "postag", tag
        yield "postag[:2]", tag[:2]
    for row, edge in ((-1, "BOS"), (1, "EOS")):
        if outside(t + row, len(sentence)):
            yield edge, True
            continue
        word, *tags = sentence[t + row]
        yield f"{row:+}:word.lower()", word.lower()
        for name in ("istitle", "isupper"):
            yield f"{row:+}:word.{name}()", SPELLING_TESTS[name](word)
        for tag in tags:
            yield f"{row:+}:postag", tag
            yield f"{row:+}:postag[:2]", tag[:2]


def word_features(sentence, t):
    """Features of biomedical entities: words and spelling, no tags."""
    near = [outside(t + row, len(sentence)) or sentence[t + row][0].lower() for row in range(-2, 3)]
    yield "U", "bias"
    for row, word in zip(range(-2, 3), near, strict=True):
        yield f"U{row:+}", word
    yield "U-1/0", f"{near[1]}/{near[2]}"
    yield "U0/1", f"{near[2]}/{near[3]}"
    word = sentence[t][0]
    for n in range(1, 5):
        yield f"Uprefix{n}", word[:n]
        yield f"Usuffix{n}", word[-n:]
    for row in (-1, 0, 1):
        yield f"Ushape{row:+}", outside(t + row, len(sentence)) or shape(sentence[t + row][0])


def feature_dicts(features, sentence):
    """A dict for each token of a sentence."""
    return [dict(features(sentence, t)) for t in range(len(sentence))]


def feature_strings(features, sentence):
    """A list of attribute strings for each token of a sentence."""
    return [
        [f"{name}:{value}" for name, value in features(sentence, t)] for t in range(len(sentence))
    ]


# Templates. ---------------------------------------------------------------------------------------

# The features of `entity_features`.
ENTITY_FUNCTIONS = {
    **{name: lambda word, test=test: test(word) or None for name, test in SPELLING_TESTS.items()},
    "all": lambda word: "bias",
}
ENTITIES = [
    "U:%x[0,0|all]",
    "Ulower:%x[0,0|lower]",
    "Usuffix3:%x[0,0|suffix3]",
    "Usuffix2:%x[0,0|suffix2]",
    *(f"U{name}:%x[0,0|{name}]" for name in SPELLING_TESTS),
    "Utag:%x[0,1]",
    "Utag2:%x[0,1|prefix2]",
    *(
        f"U{row:+}{name}:%x[{row},{source}]"
        for row in (-1, 1)
        for name, source in (
            ("lower", "0|lower"),
            ("istitle", "0|istitle"),
            ("isupper", "0|isupper"),
            ("tag", "1"),
            ("tag2", "1|prefix2"),
        )
    ),
]

# Words without case and digits, and spelling.
WORDS = template_lines("U", [[(row, 0) for row in rows] for rows in NEIGHBOURS], "|lower|digits")
SPELLING = [
    *(f"UP{n}:%x[0,0|prefix{n}]" for n in range(1, 6)),
    *(f"US{n}:%x[0,0|suffix{n}]" for n in range(1, 6)),
    "UX0:%x[0,0|shape]",
    "UX1:%x[0,0|shortshape]",
    'UX2:%t[0,0,"\\u"]%t[0,0,"\\d"]%t[0,0,"-"]',
]
NEIGHBOUR_SHAPES = ["UX3:%x[-1,0|shortshape]", "UX4:%x[1,0|shortshape]"]
# Three words, and spelling without the longest affixes: as many features as the SDCA paper's.
TAGGING = [
    *WORDS[1:4],
    *(line for line in SPELLING if not line.startswith(("UP5", "US5", "UX2"))),
]
CHARACTER_ROWS = [*((row,) for row in range(-2, 3)), *((r, r + 1) for r in range(-2, 2)), (-1, 1)]
CHARACTERS = template_lines("U", [[(row, 0) for row in rows] for rows in CHARACTER_ROWS])
