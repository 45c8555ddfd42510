"""Open the built pages of the documentation in a browser, and say what is wrong with them.

    pip install playwright
    python .ci/check_pages.py docs/_build/html [--only REGEX] [--shots FOLDER]

Each page is opened in a headless Chromium, light and dark, wide and narrow. It is wrong if

- a script fails, or a file of the site that it asks for is missing;
- a link leads to a page or a heading of the site that does not exist;
- a picture has no alternative text, or is not shown;
- it is wider than a narrow window, so that it scrolls sideways, or text is cut there;
- code, or what it prints, is wider than its box in a wide window;
- a text has hardly more contrast with its background than WCAG's least for large text.

Nothing is asked of other hosts. --shots keeps a picture of each page in each of the four ways. A
Chromium of the system is used if there is one: `chromium`, or what CHROMIUM names; otherwise that
of `playwright install chromium`.
"""

import argparse
import functools
import os
import re
import shutil
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from playwright.sync_api import sync_playwright

WIDTHS = {"wide": (1366, 900), "narrow": (390, 844)}
SCHEMES = ("light", "dark")
# Pages that redirect or repeat others.
NOT_PAGES = re.compile(r"^(_static/|_modules/|genindex|search\.html)")
LEAST_CONTRAST = 3.0
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
LOOK = """() => {
  const pictures = [...document.images].filter(i => !i.closest('[aria-hidden="true"]'));
  return {
    links: [...document.querySelectorAll('a[href]')].map(a => a.href),
    ids: [...document.querySelectorAll('[id]')].map(e => e.id),
    // Where a text says the same, the picture may be empty for those who cannot see it.
    without_alt: pictures.filter(i => !i.alt.trim() && !(i.hasAttribute('alt') &&
      i.closest('a, .sphx-glr-thumbcontainer')?.textContent.trim())).map(i => i.src),
    not_shown: pictures.filter(i => i.complete && !i.naturalWidth).map(i => i.src),
    title: document.title,
  };
}"""
WIDER = "() => document.documentElement.scrollWidth - window.innerWidth"
CLIPPED = """() => [...document.querySelectorAll('pre')]
  .filter(e => e.clientWidth && e.scrollWidth > e.clientWidth + 1)
  .map(e => e.textContent.trim().slice(0, 40))"""
# What scrolls in a box of its own, such as a table, is not cut; a box with the heading is the page.
CUT = """() => {
  const scrolls = e => e && (/auto|scroll/.test(getComputedStyle(e).overflowX) &&
    !e.querySelector('h1') || scrolls(e.parentElement));
  return [...document.querySelectorAll('p, li, dt, dd, h1, h2, h3')].filter(e =>
    e.checkVisibility() && e.getBoundingClientRect().width && !scrolls(e) &&
    e.getBoundingClientRect().right > window.innerWidth + 1)
    .map(e => e.textContent.trim().slice(0, 40));
}"""
# Texts over pictures and gradients have no single background, and are left out.
CONTRAST = """least => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const parse = text => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const over = (top, below) =>
    [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const style = getComputedStyle(e);
      if (style.backgroundImage !== 'none') return null;
      layers.push(parse(style.backgroundColor));
      if (layers.at(-1)[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const found = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    const element = node.parentElement, text = node.textContent.trim();
    if (!text || !element.checkVisibility({opacityProperty: true, visibilityProperty: true}))
      continue;
    const below = behind(element);
    if (!below) continue;
    const [a, b] = [light(over(parse(getComputedStyle(element).color), below)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const name = `${element.tagName.toLowerCase()}.${element.className}`;
    if (ratio < least && !found.has(name)) found.set(name, [ratio, text.slice(0, 40)]);
  }
  return [...found].map(([name, [ratio, text]]) => `${ratio.toFixed(2)} of ${name} "${text}"`);
}"""


class Quiet(SimpleHTTPRequestHandler):
    """Server of files that prints nothing."""

    def log_message(self, *args):
        """Print nothing."""


def serve(folder):
    """Address of a server of a folder, which ends with the process."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def pages_of(folder, only):
    """Paths of the pages, as the address has them."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.html"))
    return [name for name in names if not NOT_PAGES.search(name) and re.search(only, name)]


