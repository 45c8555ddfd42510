"""The tasks of the reranking benchmark: candidates, their features, costs and statistics.

Every task is a dict of splits. Costs are what a reranker learns from; corpus scores are computed
from `stats`, numbers that are summed over the chosen candidates.
"""

import gzip
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from skstruct import SequenceBatch
from skstruct.rerank_baselines import PerceptronReranker


@dataclass
class Split:
    """Groups of candidates."""

    batch: SequenceBatch
    costs: np.ndarray  # (n_rows,)
    stats: np.ndarray  # (n_rows, n_stats)

    def groups_of(self, values):
        return np.split(values, self.batch.offsets[1:-1])

    def teaching(self):
        """Groups whose candidates differ in cost, for training: batch and costs."""
        costs = self.groups_of(self.costs)
        kept = np.array([c.max() > c.min() for c in costs])
        return self.batch[kept], [c for c, wanted in zip(costs, kept, strict=True) if wanted]

    def chosen_stats(self, chosen):
        return self.stats[self.batch.offsets[:-1] + chosen]

    def oracle(self):
        return np.array([np.argmin(c) for c in self.groups_of(self.costs)])


class Builder:
    """Collects feature counts of candidates, without what all candidates of a group share."""

    def __init__(self):
        self.ids = {}
        self.indices, self.data, self.row_lengths, self.lengths = [], [], [], []

    def name(self, feature):
        return self.ids.setdefault(feature, len(self.ids))

    def add_group(self, candidates):
        """Add a group: for each candidate a dict of feature id to value."""
        first = candidates[0]
        shared = {j for j, x in first.items() if all(c.get(j) == x for c in candidates)}
        for candidate in candidates:
            items = [(j, x) for j, x in candidate.items() if j not in shared]
            self.indices.append(np.fromiter((j for j, _ in items), np.int32, len(items)))
            self.data.append(np.fromiter((x for _, x in items), np.float64, len(items)))
            self.row_lengths.append(len(items))
        self.lengths.append(len(candidates))

    def finish(self, n_train, min_groups):
        """Batch of all groups with the features that `min_groups` training groups have."""
        indptr = np.concatenate([[0], np.cumsum(self.row_lengths)])
        X = sp.csr_matrix(
            (np.concatenate(self.data), np.concatenate(self.indices), indptr),
            shape=(len(indptr) - 1, len(self.ids)),
        )
        rows_of_group = np.repeat(np.arange(len(self.lengths)), self.lengths)
        n_rows = sum(self.lengths[:n_train])
        membership = sp.csr_matrix(
            (np.ones(n_rows), (rows_of_group[:n_rows], np.arange(n_rows))),
            shape=(n_train, n_rows),
        )
        binary = X[:n_rows].copy()
        binary.data[:] = 1
        frequency = np.diff((membership @ binary).tocsc().indptr)
        kept = np.flatnonzero(frequency >= min_groups)
        names = np.array(list(self.ids), dtype=object)[kept]
        return SequenceBatch.from_lengths(X[:, kept], self.lengths, feature_names=names)


def split_up(batch, costs, stats, sizes):
    """Consecutive splits of the given sizes, ``(name, n_groups)``."""
    splits, start = {}, 0
    for name, size in sizes:
        a, b = batch.offsets[start], batch.offsets[start + size]
        splits[name] = Split(batch[start : start + size], costs[a:b], stats[a:b])
        start += size
    return splits


