"""Helpers for all other packages, which know nothing of models.

`persistence` stores estimators, by way of `declared`; `parallel` runs threads; `progress` has
histories, messages and callbacks of fits; `transaction` undoes failed fits; `files` reads and
writes; `memory` and `options` check memory and parameters; `messages` has messages and short reprs.
There is no entry: each file stands alone.
"""
