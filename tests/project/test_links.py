"""Links between the pages that are written in Markdown."""

from pathlib import Path

import pytest
from helpers.links import relative_targets

ROOT = Path(__file__).parents[2]
# Folders that building the documentation fills.
GENERATED = {"_build", "auto_examples", "generated"}


def find_pages():
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    pages += sorted((ROOT / "docs").rglob("*.md"))
    return [page for page in pages if GENERATED.isdisjoint(page.relative_to(ROOT).parts)]


@pytest.mark.parametrize("page", find_pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_resolve(page):
    targets = relative_targets(page.read_text(encoding="utf-8"))
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert not missing, f"{page.relative_to(ROOT)} links to files that do not exist: {missing}"


def test_relative_targets():
    text = """
[page](guide/a%20b.rst#heading), [site](https://example.org), [anchor](#here) and a [break](
docs/c.md "title"); ![image](d.svg), `[code](e.md)` and [by name][f].

[f]: f.md

```
[block](g.md)
```
"""
    assert relative_targets(text) == ["guide/a b.rst", "docs/c.md", "d.svg", "f.md"]
