"""Lists of transitions, which otherwise large label sets have."""

from skstruct import decoding


def list_from(monkeypatch, fewest):
    """List the transitions of so many labels or more, whatever their share."""
    limits = dict.fromkeys(decoding.LIMITS, decoding.Limits(fewest, 1.0))
    monkeypatch.setattr(decoding, "LIMITS", limits)
