"""The one place that says how kernels are compiled."""

from functools import partial

import numba

# error_model="numpy": the check for division by zero would stop vectorisation.
# "contract" alone: fused multiply-add is safe around infinities and the rounding tricks of
# vectormath, which the other fast-math flags are not.
jit = partial(numba.njit, cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
