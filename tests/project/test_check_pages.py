"""The check of built pages finds what is wrong: run where playwright and Chromium are installed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / ".ci" / "check_pages.py"

pytest.importorskip("playwright")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SCRIPT.exists(), reason="needs the repository"),
    pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Chromium"),
]

PAGE = """<!doctype html><html lang="en"><head><title>{title}</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<style>body {{ color: black; background: white }} {style}</style></head>
<body>{body}</body></html>"""
PICTURE = (
    "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"  # one pixel
)
FAULTS = {
    "script: ": "<script>throw new Error('no')</script>",
    "console: no": "<script>console.error('no')</script>",
    "status 404: missing.js": "<script src='missing.js'></script>",
    "link to a missing page: missing.html": "<a href='missing.html'>there</a>",
    "link to a missing heading: good.html#missing": "<a href='good.html#missing'>there</a>",
    "no alternative text: data:": f"<img src='{PICTURE}'>",
    "not shown: missing.png": "<img src='missing.png' alt='a picture'>",
    "narrow: ": "<div style='width: 800px'>wide</div>",
    "light: contrast 1.": "<p style='color: #eee'>pale</p>",
    "cut: 'long": (
        "<div style='overflow-x: auto'><h1>Page</h1><p style='width: 800px'>long</p></div>"
    ),
    "clipped: 'print(": f"<pre style='overflow: auto'>print({'1' * 300})</pre>",
    "no title": "",
}


def check(folder, **pages):
    for name, (title, style, body) in pages.items():
        text = PAGE.format(title=title, style=style, body=body)
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    command = [sys.executable, SCRIPT, folder, "--shots", folder / "shots"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done


def test_what_is_wrong_is_named(tmp_path):
    faulty = {
        f"fault{i}": ("" if name == "no title" else "Faulty", "", body)
        for i, (name, body) in enumerate(FAULTS.items())
    }
    done = check(tmp_path, good=("Good", "", "<h1 id='here'>Good</h1>"), **faulty)
    assert done.returncode == 1
    *blocks, last = done.stdout.strip().split("\nfault")
    found = dict(block.removeprefix("fault").split(".html\n", 1) for block in [*blocks, last])
    assert {int(number) for number in found} == set(range(len(FAULTS)))
    for i, name in enumerate(FAULTS):
        assert f"  {name}" in found[str(i)], (name, found[str(i)])
    assert f"{len(FAULTS) + 1} pages, {len(FAULTS)} with something wrong" in done.stdout


def test_pages_without_faults(tmp_path):
    body = f"""<h1 id='here'>Good</h1><a href='#here'>up</a> <a href='https://example.org'>away</a>
    <img src='{PICTURE}' alt='a dot'><a href='good.html'><img src='{PICTURE}' alt=''> a dot</a>"""
    dark = "@media (prefers-color-scheme: dark) { body, a { color: white; background: black } }"
    done = check(tmp_path, good=("Good", dark, body))
    assert done.stdout == "1 pages, 0 with something wrong\n"
    assert done.returncode == 0
    shots = {path.name for path in (tmp_path / "shots").iterdir()}
    ways = [f"{scheme}-{width}" for scheme in ("light", "dark") for width in ("wide", "narrow")]
    assert shots == {f"good-{way}.png" for way in ways}
