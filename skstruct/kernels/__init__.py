"""Compiled kernels: arrays in, arrays out, one memory layout, no Python objects.

Each dynamic programme is a serial function of one sequence (`viterbi`, `nbest`,
`forward_backward`), called by a loop over a range of sequences (`decode`, `objective`,
`loop`). All kernels release the GIL: `skstruct.utils.parallel` runs ranges in threads.

Packages import only those before them: ``vector``, ``chain``, then ``online``, ``dual``, ``rerank``
and ``templates``, which do not import each other, and ``likelihood``.

Modules outside import this package and name kernels by it, as in ``kernels.decode_best(...)``. Each
is loaded when it is first asked for: estimators are imported without numba.
"""

from skstruct.utils.public_paths import export_stub

__getattr__, __dir__, __all__ = export_stub(__name__)
