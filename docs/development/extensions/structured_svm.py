"""A new update rule: structured SVM by stochastic subgradient descent.

Ratliff, Bagnell and Zinkevich (2007) minimise the structured hinge loss
``max_y [score(y) + cost(y)] - score(gold)``, where ``cost(y)`` counts the wrong tokens of ``y``.
Its subgradient at one sequence is the features of the best labelling, costs added, less those of
the gold labels.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from skstruct.chain.scores import path_score
from skstruct.chain.viterbi import viterbi
from skstruct.learning.epoch import add_contrast, clear_difference, count_wrong, rule
from skstruct.learning.online import OnlineLearner, Settings
from skstruct.learning.solver import settings_of
from skstruct.taggers.online import OnlineTagger


# rule: begin
class Cost(NamedTuple):
    """Parameters of the rule."""

    cost: float  # of a wrong token


@rule.of(Cost)
def svm_rule(settings, rows, sample, scores, edges, gold, difference, counts):
    """Gold labelling less the best one with costs added; the loss is the structured hinge."""
    length, n_labels = gold.shape[0], scores.shape[1]
    gold_score = path_score(scores, length, edges, gold)
    for t in range(length):
        for j in range(n_labels):
            if j != gold[t]:
                scores[t, j] += settings.cost
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
        "l2": [Interval(Real, 0, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "decay": [Interval(Real, 0, 1, closed="right")],
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
        return OnlineLearner(settings_of(Settings, self), model, lambda _: Cost(float(self.cost)))


# tagger: end
