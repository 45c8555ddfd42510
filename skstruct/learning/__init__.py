"""Learning: the loop of the online taggers, and the solvers of conditional random fields.

`solver` is the interface that all have in common, `registry` says which solver supports what.
"""
