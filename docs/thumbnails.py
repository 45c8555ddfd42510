"""Thumbnails of the gallery, one for each example: ``python docs/thumbnails.py``.

A figure of an example is not readable at the size of a card. So each card has a sketch of what the
example is about, in letters that are. Sketches show no results.
"""

from __future__ import annotations

from math import exp, sin
from pathlib import Path
from xml.sax.saxutils import escape

FOLDER = Path(__file__).parent / "_static" / "thumbnails"
WIDTH, HEIGHT = 320, 200
# Okabe and Ito's colours, which colour-blind readers tell apart.
BLUE, ORANGE, GREEN, PINK, SKY, RED = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"),
)
GREY, BLACK = "#8c959f", "#1f2328"


def text(x, y, words, size=24, color=BLACK, anchor="middle", mono=False):
    """Words with the middle, or the start, of their base line at a point."""
    family = ' font-family="ui-monospace, Menlo, Consolas, monospace"' if mono else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}" text-anchor="{anchor}"'
        f"{family}>{escape(words)}</text>"
    )


def box(x, y, width, height, color=GREY, dashed=False, filled="33"):
    """A rounded box, faintly filled."""
    dashes = ' stroke-dasharray="7 5"' if dashed else ""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7" '
        f'fill="{color}{filled}" stroke="{color}" stroke-width="2"{dashes}/>'
    )


def line(points, color=GREY, width=4):
    """A line through points."""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return (
        f'<polyline points="{places}" fill="none" stroke="{color}" stroke-width="{width}" '
        'stroke-linejoin="round" stroke-linecap="round"/>'
    )


def dot(x, y, radius=7, color=BLUE):
    """A filled circle."""
    return f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" fill="{color}"/>'


def arrow(x, y, length, color=GREY):
    """An arrow to the right."""
    end = x + length
    return line([(x, y), (end, y)], color) + line(
        [(end - 10, y - 9), (end, y), (end - 10, y + 9)], color
    )


def tag(x, y, width, words, kind, color, **style):
    """Words in a box, and the type below."""
    return (
        box(x, y, width, 42, color, **style)
        + text(x + width / 2, y + 30, words)
        + text(x + width / 2, y + 68, kind, 19, "#59636e")
    )


def axes():
    """The left and the lower axis of a plot."""
    return line([(40, 25), (40, 170), (295, 170)], GREY, 3)


def grid(rows, columns, best, x=70, y=30, size=46):
    """Cells of a search, of which one is the best."""
    return "".join(
        box(x + size * j, y + size * i, size - 6, size - 6, BLUE if (i, j) == best else GREY)
        for i in range(rows)
        for j in range(columns)
    )


def certificate():
    """Two curves that meet."""
    fall = [(x, exp(-(x - 45) / 50)) for x in range(45, 290, 5)]
    upper = [(x, 112 - 82 * share) for x, share in fall]
    lower = [(x, 118 + 48 * share) for x, share in fall]
    return (
        axes()
        + line(upper, BLUE)
        + line(lower, ORANGE)
        + text(190, 78, "objective", 24, BLUE)
        + text(205, 155, "lower bound", 24, "#9a6a00")
    )


def heartbeat():
    """Waves of an electrocardiogram, in colours."""
    p = [(20 + i, 110 - 18 * sin(i / 50 * 3.14)) for i in range(0, 51, 5)]
    t = [(200 + i, 110 - 32 * sin(i / 80 * 3.14)) for i in range(0, 81, 5)]
    complex_ = [(110, 110), (122, 124), (138, 30), (152, 148), (162, 110)]
    return (
        line([(0, 110), (20, 110)])
        + line(p, BLUE, 6)
        + line([(70, 110), (110, 110)])
        + line(complex_, RED, 6)
        + line([(162, 110), (200, 110)])
        + line(t, GREEN, 6)
        + line([(280, 110), (320, 110)])
        + text(45, 182, "P", 26, BLUE)
        + text(137, 182, "QRS", 26, RED)
        + text(240, 182, "T", 26, GREEN)
    )


def folds():
    """Five folds, of which another one is held out in each row."""
    cells = [
        box(40 + 50 * j, 18 + 34 * i, 44, 28, ORANGE if i == j else GREY, filled="66")
        for i in range(5)
        for j in range(5)
    ]
    return "".join(cells)


