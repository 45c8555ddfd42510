"""Links of texts in Markdown."""

import re
from urllib.parse import unquote

# Inline links and images, [text](target "title"), and reference definitions, [name]: target.
INLINE = re.compile(r"\]\(\s*<?([^)\s>]+)")
REFERENCE = re.compile(r"^\[[^\]]+\]:\s+<?([^\s>]+)", re.MULTILINE)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
SCHEME = re.compile(r"[a-z][a-z+.-]*:", re.IGNORECASE)


def relative_targets(text):
    """Targets of the links in `text` that lead to files, without their anchors."""
    text = CODE.sub("", text)
    targets = INLINE.findall(text) + REFERENCE.findall(text)
    targets = [unquote(target.partition("#")[0]) for target in targets if not SCHEME.match(target)]
    return [target for target in targets if target]
