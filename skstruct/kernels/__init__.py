"""Compiled kernels: arrays in, arrays out, one memory layout, no Python objects.

Each dynamic programme is a serial function of one sequence (`viterbi`, `nbest`,
`forward_backward`), called by a loop over a range of sequences (`decode`, `objective`,
`loop`). All kernels release the GIL: `skstruct.utils.parallel` runs ranges in threads.

Packages import only those before them: ``vector``, ``chain``, then ``online``, ``dual``, ``rerank``
and ``templates``, which do not import each other, and ``likelihood``.
"""