class Checker:
    """Pages looked at one by one, and what is wrong with them."""

    def __init__(self, browser, root, shots):
        self.root, self.shots = root, shots
        self.problems, self.links, self.ids = {}, {}, {}
        self.contexts = {scheme: self._open(browser, scheme) for scheme in SCHEMES}

    def _open(self, browser, scheme):
        page = browser.new_context(color_scheme=scheme).new_page()
        page.route("**/*", self._stay)
        page.on("pageerror", lambda error: self._add(f"script: {error}"))
        page.on("console", self._listen)
        page.on("response", self._look_at_response)
        return page

    def _stay(self, route):
        url = route.request.url
        if url.startswith((self.root, "data:", "blob:")):
            route.continue_()
        else:
            route.abort()

    def _listen(self, message):
        # What is missing is told by the responses, and other hosts are not asked.
        if message.type == "error" and "Failed to load resource" not in message.text:
            self._add(f"console: {message.text}")

    def _look_at_response(self, response):
        if response.status >= 400:
            self._add(f"status {response.status}: {response.url.removeprefix(self.root)}")

    def _add(self, problem):
        self.problems.setdefault(self.name, {})[problem] = None

    def check(self, name):
        """Look at a page in all ways."""
        self.name = name
        for scheme, page in self.contexts.items():
            for way, (width, height) in WIDTHS.items():
                page.set_viewport_size({"width": width, "height": height})
                if way == "wide":
                    page.goto(self.root + name, wait_until="load")
                wider = page.evaluate(WIDER)
                if wider > 0:
                    self._add(f"{way}: {wider} pixels wider than the window")
                if way == "wide":
                    for text in page.evaluate(CONTRAST, LEAST_CONTRAST):
                        self._add(f"{scheme}: contrast {text}")
                    for text in page.evaluate(CLIPPED):
                        self._add(f"clipped: {text!r}")
                elif cut := page.evaluate(CUT):
                    self._add(f"cut: {cut[0]!r}")
                if self.shots:
                    shot = self.shots / f"{name.replace('/', '.')[:-5]}-{scheme}-{way}.png"
                    page.screenshot(path=shot)
        found = page.evaluate(LOOK)
        self.ids[name] = set(found["ids"])
        self.links[name] = {url for url in found["links"] if url.startswith(self.root)}
        for url in found["without_alt"]:
            self._add(f"no alternative text: {url.removeprefix(self.root)}")
        for url in found["not_shown"]:
            self._add(f"not shown: {url.removeprefix(self.root)}")
        if not found["title"].strip():
            self._add("no title")

    def follow(self, folder):
        """Look for the ends of links, all pages having been seen."""
        for name, urls in self.links.items():
            self.name = name
            for url in urls:
                parts = urlsplit(url)
                path, heading = unquote(parts.path).lstrip("/"), unquote(parts.fragment)
                path = f"{path}index.html" if path.endswith("/") or not path else path
                if not (folder / path).is_file():
                    self._add(f"link to a missing page: {path}")
                elif heading and path in self.ids and heading not in self.ids[path]:
                    self._add(f"link to a missing heading: {path}#{heading}")


def main():
    """Check the pages of a folder; the exit code is 1 if anything is wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", metavar="REGEX", help="only pages of these names")
    parser.add_argument("--shots", type=Path, metavar="FOLDER", help="folder for pictures")
    options = parser.parse_args()
    if not (names := pages_of(options.folder, options.only)):
        raise SystemExit(f"{options.folder}: there are no pages.")
    if options.shots:
        options.shots.mkdir(parents=True, exist_ok=True)
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        checker = Checker(browser, serve(options.folder), options.shots)
        for name in names:
            checker.check(name)
        checker.follow(options.folder)
        browser.close()
    for name, problems in sorted(checker.problems.items()):
        print(name, *(f"  {problem}" for problem in problems), sep="\n")
    print(f"{len(names)} pages, {len(checker.problems)} with something wrong")
    return 1 if checker.problems else 0


if __name__ == "__main__":
    sys.exit(main())
