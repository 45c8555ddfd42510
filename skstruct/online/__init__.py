"""Learning sequence by sequence: the loop over epochs, and what surrounds it.

`learner` is the entry. It asks `pieces` what to visit, keeps its weights in `state`, and calls on
`mixing` for shards and on `rollback` for portions that fail.
"""
