"""HTML view of texts with their labels."""

from html import escape
from zlib import crc32

import numpy as np

from skstruct.input.formats import as_lists
from skstruct.input.schemes import are_chunk_labels, rewritten, spelling_of
from skstruct.inspection.models import find_tagger
from skstruct.inspection.predictions import labels_of_each, token_texts
from skstruct.metrics.chunks import errors_of_sequence, extract_chunks, without_overlaps
from skstruct.metrics.labels import check_lengths, sequences_of
from skstruct.utils.files import write_whole
from skstruct.utils.messages import check_count
from skstruct.utils.persistence import set_module

_STYLE = """
.skstruct-text { --ink: #1c1c1e; --paper: #fff; --line: #8884; --light: 90%; --rich: 65%;
  font: 1em/2.1 system-ui, sans-serif; color: var(--ink); max-width: 60em;
  background: var(--paper); padding: .3em .8em; border-radius: .4em; }
@media (prefers-color-scheme: dark) {
  .skstruct-text { --ink: #eee; --paper: #222; --light: 26%; --rich: 40%; } }
.skstruct-text p { margin: .4em 0; }
.skstruct-text mark, .skstruct-text .token { position: relative; color: inherit;
  padding: .1em .15em; background: none; border-radius: .25em; }
.skstruct-text mark { background: hsl(var(--hue) var(--rich) var(--light)); padding: .15em .35em; }
.skstruct-text small { font-size: .65em; font-weight: 600; margin-left: .4em; opacity: .75; }
.skstruct-text .tip { display: none; position: absolute; left: 0; top: 100%; z-index: 9;
  background: var(--paper); border: 1px solid var(--line); border-radius: .3em;
  padding: .3em .6em; font-size: .8rem; line-height: 1.4; white-space: pre;
  box-shadow: 0 2px 8px #0004; }
.skstruct-text .token:hover > .tip, .skstruct-text .token:focus > .tip { display: block; }
.skstruct-text mark.missed { background: none; outline: 2px dashed hsl(var(--hue) 70% 50%); }
.skstruct-text mark.invented { text-decoration: line-through; }
.skstruct-text mark.invented small { display: inline-block; }
.skstruct-text mark.mistyped { outline: 2px solid hsl(var(--hue) 70% 50%); }
.skstruct-text .errors { font-size: .8em; line-height: 1.5; opacity: .85; }
.skstruct-text details { font-size: .8em; line-height: 1.5; opacity: .85; }
""".strip()


