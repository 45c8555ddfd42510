"""Exports of annotation tools: texts, and spans of their characters.

`tools` is the entry. Each format has its file: `brat`, `doccano`, `label_studio`. `exports` checks
JSON, and compares spans with the text that is stored with them.
"""
