"""Compiled kernels: arrays in, arrays out, one layout, no Python objects.

Each dynamic programme is a serial leaf for one sequence (`viterbi`, `nbest`,
`forward_backward`), called by a loop over a range of sequences (`decode`, `objective`,
`online`). All kernels release the GIL: `skstruct.parallel` runs ranges in threads.
"""
