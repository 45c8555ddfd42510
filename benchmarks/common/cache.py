"""Objects that are made once and kept in a file."""

import joblib


def load_or_make(path, make):
    """Load the object of a file; where there is no file, make the object and store it first."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        joblib.dump(make(), path)
    return joblib.load(path)
