"""The text format of CRF++'s models: sections of lines, which end with a blank one."""

from typing import NamedTuple

import numpy as np


class TextModel(NamedTuple):
    """Content of a model file."""

    factor: float  # for all weights
    n_columns: int
    labels: list
    lines: list  # of the template
    places: dict  # position of each feature's first weight
    weights: np.ndarray


def require(holds, complaint):
    """Refuse a file unless a condition holds."""
    if not holds:
        raise damaged(complaint)


def damaged(complaint):
    """Error for a file that is not what ``crf_learn -t`` writes."""
    return ValueError(f"This is not an intact text model of CRF++: {complaint}.")


def parse_model(text):
    """Parse the text of a file; a ValueError says what is wrong with it."""
    # Not splitlines: names may contain characters that it takes as the end of a line.
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    sections, start = [], 0
    for what in ("header", "labels", "template", "features"):
        require("" in lines[start:], f"it ends before the end of the {what}")
        end = lines.index("", start)
        sections.append(lines[start:end])
        start = end + 1
    header, labels, template, features = sections
    values = dict(line.partition(": ")[::2] for line in header)
    n_weights = _number(values.get("maxid"), int, "maxid")
    found = len(lines) - start
    require(found == n_weights, f"it has {found} weights, but maxid in its header is {n_weights}")
    weights = np.array([_number(line, float, "a weight") for line in lines[start:]], np.float64)
    factor = _number(values.get("cost-factor"), float, "cost-factor")
    n_columns = _number(values.get("xsize"), int, "xsize")
    finite = np.isfinite(weights).all() and np.isfinite(factor)
    require(finite, "a weight or the cost-factor is NaN or infinite")
    require(labels and len(set(labels)) == len(labels), "it has no labels, or lists a label twice")
    require(n_columns >= 1, f"xsize in its header is {n_columns}, but must be at least 1")
    places = _read_features(features, len(labels), n_weights)
    return TextModel(factor, n_columns, labels, template, places, weights)


def _number(text, kind, what):
    try:
        return kind(text)
    except (TypeError, ValueError):
        require(False, f"{what} is {text!r}, which is not a valid {kind.__name__}")


def _read_features(lines, n_labels, n_weights):
    """Position of each feature's first weight, checked to account for all weights."""
    places, end = {}, 0
    for line in lines:
        place, _, name = line.partition(" ")
        require(name not in places, f"the feature {name!r} is listed twice")
        require(name[:1] in ("U", "B"), f"{line!r} is not a feature of the kind U or B")
        places[name] = _number(place, int, f"the place of {name!r}")
    for name, place in sorted(places.items(), key=lambda item: item[1]):
        require(place == end, f"the weights of {name!r} start at {place} instead of {end}")
        end += n_labels if name[0] == "U" else n_labels**2
    require(end == n_weights, f"the features have {end} weights, but the file has {n_weights}")
    return places


def format_model(model):
    """Text of the file of a model; weights in full precision.

    Features are listed by name, as by CRF++.
    """
    header = [
        "version: 100",
        f"cost-factor: {model.factor:g}",
        f"maxid: {len(model.weights)}",
        f"xsize: {model.n_columns}",
    ]
    features = [f"{place} {name}" for name, place in sorted(model.places.items())]
    weights = map(repr, model.weights.tolist())
    sections = header, model.labels, model.lines, features
    lines = [line for section in sections for line in (*section, "")]
    return "".join(f"{line}\n" for line in (*lines, *weights))
