"""Tagger in one file, with Python's standard library alone.

`skstruct.export` copies this file word for word and writes the data of a model below it. Sections:
the file and its data, characters, features, scores, labellings, chunks, the tagger, the command.
`runtime.js` is the same in JavaScript.

States of a chain of first order are labels. From the second token on, states of a chain of second
order are pairs of labels. A `_Step` lists the transitions into each state, so that everything below
is written once for both.
"""

import binascii
import json
import sys
import zlib
from array import array
from bisect import bisect_right
from collections import namedtuple
from itertools import accumulate, count
from math import exp, inf, isfinite, log
from operator import add, itemgetter

Labelling = namedtuple("Labelling", "labels score probability")
Span = namedtuple("Span", "start end type probability")

# ------------------------------------------------------------------------- the file and its data

END = b"# The end of the model."


def require_whole(names):
    """Raise an ImportError if the file of a module, given its global names, was cut off."""
    try:
        text = names["__loader__"].get_data(names["__file__"])
    except (AttributeError, KeyError, OSError, TypeError):
        return  # The text stands in no file, and whoever runs it has the whole of it.
    if names["__file__"].endswith(".py") and not text.rstrip().endswith(END):
        raise ImportError(f"{names['__file__']} was cut off: copy the whole file again.")


if __name__ != "skstruct.export.runtime":
    require_whole(globals())


def verified(text, length, checksum):
    """Read the data of a model; an ImportError unless they are what was written."""
    whole = len(text) == length
    if not whole or zlib.crc32(text.encode("utf-8", "surrogatepass")) != checksum:
        raise ImportError("The data of the model were cut off or changed: copy the file again.")
    return json.loads(text)


def _numbers(packed):
    """Array of numbers, from the code of their type and their bytes."""
    code, text = packed
    found = array(code)
    found.frombytes(binascii.a2b_base64(text))
    if sys.byteorder == "big":
        found.byteswap()
    return found


class _Rows:
    """Rows of numbers, most of them zero."""

    def __init__(self, packed):
        counts, columns, values = map(_numbers, packed)
        self.starts = list(accumulate(counts, initial=0))
        # Reading an array makes an object each time.
        self.columns, self.values = columns.tolist(), values.tolist()

    def add(self, i, scale, row):
        """Add a multiple of row `i` to a list."""
        for k in range(self.starts[i], self.starts[i + 1]):
            row[self.columns[k]] += scale * self.values[k]

    def dense(self, n_columns):
        """All rows as lists."""
        rows = [[0.0] * n_columns for _ in self.starts[1:]]
        for i, row in enumerate(rows):
            self.add(i, 1.0, row)
        return rows


# ------------------------------------------------------------------------------------ characters


class _Set:
    """Characters, by the code points at which membership changes."""

    def __init__(self, steps):
        self._edges = list(accumulate(steps))

    def __contains__(self, character):
        return bisect_right(self._edges, ord(character)) % 2 == 1


class _Table(dict):
    """Results of a function of characters, each computed once."""

    def __init__(self, function):
        super().__init__()
        self._function = function

    def __missing__(self, character):
        result = self[character] = self._function(character)
        return result


class _Characters:
    """Functions of texts, by the Unicode of the Python that wrote the model."""

    def __init__(self, sets, maps):
        self.sets = {name: _Set(steps) for name, steps in sets}
        self._maps = {name: _as_map(*packed) for name, packed in maps}
        self._shapes = _Table(self._shape_of)

    def _shape_of(self, c):
        for name, shape in (("upper", "X"), ("alpha", "x"), ("digit", "d")):
            if c in self.sets[name]:
                return shape
        return c

    def shape(self, value):
        """Capitals as X, other letters as x, and digits as d."""
        return "".join(map(self._shapes.__getitem__, value))

    def short_shape(self, value):
        """The shape, with each run of a character as one."""
        shape = self.shape(value)
        return "".join(c for i, c in enumerate(shape) if shape[i - 1 : i] != c)

    def digits(self, value):
        """Every digit as 0."""
        return "".join("0" if c in self.sets["decimal"] else c for c in value)

    def fold(self, value):
        """Text whose case does not count."""
        return value.casefold() if value.isascii() else value.translate(self._maps["fold"])

    def lower(self, value):
        """Text in lower case; a sigma at the end of a word has a form of its own."""
        if value.isascii():
            return value.lower()
        table = self._maps["lower"]
        if "\u03a3" not in value:
            return value.translate(table)
        return "".join(
            "\u03c2" if c == "\u03a3" and self._ends_word(value, i) else table.get(ord(c), c)
            for i, c in enumerate(value)
        )

    def _ends_word(self, value, i):
        return self._is_cased(reversed(value[:i])) and not self._is_cased(value[i + 1 :])

    def _is_cased(self, characters):
        counts = (c for c in characters if c not in self.sets["ignorable"])
        return next(counts, "0") in self.sets["cased"]


