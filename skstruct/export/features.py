"""Features as data: what a vectoriser does with tokens, for `runtime.py`."""

from skstruct.export.characters import map_of, set_of
from skstruct.features.dicts import SequenceVectorizer
from skstruct.templates.syntax import (
    FUNCTIONS,
    atom_expression,
    literal_of,
    parse_template,
    read_affix,
    read_pattern,
)
from skstruct.templates.vectorizers import TemplateVectorizer
from skstruct.templates.words import Gazetteer, WordVectorizer
from skstruct.utils.messages import check_float_dtype

# Sets of characters that functions need. Words of clusters and of statistics are put into lower
# case, and a model of few functions gets little more than these.
_SETS_OF = {
    "lower": ("cased", "ignorable"),
    "cluster": ("cased", "ignorable"),
    "labels": ("cased", "ignorable"),
    "digits": ("decimal",),
    "shape": ("upper", "alpha", "digit"),
    "shortshape": ("upper", "alpha", "digit"),
}
# Functions that `WordVectorizer` has and templates lack, without clusters.
_OF_WORDS = ("matched", "labels")
# Steps of pipelines that cannot be exported, and what to take instead.
_REMEDIES = {
    "EmbeddingVectorizer": "An exported file has no vectors: leave them out.",
    "HashingTemplateVectorizer": "Its features have no names: fit with TemplateVectorizer.",
    "LabelStatistics": "Fit with WordVectorizer(label_statistics=True).",
    "SequenceUnion": "Fit with one vectoriser, such as WordVectorizer with an extra_template.",
    "TokenTransformer": "It makes numbers of features: leave it out.",
}
_KNOWN = (SequenceVectorizer, TemplateVectorizer, WordVectorizer)
_EXPORTED = (
    "Files are written for TemplateVectorizer, WordVectorizer and SequenceVectorizer, and for "
    "taggers of feature dicts and attribute strings."
)


def describe_features(vectorizer):
    """Data of the features of a vectoriser.

    Parameters
    ----------
    vectorizer : TemplateVectorizer, WordVectorizer or SequenceVectorizer
        Fitted, and no subclass, which might do something else.

    Returns
    -------
    data : dict

    Raises
    ------
    ValueError
        If it has functions of the user's, or vectors. The message says what to do instead.
    """
    if isinstance(vectorizer, SequenceVectorizer):
        return _describe_attributes(vectorizer)
    return _Template(vectorizer).data()


def require_known(step):
    """Raise a ValueError unless a step of a pipeline is a vectoriser that can be exported."""
    kind = type(step)
    if kind not in _KNOWN:
        remedy = _REMEDIES.get(kind.__name__, f"It may do anything. {_EXPORTED}")
        raise ValueError(f"{kind.__name__} cannot be exported. {remedy}")


def _describe_attributes(vectorizer):
    if vectorizer._array_lengths:
        name = next(iter(vectorizer._array_lengths))
        raise ValueError(
            f"Feature {name!r} is an array of numbers, and an exported file has no vectors. Fit "
            "without it."
        )
    return {"input": "attributes", "single": check_float_dtype(vectorizer.dtype).itemsize == 4}


class _Template:
    """A fitted vectoriser by templates, and what its lines need."""

    def __init__(self, vectorizer):
        self._own = vectorizer._functions()
        self._n_columns = vectorizer.n_columns_
        self._template = parse_template(vectorizer.template_)
        self._has_words = isinstance(vectorizer, WordVectorizer)
        self._gazetteers, self._clusters, lengths = (
            vectorizer._lists if self._has_words else ([], {}, [])
        )
        self._cluster_lengths = {f"cluster{n}": n for n in lengths}
        self._statistics = vars(vectorizer).get("label_statistics_")
        self._sources, self._sets, self._maps = {}, {}, {}

    def data(self):
        """Return the data."""
        lines = [
            [
                list(template.literals),
                [self._macro(macro, template.where) for macro in template.macros],
            ]
            for template in self._template
            if template.makes_features
        ]
        if self._gazetteers:
            self._need_map("fold")
        return {
            "input": "columns",
            "n_columns": self._n_columns,
            "lines": lines,
            "sources": [[column, steps] for column, steps in self._sources.values()],
            "gazetteers": [_entries(names) for names in self._gazetteers],
            "clusters": [list(self._clusters), list(self._clusters.values())],
            **self._describe_statistics(),
            "sets": [[name, steps] for name, steps in self._sets.items()],
            "maps": [[name, packed] for name, packed in self._maps.items()],
        }

    def _macro(self, macro, where):
        if macro.source not in self._sources:
            steps = [self._step(name, where) for name in macro.functions]
            if macro.command != "x":
                steps.append(self._match(macro))
            if macro.lower:
                steps.append(self._with_characters(["lower"]))
            self._sources[macro.source] = macro.column, steps
        number = list(self._sources).index(macro.source)
        return [number, macro.offset, macro.absolute]

    def _step(self, name, where):
        """Name and options of a function of the runtime."""
        if name in self._cluster_lengths:
            step = ["cluster", self._cluster_lengths[name]]
        elif name in self._own and not (self._has_words and name in _OF_WORDS):
            raise ValueError(
                f"{where}: {name!r} is a function of yours, which cannot be exported. Leave it "
                f"out, or use {', '.join(FUNCTIONS)}, prefixN, suffixN and patterns."
            )
        else:
            step = list(read_affix(name) or [name])
        return self._with_characters(step)

    def _with_characters(self, step):
        """A step, after what it asks about characters has been put into the data."""
        for needed in _SETS_OF.get(step[0], ()):
            self._sets[needed] = set_of(needed)
        if step[0] in ("lower", "cluster", "labels"):
            self._need_map("lower")
        return step

    def _match(self, macro):
        atoms, at_start, at_end = read_pattern(macro.pattern)
        tests = []
        for atom, repeat in atoms:
            literal = literal_of(atom)
            test = ["any", None] if atom == "." else ["is", literal]
            if atom != "." and literal is None:
                test = ["in", atom]
                self._sets[atom] = set_of(atom_expression(atom))
            tests.append([*test, repeat])
        return ["match", macro.command == "t", tests, at_start, at_end]

    def _need_map(self, name):
        self._maps[name] = list(map_of(name))

    def _describe_statistics(self):
        statistics = self._statistics
        if statistics is None:
            return {"statistics": [[], [], []], "keeps_case": True}
        if statistics.normalize not in (None, str.lower):
            raise ValueError(
                "label_statistics has a function of yours as normalize, which cannot be exported. "
                "Fit with normalize=str.lower or None."
            )
        found = statistics._counts().values(statistics.counts).tolist()
        values = sorted(set(found))
        which = list(map({value: i for i, value in enumerate(values)}.__getitem__, found))
        keeps_case = statistics.normalize is None
        return {"statistics": [statistics.words_, which, values], "keeps_case": keeps_case}


def _entries(names):
    """Names of a gazetteer, folded, with blanks between their words."""
    return sorted(" ".join(words) for words in Gazetteer(names)._entries)
