"""Tagger of the box on the home page, which is trained when the documentation is built.

``python docs/address_tagger.py`` prints its F1 on addresses that it has not seen, and its size.
"""

from __future__ import annotations

import gzip
import tempfile
from importlib import resources
from pathlib import Path

from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from skstruct import CRFTagger, SpanTaggerCV, WordVectorizer
from skstruct.datasets import load_addresses
from skstruct.export import write_javascript
from skstruct.metrics import chunk_f1_score


def make_tagger():
    """The best of what the example of addresses tries, without functions of its own."""
    words = WordVectorizer(min_freq=2, label_statistics=True)
    return SpanTaggerCV(make_pipeline(words, CRFTagger(l2=0.1, tol=1e-3)))


def train():
    """Tagger of all addresses."""
    return make_tagger().fit(*load_addresses(return_X_y=True))


def write(folder):
    """Write the tagger, and the runtime for other models, as the pages import them."""
    folder.mkdir(parents=True, exist_ok=True)
    size = write_javascript(train(), folder / "addresses.js")
    runtime = resources.files("skstruct.export") / "runtime.js"
    (folder / "runtime.js").write_text(runtime.read_text(encoding="utf-8"), encoding="utf-8")
    return size


def main():
    """Print F1 and size."""
    addresses = load_addresses()
    parts = train_test_split(addresses.data, addresses.target, test_size=0.3, random_state=0)
    X_train, X_test, y_train, y_test = parts
    found = make_tagger().fit(X_train, y_train).predict(X_test)
    print(f"F1 on {len(X_test)} addresses: {chunk_f1_score(y_test, found):.3f}")
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        content = (Path(folder) / "addresses.js").read_bytes()
    print(f"{len(content) / 1e3:,.0f} kB, {len(gzip.compress(content)) / 1e3:,.0f} kB gzipped")


if __name__ == "__main__":
    main()
