"""Pictures of README and home, light and dark: ``python docs/pictures.py``.

A labelled address, by the tagger of README's example.
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

from skstruct import CRFTagger
from skstruct.datasets import load_addresses
from skstruct.metrics import extract_chunks

STATIC = Path(__file__).parent / "_static"
THEMES = {
    "light": {"text": "#1f2328", "quiet": "#59636e", "fill": "{}33", "line": "{}"},
    "dark": {"text": "#f0f6fc", "quiet": "#9198a1", "fill": "{}44", "line": "{}"},
}
# Okabe and Ito's colours, which colour-blind readers tell apart.
COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
ADDRESS = "Apt 5 , 41 Harbour Road , Wellington 6011"
# Pixels: size of the letters, their width, and the room around them.
SIZE, ADVANCE, PADDING, GAP, HEIGHT = 20, 12.1, 9, 10, 78


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
        width = max(len(text) * ADVANCE, len(kind or "") * 0.56 * ADVANCE) + 2 * PADDING
        if kind is None:
            width = len(text) * ADVANCE
        else:
            color = COLORS[len([p for p in parts if p.startswith("<rect")]) % len(COLORS)]
            parts.append(
                f'<rect x="{x:.1f}" y="6" width="{width:.1f}" height="38" rx="7" '
                f'fill="{style["fill"].format(color)}" stroke="{style["line"].format(color)}"/>'
            )
            parts.append(
                f'<text x="{x + width / 2:.1f}" y="64" font-size="12" text-anchor="middle" '
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


def main():
    """Write the pictures."""
    tokens = ADDRESS.split()
    chunks = label(tokens)
    for theme in THEMES:
        path = STATIC / f"address-{theme}.svg"
        path.write_text(draw(tokens, chunks, theme), encoding="utf-8")
        print(path)


if __name__ == "__main__":
    main()