def read_records(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


# ----------------------------------------------------------------------------------------- speech


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def speech_groups(path, builder):
    costs, stats = [], []
    for record in read_records(path):
        reference = record["output"].split()
        hypotheses = [h.split() for h in record["input"]]
        scores = record.get("am_score", [0.0] * len(hypotheses))
        candidates = []
        for rank, (words, score) in enumerate(zip(hypotheses, scores, strict=True)):
            features = Counter()
            padded = ["<s>", *words, "</s>"]
            for n in (1, 2, 3):
                for i in range(len(padded) - n + 1):
                    features[builder.name(" ".join(padded[i : i + n]))] += 1
            features[builder.name(f"rank={rank}")] = 1
            if score:
                # In units of about its spread, as the counts are.
                features[builder.name("acoustic")] = 10.0 * (score - scores[0])
            features[builder.name("length")] = 0.1 * len(words)
            candidates.append(features)
            errors = edit_distance(reference, words)
            costs.append(errors / max(len(reference), 1))
            stats.append((errors, len(reference)))
        builder.add_group(candidates)
    return costs, stats


def atis(folder):
    """Spoken requests for flights: train, the last 500 of it for development, and test."""
    builder = Builder()
    costs, stats = speech_groups(folder / "asr-nbest" / "atis.train.jsonl.gz", builder)
    n_train = len(builder.lengths)
    more = speech_groups(folder / "asr-nbest" / "atis.test.jsonl.gz", builder)
    batch = builder.finish(n_train - 500, 1)
    sizes = [("train", n_train - 500), ("dev", 500), ("test", len(batch) - n_train)]
    return split_up(batch, np.array(costs + more[0]), np.array(stats + more[1]), sizes)


def librispeech(folder):
    """Read books: four fifths of "other" to learn from and a half of the rest each to choose and
    to test.
    """
    builder = Builder()
    costs, stats = speech_groups(folder / "asr-nbest" / "librispeech-other.jsonl.gz", builder)
    n = len(builder.lengths)
    n_train, n_dev = int(0.8 * n), int(0.1 * n)
    batch = builder.finish(n_train, 1)
    sizes = [("train", n_train), ("dev", n_dev), ("test", n - n_train - n_dev)]
    return split_up(batch, np.array(costs), np.array(stats), sizes)


def word_error_rate(total):
    return {"wer": 100 * total[0] / total[1]}


# ---------------------------------------------------------------------------------------- parsing

TOKEN = re.compile(r"\(([^\s()]+)|([^\s()]+)\)|\)")
PUNCTUATION = {",", ".", ":", "``", "''", "-LRB-", "-RRB-"}
HEADS = {
    "VP": ("left", ("TO", "VBD", "VBN", "MD", "VBZ", "VB", "VBG", "VBP", "VP", "ADJP", "NN", "NP")),
    "NP": ("right", ("NN", "NNP", "NNS", "NNPS", "NX", "NP", "PRP", "CD", "JJ", "DT", "QP")),
    "PP": ("left", ("IN", "TO", "VBG", "VBN", "RP", "PP")),
    "S": ("left", ("VP", "S", "SBAR", "ADJP", "UCP", "NP")),
    "SINV": ("left", ("VBZ", "VBD", "VBP", "VB", "MD", "VP", "S")),
    "SQ": ("left", ("VBZ", "VBD", "VBP", "VB", "MD", "VP", "SQ")),
    "SBAR": ("left", ("IN", "WHNP", "WHPP", "WHADVP", "DT", "S", "SQ", "SINV", "SBAR")),
    "SBARQ": ("left", ("SQ", "S", "SINV", "SBARQ")),
    "ADJP": ("right", ("JJ", "JJR", "JJS", "VBN", "VBG", "ADJP", "NN", "QP")),
    "ADVP": ("right", ("RB", "RBR", "RBS", "ADVP", "IN", "JJ")),
    "QP": ("right", ("CD", "NN", "JJ", "$", "IN", "RB", "DT")),
    "WHNP": ("left", ("WDT", "WP", "WP$", "WHADJP", "WHNP", "NN", "NNS")),
}


class Node:
    """A constituent; equal constituents of a sentence are one object."""

    __slots__ = ("around", "children", "end", "head", "inside", "label", "outside", "start", "tag")

    def __init__(self, label, children, start, end):
        self.label, self.children, self.start, self.end = label, children, start, end
        self.inside, self.outside, self.around = None, {}, {}
        if isinstance(children, str):
            self.head, self.tag = children.lower(), label
        else:
            child = children[head_child(label, children)]
            self.head, self.tag = child.head, child.tag


def head_child(label, children):
    side, wanted = HEADS.get(label, ("right", ()))
    order = range(len(children)) if side == "left" else range(len(children) - 1, -1, -1)
    for target in wanted:
        for i in order:
            if children[i].label == target:
                return i
    return next((i for i in order if children[i].label not in PUNCTUATION), order[0])


def read_tree(text, known):
    """Root of a bracketed tree; `known` holds the constituents of the sentence so far."""
    stack, position = [[None, []]], 0
    for match in TOKEN.finditer(text):
        opened, word = match.group(1), match.group(2)
        if opened is not None:
            stack.append([opened, []])
            continue
        label, children = stack.pop()
        if word is not None:
            key, children, start = (label, word, position), word, position
            position += 1
        else:
            start = children[0].start
            key = (label, *map(id, children))
        if key not in known:
            known[key] = Node(label, children, start, position)
        stack[-1][1].append(known[key])
    return stack[0][1][0]


def bin_of(n):
    return n if n < 6 else 6 if n < 11 else 7 if n < 21 else 8


def inside_features(node, n_words):
    """Features of a constituent and what it consists of."""
    label, children = node.label, node.children
    labels = [c.label for c in children]
    rule = " ".join(labels)
    found = [f"rule {label} > {rule}", f"headrule {label} > {rule} {node.tag}"]
    found.append(f"lexrule {label} > {rule} {node.head}")
    for size in (2, 3):
        padded = ["<", *labels, ">"]
        found += [
            f"ngram {label} {' '.join(padded[i : i + size])}" for i in range(len(padded) - size + 1)
        ]
    head = children[head_child(label, children)]
    for child in children:
        if child is not head and child.label not in PUNCTUATION:
            side = "<" if child.start < head.start else ">"
            found.append(f"pair {label} {child.label} {side} {child.tag} {head.tag}")
            found.append(f"words {label} {child.head} {side} {head.head}")
            found.append(f"left {label} {child.label} {side} {child.head} {head.tag}")
            found.append(f"right {label} {child.label} {side} {child.tag} {head.head}")
    found.append(f"heavy {label} {bin_of(node.end - node.start)} {node.end == n_words}")
    found += coordination_features(node)
    return found


def coordination_features(node):
    """How alike neighbouring conjuncts are, to a depth of three, and in length."""
    children, found = node.children, []
    for i in range(1, len(children) - 1):
        if children[i].label == "CC":
            a, b = children[i - 1], children[i + 1]
            found.append(f"conjuncts {node.label} {a.label} {b.label}")
            for depth in (1, 2, 3):
                same = shape(a, depth) == shape(b, depth)
                found.append(f"parallel {node.label} {depth} {same}")
            longer = max(-4, min(4, (b.end - b.start) - (a.end - a.start)))
            found.append(f"longer {node.label} {longer} {i + 2 == len(children)}")
    return found


def shape(node, depth):
    if depth == 1 or isinstance(node.children, str):
        return node.label
    return (node.label, *(shape(c, depth - 1) for c in node.children))


def outside_features(node, parent, grandparent):
    """Features of a constituent and what it is part of."""
    if isinstance(node.children, str):
        word = node.head
        return [
            f"word {word} {node.label}",
            f"word {word} {node.label} {parent}",
            f"word {word} {node.label} {parent} {grandparent}",
        ]
    rule = " ".join(c.label for c in node.children)
    return [
        f"rule {parent} {node.label} > {rule}",
        f"rule {grandparent} {parent} {node.label} > {rule}",
        f"headof {parent} {node.label} {node.tag}",
        f"headof {parent} {node.label} {node.head}",
    ]


def around_features(node, before, after):
    """Features of a constituent and the tags beside it."""
    size = bin_of(node.end - node.start)
    return [
        f"beside {node.label} {size} {before} {after}",
        f"before {node.label} {before}",
        f"after {node.label} {size} {after}",
        f"heavy {node.label} {size} {after in PUNCTUATION}",
    ]


def tree_features(root, name):
    """Feature ids, repeated as often as they occur, of a whole tree."""
    leaves, ids = [], []
    stack = [(root, "^", "^")]
    nodes = []
    while stack:
        node, parent, grandparent = stack.pop()
        nodes.append(node)
        found = node.outside.get((parent, grandparent))
        if found is None:
            found = [name(f) for f in outside_features(node, parent, grandparent)]
            node.outside[parent, grandparent] = found
        ids += found
        if isinstance(node.children, str):
            leaves.append(node)
        else:
            stack += [(c, node.label, parent) for c in reversed(node.children)]
    tags = ["^", *(leaf.label for leaf in leaves), "$"]
    for node in nodes:
        if isinstance(node.children, str):
            continue
        if node.inside is None:
            node.inside = [name(f) for f in inside_features(node, len(leaves))]
        ids += node.inside
        beside = (tags[node.start], tags[node.end + 1])
        if beside not in node.around:
            node.around[beside] = [name(f) for f in around_features(node, *beside)]
        ids += node.around[beside]
    return ids


def right_branch(root):
    """Share of constituents on the way from the root to the last word that is no punctuation."""
    on_the_way, total = 0, 0
    stack = [(root, True)]
    while stack:
        node, right = stack.pop()
        if isinstance(node.children, str):
            continue
        total += 1
        on_the_way += right
        last = max(
            (i for i, c in enumerate(node.children) if c.label not in PUNCTUATION), default=0
        )
        stack += [(c, right and i == last) for i, c in enumerate(node.children)]
    return on_the_way, total - on_the_way


def parse(folder):
    """Wall Street Journal: folds 0-7 to learn from, 8 for development, 9 for the test."""
    builder, costs, stats, sizes = Builder(), [], [], Counter()
    logprob, on_right, off_right = map(builder.name, ("log probability", "right", "not right"))
    for fold in range(10):
        path = folder / "ptb-nbest" / f"nbest.fold{fold}.jsonl.gz"
        for record in read_records(path):
            known, candidates = {}, []
            best = max(c[0] for c in record["cands"])
            for score, matched, found, gold, text in record["cands"]:
                root = read_tree(text, known)
                features = Counter(tree_features(root, builder.name))
                features[logprob] = score - best
                features[on_right], features[off_right] = (0.1 * n for n in right_branch(root))
                candidates.append(features)
                costs.append(1 - 2 * matched / max(found + gold, 1))
                stats.append((matched, found, gold))
            builder.add_group(candidates)
            sizes["train" if fold < 8 else "dev" if fold == 8 else "test"] += 1
    batch = builder.finish(sizes["train"], 5)
    return split_up(batch, np.array(costs), np.array(stats), sizes.items())


def bracket_scores(total):
    matched, found, gold = total
    return {
        "f1": 100 * 2 * matched / (found + gold),
        "precision": 100 * matched / found,
        "recall": 100 * matched / gold,
    }


# ------------------------------------------------------------------------------------ translation


def phrase_pairs(source, target, alignment):
    """Phrase pairs of an alignment such as ``1:0-6:0-5``, positions of source and target words."""
    pairs = []
    for part in alignment.split():
        _, s, t = part.split(":")
        (a, b), (c, d) = (map(int, span.split("-")) for span in (s, t))
        pairs.append(f"{' '.join(source[a : b + 1])} ||| {' '.join(target[c : d + 1])}")
    return pairs


def read_lines(path):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="latin-1") as file:
        return [line.rstrip("\n") for line in file]


