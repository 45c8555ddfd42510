"""A new reranker: passive-aggressive updates (Crammer et al., 2006)."""

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval

from skstruct.rerankers.base import BaseReranker
from skstruct.rerankers.losses import Tally, candidate_scores, judge, scatter


# reranker: begin
class PassiveAggressiveReranker(BaseReranker):
    """Smallest change of the weights that ranks the oracle above the prediction by its cost.

    Parameters
    ----------
    C : float, default=1.0
        Largest step.

    All others are those of :class:`~skstruct.PerceptronReranker`.
    """

    _parameter_constraints: dict = {
        **BaseReranker._parameter_constraints,
        "C": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        C=1.0,
        baseline=None,
        baseline_weight=1.0,
        max_iter=10,
        shuffle=True,
        random_state=None,
        verbose=0,
    ):
        self.C = C
        self.baseline = baseline
        self.baseline_weight = baseline_weight
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def _epoch(self, groups, order, weights):
        mistakes, total_loss, total_cost = 0, 0.0, 0.0
        for number in order:
            first, last = groups.offsets[number : number + 2]
            costs = groups.costs[first:last]
            scores, change = np.zeros((2, last - first))
            candidate_scores(groups.rows, first, last, groups.base, weights, scores)
            predicted, oracle, _ = judge(scores, costs)
            if predicted == oracle:
                continue
            change[oracle], change[predicted] = 1.0, -1.0
            difference = np.zeros_like(weights)
            scatter(groups.rows, first, change, 1.0, difference)
            cost = costs[predicted] - costs[oracle]
            loss = cost + scores[predicted] - scores[oracle]
            square = difference @ difference
            step = min(self.C * groups.sample_weight[number], loss / square) if square else 0.0
            weights += step * difference
            mistakes, total_loss, total_cost = mistakes + 1, total_loss + loss, total_cost + cost
        return Tally(mistakes, total_loss, total_cost), np.count_nonzero(weights)


# reranker: end