def _as_map(runs, others):
    """Texts by code point: runs of first, number, stride and distance, and others."""
    found = dict(others)
    for first, n, stride, distance in zip(*[iter(runs)] * 4, strict=True):
        found.update((c, chr(c + distance)) for c in range(first, first + n * stride, stride))
    return found


def _search(atoms, at_start, at_end):
    """Function from a text to the first match of a pattern, or None.

    An atom is a test of a character, and how often it may be: once (""), or at most once ("?"), or
    any number of times ("*"). The former wants as many as possible, the latter as few as possible.
    """

    def match(text, i, place, failed):
        while i < len(atoms) and not atoms[i][1]:
            if place == len(text) or not atoms[i][0](text[place]):
                return -1
            i, place = i + 1, place + 1
        if i == len(atoms):
            return -1 if at_end and place < len(text) else place
        if (i, place) in failed:
            return -1
        test, repeat = atoms[i]
        end = -1
        if repeat == "?" and place < len(text) and test(text[place]):
            end = match(text, i + 1, place + 1, failed)
        if repeat == "?" and end < 0:
            end = match(text, i + 1, place, failed)
        while repeat == "*":
            end = match(text, i + 1, place, failed)
            if end >= 0 or place == len(text) or not test(text[place]):
                break
            place += 1
        if end < 0:
            failed.add((i, place))
        return end

    def find(text):
        failed = set()
        for start in range(1 if at_start else len(text) + 1):
            end = match(text, 0, start, failed)
            if end >= 0:
                return text[start:end]
        return None

    return find


# -------------------------------------------------------------------------------------- features

# Results of functions that are remembered, before all are forgotten.
_MOST_RESULTS = 1 << 16


def _affix(side, n):
    return itemgetter(slice(n) if side == "prefix" else slice(-n, None))


