"""Public paths: the names of classes in stored models.

pickle and skops store a class as the name of a module and the name of the class in it. So that
classes can move from file to file, public ones name the package that exports them.
"""


def set_module(package):
    """Decorate a class or function with the package that exports it.

    Parameters
    ----------
    package : str
        Name of the package, the ``__module__`` from then on.

    Returns
    -------
    decorator : callable
    """

    def decorate(public):
        public.__module__ = package
        return public

    return decorate
