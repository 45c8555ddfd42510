"""Environments that lack what most have."""


def without_home(monkeypatch, name=None):
    """Name no home folder, or a relative one, for a user whom the system does not know."""

    def unknown(user):
        raise KeyError(user)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.delenv("HOME", raising=False)
    if name is not None:
        monkeypatch.setenv("HOME", name)
