"""A neural tagger with the methods of the learners of `which_tagger`."""

import io
import json
from time import process_time
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.neural.encoding import NumberEncoder, TokenEncoder, batches_by_length, pad
from benchmarks.neural.network import Network, Numbers, TokenVectors

MEGABYTE = 1e6


class Settings(NamedTuple):
    """Sizes, and how a network learns. The same for all corpora, but for the epochs."""

    word_size: int = 100
    character_size: int = 25
    tag_size: int = 25
    filters: int = 30
    hidden: int = 100
    dropout: float = 0.5
    learning_rate: float = 0.002
    batch_size: int = 16
    longest_gradient: float = 5.0
    epochs: int = 60  # most
    patience: int = 5  # epochs without a better score on the development set


class NeuralLearner:
    """A Bi-LSTM or Bi-LSTM-CRF, whose epochs are chosen on development data.

    Parameters
    ----------
    kind : {"Bi-LSTM", "Bi-LSTM-CRF"}
        Output of the network.
    parameters : dict
        Settings that are not defaults.
    seed : int
        Decides initial weights, dropout and batches.
    fit_part, dev_part : tuple
        X and y that `fit` chooses the number of epochs with.
    score : callable
        Score of true and found labels.
    again : bool
        True if `fit_part` is not all of the training set, so that learning starts again on it.
    """

    def __init__(
        self, kind, parameters, seed, fit_part=None, dev_part=None, score=None, *, again=False
    ):
        self.kind, self.settings, self.seed = kind, Settings(**parameters), seed
        self._fit_part, self._dev_part, self._score = fit_part, dev_part, score
        self._again = again
        self.history, self.epoch_seconds = [], []

    def warm_up(self, X, y):
        """Load the library's code: nothing is kept."""
        learner = NeuralLearner(self.kind, {}, 0)
        list(learner.learn(X, y, 1))
        learner.tag(X)

    def fit(self, X, y):
        """Learn; return the seconds of the processor."""
        start = process_time()
        torch.set_num_threads(1)
        self._choose(*(self._fit_part if self._again else (X, y)))
        if self._again:
            list(self.learn(X, y, self.epochs))
        return process_time() - start

    def learn(self, X, y, n_epochs):
        """Learn from the start, epoch by epoch; give the seconds of the processor of each."""
        self._start(X, y)
        data = self._encode(X, y)
        for _ in range(n_epochs):
            start = process_time()
            self._learn_epoch(*data)
            yield process_time() - start

    def inputs(self, X):
        """What `tag` takes."""
        return X

    def tag(self, X):
        """Lists of labels."""
        arrays, spellings = self._encoder.encode(X)
        order = np.argsort([len(array) for array in arrays], kind="stable")
        found = [None] * len(X)
        self._network.eval()
        with torch.inference_mode():
            for first in range(0, len(order), self.settings.batch_size):
                chosen = order[first : first + self.settings.batch_size]
                padded, mask = pad([arrays[i] for i in chosen])
                scores = self._network(mask, self._encoder.tensors(padded, spellings))
                codes = self._network.output.best(scores, mask).numpy()
                for i, row in zip(chosen, codes, strict=True):
                    found[i] = self._labels[row[: len(arrays[i])]].tolist()
        return found

    def megabytes(self):
        """Size of the weights as PyTorch stores them, with the vocabularies as text."""
        file = io.BytesIO()
        torch.save(self._network.state_dict(), file)
        tables = [*map(list, self._encoder.tables), self._labels.tolist()]
        text = json.dumps(tables, ensure_ascii=False)
        return {"torch": (file.tell() + len(text.encode())) / MEGABYTE}

    def n_weights(self):
        """Number of weights of the network."""
        return sum(weights.numel() for weights in self._network.parameters())

    def _choose(self, X, y):
        """Learn until the score on the development set gets no better; keep the best weights."""
        best = -np.inf
        for epoch, seconds in enumerate(self.learn(X, y, self.settings.epochs), 1):
            self.epoch_seconds.append(seconds)
            self.history.append(self._score(self._dev_part[1], self.tag(self._dev_part[0])))
            if self.history[-1] > best:
                best, self.epochs = self.history[-1], epoch
                weights = {k: v.clone() for k, v in self._network.state_dict().items()}
            elif epoch - self.epochs >= self.settings.patience:
                break
        self._network.load_state_dict(weights)

    def _start(self, X, y):
        """Make an untrained network for a training set."""
        torch.manual_seed(self.seed)
        self._rng = np.random.default_rng(self.seed)
        self._labels = np.unique(np.concatenate(y)).astype(object)
        if isinstance(X[0], np.ndarray):
            self._encoder = NumberEncoder(X)
            inputs = Numbers(self._encoder.n_columns)
        else:
            self._encoder = TokenEncoder(X)
            inputs = TokenVectors(self._encoder.tables, self.settings)
        self._network = Network(self.kind, inputs, len(self._labels), self.settings)
        self._optimiser = torch.optim.Adam(
            self._network.parameters(), lr=self.settings.learning_rate, fused=True
        )

    def _encode(self, X, y):
        """Arrays of inputs, spellings, and arrays of label codes."""
        codes = {label: code for code, label in enumerate(self._labels)}
        return *self._encoder.encode(X), [np.array([codes[k] for k in labels]) for labels in y]

    def _learn_epoch(self, arrays, spellings, labels):
        """One pass over the training set."""
        self._network.train()
        lengths = np.array([len(array) for array in arrays])
        for chosen in batches_by_length(lengths, self.settings.batch_size, self._rng):
            padded, mask = pad([arrays[i] for i in chosen])
            gold = torch.from_numpy(pad([labels[i] for i in chosen])[0])
            scores = self._network(mask, self._encoder.tensors(padded, spellings, self._rng))
            loss = self._network.output.loss(scores, mask, gold) / mask.sum()
            self._optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(
                self._network.parameters(), self.settings.longest_gradient
            )
            self._optimiser.step()