class _Columns:
    """Features of tokens that are words, or words and further columns, by a template."""

    def __init__(self, data):
        self._n_columns = data["n_columns"]
        self._characters = _Characters(data["sets"], data["maps"])
        self._lists = [_Gazetteer(entries, self._characters) for entries in data["gazetteers"]]
        self._clusters = dict(zip(*data["clusters"], strict=True))
        words, which, values = data["statistics"]
        self._statistics = {word: values[i] for word, i in zip(words, which, strict=True)}
        self._keeps_case = data["keeps_case"]
        self._sources = [
            (column, [self._function(*step) for step in steps]) for column, steps in data["sources"]
        ]
        self._results = [{} for _ in self._sources]
        self._lines = data["lines"]
        offsets = [abs(macro[1]) for _, macros in self._lines for macro in macros if not macro[2]]
        self._margin = max(offsets, default=0)

    def _function(self, name, *options):
        if name in ("prefix", "suffix"):
            return _affix(name, *options)
        if name == "match":
            return self._match(*options)
        if name == "cluster":
            return lambda word: self._cluster(word, *options)
        return {
            "lower": self._characters.lower,
            "digits": self._characters.digits,
            "shape": self._characters.shape,
            "shortshape": self._characters.short_shape,
            "length": lambda value: str(len(value)),
            "matched": lambda mark: mark or None,
            "labels": self._label,
        }[name]

    def _match(self, tells, atoms, at_start, at_end):
        tests = {
            "any": lambda _: lambda c: True,
            "is": lambda one: one.__eq__,
            "in": lambda name: self._characters.sets[name].__contains__,
        }
        find = _search([(tests[kind](of), often) for kind, of, often in atoms], at_start, at_end)
        if tells:
            return lambda value: "false" if find(value) is None else "true"
        return lambda value: find(value) or ""

    def _cluster(self, word, n):
        found = self._clusters.get(word, self._clusters.get(self._characters.lower(word)))
        return None if found is None else found[:n]

    def _label(self, word):
        word = word if self._keeps_case else self._characters.lower(word)
        return self._statistics.get(word, "new")

    def _read(self, tokens):
        """Columns of the tokens, the columns of the lists last."""
        n, rows = self._n_columns, []
        for t, token in enumerate(tokens):
            values = [token] if isinstance(token, (str, int)) else token
            if not isinstance(values, (list, tuple)) or len(values) != n:
                raise ValueError(f"Token {t} is {token!r}; expected {n} column(s), strings.")
            for value in values:
                if not isinstance(value, (str, int)):
                    raise ValueError(f"Token {t} has the column {value!r}; expected a string.")
            rows.append(list(map(str, values)))
        columns = list(map(list, zip(*rows, strict=True)))
        return columns + [find(columns[0]) for find in self._lists]

    def _source(self, number, values):
        """Values of a column after its functions; None where they give none."""
        results, (_, functions) = self._results[number], self._sources[number]
        if not functions:
            return values
        if len(results) > _MOST_RESULTS:
            results = self._results[number] = {}
        for value in values:
            if value not in results:
                result = value
                for function in functions:
                    result = None if result is None else function(result)
                results[value] = result
        return [results[value] for value in values]

    def names(self, tokens):
        """Names of the features of each token; each has the value 1."""
        found, n, m = [[] for _ in tokens], len(tokens), self._margin
        if not n:
            return found
        columns = self._read(tokens)
        sources = [self._source(i, columns[c]) for i, (c, _) in enumerate(self._sources)]
        before, after = ([f"_B{sign}{i}" for i in range(1, m + 1)] for sign in "-+")
        padded = [[*reversed(before), *values, *after] for values in sources]
        for literals, macros in self._lines:
            parts = [
                [_at(sources[i], offset)] * n if absolute else padded[i][m + offset :][:n]
                for i, offset, absolute in macros
            ]
            first, *others = literals
            if len(parts) == 1:
                (last,) = others
                for names, value in zip(found, parts[0], strict=True):
                    if value is not None:
                        names.append(first + value + last)
                continue
            for t, names in enumerate(found):
                values = [part[t] for part in parts]
                if None not in values:
                    names.append(first + "".join(map(add, values, others)))
        return found

    def read(self, tokens):
        """Names of the features of each token, and pairs of name and value of the others."""
        return [(names, ()) for names in self.names(tokens)]


def _at(values, position):
    """Value at a position counted from 1, or from -1 at the end."""
    place = position - 1 if position > 0 else len(values) + position
    if place < 0:
        return f"_B-{-place}"
    return values[place] if place < len(values) else f"_B+{place - len(values) + 1}"


class _Gazetteer:
    """Marks of the tokens that are part of a name in a list."""

    def __init__(self, entries, characters):
        self._entries, self._longest, self._fold = set(entries), {}, characters.fold
        for entry in entries:
            first, n = entry.partition(" ")[0], entry.count(" ") + 1
            self._longest[first] = max(self._longest.get(first, 0), n)

    def __call__(self, words):
        # No word of a list has a blank.
        words = ["" if " " in word else self._fold(word) for word in words]
        marks, t = [""] * len(words), 0
        while t < len(words):
            n = min(self._longest.get(words[t], 0), len(words) - t)
            while n and " ".join(words[t : t + n]) not in self._entries:
                n -= 1
            if n:
                marks[t : t + n] = ["S"] if n == 1 else ["B", *["I"] * (n - 2), "E"]
            t += max(n, 1)
        return marks


