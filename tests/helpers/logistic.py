"""Logistic regression of scikit-learn, the CRF of sequences of length one."""

from sklearn.linear_model import LogisticRegression

__all__ = ["elastic_net"]


def elastic_net(**options):
    """`LogisticRegression` with an elastic net, in all releases of scikit-learn."""
    model = LogisticRegression(solver="saga", random_state=0, **options)
    # Before 1.8, the ratio of the penalties counts only where this is said.
    return model.set_params(penalty="elasticnet") if model.penalty == "l2" else model
