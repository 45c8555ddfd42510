"""What turns scores of tokens into labels: each token by itself, or a linear-chain CRF.

Scores have the shape (sequences, positions, labels). The mask is true at tokens and false at the
padding behind the last one; every sequence has a token.
"""

import torch
from torch import nn
from torch.nn import functional


class Independent(nn.Module):
    """A softmax at each token."""

    def __init__(self, n_labels):
        super().__init__()

    def loss(self, scores, mask, labels):
        """Negative log-likelihoods of all sequences, summed."""
        return functional.cross_entropy(scores[mask], labels[mask], reduction="sum")

    def best(self, scores, mask):
        """Codes of the best labels; those of the padding mean nothing."""
        return scores.argmax(2)


class ChainCRF(nn.Module):
    """Scores of label pairs, and of labels at both ends, over those of the tokens."""

    def __init__(self, n_labels):
        super().__init__()
        self.transition = nn.Parameter(torch.zeros(n_labels, n_labels))
        self.start = nn.Parameter(torch.zeros(n_labels))
        self.end = nn.Parameter(torch.zeros(n_labels))

    def loss(self, scores, mask, labels):
        """Negative log-likelihoods of all sequences, summed."""
        return (self.log_partition(scores, mask) - self.path_scores(scores, mask, labels)).sum()

    def log_partition(self, scores, mask):
        """Logarithm of the summed exponentials of the scores of all labellings."""
        forward = scores[:, 0] + self.start
        for t in range(1, scores.shape[1]):
            longer = torch.logsumexp(forward[:, :, None] + self.transition, 1) + scores[:, t]
            forward = torch.where(mask[:, t, None], longer, forward)
        return torch.logsumexp(forward + self.end, 1)

    def path_scores(self, scores, mask, labels):
        """Scores of given labellings."""
        tokens = scores.gather(2, labels[:, :, None])[:, :, 0]
        pairs = self.transition[labels[:, :-1], labels[:, 1:]]
        last = labels.gather(1, mask.sum(1, keepdim=True) - 1)[:, 0]
        inner = (tokens * mask).sum(1) + (pairs * mask[:, 1:]).sum(1)
        return self.start[labels[:, 0]] + inner + self.end[last]

    def best(self, scores, mask):
        """Codes of the best labels by Viterbi; those of the padding repeat the last."""
        best, stay = scores[:, 0] + self.start, torch.arange(scores.shape[2])
        origins = []
        for t in range(1, scores.shape[1]):
            longer, origin = (best[:, :, None] + self.transition).max(1)
            best = torch.where(mask[:, t, None], longer + scores[:, t], best)
            origins.append(torch.where(mask[:, t, None], origin, stay))
        labels = [(best + self.end).argmax(1)]
        for origin in reversed(origins):
            labels.append(origin.gather(1, labels[-1][:, None])[:, 0])
        return torch.stack(labels[::-1], 1)