class _Attributes:
    """Features of tokens that are dicts, or collections of attribute strings."""

    def __init__(self, data):
        self._is_single = data["single"]

    def read(self, tokens):
        """Names of the features of each token, and pairs of name and value of the others."""
        found = []
        for t, token in enumerate(tokens):
            names, others = [], []
            is_dict = isinstance(token, dict)
            if not is_dict and not _are_strings(token):
                raise ValueError(f"Token {t} is {token!r}; expected a dict, or a list of strings.")
            self._add(t, "", token, names, others) if is_dict else names.extend(token)
            found.append((names, others))
        return found

    def _add(self, t, prefix, features, names, others):
        for key, value in features.items():
            if not isinstance(key, str):
                raise ValueError(f"Token {t}: the name {key!r} of a feature is not a string.")
            name = prefix + key
            if isinstance(value, str):
                names.append(f"{name}:{value}")
            elif isinstance(value, dict):
                self._add(t, name + ":", value, names, others)
            elif _are_strings(value):
                names += [f"{name}:{one}" for one in value]
            elif isinstance(value, (int, float)) and _is_finite(value):
                others.append((name, self._rounded(float(value))))
            else:
                raise ValueError(
                    f"Token {t}: feature {name!r} is {value!r}; expected a string, a bool, a "
                    "finite number, a dict of these, or a list of strings."
                )

    def _rounded(self, value):
        return array("f", [value])[0] if self._is_single else value


def _is_finite(value):
    try:
        return isfinite(value)
    except OverflowError:
        return False


def _are_strings(values):
    is_collection = isinstance(values, (list, tuple, set, frozenset))
    return is_collection and all(isinstance(value, str) for value in values)


# ---------------------------------------------------------------------------------------- scores


class _Step:
    """Transitions into each state of a token: states before, in order, and scores."""

    def __init__(self, labels, sources, scores):
        self.labels, self.sources, self.scores = labels, sources, scores

    def sums(self, s, previous):
        """Scores of the states before, plus the scores of the transitions into a state."""
        sources, scores = self.sources[s], self.scores[s]
        if len(sources) == len(previous):
            return list(map(add, previous, scores))
        return [previous[i] + score for i, score in zip(sources, scores, strict=True)]


def _steps(n, transition, triple):
    """Labels of the states of the first token, the step to the second one, and to all others."""
    labels = list(range(n))
    before = [[i for i in labels if transition[i][j] > -inf] for j in labels]
    into = [[transition[i][j] for i in before[j]] for j in labels]
    if not triple:
        step = _Step(labels, before, into)
        return labels, step, step
    pairs = [(i, j) for j in labels for i in before[j]]
    second = _Step([j for _, j in pairs], [[i] for i, _ in pairs], [[x] for xs in into for x in xs])
    ending = list(accumulate(map(len, before), initial=0))
    sources = [list(range(ending[i], ending[i + 1])) for i, _ in pairs]
    scores = [[transition[j][k] + triple[i * n + j][k] for i in before[j]] for j, k in pairs]
    return labels, second, _Step(second.labels, sources, scores)


def _all_names(groups, between):
    """Names of features, of which those that begin alike are given together."""
    names = []
    for prefix, rests in groups:
        # As one text, in few calls.
        names += (prefix + rests.replace(between, between + prefix)).split(between)
    return names


