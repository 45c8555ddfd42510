"""Helpers without knowledge of sequences or models, for all other rooms.

`persistence` and `public_paths` store estimators, `parallel` runs threads, `history` records
epochs, `transaction` undoes failed fits, `sparse` converts matrices, `options` checks parameters,
and `memory` asks before it runs out. There is no entry: each file stands alone.
"""
