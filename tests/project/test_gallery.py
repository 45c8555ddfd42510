"""Cards of the gallery: each example has a sketch whose letters can be read at its size."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*/plot_*.py"))
# Pixels of a card's picture, and of letters that can be read.
CARD, READABLE = 170, 10

if not EXAMPLES:
    pytest.skip("needs the repository", allow_module_level=True)


@pytest.fixture(scope="module")
def thumbnails():
    return runpy.run_path(ROOT / "docs" / "thumbnails.py")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_cards_have_readable_pictures(example, thumbnails):
    named = f'# sphinx_gallery_thumbnail_path = "_static/thumbnails/{example.stem}.svg"\n'
    assert named in example.read_text(encoding="utf-8")
    picture = (thumbnails["FOLDER"] / f"{example.stem}.svg").read_text(encoding="utf-8")
    assert picture == thumbnails["draw"](example.stem)
    sizes = [int(size) for size in re.findall(r'font-size="(\d+)"', picture)]
    assert all(size * CARD / thumbnails["WIDTH"] >= READABLE for size in sizes)


def test_every_sketch_belongs_to_an_example(thumbnails):
    assert set(thumbnails["SKETCHES"]) == {example.stem for example in EXAMPLES}
