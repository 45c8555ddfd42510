"""Write the version of a release, which its tag says, into the files that tell it.

    python .ci/set_version.py v0.1.0

Between releases these files name the version to come, with ".dev0". So builds need neither git nor
tags, and the same sources give the same wheel.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Lines that end in the version, quoted or not.
PLACES = {
    "pyproject.toml": re.compile(r'^(version = )"[^"]*"$', re.MULTILINE),
    "skstruct/__init__.py": re.compile(r'^(__version__ = )"[^"]*"$', re.MULTILINE),
    "CITATION.cff": re.compile(r"^(version: )\S+$", re.MULTILINE),
    "conda.recipe/recipe.yaml": re.compile(r'^(  version: )"[^"]*"$', re.MULTILINE),
}
# Final releases, pre-releases and corrections of PEP 440, in its normal form.
TAG = re.compile(r"v((0|[1-9]\d*)(\.(0|[1-9]\d*)){2}((a|b|rc)\d+)?(\.post\d+)?)")


def set_version(tag, root):
    """Write the version that a tag says; nothing is written if a file has no place for it."""
    found = TAG.fullmatch(tag)
    if found is None:
        raise SystemExit(f"{tag!r} is not the tag of a release, such as v0.1.0 or v0.1.0rc1.")
    texts = {}
    for name, place in PLACES.items():
        text = (root / name).read_text(encoding="utf-8")
        quote = "" if name.endswith(".cff") else '"'
        texts[name], n = place.subn(rf"\g<1>{quote}{found[1]}{quote}", text)
        if n != 1:
            raise SystemExit(f"{name} has {n} lines with a version; expected one.")
    for name, text in texts.items():
        (root / name).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    set_version(sys.argv[1], ROOT)
