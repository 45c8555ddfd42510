"""Pictures of README and home, light and dark: ``python docs/pictures.py``.

A labelled address, by the tagger of README's example, and the speed of the drop-in as bars, from
the table that ``benchmarks.tutorial_line`` writes.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

from skstruct import CRFTagger
from skstruct.datasets import load_addresses
from skstruct.metrics import extract_chunks

STATIC = Path(__file__).parent / "_static"
SPEED = Path(__file__).parent / "benchmarks" / "generated" / "tutorial_line" / "speed.md"
# Rows of the table, and what the bars are called.
TITLES = {
    "CoNLL-2000": "CoNLL-2000",
    "CoNLL-2002 Spanish": "Spanish names",
    "CoNLL-2002 Dutch": "Dutch names",
    "JNLPBA": "JNLPBA",
    "English-EWT": "English-EWT",
    "Made-up addresses": "Made-up addresses",
}
THEMES = {
    "light": {"text": "#1f2328", "quiet": "#59636e", "fill": "{}33", "line": "{}"},
    "dark": {"text": "#f0f6fc", "quiet": "#9198a1", "fill": "{}44", "line": "{}"},
}
# Okabe and Ito's colours, which colour-blind readers tell apart.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
ADDRESS = "Apt 5 , 41 Harbour Road , Wellington 6011"
# Pixels: size of the letters, their width, and the space around them. Types are set smaller.
SIZE, ADVANCE, PADDING, GAP, HEIGHT = 20, 12.1, 9, 10, 78
SMALL = 15


def features(tokens):
    """Those of README's example."""
    before = ["", *tokens]
    return [{"word": t, "ending": t[-2:], "before": before[i]} for i, t in enumerate(tokens)]


def label(tokens):
    """Chunks of README's address: start, end and type."""
    addresses, labels = load_addresses(return_X_y=True)
    tagger = CRFTagger(l2=0.1).fit([features(address) for address in addresses], labels)
    chunks = extract_chunks(tagger.predict([features(tokens)])[0])
    return [tuple(chunk) for chunk in chunks]


def draw(tokens, chunks, theme):
    """An SVG of tokens, with a coloured box around each chunk and its type below."""
    style = THEMES[theme]
    starts = {start: (end, kind) for start, end, kind in chunks}
    parts, x, i = [], 1.0, 0
    while i < len(tokens):
        end, kind = starts.get(i, (i + 1, None))
        text = " ".join(tokens[i:end])
        width = len(text) * ADVANCE
        if kind is not None:
            width = max(width + 2 * PADDING, len(kind) * ADVANCE * SMALL / SIZE)
            color = COLORS[len([p for p in parts if p.startswith("<rect")]) % len(COLORS)]
            parts.append(
                f'<rect x="{x:.1f}" y="6" width="{width:.1f}" height="38" rx="7" '
                f'fill="{style["fill"].format(color)}" stroke="{style["line"].format(color)}"/>'
            )
            parts.append(
                f'<text x="{x + width / 2:.1f}" y="64" font-size="{SMALL}" text-anchor="middle" '
                f'fill="{style["quiet"]}">{escape(kind)}</text>'
            )
        parts.append(
            f'<text x="{x + width / 2:.1f}" y="32" font-size="{SIZE}" text-anchor="middle" '
            f'fill="{style["text"]}">{escape(text)}</text>'
        )
        x, i = x + width + GAP, end
    spans = ", ".join(f"{' '.join(tokens[a:b])}: {kind}" for a, b, kind in chunks)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {x - GAP + 1:.0f} {HEIGHT}" '
        f'width="{x - GAP + 1:.0f}" font-family="ui-monospace, Menlo, Consolas, monospace">'
        f"<title>{escape(spans)}</title>{''.join(parts)}</svg>\n"
    )


def read_ratios():
    """How many times as fast the drop-in fits, by corpus: the first column of the table."""
    lines = SPEED.read_text(encoding="utf-8").splitlines()
    rows = dict(line.strip("| ").split(" | ")[:2] for line in lines if line.startswith("| "))
    return {title: float(rows[name]) for name, title in TITLES.items()}


def draw_bars(ratios, theme):
    """An SVG with a bar for each corpus: how many times as fast the drop-in is."""
    style, left, width, row = THEMES[theme], 145, 275, 30
    longest = max(ratios.values())
    bars = []
    for i, (title, ratio) in enumerate(ratios.items()):
        y, length = 34 + i * row, width * ratio / longest
        bars.append(
            f'<text x="{left - 10}" y="{y + 15}" text-anchor="end" fill="{style["text"]}">{title}'
            f'</text><rect x="{left}" y="{y}" width="{length:.0f}" height="20" rx="3" '
            f'fill="{COLORS[0]}"/><text x="{left + length + 8:.0f}" y="{y + 15}" '
            f'fill="{style["text"]}">{ratio:.1f} times</text>'
        )
    whole, height = left + width + 90, 48 + row * len(ratios)
    heading = "Training with the tutorial's line, times as fast as sklearn-crfsuite"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} {height}" width="{whole}" '
        f'font-family="system-ui, sans-serif" font-size="14"><title>{heading}</title>'
        f'<text x="4" y="20" fill="{style["quiet"]}">{heading}</text>{"".join(bars)}</svg>\n'
    )


def main():
    """Write the pictures."""
    tokens = ADDRESS.split()
    chunks, ratios = label(tokens), read_ratios()
    for theme in THEMES:
        pictures = {"address": draw(tokens, chunks, theme), "speed": draw_bars(ratios, theme)}
        for name, picture in pictures.items():
            path = STATIC / f"{name}-{theme}.svg"
            path.write_text(picture, encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main()
