"""Pages that tag as one types, in a headless Chromium where that and playwright are installed."""

import json
import os
import runpy
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from skstruct import CRFTagger
from skstruct.export import write_json
from skstruct.metrics import extract_chunks

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

playwright = pytest.importorskip("playwright.sync_api")
pytest.importorskip("pydata_sphinx_theme")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not DOCS.exists(), reason="needs the documentation"),
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium"),
]
CONF = """
project, html_theme, html_css_files = "skstruct", "pydata_sphinx_theme", ["custom.css"]
html_static_path, html_context = [{static!r}, "scripts"], {{"default_mode": "auto"}}
"""
ADDRESSES = [
    "Apt 5, 41 Harbour Road, Wellington 6011",
    "Mrs. Ann Lee; 12 <b>Rue</b> Dauphine, New Orleans, La.",
    "",
    "\u039f\u03a3 \U0001f600, 99999 K\u00f6ln",
]
MARKS = "output => [...output.querySelectorAll('mark')].map(m => m.textContent)"


@pytest.fixture(scope="module")
def tagger():
    """Tagger of the box, as the documentation trains it."""
    return runpy.run_path(str(DOCS / "address_tagger.py"))


@pytest.fixture(scope="module")
def site(tagger, tmp_path_factory):
    """Address of the two pages, built without the rest of the documentation."""
    source = tmp_path_factory.mktemp("site")
    (source / "guide").mkdir()
    (source / "conf.py").write_text(CONF.format(static=str(DOCS / "_static")))
    tagger["write"](source / "scripts")
    home = (DOCS / "index.rst").read_text(encoding="utf-8").partition("Train a tagger and")[0]
    (source / "index.rst").write_text(home, encoding="utf-8")
    shutil.copy(DOCS / "guide" / "your_model.rst", source / "guide")
    build = [sys.executable, "-m", "sphinx", "-q", "-b", "html", source, source / "html"]
    subprocess.run(build, check=True, capture_output=True)
    handler = partial(SimpleHTTPRequestHandler, directory=source / "html")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as found:
        options = ("--no-sandbox", "--disable-gpu")
        running = found.chromium.launch(executable_path=CHROMIUM, args=list(options))
        yield running
        running.close()


@pytest.fixture
def page(browser):
    """Page that fails the test if a script fails or the policy stops something."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda m: m.type == "error" and errors.append(m.text))
    yield page
    context.close()
    assert not [error for error in errors if "favicon" not in error and "404" not in error]


def test_the_home_page_finds_what_the_tagger_predicts(site, page, tagger):
    page.goto(site)
    box = page.locator("#try-address")
    assert box.is_visible()
    assert not page.locator(".until-try").is_visible()
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    trained = tagger["train"]()
    for address in ADDRESSES:
        # By the keyboard alone.
        page.locator("#try-address-text").focus()
        page.keyboard.press("Control+a")
        page.keyboard.press("Delete")
        page.keyboard.type(address)
        tokens = address.replace(",", " , ").replace(";", " ; ").split()
        labels = trained.predict([tokens])[0] if tokens else []
        chunks = extract_chunks(labels)
        output = box.locator("output")
        assert output.text_content().split()[: len(tokens) and 1] == tokens[:1]
        marks = output.evaluate(MARKS)
        assert [mark.rsplit(" ", 3)[:2] for mark in marks] == [
            [" ".join(tokens[start:end]), kind] for start, end, kind in chunks
        ]
        assert output.locator("b").count() == 0
    assert len(extract_chunks(trained.predict([["41", "Harbour", "Road"]])[0])) == 2
    assert not requests


def test_the_box_fits_a_phone_light_and_dark(site, browser):
    check = runpy.run_path(str(ROOT / ".ci" / "check_pages.py"))
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme, viewport={"width": 390, "height": 844})
        page = context.new_page()
        for name in ("", "guide/your_model.html"):
            page.goto(site + name)
            assert page.locator(".try").is_visible()
            assert page.evaluate(check["WIDER"]) <= 0
            pale = page.evaluate(check["CONTRAST"], check["LEAST_CONTRAST"])
            assert not [text for text in pale if "mark" in text or "small" in text]
        context.close()


def test_without_scripts_the_picture_stays(site, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site)
    assert not page.locator("#try-address").is_visible()
    assert page.locator(".until-try img").first.is_visible()
    context.close()


@pytest.mark.parametrize("name", ["", "guide/your_model.html"])
def test_the_policy_forbids_code_from_text_and_requests(name, site, browser):
    page = browser.new_page()
    page.goto(site + name)
    # Later, since what a debugger evaluates may do everything.
    tried = """() => {
      const script = document.createElement("script");
      script.textContent = `setTimeout(() => {
        try { window.made = new Function("return 1")(); }
        catch (error) { window.made = error.name; }
        fetch("/").then(() => { window.sent = "sent"; }, () => { window.sent = "refused"; });
      });`;
      document.head.append(script);
    }"""
    page.evaluate(tried)
    page.wait_for_function("window.sent !== undefined")
    assert page.evaluate("[window.made, window.sent]") == ["EvalError", "refused"]
    page.close()


def test_your_model_tags_text(site, page, tmp_path):
    X = [[["in"], ["Rome", "end=me"]], [["<i>Oslo</i>", "end=lo"], ["__proto__"]]]
    y = [["O", "B-<img src=x onerror=window.hacked=1>"], ["B-LOC", "O"]]
    model = CRFTagger(l2=0.01).fit(X, y)
    write_json(model, tmp_path / "model.json")
    page.goto(f"{site}guide/your_model.html")
    page.set_input_files("#try-model-file", tmp_path / "model.json")
    page.fill("#try-model-text", "\n\n".join("\n".join(map("\t".join, one)) for one in X))
    output = page.locator("#try-model output")
    marks = [mark.rsplit(" ", 2)[0] for mark in output.evaluate(MARKS)]
    assert marks == ["Rome <img src=x onerror=window.hacked=1>", "<i>Oslo</i> LOC"]
    assert output.locator("img, i").count() == 0
    assert page.evaluate("window.hacked") is None
    assert "tabs" in page.locator("#try-model .note").text_content()


WRONG = {
    "model.js": "window.hacked = 1;",
    "model.json": json.dumps({"data": "window.hacked = 1", "length": 17, "checksum": 0}),
    "other.json": '{"__proto__": {"hacked": 1}, "data": 3}',
    "cut.json": '{"data": "{',
    "null.json": "null",
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_is_no_model_is_refused_and_not_run(name, site, page, tmp_path):
    (tmp_path / name).write_text(WRONG[name])
    page.goto(f"{site}guide/your_model.html")
    page.set_input_files("#try-model-file", tmp_path / name)
    note = page.locator("#try-model .note")
    playwright.expect(note).to_contain_text(f"{name}: ")
    assert page.evaluate("[window.hacked, ({}).hacked]") == [None, None]


def test_the_home_page_says_how_good_the_tagger_is(tagger, capsys):
    tagger["main"]()
    text = capsys.readouterr().out
    home = (DOCS / "index.rst").read_text(encoding="utf-8")
    assert f"F1 {text.partition('addresses: 0')[2][:4]}" in home
    assert int(text.partition("kB, ")[2].partition(" ")[0]) <= 300