@set_module("skstruct.inspection")
class TaggedText:
    """Texts with their labels, as HTML for notebooks and pages.

    Chunks are marked with their type, other labels token by token. Over a token, the probabilities
    of its labels appear; below a text, its n best labellings can be opened. The HTML needs nothing
    else, follows the reader's choice of light or dark, and shows texts as they are: markup in them
    is escaped.

    It is recommended to use :meth:`from_estimator` or :meth:`from_predictions`. A notebook shows
    the result.

    Parameters
    ----------
    tokens : list of list of str
        Texts of the tokens of each sequence.
    labels : list of list
        Their labels.
    alternatives : list of list of list of tuple (label, probability), default=None
        For each token its most probable labels.
    nbest : list of list of Labelling, default=None
        For each sequence its best labellings.
    gold : list of list, default=None
        Right labels, to show what was missed, found wrongly and mistyped.

    Raises
    ------
    ValueError
        If the numbers of sequences, tokens and labels differ.

    Examples
    --------
    >>> from skstruct.inspection import TaggedText
    >>> text = TaggedText([["Call", "Ann", "Lee"]], [["O", "B-PER", "I-PER"]])
    >>> html = text.to_html()
    >>> "<mark" in html and "PER" in html
    True
    """

    def __init__(self, tokens, labels, *, alternatives=None, nbest=None, gold=None):
        for given, what in ((labels, "labels"), (alternatives, "alternatives"), (gold, "labels")):
            if given is not None:
                check_lengths(tokens, given, what)
        if nbest is not None and len(nbest) != len(tokens):
            raise ValueError(f"nbest has {len(nbest)} lists for {len(tokens)} sequences.")
        self.tokens = tokens
        self.labels = labels
        self.alternatives = alternatives
        self.nbest = nbest
        self.gold = gold

    @classmethod
    def from_estimator(cls, estimator, X, *, gold=None, tokens=None, n_best=3, n_labels=3):
        """Label texts.

        Parameters
        ----------
        estimator : estimator
            A fitted tagger, or a Pipeline or search that ends in one.
        X : sequences of tokens
            As the estimator takes them.
        gold : sequences of labels, default=None
            Right labels, as of :meth:`from_predictions`.
        tokens : list of list of str, default=None
            Texts of the tokens. By default taken from `X`, if its tokens are str or begin with one;
            otherwise their numbers.
        n_best : int, default=3
            Labellings to list; with 1 only the best is shown.
        n_labels : int, default=3
            Labels to list for each token.

        Returns
        -------
        text : TaggedText

        Raises
        ------
        ValueError
            If `tokens` or `gold` do not fit `X`, or `n_best` or `n_labels` is not positive.
        """
        check_count("n_labels", n_labels)
        fitted, X = find_tagger(estimator), as_lists(X)
        tagger, X_tagger = fitted.tagger, fitted.transform(X)
        proba = [np.atleast_2d(rows) for rows in tagger.predict_proba(X_tagger)]
        nbest = tagger.predict_nbest(X_tagger, n_best=n_best).tolist()
        labels = [found[0].labels for found in nbest]
        if tokens is None:
            tokens = [token_texts(X, i, len(rows)) for i, rows in enumerate(proba)]
        alternatives = [_most_probable(rows, tagger.classes_, n_labels) for rows in proba]
        nbest = nbest if n_best > 1 else None
        gold = None if gold is None else labels_of_each(gold, proba)
        options = {"alternatives": alternatives, "nbest": nbest}
        return cls.from_predictions(tokens, labels, gold=gold, **options)

    @classmethod
    def from_predictions(cls, tokens, y_pred, *, gold=None, alternatives=None, nbest=None):
        """Show labels that have been predicted, or any others.

        Parameters
        ----------
        tokens : sequences of str
            Texts of the tokens of each sequence.
        y_pred : sequences of labels
            Their labels.
        gold : sequences of labels, default=None
            Right labels. Chunks that were missed are outlined, those found wrongly are struck
            through, and beside a wrong type stands the right one; below each text is a list.
        alternatives, nbest : list, default=None
            As of the class.

        Returns
        -------
        text : TaggedText

        Raises
        ------
        ValueError
            If the numbers of sequences, tokens and labels differ.
        """
        tokens, labels = sequences_of(tokens, "tokens"), sequences_of(y_pred, "y_pred")
        gold = None if gold is None else sequences_of(gold, "gold")
        return cls(tokens, labels, alternatives=alternatives, nbest=nbest, gold=gold)

    def to_html(self):
        """Return the HTML, an element for any page.

        Returns
        -------
        html : str
        """
        marks = self._marks()
        body = "\n".join(self._sequence(i, marks) for i in range(len(self.tokens)))
        return f'<div class="skstruct-text">\n<style>{_STYLE}</style>\n{body}\n</div>'

    def save(self, path, *, title="Tagged text"):
        """Write an HTML page.

        Parameters
        ----------
        path : str or path-like
            File to write.
        title : str, default="Tagged text"
            Title of the page.
        """
        page = f"""<!DOCTYPE html>
<html><head><meta charset="utf-8"><meta name="color-scheme" content="light dark">
<title>{escape(title)}</title></head>
<body>
{self.to_html()}
</body></html>
"""
        write_whole(path, page.encode("utf-8", errors="replace"))

    def _repr_html_(self):
        return self.to_html()

    def _marks(self):
        """Function of the labels of a sequence: finds its chunks, or takes it token by token."""
        both = [*self.labels, *(self.gold or [])]
        known = {label for labels in both for label in labels}
        spelling = spelling_of(known)
        if spelling is not None and spelling.is_certain and not spelling.odd:
            return lambda labels: extract_chunks(rewritten([labels], spelling)[0])
        known -= {"O"}
        if known and not are_chunk_labels(known):
            return lambda labels: [(t, t + 1, label) for t, label in enumerate(labels)]
        return extract_chunks

    def _sequence(self, i, marks):
        tokens = [self._token(i, t) for t in range(len(self.labels[i]))]
        shown, notes = self._judged(i, marks)
        parts, end = [], 0
        for start, stop, kind, judgement, note in shown:
            parts += tokens[end:start]
            inside = " ".join(tokens[start:stop])
            name = f"<small>{escape(note)}</small>"
            classes = f' class="{judgement}"' if judgement else ""
            parts.append(f'<mark{classes} style="--hue: {_hue(kind)}">{inside}{name}</mark>')
            end = stop
        parts += tokens[end:]
        listed = f'<p class="errors">{"; ".join(map(escape, notes))}</p>' if notes else ""
        return f"<p>{' '.join(parts)}</p>{listed}{self._labellings(i)}"

    def _judged(self, i, marks):
        """Marks of a sequence (start, end, type, judgement, note), and notes to list."""
        found = marks(self.labels[i])
        if self.gold is None:
            return [(*mark, "", str(mark[2])) for mark in found], []
        shown, notes = [], []
        for error, right, wrong in errors_of_sequence(marks(self.gold[i]), found):
            start, end, kind = wrong or right
            text = self._text(i, start, end)
            if error == "right":
                judgement, note = "", str(kind)
            elif error == "missed":
                judgement, note = "missed", f"{kind} missed"
                notes.append(f"missed: {text} ({kind})")
            elif error == "wrong type":
                judgement, note = "mistyped", f"{kind}, not {right[2]}"
                notes.append(f"mistyped: {text} ({note})")
            else:
                judgement, note = "invented", f"{kind} wrong"
                meant = f", for {self._text(i, *right[:2])} ({right[2]})" if right else ""
                notes.append(f"found wrongly: {text} ({kind}){meant}")
            shown.append((start, end, kind, judgement, note))
        # A chunk that was missed is not marked where it overlaps one that was found.
        shown.sort(key=lambda mark: (mark[3] == "missed", mark[0]))
        return without_overlaps(shown), notes

    def _text(self, i, start, end):
        return " ".join(map(str, self.tokens[i][start:end]))

    def _token(self, i, t):
        text = escape(str(self.tokens[i][t]))
        if self.alternatives is None:
            return f'<span class="token">{text}</span>'
        lines = [f"{100 * p:5.1f} %  {label}" for label, p in self.alternatives[i][t]]
        tip = escape("\n".join(lines))
        return f'<span class="token" tabindex="0">{text}<span class="tip">{tip}</span></span>'

    def _labellings(self, i):
        if self.nbest is None or not self.nbest[i]:
            return ""
        best, items = self.nbest[i][0].labels, []
        for number, found in enumerate(self.nbest[i], 1):
            changed = [
                f"{self.tokens[i][t]} {label}"
                for t, label in enumerate(found.labels)
                if number > 1 and label != best[t]
            ]
            text = escape(", ".join(changed) or "as shown")
            items.append(f"<li>{100 * found.probability:.1f} %: {text}</li>")
        share = f"{100 * self.nbest[i][0].probability:.1f} %"
        return f"<details><summary>{share}</summary><ol>{''.join(items)}</ol></details>"


def _most_probable(proba, classes, n_labels):
    """For each token its most probable labels, with their probabilities."""
    order = np.argsort(-proba, axis=1, kind="stable")[:, :n_labels]
    names = classes.tolist()
    return [
        [(names[code], float(row[code])) for code in codes]
        for row, codes in zip(proba, order, strict=True)
    ]


def _hue(kind):
    """Hue of a type, the same wherever it occurs."""
    return crc32(str(kind).encode("utf-8", "replace")) * 137 % 360
