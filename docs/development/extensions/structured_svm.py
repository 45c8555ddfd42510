"""A new update rule: structured SVM by stochastic subgradient descent.

Ratliff, Bagnell and Zinkevich (2007) minimise the structured hinge loss ``max_y [score(y) +
cost(y)] - score(gold)``, where ``cost(y)`` counts wrong tokens. Its subgradient is the features of
the best labelling, costs added, less those of the gold labels.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from skstruct.chain.scores import add_cost, path_score
from skstruct.chain.viterbi import viterbi
from skstruct.learning.epoch import add_contrast, clear_difference, count_wrong, rule
from skstruct.taggers.online import OnlineTagger


# rule: begin
class Cost(NamedTuple):
    """Parameters of the rule."""

    costs: np.ndarray  # (n_labels, n_labels), from gold label to predicted one


@rule.of(Cost)
def svm_rule(settings, rows, sample, scores, edges, gold, difference, counts):
    """Gold labelling less the best one with costs added; the loss is the structured hinge."""
    length = gold.shape[0]
    gold_score = path_score(scores, length, edges, gold)
    add_cost(settings.costs, gold, scores)
    predicted = np.empty(length, np.int32)
    loss = viterbi(scores, length, edges, predicted) - gold_score
    wrong = count_wrong(gold, predicted)
    if wrong == 0:
        return 0, 0.0
    clear_difference(length, difference)
    add_contrast(edges, gold, predicted, 1.0, difference, counts)
    return wrong, loss


# rule: end


# tagger: begin
class StructuredSVMTagger(OnlineTagger):
    """Structured SVM by stochastic subgradient descent.

    Parameters
    ----------
    cost : float, default=1.0
        Margin that is wanted for each wrong token.

    All others are those of :class:`~skstruct.SAPOTagger`.
    """

    _parameter_constraints: dict = {
        **OnlineTagger._parameter_constraints,
        "cost": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        cost=1.0,
        l2=1.0,
        learning_rate=0.1,
        decay=0.9,
        average=False,
        fit_intercept=True,
        constraint=None,
        max_iter=100,
        tol=1e-3,
        random_state=None,
        class_weight=None,
        n_jobs=None,
        warm_start=False,
        verbose=0,
    ):
        self.cost = cost
        self.l2 = l2
        self.learning_rate = learning_rate
        self.decay = decay
        self.average = average
        self.fit_intercept = fit_intercept
        self.constraint = constraint
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.verbose = verbose

    def _learner(self, model):
        costs = self.cost * (1.0 - np.eye(model.n_labels))
        return self._online_learner(model, lambda _: Cost(costs))


# tagger: end
