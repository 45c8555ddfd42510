"""
Entities in documents of spaCy
==============================

spaCy's documents carry the entities of a text from one component of a pipeline to the next. Here a
tagger of this package learns from such documents, becomes a component, and sets their entities.

This example needs spaCy: ``pip install spacy``. Without it, this page shows no output.
"""

# %%
# Documents with entities
# -----------------------
# The postal addresses that come with the package become documents. Of your own, ``DocBin`` reads
# those that spaCy has stored.

# sphinx_gallery_thumbnail_path = "_static/thumbnails/plot_spacy.svg"

try:
    import spacy
except ImportError as error:
    print(f"Skipped: spaCy is not installed. {error}")
    raise SystemExit from None

import matplotlib.pyplot as plt
from sklearn.pipeline import make_pipeline
from spacy import displacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from skstruct import CRFTagger, WordVectorizer
from skstruct.datasets import docs_to_sequences, labels_to_docs, load_addresses
from skstruct.metrics import chunk_f1_score

nlp = spacy.blank("en")
addresses, labels = load_addresses(return_X_y=True)
docs = labels_to_docs(labels, [Doc(nlp.vocab, words=tokens) for tokens in addresses])
train, test = docs[:380], docs[380:]
print([(entity.text, entity.label_) for entity in train[0].ents])

# %%
# Documents in
# ------------
# :func:`~skstruct.datasets.docs_to_sequences` makes sequences of tokens and labels of them, and a
# model learns from these.

X, y = docs_to_sequences(train)
model = make_pipeline(WordVectorizer(), CRFTagger(l2=0.2)).fit(X, y)

# %%
# Documents with entities out
# ---------------------------
# A component of a pipeline takes documents and returns them. ``pipe`` does so by batches, which is
# how ``nlp.pipe`` reads many texts.


class EntityTagger:
    def __init__(self, model):
        self.model = model

    def __call__(self, doc):
        return next(self.pipe([doc]))

    def pipe(self, docs, batch_size=128):
        for batch in spacy.util.minibatch(docs, batch_size):
            X, _ = docs_to_sequences(batch, label=None)
            yield from labels_to_docs(self.model.predict(X), batch)


@Language.factory("skstruct_entities")
def make_tagger(nlp, name):
    return EntityTagger(model)


nlp.add_pipe("skstruct_entities")
doc = nlp("Ms Ada Lovelace, 12 Harbour Street, Wellington 6011, New Zealand")
for entity in doc.ents:
    print(f"{entity.label_:10} {entity.text}")

# %%
# All that works on documents works on these, such as spaCy's own display:


class Markup:
    """HTML that this page shows."""

    def __init__(self, html):
        self.html = html

    def _repr_html_(self):
        return self.html


Markup(displacy.render(doc, style="ent", jupyter=False))

# %%
# spaCy's own evaluation
# ----------------------
# spaCy scores a pipeline by pairs of documents: as predicted, and as they should be. Its F1 is that
# of :func:`~skstruct.metrics.chunk_f1_score`.

pairs = [Example(nlp(Doc(nlp.vocab, words=[token.text for token in doc])), doc) for doc in test]
scores = spacy.scorer.Scorer().score_spans(pairs, "ents")
X_test, y_test = docs_to_sequences(test)
f1 = chunk_f1_score(y_test, model.predict(X_test))
print(f"F1 by spaCy {scores['ents_f']:.4f}, by skstruct {f1:.4f}")

# %%
# The F1 of each type of entity:

of_types = sorted((found["f"], kind) for kind, found in scores["ents_per_type"].items())
fig, ax = plt.subplots(figsize=(6, 4.5), layout="constrained")
colors = plt.get_cmap("viridis")([f for f, _ in of_types])
bars = ax.barh([kind for _, kind in of_types], [f for f, _ in of_types], color=colors)
ax.bar_label(bars, fmt="%.2f", padding=3)
ax.set(xlim=(0, 1.12), xlabel="F1", title="Entities in spaCy documents")
plt.show()
