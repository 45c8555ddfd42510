"""Tokens or numbers, through a bidirectional LSTM to scores of labels."""

import torch
from torch import nn

from benchmarks.neural.chain import ChainCRF, Independent
from benchmarks.neural.encoding import PADDING, UNKNOWN

OUTPUTS = {"Bi-LSTM": Independent, "Bi-LSTM-CRF": ChainCRF}
# Width of the window of characters.
WIDTH = 3


class TokenVectors(nn.Module):
    """A vector of the word, the largest of convolutions over its characters, vectors of tags."""

    def __init__(self, tables, settings):
        super().__init__()
        # Besides what the tables have: padding and unknown.
        n_words, n_characters, *n_tags = (2 + len(table) for table in tables)
        self.words = nn.Embedding(n_words, settings.word_size)
        self.characters = nn.Embedding(n_characters, settings.character_size, padding_idx=PADDING)
        self.convolution = nn.Conv1d(
            settings.character_size, settings.filters, WIDTH, padding=WIDTH // 2
        )
        self.tags = nn.ModuleList(nn.Embedding(n, settings.tag_size) for n in n_tags)
        self.dropout = nn.Dropout(settings.dropout)
        self.size = settings.word_size + settings.filters + settings.tag_size * len(n_tags)
        for table in (self.words, self.characters, *self.tags):
            # As wide as those of Lample et al. and Ma and Hovy (2016).
            bound = (3 / table.embedding_dim) ** 0.5
            nn.init.uniform_(table.weight, -bound, bound)
        # As the convolution takes what is beyond the table: spellings may be padded or not.
        nn.init.zeros_(self.characters.weight[PADDING])
        # Training never meets an unknown tag, and would leave a random vector.
        for table in self.tags:
            nn.init.zeros_(table.weight[UNKNOWN])

    def forward(self, words, forms, spellings, tags):
        """Vectors of tokens: `forms` says which row of the `spellings` a token has."""
        found = self.convolution(self.characters(spellings).transpose(1, 2))
        found = found.masked_fill((spellings == PADDING)[:, None], -torch.inf).amax(2)
        tags = [table(tags[:, :, i]) for i, table in enumerate(self.tags)]
        return self.dropout(torch.cat([self.words(words), found[forms], *tags], 2))


class Numbers(nn.Module):
    """Numbers as they are."""

    def __init__(self, n_columns):
        super().__init__()
        self.size = n_columns

    def forward(self, numbers):
        """The numbers."""
        return numbers


class Network(nn.Module):
    """The tagger: inputs, both directions, and the output that its name says."""

    def __init__(self, kind, inputs, n_labels, settings):
        super().__init__()
        self.inputs = inputs
        self.forwards = nn.LSTM(inputs.size, settings.hidden, batch_first=True)
        self.backwards = nn.LSTM(inputs.size, settings.hidden, batch_first=True)
        self.dropout = nn.Dropout(settings.dropout)
        self.scores = nn.Linear(2 * settings.hidden, n_labels)
        self.output = OUTPUTS[kind](n_labels)

    def forward(self, mask, inputs):
        """Scores of labels. No token sees the padding: it is behind both directions."""
        vectors, index = self.inputs(*inputs), reversal(mask)
        ahead, _ = self.forwards(vectors)
        back, _ = self.backwards(reverse(vectors, index))
        return self.scores(self.dropout(torch.cat([ahead, reverse(back, index)], 2)))


def reversal(mask):
    """Positions of the tokens from last to first, then of the padding."""
    places = torch.arange(mask.shape[1])
    return torch.where(mask, mask.sum(1, keepdim=True) - 1 - places, places)


def reverse(vectors, index):
    """Vectors in the order of the positions."""
    return vectors.gather(1, index[:, :, None].expand(-1, -1, vectors.shape[2]))
