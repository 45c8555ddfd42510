"""Everything that an estimator has learnt, to the last bit."""

import joblib


def learnt_by(estimator):
    """Fitted attributes but for times, as what `joblib.hash` tells apart."""
    return {
        name: joblib.hash(_timeless(value))
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_")
    }


def _timeless(value):
    if not isinstance(value, dict):
        return value
    return {name: column for name, column in value.items() if name != "time"}
