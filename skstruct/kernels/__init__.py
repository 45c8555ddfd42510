"""Compiled kernels: arrays in, arrays out, one layout, no Python objects.

Each dynamic programme is a serial leaf for one sequence (`viterbi`, `nbest`,
`forward_backward`), called by a loop over a range of sequences (`decode`, `objective`,
`loop`). All kernels release the GIL: `skstruct.utils.parallel` runs ranges in threads.
"""
