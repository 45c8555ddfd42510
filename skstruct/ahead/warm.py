"""Compilation ahead of time, in several processes."""

import functools
import itertools
import os
import warnings
from collections import Counter

import joblib
from numba.core.bytecode import FunctionIdentity

from skstruct.ahead.workload import estimators, run_step, steps
from skstruct.compiled.cache import loaded_kernels, mark_native
from skstruct.utils.parallel import in_process
from skstruct.utils.persistence import set_module


@set_module("skstruct")
def warm(names=None, *, n_jobs=-1, native=False):
    """Compile kernels now, so that no `fit` or `predict` has to wait for them.

    Kernels that came with the package, or were compiled before, are left alone. What is compiled
    is kept where :func:`show_versions` says.

    Parameters
    ----------
    names : str or list of str, default=None
        Names of estimators, which are prepared for their default parameters. Those that fit
        others, such as `CRFTaggerCV`, have no kernels of their own: name those that they fit. All
        estimators with all parameters by default.
    n_jobs : int, default=-1
        Number of processes; -1 for one a processor.
    native : bool, default=False
        Also compile what came with the package, for exactly this processor, and prefer it from now
        on. Most processors gain nothing by it.

    Returns
    -------
    counts : dict of str to int
        Number of kernels that were compiled ("compiler"), were there already ("cache"), or came
        with the package (under the name of the class of processors that they were built for).

    Raises
    ------
    ValueError
        If no estimator with kernels has a name.

    Examples
    --------
    >>> import skstruct
    >>> skstruct.warm("CRFTagger")  # doctest: +SKIP
    {'compiler': 131}
    """
    wanted = [names] if isinstance(names, str) else names
    unknown = sorted(set(wanted or ()) - set(estimators()))
    if unknown:
        raise ValueError(
            f"No estimator to compile for is called {unknown[0]!r}; there are "
            f"{', '.join(estimators())}. Estimators that fit others, such as CRFTaggerCV, have "
            "no kernels of their own: name those that they fit."
        )
    # Estimators vectorise feature dicts themselves.
    wanted = None if wanted is None else {*wanted, "SequenceVectorizer"}
    chosen = [
        step for step in steps() if wanted is None or (step.estimator in wanted and step.typical)
    ]
    # One step at a time: they differ much in how long they take.
    parallel = joblib.Parallel(
        n_jobs=min(joblib.cpu_count(), len(chosen)) if n_jobs == -1 else n_jobs,
        backend="loky",
        batch_size=1,
        pre_dispatch="n_jobs",
    )
    with warnings.catch_warnings():
        # joblib replaces a process whose memory has grown, as it does when much is compiled.
        warnings.filterwarnings("ignore", "A worker stopped while", UserWarning)
        found = parallel(in_process(_run)(step, native) for step in chosen)
    counts = sum(found, Counter())
    if native:
        mark_native()
    return dict(counts)


def _run(step, native):
    """Run one step in a process of its own; count where its kernels came from."""
    if native:
        os.environ["SKSTRUCT_KERNELS"] = "local"
    number_symbols_from((1 + os.getpid()) * 10**5)
    loaded_kernels.clear()
    run_step(step)
    return Counter(loaded.origin for loaded in loaded_kernels)


@functools.cache
def number_symbols_from(start):
    """Set the number that numba gives to the next function; again from the same start, do nothing.

    The number is part of the names of symbols. Nothing else tells functions with the same name
    apart, such as closures of numba's own. So processes whose code is loaded together should number
    their functions from different starts.
    """
    FunctionIdentity._unique_ids = itertools.count(start)
