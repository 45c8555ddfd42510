"""The command ``skstruct``.

`main` is the entry: it lists the commands, each a module of its own, and turns errors into exit
codes. `text` reads and writes annotated text in a `layout`, `plain` text without annotations;
`models` loads and stores models, `answers` predicts with them, `estimators` makes them; `labels`
says what labels look like; and `options` and `output` are shared.
"""
