"""Pages of the guide that do a whole job: their code runs."""

import doctest
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PAGES = ["job_columns", "job_segments", "job_text"]

pytestmark = pytest.mark.skipif(not GUIDE.exists(), reason="needs the documentation")


@pytest.mark.parametrize("page", PAGES)
def test_jobs_run_from_start_to_end(page):
    found = doctest.testfile(
        str(GUIDE / f"{page}.rst"),
        module_relative=False,
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE,
        encoding="utf-8",
    )
    assert found.attempted > 15
    assert found.failed == 0