class _Chain:
    """Scores of labels and of transitions."""

    def __init__(self, data):
        n = len(data["labels"])
        self._bias, self._start, self._end = (
            list(_numbers(data[name])) for name in ("bias", "start", "end")
        )
        triple = data["triple"] and _Rows(data["triple"]).dense(n)
        self.labels, *self._steps = _steps(n, _Rows(data["transition"]).dense(n), triple)
        self._place = dict(zip(_all_names(data["names"], data["between"]), count()))
        self._weights = _Rows(data["weights"])

    def step(self, t):
        """Transitions into token `t`, from the second token on."""
        return self._steps[min(t, 2) - 1]

    def labels_at(self, t):
        """Labels of the states of a token."""
        return self.step(t).labels if t else self.labels

    def rows(self, tokens):
        """Scores of the states of each token, from the names and values of its features."""
        found, place, weights = [], self._place.get, self._weights
        starts, columns, values = weights.starts, weights.columns, weights.values
        for names, others in tokens:
            row = self._bias[:]
            for name in names:
                i = place(name)
                if i is not None:
                    for k in range(starts[i], starts[i + 1]):
                        row[columns[k]] += values[k]
            for name, value in others:
                i = place(name)
                if i is not None:
                    weights.add(i, value, row)
            found.append(row)
        if found:
            found[0] = list(map(add, found[0], self._start))
            found[-1] = list(map(add, found[-1], self._end))
        second, later = self._steps
        if second is not later:
            found[1:] = [[row[k] for k in second.labels] for row in found[1:]]
        return found


# ------------------------------------------------------------------------------------ labellings


def _impossible():
    return ValueError("The constraint of the model leaves no labelling of these tokens.")


def _best_states(chain, rows):
    """Viterbi: states of the best labelling; of equal ones, the first."""
    prefix, back = rows[0], [None]
    for t in range(1, len(rows)):
        step, row, places, best = chain.step(t), rows[t], [], []
        for s, sources in enumerate(step.sources):
            sums = step.sums(s, prefix) or [-inf]
            top = max(sums)
            best.append(top + row[s])
            places.append(sources[sums.index(top)] if sources else 0)
        prefix = best
        back.append(places)
    top = max(prefix)
    if top == -inf:
        raise _impossible()
    states = [prefix.index(top)]
    for places in reversed(back[1:]):
        states.append(places[states[-1]])
    return states[::-1]


def _log_sum(values):
    """Logarithm of the sum of exponentials."""
    top = max(values, default=-inf)
    if top == -inf:
        return -inf
    return top + log(sum([exp(value - top) for value in values]))


def _forward(chain, rows):
    """Logarithms of the sums over all that ends with each state, and over all labellings."""
    alpha = [rows[0]]
    for t in range(1, len(rows)):
        step, row, previous = chain.step(t), rows[t], alpha[-1]
        alpha.append([x + _log_sum(step.sums(s, previous)) for s, x in enumerate(row)])
    total = _log_sum(alpha[-1])
    if total == -inf:
        raise _impossible()
    return alpha, total


def _backward(chain, rows):
    """Logarithms of the sums over all that follows each state."""
    beta = [[0.0] * len(rows[-1])]
    for t in range(len(rows) - 1, 0, -1):
        step, after = chain.step(t), list(map(add, rows[t], beta[-1]))
        terms = [[] for _ in rows[t - 1]]
        for s, sources in enumerate(step.sources):
            for i, score in zip(sources, step.scores[s], strict=True):
                terms[i].append(score + after[s])
        beta.append(list(map(_log_sum, terms)))
    return beta[::-1]


def _normalised(values):
    total = sum(values)
    if not 0.5 < total < 2.0:
        raise ValueError("Scores are so large that probabilities are lost in rounding.")
    return [value / total for value in values]


def _marginals(chain, rows):
    """Probabilities of the states of each token, and the backward sums."""
    (alpha, total), beta = _forward(chain, rows), _backward(chain, rows)
    found = [
        _normalised([exp(a + b - total) for a, b in zip(*both, strict=True)])
        for both in zip(alpha, beta, strict=True)
    ]
    return found, beta


def _n_best(chain, rows, n):
    """States of the n best labellings and their scores, best first."""
    # An entry is a score, the state before, and the place among the entries of that state.
    lists = [[[(x, 0, 0)] for x in rows[0]]]
    for t in range(1, len(rows)):
        step, previous, found = chain.step(t), lists[-1], []
        for s, x in enumerate(rows[t]):
            found.append([(y + x, i, k) for y, i, k in _first(n, previous, step, s)])
        lists.append(found)
    ends = [
        (entry[0], s, k) for s, entries in enumerate(lists[-1]) for k, entry in enumerate(entries)
    ]
    return [(score, _follow(lists, s, k)) for score, s, k in _sorted(ends)[:n] if score > -inf]


