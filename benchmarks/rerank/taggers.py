"""The n-best lists of the library's own taggers as reranking tasks."""

from collections import Counter

import numpy as np
from sklearn.model_selection import KFold

from benchmarks.common.corpora import load_quick, read_columns
from benchmarks.common.features import shape
from benchmarks.rerank.data import Builder, Definition, f1_scores, split_up
from skstruct import PerceptronTagger
from skstruct.metrics import extract_chunks
from skstruct.rerankers.stacking import chunk_cost

N_BEST = 20


def token_features(tokens):
    """Attribute strings of every token: words and shapes around it, prefixes and suffixes."""
    words = [token[0] for token in tokens]
    found = []
    for t in range(len(tokens)):
        names = [f"prefix={words[t][:n]}" for n in (2, 3)]
        names += [f"suffix={words[t][-n:]}" for n in (2, 3, 4)]
        for shift in (-2, -1, 0, 1, 2):
            if 0 <= t + shift < len(tokens):
                names.append(f"word[{shift}]={words[t + shift].lower()}")
                names.append(f"shape[{shift}]={shape(words[t + shift])}")
                names += [f"column{c}[{shift}]={v}" for c, v in enumerate(tokens[t + shift][1:])]
        found.append(names)
    return found


def labelling_features(tokens, labels):
    """Features of a whole labelling, none of which a first-order chain could have."""
    words = [token[0].lower() for token in tokens]
    chunks = extract_chunks(labels)
    found = Counter()
    for a, b, kind in chunks:
        text = " ".join(words[a:b])
        found[f"chunk {kind} {text}"] += 1
        found[f"length {kind} {min(b - a, 6)}"] += 1
        found[f"shapes {kind} {' '.join(shape(t[0]) for t in tokens[a:b])}"] += 1
        before = words[a - 1] if a else "^"
        after = words[b] if b < len(words) else "$"
        found[f"around {kind} {before} _ {after}"] += 1
        found[f"before {kind} {before}"] += 1
        found[f"after {kind} {after}"] += 1
        if len(tokens[0]) > 1:
            found[f"columns {kind} {' '.join(t[1] for t in tokens[a:b])}"] += 1
    kinds = ["^", *(kind for _, _, kind in chunks), "$"]
    for n in (2, 3):
        for i in range(len(kinds) - n + 1):
            found[f"kinds {' '.join(kinds[i : i + n])}"] += 1
    for n in (3, 4):
        for i in range(len(labels) - n + 1):
            found[f"labels {' '.join(labels[i : i + n])}"] += 1
    kind_of = {}
    for a, b, kind in chunks:
        text = " ".join(words[a:b])
        if text in kind_of:
            found[f"again {kind_of[text] == kind}"] += 1
        kind_of[text] = kind
    for word, label in zip(words, labels, strict=True):
        if label == "O" and word in kind_of:
            found["once a chunk, once not"] += 1
    return found


def read_parts(folder, columns, names):
    """Tokens, their attribute strings and labels of each part of a corpus."""
    return with_features(read_columns(folder, names, columns))


def with_features(parts):
    """Parts with attribute strings beside the tokens."""
    return {
        part: (X, [token_features(tokens) for tokens in X], y) for part, (X, y) in parts.items()
    }


def make_lists(parts, n_best=N_BEST):
    """Splits of the lists of a tagger: those of the training set by cross-fitting.

    Without a development set of its own, the last tenth of the training set is set apart.
    """
    tokens, X, y = parts["train"]
    lists = [None] * len(X)
    for learnt, held in KFold(5).split(X):
        tagger = new_tagger().fit([X[i] for i in learnt], [y[i] for i in learnt])
        for i, found in zip(held, tagger.predict_nbest([X[i] for i in held], n_best), strict=True):
            lists[i] = found
    tagger = new_tagger().fit(X, y)
    n_dev = 0 if "dev" in parts else len(X) // 10
    sizes = [("train", len(X) - n_dev), ("dev", n_dev)] if n_dev else [("train", len(X))]
    for split in ("dev", "test"):
        if split in parts:
            more, strings, labels = parts[split]
            lists = [*lists, *tagger.predict_nbest(strings, n_best)]
            tokens, y = [*tokens, *more], [*y, *labels]
            sizes.append((split, len(more)))
    return as_groups(tokens, y, lists, sizes)


def as_groups(tokens, y, lists, sizes):
    """Splits of lists of labellings, with features, costs and stats of each labelling."""
    builder, costs, stats = Builder(), [], []
    for sentence, true, found in zip(tokens, y, lists, strict=True):
        candidates = []
        for rank, labelling in enumerate(found):
            features = Counter(
                {
                    builder.name(f): x
                    for f, x in labelling_features(sentence, labelling.labels).items()
                }
            )
            features[builder.name("base score")] = 0.1 * (labelling.score - found[0].score)
            features[builder.name("first")] = float(rank == 0)
            candidates.append(features)
            a, b = set(extract_chunks(true)), set(extract_chunks(labelling.labels))
            stats.append((len(a & b), len(b), len(a)))
            costs.append(chunk_cost(true, labelling.labels))
        builder.add_group(candidates)
    batch = builder.finish(sizes[0][1], 2)
    return split_up(batch, np.array(costs), np.array(stats), sizes)


def new_tagger():
    return PerceptronTagger(random_state=0, max_iter=10, tol=None)


def definition(name, columns, **names):
    """Task of a corpus in column files."""
    return Definition(
        lambda folder: make_lists(read_parts(folder / name, columns, names)), f1_scores, "f1"
    )


TAGGER_TASKS = {
    "conll2000": definition("conll2000", 2, train="train", test="test"),
    "conll2002-esp": definition("conll2002-esp", 1, train="train", dev="testa", test="testb"),
    "jnlpba": definition("jnlpba", 1, train="train", test="test"),
}
QUICK_TASKS = {
    "addresses": Definition(
        lambda folder: make_lists(with_features(load_quick()), n_best=5), f1_scores, "f1"
    ),
}
