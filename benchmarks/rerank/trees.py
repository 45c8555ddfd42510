"""Parse trees as a reranking task, with features in the manner of Charniak and Johnson (2005)."""

import re
from collections import Counter

import numpy as np

from benchmarks.rerank.data import Builder, Definition, f1_scores, read_records, split_up

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
    """Root of a bracketed tree; `known` are the constituents of the sentence so far."""
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
    """Bin of a length."""
    return n if n < 6 else 6 if n < 11 else 7 if n < 21 else 8


def inside_features(node, n_words):
    """Features of a constituent and its parts."""
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
    """Likeness of neighbouring conjuncts, to a depth of three, and in length."""
    children, found = node.children, []
    for i in range(1, len(children) - 1):
        if children[i].label == "CC":
            a, b = children[i - 1], children[i + 1]
            found.append(f"conjuncts {node.label} {a.label} {b.label}")
            for depth in (1, 2, 3):
                same = skeleton(a, depth) == skeleton(b, depth)
                found.append(f"parallel {node.label} {depth} {same}")
            longer = max(-4, min(4, (b.end - b.start) - (a.end - a.start)))
            found.append(f"longer {node.label} {longer} {i + 2 == len(children)}")
    return found


def skeleton(node, depth):
    """Labels of a constituent to a depth."""
    if depth == 1 or isinstance(node.children, str):
        return node.label
    return (node.label, *(skeleton(c, depth - 1) for c in node.children))


def outside_features(node, parent, grandparent):
    """Features of a constituent and its ancestors."""
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
    """Feature ids of a whole tree, with repetitions."""
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
    """Numbers of constituents on and off the way from the root to the last word."""
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
    """Wall Street Journal: folds 0-7 for training, 8 for development, 9 for the test."""
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


PARSING = Definition(parse, f1_scores, "f1")