def _first(n, previous, step, s):
    entries = [
        (entry[0] + score, i, k)
        for i, score in zip(step.sources[s], step.scores[s], strict=True)
        for k, entry in enumerate(previous[i])
        if entry[0] > -inf
    ]
    return _sorted(entries)[:n]


def _sorted(entries):
    return sorted(entries, key=itemgetter(0), reverse=True)


def _follow(lists, s, k):
    """States of a labelling, from its last entry."""
    states = []
    for entries in reversed(lists):
        states.append(s)
        _, s, k = entries[s][k]
    return states[::-1]


# ---------------------------------------------------------------------------------------- chunks


class _Chunks:
    """Probabilities of spans, and the choice among them.

    The probability that tokens ``a`` to ``b - 1`` are a chunk is a sum over paths through labels
    that go on with each other: the chunk begins at ``a``, goes on, and ends before ``b``.
    """

    def __init__(self, data, chain):
        self.types, self._separable = data["types"], data["separable"]
        self._kinds, self._chain = data["kinds"], chain
        self._goes_on = list(map(set, data["goes_on"]))

    def choose(self, rows, threshold):
        """Start, end, number of the type and probability of the chunks that are chosen."""
        begins, ends, inside = self._paths(rows)
        choice = _Choice(len(rows), threshold, self._separable)
        for t, open_ in enumerate(begins):
            choice.settle(t)
            kinds = self._kinds_at(t)
            for kind in range(len(self.types)):
                mass = {s: p for s, p in open_.items() if kinds[s] == kind}
                end = t
                while sum(mass.values()) > threshold:
                    p = sum(q * ends[end].get(s, 0.0) for s, q in mass.items())
                    if p > threshold:
                        choice.push(t, end + 1, kind, p)
                    end += 1
                    if end == len(rows):
                        break
                    mass = _extended(mass, inside[end])
        choice.settle(len(rows))
        return choice.trace()

    def _kinds_at(self, t):
        return [self._kinds[label] for label in self._chain.labels_at(t)]

    def _paths(self, rows):
        """At each token, what begins in a state, the share of it that ends, and what goes on."""
        proba, beta = _marginals(self._chain, rows)
        kinds = self._kinds_at(0)
        begins = [{s: p for s, p in enumerate(proba[0]) if kinds[s] >= 0}]
        ends, inside = [], [[]]
        for t in range(1, len(rows)):
            before, after = self._chain.labels_at(t - 1), self._chain.labels_at(t)
            opens, closes, goes_on = {}, {}, []
            for i, s, p in self._moves(rows, beta, t):
                if after[s] in self._goes_on[before[i]]:
                    goes_on.append((i, s, p))
                    continue
                if self._kinds[after[s]] >= 0:
                    opens[s] = opens.get(s, 0.0) + proba[t - 1][i] * p
                closes[i] = closes.get(i, 0.0) + p
            begins.append(opens)
            ends.append(closes)
            inside.append(goes_on)
        ends.append(dict.fromkeys(range(len(rows[-1])), 1.0))
        return begins, ends, inside

    def _moves(self, rows, beta, t):
        """Probability of each state of a token after each state of the one before."""
        step, before = self._chain.step(t), beta[t - 1]
        for s, sources in enumerate(step.sources):
            after = rows[t][s] + beta[t][s]
            for i, score in zip(sources, step.scores[s], strict=True):
                if after > -inf and before[i] > -inf:
                    yield i, s, exp(score + after - before[i])


def _extended(mass, moves):
    found = {}
    for i, s, p in moves:
        if i in mass:
            found[s] = found.get(s, 0.0) + mass[i] * p
    return found


