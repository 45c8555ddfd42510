"""Models of python-crfsuite in measured runs."""

import tempfile


def open_trained(trainer, clock):
    """Train, which ends the part "train" of a clock; return a tagger with the model."""
    # Imported here, as processes of other systems do without it.
    import pycrfsuite

    with tempfile.NamedTemporaryFile(suffix=".crfsuite") as model:
        trainer.train(model.name)
        clock.lap("train")
        tagger = pycrfsuite.Tagger()
        tagger.open(model.name)
    return tagger