def translation(folder):
    """French to English: dev2 to learn from (its last 30 for development), and test.

    Phrase pairs are the features, as in the paper's discriminative phrase table, beside the score
    of the decoder, which is column 0 and meant as the baseline.
    """
    folder, builder, costs, stats, scores = folder / "mt-nbest", Builder(), [], [], []
    sentence_score, corpus_counts = bleu_scorers()
    decoder = builder.name("decoder")
    for part, references in (("dev2", "dev2_en.al"), ("test", "test_en1.al")):
        lists = read_lines(folder / part / "100best.gz")
        alignments = read_lines(folder / part / "pal.gz")
        values = [line.split() for line in read_lines(folder / part / "ffvals.gz")]
        sources = read_lines(folder / f"{part}_fr.al")
        for i, reference in enumerate(read_lines(folder / references)):
            rows = [r for r in range(100 * i, 100 * (i + 1)) if lists[r].strip()]
            candidates = []
            for row in rows:
                pairs = phrase_pairs(sources[i].split(), lists[row].split(), alignments[row])
                # Any value that differs, to have the column; it is filled in at the end.
                candidates.append(Counter({decoder: row, **Counter(map(builder.name, pairs))}))
                costs.append(1 - sentence_score(lists[row], reference))
                stats.append(corpus_counts(lists[row], reference))
            scores.append(np.array([values[row] for row in rows], dtype=float))
            builder.add_group(candidates)
    batch = builder.finish(100, 1)
    X = sp.csc_matrix(batch.X)
    X = sp.hstack([decoder_scores(scores)[:, None], X[:, 1:]], format="csr")
    batch = SequenceBatch(X, batch.offsets)
    sizes = [("train", 70), ("dev", 30), ("test", 100)]
    return split_up(batch, np.array(costs), np.array(stats, dtype=float), sizes)


