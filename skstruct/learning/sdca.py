"""Stochastic dual coordinate ascent for conditional random fields (Le Priol et al., 2018).

The dual problem itself is `skstruct.learning.dual.CRFDual`; here is the order of the updates, and
the decision when to verify the duality gap and when to stop.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from skstruct.learning.dual import CRFDual, marginals_nbytes
from skstruct.learning.solver import Complaint, Solution
from skstruct.utils.memory import require_memory
from skstruct.utils.messages import say
from skstruct.utils.parallel import chain_work, range_runner
from skstruct.utils.progress import History

# Work after which convergence is checked at the earliest, some 10 ms: an epoch over a dozen
# sequences takes less time than the check.
_WORK_BETWEEN = 1e6
# Marginals of transitions in single precision allow gaps down to some 1e-11 of the objective.
_LEAST_SINGLE_TOL = 1e-8
# The gap is verified where its estimate is below this many times the tolerance; the estimate is
# usually twice too large.
_OVERESTIMATE = 2.0


class Settings(NamedTuple):
    """Parameters of `SDCACRF` that the solver reads."""

    l2: float
    sampling: str
    nonuniformity: float
    line_search_tol: float
    fit_intercept: bool
    max_iter: int
    tol: float
    verify_every: int | None
    max_memory: float
    random_state: object
    n_jobs: int | None
    verbose: int


def solve(training_set, model, settings, start, watcher):
    """Learn as `skstruct.learning.solver` says; the bound is the verified duality gap."""
    training_set = training_set.effective()
    model.require_memory(1, 0)
    _check_memory(training_set, model, settings)
    dual = CRFDual(
        training_set,
        model.n_features,
        model.n_labels,
        l2=settings.l2,
        fit_intercept=settings.fit_intercept,
        dtype=storage_dtype(settings.tol),
        possible=model.possible,
        cost=model.cost,
    )
    offsets = training_set.offsets
    # The dual has renumbered it.
    del training_set
    history = History()
    work = chain_work(model.n_labels)
    with range_runner(offsets, settings.n_jobs, work) as run:
        dual.start(run, start)
        return _maximize(dual, settings, run, watcher, history)


def storage_dtype(tol):
    """Precision in which marginals of transitions are stored, given the tolerance."""
    return np.float32 if tol >= _LEAST_SINGLE_TOL else np.float64


def relative_gap(certificate):
    """Duality gap over the objective."""
    return certificate.gap / certificate.objective if certificate.gap > 0 else 0.0


def _check_memory(training_set, model, settings):
    n_sequences, n_rows = len(training_set.sample_weight), len(training_set.labels)
    dtype = storage_dtype(settings.tol)
    needed = marginals_nbytes(n_sequences, n_rows, model.n_labels, dtype)
    say(settings.verbose, "Marginals: %s bytes", f"{needed:,}")
    if needed > settings.max_memory:
        raise MemoryError(
            f"The marginals of {n_rows:,} tokens with {model.n_labels} labels need {needed:,} "
            f"bytes, more than max_memory={settings.max_memory:,}. Increase max_memory, or use "
            "CRFTagger, which does not store them."
        )
    require_memory(
        needed,
        f"The marginals of {n_rows:,} tokens with {model.n_labels:,} labels",
        "CRFTagger does not store them.",
    )


def _maximize(dual, settings, run, watcher, history):
    """Ascend until the gap is small enough."""
    random_state = check_random_state(settings.random_state)
    complaint = None
    sampling = dual.sampling(settings.sampling, settings.nonuniformity)
    ask_every = math.ceil(_WORK_BETWEEN / dual.work)
    for epoch in range(1, settings.max_iter + 1):
        if epoch == 1:
            order = random_state.permutation(dual.n_sequences)
            dual.visit_all(order, sampling, settings.line_search_tol)
        else:
            draws = random_state.random_sample(dual.n_sequences)
            dual.visit_some(draws, sampling, settings.line_search_tol)
        certificate = dual.estimate()
        if settings.verify_every:
            verify = epoch % settings.verify_every == 0
        else:
            promising = relative_gap(certificate) <= _OVERESTIMATE * settings.tol
            verify = promising and epoch % ask_every == 0
        verify = verify or epoch == settings.max_iter
        if verify:
            certificate = dual.certify(run)
            sampling = dual.refresh(sampling)
        history.add(
            epoch=epoch,
            **certificate._asdict(),
            verified=verify,
            updates=dual.n_updates,
            oracle_calls=dual.n_oracle_calls,
            weight_norm=dual.weight_norm(),
        )
        stopped = watcher.visit(dual.chain, history)
        if stopped and not verify:
            certificate = dual.certify(run)
        if stopped or (verify and relative_gap(certificate) <= settings.tol):
            break
    else:
        complaint = Complaint(
            f"Did not converge after max_iter={epoch} epochs: duality gap "
            f"{relative_gap(certificate):.2g} of the objective > tol {settings.tol:.2g}.",
            "Increase max_iter, tol or l2.",
        )
    return Solution(
        dual.chain(), history.arrays(), epoch, bound=certificate.gap, complaint=complaint
    )
