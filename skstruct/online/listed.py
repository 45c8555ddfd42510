"""States of online learners whose transitions are listed."""

from __future__ import annotations

import numpy as np

from skstruct import kernels
from skstruct.decoding import into_labels, list_transitions

__all__ = ["with_list"]


def with_list(state):
    """List the transitions of a state.

    Parameters
    ----------
    state : OnlineState or ConfidentState
        State with transitions that all tokens share.

    Returns
    -------
    state : ListedState, ListedConfidentState or None
        State that shares the weights of the other one; None if a list would not pay.
    """
    sparse = list_transitions(state.chain.transition)
    if sparse is None:
        return None
    n_labels = len(state.chain.transition)
    into = into_labels(sparse)
    n_listed = len(into.origin)
    # Memory that is not written to is not used.
    origin, score = np.empty(n_labels**2, np.int32), np.empty(n_labels**2)
    origin[:n_listed], score[:n_listed] = into.origin, into.score
    into = into._replace(origin=origin, score=score)
    # What is not listed is zero or minus infinity at any scale.
    matrix = state.chain.transition.copy()
    confident = len(state) > len(kernels.OnlineState._fields)
    kind = kernels.ListedConfidentState if confident else kernels.ListedState
    return kind(*state, into, matrix, np.full(1, np.nan))