class _Choice:
    """The spans without overlap whose sum of ``probability - threshold`` is largest.

    Of the spans that end before a token, the best one is kept, and the best one of another type: a
    chunk of some types cannot follow one of the same type at once.
    """

    def __init__(self, length, threshold, separable):
        self._threshold, self._separable = threshold, separable
        self._best, self._other = [0.0] * (length + 1), [0.0] * (length + 1)
        # Sum, start, kind and probability.
        self._spans = [[(-inf, 0, -1, 0.0)] * 2 for _ in range(length + 1)]

    def settle(self, t):
        """Add up the spans that end by token `t`: all that start before are there."""
        high = self._best[t - 1] if t else 0.0
        self._best[t], self._other[t] = (max(high, span[0]) for span in self._spans[t])

    def _runs_on(self, t, kind):
        span = self._spans[t][0]
        if self._separable[kind] or t == 0 or span[2] != kind:
            return False
        return span[0] > self._best[t - 1]

    def push(self, start, end, kind, p):
        """Take a span; of equal ones the last."""
        before = (self._other if self._runs_on(start, kind) else self._best)[start]
        total, spans = before + p - self._threshold, self._spans[end]
        if total >= spans[0][0]:
            if spans[0][2] != kind:
                spans[1] = spans[0]
            spans[0] = total, start, kind, p
        elif kind != spans[0][2] and total >= spans[1][0]:
            spans[1] = total, start, kind, p

    def trace(self):
        """Return the spans in order."""
        t, place, found = len(self._best) - 1, 0, []
        while t:
            total, start, kind, p = self._spans[t][place]
            if not total > self._best[t - 1]:
                t, place = t - 1, 0
                continue
            found.append((start, t, kind, min(p, 1.0)))
            t, place = start, int(self._runs_on(start, kind))
        return found[::-1]


def _write_chunk(labels, start, end, kind, letters):
    """Write the labels of a chunk into a list, after the chunks before it."""
    first, inner, last, only, opens, closes = letters
    tail, before = "" if kind == "_" else f"-{kind}", labels[start - 1] if start else "O"
    n = end - start
    found = [only] if n == 1 else [first, *[inner] * (n - 2), last]
    if before != "O" and before[1:] == tail:
        found[0] = opens or found[0]
        labels[start - 1] = closes + tail if closes else before
    labels[start:end] = [letter + tail for letter in found]


# ------------------------------------------------------------------------------------ the tagger


class Tagger:
    """A model; `tokens` belong to one sentence.

    A token is a word or, if the model has further columns, a list of columns. Models of feature
    dicts and of attribute strings take both of these.
    """

    def __init__(self, data):
        self.labels = data["labels"]
        self.threshold = data["threshold"]
        self.version, self.date = data["skstruct"], data["date"]
        self.reads_words = data["input"] == "columns" and data["n_columns"] == 1
        self.reads_columns = data["input"] == "columns"
        self._features = (_Columns if self.reads_columns else _Attributes)(data)
        self._chain = _Chain(data)
        self._no_chunks, self._scheme = data["no_chunks"], data["scheme"]
        self._chunks = None if self._no_chunks else _Chunks(data["chunks"], self._chain)

    def _rows(self, tokens):
        if not isinstance(tokens, (list, tuple)):
            raise ValueError(f"tokens is {tokens!r}; expected a list of the tokens of a sentence.")
        return self._chain.rows(self._features.read(tokens))

    def _names(self, states):
        return [self.labels[self._chain.labels_at(t)[s]] for t, s in enumerate(states)]

    def features(self, tokens):
        """Names of the features of each token whose value is 1, known or not."""
        return [list(names) for names, _ in self._features.read(tokens)]

    def tag(self, tokens):
        """Find the label of each token."""
        rows = self._rows(tokens)
        if self._scheme is not None and rows:
            return self._labels_of_chunks(rows)
        return self._names(_best_states(self._chain, rows)) if rows else []

    def _labels_of_chunks(self, rows):
        types = self._chunks.types
        labels = ["O"] * len(rows)
        if not isinstance(types[0], str):
            labels = self._names(_best_states(self._chain, rows))
        for start, end, kind, _ in self._chunks.choose(rows, self.threshold):
            if self._scheme:
                _write_chunk(labels, start, end, types[kind], self._scheme)
            else:
                labels[start:end] = [types[kind]] * (end - start)
        return labels

    def probabilities(self, tokens):
        """Find the probability of each label at each token: a list of dicts."""
        rows = self._rows(tokens)
        found = []
        for t, proba in enumerate(_marginals(self._chain, rows)[0] if rows else []):
            by_label = dict.fromkeys(self.labels, 0.0)
            for label, p in zip(self._chain.labels_at(t), proba, strict=True):
                by_label[self.labels[label]] += p
            found.append(by_label)
        return found

    def spans(self, tokens, threshold=None):
        """Find chunks that are probable enough: ``(start, end, type, probability)``."""
        threshold = self.threshold if threshold is None else threshold
        if not isinstance(threshold, (int, float)) or not 0 <= threshold <= 1:
            raise ValueError(f"threshold must be a number from 0 to 1, got {threshold!r}.")
        if self._no_chunks:
            raise ValueError(self._no_chunks)
        rows = self._rows(tokens)
        found = self._chunks.choose(rows, threshold) if rows else []
        return [Span(start, end, self._chunks.types[kind], p) for start, end, kind, p in found]

    def nbest(self, tokens, n=5):
        """Find the n best labellings, best first: ``(labels, score, probability)``."""
        if not isinstance(n, int) or n < 1:
            raise ValueError(f"n must be a positive integer, got {n!r}.")
        rows = self._rows(tokens)
        if not rows:
            return [Labelling([], 0.0, 1.0)]
        _, total = _forward(self._chain, rows)
        return [
            Labelling(self._names(states), score, exp(min(score - total, 0.0)))
            for score, states in _n_best(self._chain, rows, n)
        ]


