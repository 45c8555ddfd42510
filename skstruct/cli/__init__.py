"""The command ``skstruct``.

`main` is the entry: it lists the commands, each a module of its own, and turns errors into exit
codes. `text` reads and writes annotated text in a `layout`, `answers` predicts, `models` loads and
stores models, and `options` and `output` are shared.
"""
