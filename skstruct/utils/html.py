"""HTML of batches for notebooks."""

from html import escape

import numpy as np
from scipy.sparse import issparse

# Most sequences, tokens of each and features of a token that are shown.
_SEQUENCES, _TOKENS, _FEATURES = 3, 5, 8
_STYLE = """
.skstruct-batch { font: .9em/1.4 system-ui, sans-serif; overflow-x: auto; }
.skstruct-batch table { border-collapse: collapse; margin-top: .4em; }
.skstruct-batch td, .skstruct-batch th { text-align: left; padding: .2em .7em; vertical-align: top;
  border-bottom: 1px solid #8884; }
.skstruct-batch .more { opacity: .6; }
""".strip()


def batch_html(batch):
    """Return a table of the first tokens of the first sequences of a batch.

    Parameters
    ----------
    batch : SequenceBatch

    Returns
    -------
    html : str
        A self-contained element; names of features are escaped.
    """
    batch = batch._checked()
    text = escape(repr(batch))
    head = "<tr><th>sequence</th><th>token</th><th>features</th></tr>"
    rows = []
    for i in range(min(len(batch), _SEQUENCES)):
        first, last = batch.offsets[i : i + 2]
        for row in range(first, min(last, first + _TOKENS)):
            cells = str(i) if row == first else "", str(row - first), _features(batch, row)
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        if last - first > _TOKENS:
            rows.append(_more(f"{last - first - _TOKENS:,} more tokens"))
    if len(batch) > _SEQUENCES:
        rows.append(_more(f"{len(batch) - _SEQUENCES:,} more sequences"))
    table = f"<table>{head}{''.join(rows)}</table>"
    return f'<div class="skstruct-batch"><style>{_STYLE}</style><code>{text}</code>{table}</div>'


def _more(text):
    return f'<tr class="more"><td></td><td colspan="2">… {text}</td></tr>'


def _features(batch, row):
    """Names and values of the features of a row that are not zero."""
    values = batch.X[row : row + 1]
    values = (values.toarray() if issparse(values) else np.asarray(values))[0]
    columns = np.flatnonzero(values)
    texts = []
    for column in columns[:_FEATURES].tolist():
        name = f"x{column}" if batch.feature_names is None else str(batch.feature_names[column])
        value = "" if values[column] == 1 else f" = {values[column]:.4g}"
        texts.append(escape(name + value))
    if len(columns) > _FEATURES:
        texts.append(f'<span class="more">… {len(columns) - _FEATURES:,} more</span>')
    return ", ".join(texts) or '<span class="more">none</span>'
