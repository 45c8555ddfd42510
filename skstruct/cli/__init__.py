"""The command ``skstruct``.

`main` is the entry: it lists the commands, each a module of its own, and turns errors into exit
codes. These modules have the options and the help; `work` does what they say, and `text` reads and
writes annotated text.
"""