def bleu_scorers():
    """Sentence BLEU (smoothed by adding one), and the counts that corpus BLEU is made of."""
    from sacrebleu.metrics import BLEU

    sentence = BLEU(
        tokenize="none", smooth_method="add-k", smooth_value=1, effective_order=True, force=True
    )
    corpus = BLEU(tokenize="none", force=True)

    def corpus_counts(hypothesis, reference):
        found = corpus.corpus_score([hypothesis], [[reference]])
        return (*found.counts, *found.totals, found.sys_len, found.ref_len)

    def sentence_score(hypothesis, reference):
        return sentence.sentence_score(hypothesis, [reference]).score / 100

    return sentence_score, corpus_counts


def decoder_scores(scores):
    """The decoder's score of every candidate, from its four parts.

    Its weights are not given, but its order is: they are learnt from which candidate it put
    first, without any reference translation. In units of the spread within a list.
    """
    model = PerceptronReranker(max_iter=200, random_state=0)
    # All but the exact copies of the first candidate are what it was preferred to. It comes last
    # here, because a reranker without weights takes what comes first.
    costs = [np.any(parts != parts[0], axis=1).astype(float) for parts in scores]
    teaching = [i for i, c in enumerate(costs) if c.max() > 0]
    model.fit([scores[i][::-1] for i in teaching], [costs[i][::-1] for i in teaching])
    total = model.decision_function(scores)
    spread = np.mean([np.std(part) for part in total])
    return np.concatenate([part - part[0] for part in total]) / spread


