"""Helpers without knowledge of sequences or models, for all other rooms.

`persistence` stores estimators, by way of `declared` and `public_paths`; `parallel` runs
threads; `progress` has histories, messages and callbacks of fits; `transaction` undoes failed fits;
`files` reads and writes; `memory`, `options` and `messages` check and complain. There is no entry:
each file stands alone.
"""