def weights():
    """Named weights as bars, to both sides."""
    names = (("word road", 90, BLUE), ("ends in 11", -60, RED), ("before 41", 60, BLUE))
    bars = ""
    for i, (name, length, color) in enumerate(names):
        y = 30 + 54 * i
        bars += f'<rect x="{min(225, 225 + length)}" y="{y}" width="{abs(length)}" height="34" '
        bars += f'fill="{color}" rx="4"/>' + text(150, y + 26, name, 24, anchor="end")
    return bars + line([(225, 20), (225, 182)], BLACK, 2)


def cluster():
    """Workers around a scheduler."""
    places = ((60, 50), (60, 150), (260, 50), (260, 150))
    lines = "".join(line([(160, 100), place]) for place in places)
    workers = "".join(
        box(x - 40, y - 24, 80, 48, BLUE, filled="ff") + text(x, y + 8, "sum", 24, "#ffffff")
        for x, y in places
    )
    return lines + workers + dot(160, 100, 34, ORANGE) + text(160, 110, "w", 30)


def path():
    """Weights that vanish one after the other."""
    curves = "".join(
        line(
            [(x, 165 - max(0.0, h * (1 - (x - 45) / (end - 45)))) for x in range(45, 290, 5)], color
        )
        for h, end, color in ((130, 275, BLUE), (95, 200, ORANGE), (60, 140, GREEN))
    )
    return axes() + curves + text(210, 60, "penalty", 26) + arrow(165, 78, 95)


def service():
    """Answers that go on during a fit."""
    answers = "".join(dot(45 + 18 * i, 120 if i < 9 else 70, 6) for i in range(14))
    return (
        axes()
        + f'<rect x="100" y="28" width="98" height="140" fill="{SKY}55"/>'
        + text(149, 56, "fit", 26)
        + answers
        + text(252, 48, "answers", 24, BLUE)
    )


def one_file():
    """A model that goes into a file of either language."""
    parts = box(25, 70, 90, 62, BLUE) + text(70, 108, "model")
    parts += arrow(128, 101, 42)
    for y, name, color in ((22, ".py", ORANGE), (112, ".js", GREEN)):
        parts += box(185, y, 105, 66, color) + text(237, y + 43, name, 30, mono=True)
    return parts


def stream():
    """Batches on their way into a tagger."""
    batches = "".join(box(12 + 48 * i, 78, 38, 44, GREY) for i in range(3))
    return (
        batches
        + arrow(158, 100, 34)
        + box(205, 62, 105, 76, BLUE)
        + text(257, 109, "tagger", 26)
        + text(84, 160, "batches", 24, "#59636e")
    )


def calibration():
    """A curve along the diagonal."""
    curve = [(45 + 24 * i, 165 - 13.5 * i - 9 * sin(i / 10 * 6.28)) for i in range(11)]
    return (
        axes()
        + line([(45, 165), (285, 30)], GREY, 3)
        + line(curve, BLUE, 5)
        + "".join(dot(x, y, 7) for x, y in curve[::2])
        + text(165, 194, "probability", 22)
        + text(92, 48, "right", 22)
    )


def learning_curve():
    """F1 that grows with the text."""
    curve = [(45 + 24 * i, 165 - 125 * (1 - exp(-i / 3.5))) for i in range(11)]
    return (
        axes()
        + line(curve, BLUE, 5)
        + "".join(dot(x, y) for x, y in curve[::2])
        + text(205, 110, "accuracy", 26)
        + text(165, 196, "tokens", 22)
    )


def second_order():
    """Three labels, and an arc over all of them."""
    nodes = "".join(
        dot(60 + 100 * i, 130, 28, BLUE) + text(60 + 100 * i, 139, f"y{i + 1}", 26, "#ffffff")
        for i in range(3)
    )
    arc = f'<path d="M60 98 Q160 -10 260 98" fill="none" stroke="{ORANGE}" stroke-width="6"/>'
    return line([(60, 130), (260, 130)]) + arc + nodes


def ranking():
    """A list, of which the second is chosen."""
    rows = "".join(
        box(70, 18 + 58 * i, 215, 46, GREEN if i == 1 else GREY)
        + text(40, 50 + 58 * i, f"{i + 1}.", 26)
        + text(178, 50 + 58 * i, words, 24)
        for i, words in enumerate(("city city", "street city", "street street"))
    )
    return rows


