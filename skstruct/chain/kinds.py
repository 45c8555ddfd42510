"""The classes of weights that a model can have, and the choice among them."""

from skstruct.chain.dense import Chain
from skstruct.chain.per_token import TransitionChain
from skstruct.chain.second_order import SecondOrderChain

# Those with the most fields first.
KINDS = (SecondOrderChain, TransitionChain, Chain)


def kind_of(order, n_sets):
    """Class of the weights for an order and a number of sets of features.

    Parameters
    ----------
    order : int
        1 for pairs of labels, 2 for triples.
    n_sets : int
        2 if transitions have features as tokens do, else 1.

    Returns
    -------
    kind : type or None
        None if there is no such class.
    """
    kinds = {(kind.order, len(kind.of_features)): kind for kind in KINDS}
    return kinds.get((order, n_sets))
