"""Storage of fitted estimators: plain arrays with a version, checked when they are loaded.

Every way of storing an estimator (skops.io, pickle, joblib, copies) asks it for its state. A state
is packed, because skops stores each string of a list, dict or object array by itself. It is checked
when it is loaded, because compiled code does not check that its arrays fit together.
"""

import zipfile
from inspect import signature
from math import prod

from numpy.lib import format as numpy_format
from sklearn.utils.validation import check_is_fitted

import skstruct
from skstruct.utils.declared import Declaration, sizes_of
from skstruct.utils.memory import require_memory
from skstruct.utils.transaction import with_attributes

# Increased when states change so that older versions cannot read them.
FORMAT = 4
_FORMAT_KEY, _VERSION_KEY = "_state_format", "_skstruct_version"
_ANYTHING = Declaration()


class Persistent:
    """Mixin, before `BaseEstimator`, of estimators that are stored.

    A subclass declares the attributes that it learns in ``_stored``, as
    `skstruct.utils.declared` says. It may define

    - ``_complete``, names of attributes of which a fitted estimator has all,
    - ``_derived_state``, names of attributes that are not stored, and ``_restore_state()``, which
      recomputes them,
    - ``_check_state()``, which raises ValueError if the attributes do not fit together.
    """

    _stored = {}
    _complete = ()
    _derived_state = ()

    def __getstate__(self):
        state = dict(super().__getstate__())
        kept = {name: v for name, v in state.items() if name not in self._derived_state}
        names = kept.get("feature_names_in_")
        vectorizer = kept.get("vectorizer_")
        if names is not None and names is getattr(vectorizer, "feature_names_", None):
            # The vectoriser stores them already.
            kept["feature_names_in_"] = "vectorizer_"
        declared = _declarations(type(self))
        for name, value in kept.items():
            kept[name] = declared.get(name, _ANYTHING).write(value)
        return {**kept, _FORMAT_KEY: FORMAT, _VERSION_KEY: skstruct.__version__}

    def __setstate__(self, state):
        what = type(self).__name__
        if not isinstance(state, dict):
            raise ValueError(f"The state of a {what} is {type(state).__name__} and not a dict.")
        state = dict(state)
        found, writer = state.pop(_FORMAT_KEY, 0), state.pop(_VERSION_KEY, "unknown")
        if not isinstance(found, int) or found > FORMAT:
            raise ValueError(
                f"This {what} was stored by skstruct {writer} in the format {found}; "
                f"skstruct {skstruct.__version__} reads formats up to {FORMAT}. Load it with the "
                "version that stored it, or a later one."
            )
        try:
            self._read_state(state)
        except MemoryError as error:
            raise MemoryError(f"This stored {what} cannot be loaded: {error}") from error
        except Exception as error:
            raise ValueError(f"This stored {what} is damaged: {error}") from error

    def __sklearn_is_fitted__(self):
        return self._is_learnt()

    def __copy__(self):
        # The attributes of a copy in memory need neither packing nor checks.
        return with_attributes(self, vars(self).copy())

    def _read_state(self, state):
        """Set the attributes of a state, and check them."""
        declared, size = _declarations(type(self)), sizes_of(self)
        for name in state.keys() - declared.keys():
            state[name] = _ANYTHING.read(state[name], name, size)
        state = self._default_params() | state
        if isinstance(state.get("feature_names_in_"), str):
            state["feature_names_in_"] = state["vectorizer_"].feature_names_
        if hasattr(super(), "__setstate__"):
            super().__setstate__(state)
        else:
            self.__dict__.update(state)
        for name, kind in declared.items():
            if name in state:
                vars(self)[name] = kind.read(state[name], name, size)
        self._restore_state()
        lacking = [name for name in self._complete if name not in vars(self)]
        if 0 < len(lacking) < len(self._complete):
            raise ValueError(f"it has no {' and no '.join(lacking)}.")
        self._check_state()
        if hasattr(self, "get_params"):
            # Raises AttributeError if a parameter is missing.
            self.get_params(deep=False)
        if self._is_learnt() and hasattr(self, "_validate_params"):
            self._validate_params()

    def _default_params(self):
        """Parameters of an estimator; the version that has stored it may lack some."""
        params = signature(type(self).__init__).parameters if hasattr(self, "get_params") else {}
        return {
            name: parameter.default
            for name, parameter in params.items()
            if parameter.default is not parameter.empty
        }

    def _is_learnt(self):
        # A list, because threads that predict may add what they cache. Parameters come first.
        names = reversed(list(vars(self)))
        return any(name.endswith("_") and not name.startswith("__") for name in names)

    def _restore_state(self):
        pass

    def _check_state(self):
        pass


def _declarations(kind):
    """Declarations of a class and its bases, the bases' first."""
    declared = {}
    for base in reversed(kind.__mro__):
        declared |= vars(base).get("_stored", {})
    return declared


def require_fitted(estimator):
    """Raise scikit-learn's error unless an estimator is fitted; its own check takes longer."""
    if not estimator.__sklearn_is_fitted__():
        check_is_fitted(estimator)


def set_module(package):
    """Decorate a class or function with the package that exports it.

    pickle and skops store a class as the name of a module and its own name in there. With the name
    of the package, classes can move from file to file.

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


def archived(content, **options):
    """Bytes of the archive in which skops stores an object.

    Parameters
    ----------
    content : object
    **options
        Options of `skops.io.dumps`.

    Returns
    -------
    archive : bytes
    """
    import skops.io  # slow

    return skops.io.dumps(content, **options)


def load_archive(path, *, own=None, advice=""):
    """Load an object that skops has stored, without running code of other packages.

    Parameters
    ----------
    path : path-like
    own : str, default=None
        Path of a class to trust besides skstruct's.
    advice : str, default=""
        Sentence that the error about other types ends with.

    Returns
    -------
    content : object

    Raises
    ------
    ValueError
        If the file has other types, or arrays with fewer numbers than their headers say, or is no
        archive.
    MemoryError
        If its contents need more memory than there is.
    """
    import skops.io  # slow

    check_archive(path)
    types = skops.io.get_untrusted_types(file=path)
    foreign = [name for name in types if name != own and name.partition(".")[0] != "skstruct"]
    if foreign:
        raise ValueError(f"it has types that are not skstruct's: {', '.join(foreign)}.{advice}")
    return skops.io.load(path, trusted=types)


def check_archive(path):
    """Check that the contents of a file fit into memory, and that its arrays are complete.

    A small file may unpack to large arrays.

    Parameters
    ----------
    path : path-like

    Raises
    ------
    ValueError
        If an array has fewer numbers than its header says, or the file is no archive.
    MemoryError
        If all of them need more memory than there is.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            sizes = {info.filename: info.file_size for info in archive.infolist()}
            require_memory(
                sum(sizes.values()), f"The contents of {path}", "Load it where there is more."
            )
            for name, size in sizes.items():
                if name.endswith(".npy"):
                    with archive.open(name) as file:
                        _check_header(file, size)
    except zipfile.BadZipFile as error:
        raise ValueError(f"the file is damaged: {error}") from error


def _check_header(file, size):
    version = numpy_format.read_magic(file)
    read = getattr(numpy_format, "read_array_header_{}_{}".format(*version), None)
    if read is None:
        raise ValueError(f"it has an array in the format {version}.")
    shape, _, dtype = read(file)
    if prod(shape) * dtype.itemsize > size:
        raise ValueError(f"an array of the shape {shape} has only {size} bytes.")