def bleu(total):
    from sacrebleu.metrics import BLEU

    counts, totals = total[:4].astype(int).tolist(), total[4:8].astype(int).tolist()
    score = BLEU.compute_bleu(counts, totals, int(total[8]), int(total[9]), smooth_method="exp")
    return {"bleu": score.score}


# ------------------------------------------------------------------------------------------- all

TASKS = {
    "atis": (atis, word_error_rate, "wer", False),
    "librispeech": (librispeech, word_error_rate, "wer", False),
    "parse": (parse, bracket_scores, "f1", True),
    "translation": (translation, bleu, "bleu", True),
}


def load_task(name, data, cache, tasks=TASKS):
    """Splits of a task; the features are computed once and kept in the folder `cache`."""
    path = Path(cache) / f"{name}.features.npz"
    if not path.exists():
        save(tasks[name][0](Path(data)), path)
    kept = np.load(path, allow_pickle=False)
    splits = {}
    for split in ("train", "dev", "test"):
        shape = tuple(kept[f"{split}.shape"])
        parts = [kept[f"{split}.{field}"] for field in ("data", "indices", "indptr")]
        batch = SequenceBatch(sp.csr_matrix(tuple(parts), shape=shape), kept[f"{split}.offsets"])
        splits[split] = Split(batch, kept[f"{split}.costs"], kept[f"{split}.stats"])
    return splits


def save(splits, path):
    arrays = {}
    for name, split in splits.items():
        X = split.batch.X
        arrays |= {
            f"{name}.data": X.data,
            f"{name}.indices": X.indices,
            f"{name}.indptr": X.indptr,
            f"{name}.shape": X.shape,
            f"{name}.offsets": split.batch.offsets,
            f"{name}.costs": split.costs,
            f"{name}.stats": split.stats,
        }
    np.savez_compressed(path, **arrays)


def describe(splits):
    """Sizes of a task, for the text beside its table."""
    return {name: (len(s.batch), s.batch.n_rows, s.batch.n_features) for name, s in splits.items()}