# ----------------------------------------------------------------------------------- the command


def _sentences(tagger, lines):
    """Sentences of a text: a line each; or a token a line, and empty lines between sentences."""
    sentence = []
    for line in lines:
        line = line.rstrip("\r\n")
        if tagger.reads_words:
            yield line.split()
        elif line.strip():
            sentence.append(line.split() if tagger.reads_columns else line.split("\t"))
        elif sentence:
            yield sentence
            sentence = []
    if sentence:
        yield sentence


def _shown(*fields):
    """Line of fields, without what would end a field or a line."""
    blanks = {ord(c): " " for c in "\t\n\r"}
    return "\t".join(str(field).translate(blanks) for field in fields)


def _answer(tagger, tokens, options):
    """Lines of the answer to a sentence."""
    texts = [token if isinstance(token, str) else " ".join(token) for token in tokens]
    if options.spans:
        for start, end, kind, p in tagger.spans(tokens, options.threshold):
            yield _shown(start, end, kind, f"{p:.6f}", " ".join(texts[start:end]))
    else:
        labels = tagger.tag(tokens)
        proba = tagger.probabilities(tokens) if options.probabilities else [{}] * len(tokens)
        for text, label, by_label in zip(texts, labels, proba, strict=True):
            p = [f"{by_label.get(label, 0.0):.6f}"] if options.probabilities else []
            yield _shown(text, label, *p)
    yield ""


def main(tagger, arguments=None):
    """Tag standard input: ``python parser.py < text``."""
    import argparse  # slow

    what = "A sentence a line, its words between blanks."
    if not tagger.reads_words:
        between = "blanks" if tagger.reads_columns else "tabs"
        what = f"A token a line, its columns between {between}; an empty line after a sentence."
    parser = argparse.ArgumentParser(description=f"Tag standard input. {what}")
    parser.add_argument("--probabilities", action="store_true", help="of each label, too")
    parser.add_argument(
        "--spans", action="store_true", help="chunks: start, end, type, probability"
    )
    parser.add_argument("--threshold", type=float, help="with --spans: probability to exceed")
    options = parser.parse_args(arguments)
    sys.stdin.reconfigure(encoding="utf-8-sig", errors="surrogateescape")
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        for tokens in _sentences(tagger, sys.stdin):
            for line in _answer(tagger, tokens, options):
                print(line)
    except ValueError as error:
        parser.exit(2, f"Error: {error}\n")
    except BrokenPipeError:
        parser.exit(141)
