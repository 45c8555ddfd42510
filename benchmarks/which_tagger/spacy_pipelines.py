"""spaCy's tagger and entity recogniser, learnt from scratch on a CPU.

They have the settings that `spacy init config --optimize efficiency` writes, and no vectors. Spans
such as chunks and components of addresses are entities to spaCy.
"""

import io
import tempfile
from pathlib import Path
from time import process_time

MEGABYTE = 1e6
PIPES = {"chunk_f1": "ner", "token_accuracy": "tagger"}
# Of several languages: no rules of one language, whose tokeniser is not used either.
LANGUAGE = "xx"
LOGGER = "skstruct.benchmarks.checkpoints"


class SpacyLearner:
    """A pipeline whose number of updates is chosen on development data, by spaCy's own rule.

    Where `fit_part` is not all of the training set, it learns again from all of it, with as many
    updates.

    Parameters
    ----------
    parameters : dict
        Settings of the section "training" that are not those of spaCy.
    seed : int
        Decides initial weights, dropout and batches.
    fit_part, dev_part : tuple
        X and y that `fit` chooses the number of updates with; X has tuples that begin with a word.
    measure : {"chunk_f1", "token_accuracy"}
        Spans or labels of tokens.
    """

    def __init__(self, parameters, seed, fit_part, dev_part, measure):
        self._parameters, self._seed, self._pipe = parameters, seed, PIPES[measure]
        self._fit_part, self._dev_part, self._nlp = fit_part, dev_part, None

    def warm_up(self, X, y):
        """Load the library: nothing is kept."""
        self._learn((X, y), (X, y), max_steps=1)

    def fit(self, X, y):
        """Learn; return the seconds of the processor, development data included."""
        start = process_time()
        checkpoints = self._learn(self._fit_part, self._dev_part)
        if len(self._fit_part[0]) < len(X):
            # Of equal scores spaCy keeps the first.
            _, updates = max(checkpoints, key=lambda found: (found[0], -found[1]))
            every = max(1, updates)
            self._learn((X, y), self._dev_part, max_steps=updates, eval_frequency=every, last=True)
        return process_time() - start

    def inputs(self, X):
        """What `tag` takes."""
        return [[word for word, *_ in tokens] for tokens in X]

    def tag(self, inputs):
        """Lists of labels."""
        from spacy.tokens import Doc

        docs = self._nlp.pipe([Doc(self._nlp.vocab, words=words) for words in inputs])
        return [list(map(self._label, doc)) for doc in docs]

    def megabytes(self):
        """Size of the pipeline as spaCy writes it, in bytes."""
        return {"spacy": len(self._nlp.to_bytes()) / MEGABYTE}

    def _label(self, token):
        if self._pipe == "tagger":
            return token.tag_
        return f"{token.ent_iob_}-{token.ent_type_}" if token.ent_type_ else "O"

    def _learn(self, train, dev, *, last=False, **settings):
        """Learn by spaCy's loop; keep the best pipeline or the last; return scores and updates."""
        import spacy
        from spacy.training.initialize import init_nlp
        from spacy.training.loop import train as run_loop

        checkpoints = []
        spacy.registry.loggers.register(LOGGER, func=lambda: note_checkpoints(checkpoints))
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            self._write(train, folder / "train.spacy")
            self._write(dev, folder / "dev.spacy")
            nlp = init_nlp(self._config(folder, settings))
            run_loop(nlp, folder, stdout=io.StringIO(), stderr=io.StringIO())
            kept = "model-last" if last else "model-best"
            self._nlp = spacy.load(folder / kept)
        return checkpoints

    def _config(self, folder, settings):
        from spacy.cli.init_config import init_config

        config = init_config(
            lang=LANGUAGE, pipeline=[self._pipe], optimize="efficiency", gpu=False, silent=True
        )
        config["paths"].update({name: f"{folder / name}.spacy" for name in ("train", "dev")})
        config["system"]["seed"] = self._seed
        config["training"].update(self._parameters | settings)
        config["training"]["logger"] = {"@loggers": LOGGER}
        return config

    def _write(self, part, path):
        """Write labelled sentences as spaCy reads them."""
        import spacy
        from spacy.tokens import Doc, DocBin

        vocab, docs = spacy.blank(LANGUAGE).vocab, DocBin()
        for words, labels in zip(self.inputs(part[0]), part[1], strict=True):
            given = {"ents": begin_chunks(labels)} if self._pipe == "ner" else {"tags": labels}
            docs.add(Doc(vocab, words=words, **given))
        docs.to_disk(path)


def begin_chunks(labels):
    """Labels with a B at the beginning of every chunk, which spaCy demands."""
    from skstruct.metrics import extract_chunks

    found = ["O"] * len(labels)
    for start, end, kind in extract_chunks(labels):
        found[start:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - start - 1)
    return found


def note_checkpoints(checkpoints):
    """Logger of spaCy that prints nothing, and adds pairs of a score and a number of updates."""

    def start(nlp, stdout, stderr):
        def log(info):
            if info is not None:
                checkpoints.append((info["score"], info["step"]))

        return log, lambda: None

    return start
