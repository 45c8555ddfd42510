"""Learning: the loop of the online taggers, and the solvers of conditional random fields.

An algorithm is a file, with the kernels that it calls below.

`solver` is the interface that all have in common, and says which solver supports what.
"""
