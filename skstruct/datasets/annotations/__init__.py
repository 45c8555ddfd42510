"""Exports of annotation tools: texts, and spans of their characters.

`tools` is the entry. Each format has its file: `brat`, `doccano`, `label_studio`. `exports` checks
the JSON of the latter two, and `offsets` compares spans with the words that stand beside them.
"""
