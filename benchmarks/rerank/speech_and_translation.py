"""Speech and translation as reranking tasks."""

import gzip
from collections import Counter
from functools import partial

import numpy as np
import scipy.sparse as sp

from benchmarks.rerank.data import Builder, Definition, read_records, split_up
from skstruct import PerceptronReranker, SequenceBatch

# Speech. ------------------------------------------------------------------------------------------

# LibriSpeech is small, and so is cross-validated.
N_FOLDS = 5


def count_errors(reference, hypothesis):
    """Word errors of a transcript: insertions, deletions and substitutions."""
    # Imported here, because most tasks do without.
    import jiwer

    if not reference.split():
        return len(hypothesis.split())
    found = jiwer.process_words(reference, hypothesis)
    return found.insertions + found.deletions + found.substitutions


def speech_groups(records, builder):
    """Add the transcripts of recordings to a builder; return their costs and stats."""
    costs, stats = [], []
    for record in records:
        reference = record["output"].split()
        hypotheses = [hypothesis.split() for hypothesis in record["input"]]
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
                # Scaled to about the spread of the counts.
                features[builder.name("acoustic")] = 10.0 * (score - scores[0])
            features[builder.name("length")] = 0.1 * len(words)
            candidates.append(features)
            errors = count_errors(record["output"], " ".join(words))
            costs.append(errors / max(len(reference), 1))
            stats.append((errors, len(reference)))
        builder.add_group(candidates)
    return costs, stats


def atis(folder):
    """Spoken requests for flights; the last 500 for training are the development set."""
    builder = Builder()
    costs, stats = speech_groups(
        read_records(folder / "asr-nbest" / "atis.train.jsonl.gz"), builder
    )
    n_train = len(builder.lengths)
    more = speech_groups(read_records(folder / "asr-nbest" / "atis.test.jsonl.gz"), builder)
    batch = builder.finish(n_train - 500, 1)
    sizes = [("train", n_train - 500), ("dev", 500), ("test", len(batch) - n_train)]
    return split_up(batch, np.array(costs + more[0]), np.array(stats + more[1]), sizes)


def librispeech(folder, fold):
    """Read books: one of five parts for the test, the next for development, three for training.

    A part is a fifth of "clean" and a fifth of "other", in their order.
    """
    builder, lists, parts = Builder(), [], []
    for kind in ("clean", "other"):
        records = list(read_records(folder / "asr-nbest" / f"librispeech-{kind}.jsonl.gz"))
        lists += records
        parts.append(np.arange(len(records)) * N_FOLDS // len(records))
    part = (np.concatenate(parts) - fold) % N_FOLDS
    # Parts counted from that of the test set; training comes first in a batch.
    order = np.argsort(np.array([2, 1, 0, 0, 0])[part], kind="stable")
    costs, stats = speech_groups([lists[i] for i in order], builder)
    n_test, n_dev = np.sum(part == 0), np.sum(part == 1)
    sizes = [("train", len(part) - n_dev - n_test), ("dev", n_dev), ("test", n_test)]
    batch = builder.finish(sizes[0][1], 1)
    return split_up(batch, np.array(costs), np.array(stats), sizes)


def word_error_rate(total):
    return {"wer": 100 * total[0] / total[1]}


# Translation. -------------------------------------------------------------------------------------


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


# Files with the references of the two sets of 100 sentences.
REFERENCES = {"dev2": "dev2_en.al", "test": "test_en1.al"}


def translation(folder, learnt="dev2", held="test"):
    """French to English: one set for training (its last 30 for development), one for the test.

    The features are phrase pairs, as in the paper's discriminative phrase table, and the score of
    the decoder in column 0, the baseline.
    """
    folder, builder, costs, stats, scores = folder / "mt-nbest", Builder(), [], [], []
    sentence_score, corpus_counts = bleu_scorers()
    decoder = builder.name("decoder")
    for part in (learnt, held):
        lists = read_lines(folder / part / "100best.gz")
        alignments = read_lines(folder / part / "pal.gz")
        values = [line.split() for line in read_lines(folder / part / "ffvals.gz")]
        sources = read_lines(folder / f"{part}_fr.al")
        for i, reference in enumerate(read_lines(folder / REFERENCES[part])):
            rows = [r for r in range(100 * i, 100 * (i + 1)) if lists[r].strip()]
            candidates = []
            for row in rows:
                pairs = phrase_pairs(sources[i].split(), lists[row].split(), alignments[row])
                # Any values that differ keep the column, which is filled in at the end.
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
    """Functions for sentence BLEU, smoothed by adding one, and for the counts of corpus BLEU."""
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

    The weights of the parts are not given. They are learnt from the order of the candidates,
    without any reference translation. The unit is the spread within a list.
    """
    model = PerceptronReranker(max_iter=200, random_state=0)
    # The first candidate was preferred to all that differ from it. It comes last here, because a
    # reranker without weights takes the first.
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


ATIS = Definition(atis, word_error_rate, "wer", higher_is_better=False)
TRANSLATION = {
    "translation": Definition(translation, bleu, "bleu"),
    "translation-exchanged": Definition(
        partial(translation, learnt="test", held="dev2"), bleu, "bleu"
    ),
}
LIBRISPEECH = {
    f"librispeech/{fold}": Definition(
        partial(librispeech, fold=fold), word_error_rate, "wer", higher_is_better=False
    )
    for fold in range(N_FOLDS)
}
