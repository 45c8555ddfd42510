"""Helpers for all other packages, which know nothing of models.

`persistence` stores estimators, by way of `declared`; `parallel` runs threads; `progress` has
histories, messages and callbacks of fits; `transaction` undoes failed fits; `files` reads and
writes; `memory` checks that there is enough; `messages` has messages, short reprs, and checks of
parameters. There is no entry: each file stands alone.
"""
