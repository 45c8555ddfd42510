"""A new kind of chain: labels are steps of a ladder, which are climbed one at a time.

Each token has the label of the token before, or the next one, as stages of a disease have. So a
label has two scores in place of a column of a matrix, and a step of a dynamic programme takes time
proportional to the number of labels.
"""

from typing import NamedTuple

import numpy as np

from skstruct.chain.protocol import score, sources, step_max, width


# edges: begin
class Ladder(NamedTuple):
    """Scores of transitions: up one step, or none."""

    up: np.ndarray  # (n_labels,), score of the step up into each label, not read for the first
    stay: np.ndarray  # (n_labels,), score of no step


# edges: end


# needed: begin
@width.of(Ladder)
def ladder_width(edges, t):
    """Number of labels."""
    return edges.stay.shape[0]


@sources.of(Ladder)
def ladder_sources(edges, t, s):
    """The label below, and the label itself."""
    return max(s - 1, 0), s + 1


@score.of(Ladder)
def ladder_score(edges, t, i, s):
    """Score of either."""
    return edges.stay[s] if i == s else edges.up[s]


# needed: end


# fast: begin
@step_max.of(Ladder)
def ladder_step_max(edges, buffer, t, previous, out):
    """Compare the two sources of each label."""
    out[0] = previous[0] + edges.stay[0]
    for s in range(1, edges.stay.shape[0]):
        out[s] = max(previous[s - 1] + edges.up[s], previous[s] + edges.stay[s])


# fast: end
