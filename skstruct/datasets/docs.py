"""Documents of spaCy as sequences of tokens, and labels as their entities."""

from skstruct.metrics.chunks import chunks_of
from skstruct.metrics.labels import sequences_of
from skstruct.utils.public_paths import set_module


@set_module("skstruct.datasets")
def docs_to_sequences(docs, *, attributes="text", label="ent", sentences=False):
    """Turn documents of spaCy into sequences of tokens and their labels.

    Parameters
    ----------
    docs : iterable of spacy.tokens.Doc
        Documents, such as ``DocBin.get_docs`` returns.
    attributes : str or sequence of str, default="text"
        Attributes of a token, such as ``"lower_"``, ``"tag_"`` or ``"shape_"``. Tokens are str for
        one name, tuples of str for a sequence of names.
    label : str or None, default="ent"
        "ent" for the entities in IOB2, or an attribute of the tokens such as ``"tag_"``; None for
        no labels.
    sentences : bool, default=False
        Make a sequence of each sentence rather than of each document.

    Returns
    -------
    tokens : list of list of str or of tuple of str
        The sequences.
    labels : list of list of (str or None), or None
        Their labels: None for a token without annotation. None if `label` is None.

    See Also
    --------
    labels_to_docs : Write labels back as entities.

    Examples
    --------
    >>> from skstruct.datasets import docs_to_sequences
    >>> import spacy  # doctest: +SKIP
    >>> doc = spacy.blank("en")("Maria sings")  # doctest: +SKIP
    >>> docs_to_sequences([doc], label=None)  # doctest: +SKIP
    ([['Maria', 'sings']], None)
    """
    sequences = [part for doc in docs for part in (doc.sents if sentences else [doc])]
    if isinstance(attributes, str):
        tokens = [[getattr(token, attributes) for token in part] for part in sequences]
    else:
        tokens = [
            [tuple(getattr(token, name) for name in attributes) for token in part]
            for part in sequences
        ]
    if label is None:
        return tokens, None
    read = _entity_label if label == "ent" else (lambda token: getattr(token, label) or None)
    return tokens, [list(map(read, part)) for part in sequences]


def _entity_label(token):
    if not token.ent_iob_:
        return None
    return "O" if token.ent_iob_ == "O" else f"{token.ent_iob_}-{token.ent_type_}"


@set_module("skstruct.datasets")
def labels_to_docs(labels, docs, *, scheme="conlleval"):
    """Set the entities of documents of spaCy to the chunks that labels describe.

    Parameters
    ----------
    labels : sequence of sequences of str
        Labels of the tokens of each document, such as a tagger predicts.
    docs : sequence of spacy.tokens.Doc
        The documents; changed in place.
    scheme : str, default="conlleval"
        Scheme of the labels, as in :func:`~skstruct.metrics.extract_chunks`.

    Returns
    -------
    docs : list of spacy.tokens.Doc
        The same documents.

    Raises
    ------
    ValueError
        If there are more or fewer label sequences than documents, or labels than tokens, or a
        label is not one of the scheme's. No document is changed then.

    See Also
    --------
    docs_to_sequences : Tokens and labels of documents.
    """
    from spacy.tokens import Span  # optional: documents come with it

    docs, labels = list(docs), sequences_of(labels, "labels")
    if len(labels) != len(docs):
        raise ValueError(f"{len(docs)} documents, but labels for {len(labels)}.")
    entities = []
    for i, (doc, found) in enumerate(zip(docs, labels, strict=True)):
        if len(found) != len(doc):
            raise ValueError(f"Document {i} has {len(doc)} tokens, but {len(found)} labels.")
        chunks = chunks_of(found, scheme)
        entities.append([Span(doc, first, end, label=kind) for first, end, kind in chunks])
    for doc, spans in zip(docs, entities, strict=True):
        doc.set_ents(spans)
    return docs
