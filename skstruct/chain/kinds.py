"""The kinds of weights that a model can have: the one place that chooses among them."""

from skstruct.chain.dense import Chain
from skstruct.chain.per_token import TransitionChain
from skstruct.chain.second_order import SecondOrderChain

# Those with the most fields first.
KINDS = (SecondOrderChain, TransitionChain, Chain)


def kind_of(order, n_sets):
    """Kind of the weights of an order, for features in so many sets: of tokens, and of transitions.

    Parameters
    ----------
    order : int
    n_sets : int
        2 if transitions have features, else 1.

    Returns
    -------
    kind : type or None
        None if there is no such kind.
    """
    kinds = {(kind.order, len(kind.of_features)): kind for kind in KINDS}
    return kinds.get((order, n_sets))