def frame():
    """A table with columns for token and label."""
    rows = (("token", "label"), ("41", "NUMBER"), ("Mill", "STREET"), ("Leeds", "CITY"))
    cells = "".join(
        text(50, 42 + 44 * i, a, 24, BLUE if i == 0 else BLACK, "start")
        + text(165, 42 + 44 * i, b, 24, BLUE if i == 0 else BLACK, "start")
        for i, (a, b) in enumerate(rows)
    )
    return cells + line([(40, 54), (290, 54)], BLUE, 3)


def handwriting():
    """Letters read alone, and in the word."""
    cells = ""
    for i, (alone, chained) in enumerate(zip("comnand", "command", strict=True)):
        wrong = alone != chained
        cells += text(34 + 42 * i, 60, chained, 38, mono=True)
        cells += text(34 + 42 * i, 116, alone, 30, RED if wrong else GREY, mono=True)
        cells += text(34 + 42 * i, 170, chained, 30, GREEN if wrong else GREY, mono=True)
    return cells


def digits():
    """A count, whose last digit is clear from the others."""
    cells = "".join(
        box(18 + 72 * i, 45, 64, 74, GREEN if i == 3 else GREY)
        + text(50 + 72 * i, 100, digit, 50, mono=True)
        for i, digit in enumerate("4567")
    )
    return cells + text(266, 165, "1 or 7?", 26, RED)


def embedding():
    """Words that are near each other."""
    words = (("road", 120, 60), ("street", 150, 95), ("Leeds", 240, 150), ("York", 190, 178))
    return line([(30, 20), (30, 190), (305, 190)], GREY, 3) + "".join(
        dot(x - 62, y - 8, 8, BLUE if y < 110 else ORANGE)
        + text(x - 45, y, word, 26, anchor="start")
        for word, x, y in words
    )


def template():
    """A window of tokens, and the template of a pair."""
    window = "".join(
        box(14 + 100 * i, 32, 92, 48, BLUE if i < 2 else GREY) + text(60 + 100 * i, 65, word, 24)
        for i, word in enumerate(("41", "Mill", "Road"))
    )
    return (
        window
        + text(160, 125, "%x[-1,0]", 26, mono=True)
        + text(160, 165, "/%x[0,0]", 26, mono=True)
    )


