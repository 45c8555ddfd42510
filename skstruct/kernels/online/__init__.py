"""Online learners: the epoch, the update rules, and helpers before and after an epoch."""


def __getattr__(name):
    """Find `OnlineState`, which models stored by 0.1.0.dev0 look for here."""
    if name != "OnlineState":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from skstruct.kernels.online.loop import OnlineState

    return OnlineState