SKETCHES = {
    "plot_addresses": lambda: (
        tag(14, 15, 74, "41", "NUMBER", ORANGE)
        + tag(106, 15, 206, "Harbour Road", "STREET", GREEN)
        + tag(8, 110, 160, "Wellington", "CITY", PINK)
        + tag(192, 110, 120, "6011", "POSTCODE", SKY)
    ),
    "plot_crfsuite_migration": lambda: (
        text(14, 80, "- sklearn_crfsuite", 25, RED, "start", mono=True)
        + text(14, 130, "+ skstruct.crfsuite", 25, GREEN, "start", mono=True)
    ),
    "plot_cross_validation": folds,
    "plot_frame": frame,
    "plot_spacy": lambda: (
        text(160, 48, "doc.ents", 34, BLUE, mono=True)
        + tag(12, 90, 146, "Mill House", "BUILDING", PINK)
        + tag(186, 90, 112, "Dublin", "CITY", GREEN)
    ),
    "plot_biomedical_names": lambda: (
        tag(12, 15, 140, "IL-2 gene", "DNA", GREEN)
        + tag(176, 15, 132, "NF-kB", "PROTEIN", BLUE)
        + tag(60, 110, 200, "T lymphocytes", "CELL TYPE", ORANGE)
    ),
    "plot_chunking": lambda: (
        tag(12, 15, 70, "He", "NP", BLUE)
        + tag(106, 15, 120, "reckons", "VP", ORANGE)
        + tag(12, 110, 280, "the current deficit", "NP", BLUE)
    ),
    "plot_digit_sequences": digits,
    "plot_handwritten_words": handwriting,
    "plot_signals": heartbeat,
    "plot_spanish_names": lambda: (
        tag(12, 15, 160, "Julia Ruiz", "PER", BLUE)
        + text(214, 44, "visita", 24)
        + tag(12, 110, 150, "La Coruña", "LOC", GREEN)
        + text(196, 140, "con", 24)
        + tag(226, 110, 80, "EFE", "ORG", ORANGE)
    ),
    "plot_word_segmentation": lambda: (
        text(160, 75, "thecatsat", 40, GREY, mono=True)
        + text(160, 145, "the cat sat", 40, BLUE, mono=True)
    ),
    "plot_embeddings": embedding,
    "plot_few_labels": lambda: (
        tag(20, 30, 120, "Tarnwick", "new", GREY, dashed=True)
        + tag(180, 30, 120, "Rome", "LOC!5", GREEN)
        + text(160, 165, "0010110", 34, BLUE, mono=True)
    ),
    "plot_path": path,
    "plot_search": lambda: (
        grid(3, 4, (1, 2), 90)
        + text(178, 190, "n_best", 24, mono=True)
        + text(48, 106, "l2", 26, mono=True)
    ),
    "plot_select_features": lambda: (
        tag(12, 20, 90, "road", "", BLUE)
        + tag(116, 20, 90, "-ley", "", GREY, dashed=True)
        + tag(220, 20, 88, "ro-", "", BLUE)
        + tag(12, 80, 90, "Xxxx", "", GREY, dashed=True)
        + tag(116, 80, 90, "99", "", BLUE)
        + tag(220, 80, 88, ",", "", BLUE)
        + text(160, 170, "SelectKBest", 28, mono=True)
    ),
    "plot_second_order": second_order,
    "plot_templates": template,
    "plot_partial_labels": lambda: (
        tag(12, 55, 60, "17", "?", GREY, dashed=True)
        + tag(88, 55, 126, "Mill Lane", "STREET", GREEN)
        + tag(230, 55, 80, "York", "?", GREY, dashed=True)
    ),
    "plot_spans": lambda: (
        text(40, 60, "in", 24)
        + tag(80, 30, 84, "C 4", "UNIT?", ORANGE, dashed=True)
        + text(235, 60, ", 68159", 24)
        + text(160, 165, "p = 0.4, above 0.3", 26, BLUE)
    ),
    "plot_wrong_labels": lambda: (
        tag(70, 30, 180, "Harbour Road", "", GREEN)
        + text(90, 130, "CITY", 28, RED)
        + line([(52, 120), (128, 120)], RED, 4)
        + arrow(142, 120, 30)
        + text(238, 130, "STREET", 28, GREEN)
    ),
    "plot_annotators": lambda: (
        tag(20, 20, 120, "Mill Lane", "", GREEN)
        + tag(20, 75, 120, "Mill Lane", "", GREEN)
        + tag(20, 130, 120, "Mill Lane", "", RED, dashed=True)
        + text(200, 50, "STREET", 24, GREEN)
        + text(200, 105, "STREET", 24, GREEN)
        + text(200, 160, "CITY", 24, RED)
        + text(282, 160, "?", 40, RED)
    ),
    "plot_choose": lambda: (
        "".join(line([(40, 40 + 24 * i), (150, 40 + 24 * i)], GREY, 8) for i in range(6))
        + line([(40, 88), (150, 88)], ORANGE, 8)
        + line([(40, 160), (150, 160)], ORANGE, 8)
        + arrow(170, 100, 40)
        + tag(218, 60, 84, "97b", "UNIT?", ORANGE, dashed=True)
    ),
    "plot_calibration": calibration,
    "plot_certificate": certificate,
    "plot_seeing": weights,
    "plot_reranking": ranking,
    "plot_cluster": cluster,
    "plot_cluster_search": lambda: (
        grid(3, 3, (1, 1), 20)
        + "".join(line([(172, 98), (225, y)], GREY, 3) for y in (45, 98, 151))
        + "".join(dot(245, y, 20, ORANGE) for y in (45, 98, 151))
    ),
    "plot_one_file": one_file,
    "plot_parts_of_speech": learning_curve,
    "plot_service": service,
    "plot_stream": stream,
}


def draw(name):
    """The SVG of an example's thumbnail."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="system-ui, sans-serif">{SKETCHES[name]()}</svg>\n'
    )


def main():
    """Write the thumbnails."""
    FOLDER.mkdir(exist_ok=True)
    for name in SKETCHES:
        (FOLDER / f"{name}.svg").write_text(draw(name), encoding="utf-8")


if __name__ == "__main__":
    main()
