"""The neural taggers of the benchmarks: their CRF beside the library's, network and learner."""

import pickle
import sys
from pathlib import Path
from types import SimpleNamespace

import naive
import numpy as np
import pytest
from helpers.objectives import crf_objective, packed_set
from numpy.testing import assert_allclose, assert_array_equal

from skstruct import SAPOTagger
from skstruct.chain.dense import Chain
from skstruct.datasets import load_addresses
from skstruct.decoding import best_labels
from skstruct.input.training_set import as_rows
from skstruct.metrics import token_accuracy_score
from skstruct.utils.parallel import range_runner

torch = pytest.importorskip("torch")
# Behind all others, so that the package under test stays the one that is installed.
sys.path.append(str(Path(__file__).parents[2]))
pytest.importorskip("benchmarks")
from benchmarks.neural import child  # noqa: E402
from benchmarks.neural.chain import ChainCRF, Independent  # noqa: E402
from benchmarks.neural.child import LinearLearner, tune  # noqa: E402
from benchmarks.neural.corpora import TASKS  # noqa: E402
from benchmarks.neural.encoding import (  # noqa: E402
    UNKNOWN,
    TokenEncoder,
    batches_by_length,
    pad,
)
from benchmarks.neural.learner import NeuralLearner, Settings  # noqa: E402
from benchmarks.neural.network import Network, Numbers, TokenVectors  # noqa: E402
from benchmarks.neural.plan import LINEAR, NeuralRecords, Runs, comparisons  # noqa: E402
from benchmarks.which_tagger.child import pack_mistakes  # noqa: E402
from benchmarks.which_tagger.plan import TaggerRecords  # noqa: E402
from benchmarks.which_tagger.systems import (  # noqa: E402
    NETWORKS,
    NEURAL,
    REFERENCE,
    TUNED_NETWORKS,
)


def random_chain(seed, n_labels=3, lengths=(1, 4, 2, 5)):
    """A CRF layer with random weights, and scores and labels of a few sequences."""
    rng = np.random.default_rng(seed)
    layer = ChainCRF(n_labels).double()
    with torch.no_grad():
        for weights in layer.parameters():
            weights.copy_(torch.from_numpy(rng.normal(size=weights.shape)))
    scores = [2 * rng.normal(size=(length, n_labels)) for length in lengths]
    labels = [rng.integers(n_labels, size=length) for length in lengths]
    padded, mask = pad(scores)
    # What is behind the end of a sequence must not matter.
    padded = np.where(mask.numpy()[:, :, None], padded, 1e3)
    gold = torch.from_numpy(pad(labels)[0])
    return SimpleNamespace(
        layer=layer,
        scores=scores,
        labels=labels,
        gold=gold,
        mask=mask,
        padded=torch.from_numpy(padded).requires_grad_(),
    )


def weights_of(layer):
    """Transition, start and end as arrays."""
    return [weights.detach().numpy() for weights in (layer.transition, layer.start, layer.end)]


def with_ends(scores, start, end):
    """Scores of a sequence with those of its ends."""
    found = scores.copy()
    found[0] += start
    found[-1] += end
    return found


@pytest.mark.parametrize("seed", range(3))
def test_layer_agrees_with_the_list_of_all_labellings(seed):
    case = random_chain(seed)
    transition, start, end = weights_of(case.layer)
    log_z = case.layer.log_partition(case.padded, case.mask)
    paths = case.layer.path_scores(case.padded, case.mask, case.gold)
    best = case.layer.best(case.padded, case.mask)
    for i, (scores, labels) in enumerate(zip(case.scores, case.labels, strict=True)):
        full = with_ends(scores, start, end)
        expected, node, _ = naive.listed_marginals(full, transition)
        assert_allclose(log_z[i].item(), expected, rtol=1e-12)
        assert_allclose(paths[i].item(), naive.path_score(full, transition, labels), rtol=1e-12)
        found = max(
            naive.labellings(len(scores), 3), key=lambda p: naive.path_score(full, transition, p)
        )
        assert_array_equal(best[i, : len(scores)], found)
        # The derivative by a score is the probability of its label.
        slope = torch.autograd.grad(log_z[i], case.padded, retain_graph=True)[0][i]
        assert_allclose(slope[: len(scores)], node, atol=1e-12)
        assert_array_equal(slope[len(scores) :], 0)


@pytest.mark.parametrize("seed", range(3))
def test_layer_agrees_with_the_library(seed):
    case = random_chain(seed, n_labels=5, lengths=(3, 1, 8, 6))
    transition, start, end = weights_of(case.layer)
    emissions = np.concatenate(case.scores)
    # A feature of its own for each token: its weights are the scores.
    n_tokens, n_labels = emissions.shape
    rows, offsets = as_rows(np.eye(n_tokens)), np.cumsum([0, *map(len, case.scores)])
    labels = np.concatenate(case.labels).astype(np.int32)
    objective = crf_objective(
        packed_set(rows, offsets, labels, np.ones(len(case.scores))),
        n_tokens,
        n_labels,
        l2=0.0,
        all_possible_states=True,
        all_possible_transitions=True,
    )
    chain = Chain(emissions, transition, np.zeros(n_labels), start, end)
    gradient = np.empty(objective.size)
    with range_runner(offsets, 1) as run:
        value = objective.value_and_gradient(objective.pack(chain), gradient, run)
    expected = objective.unpack(gradient)

    loss = case.layer.loss(case.padded, case.mask, case.gold)
    loss.backward()
    assert_allclose(loss.item(), value, rtol=1e-10)
    assert_allclose(case.padded.grad[case.mask], expected.weights, atol=1e-10)
    assert_allclose(case.layer.transition.grad, expected.transition, atol=1e-10)
    assert_allclose(case.layer.start.grad, expected.start, atol=1e-10)
    assert_allclose(case.layer.end.grad, expected.end, atol=1e-10)
    best = case.layer.best(case.padded, case.mask)[case.mask]
    assert_array_equal(best, best_labels(rows, offsets, chain, 1))


def test_without_transitions_the_layer_is_a_softmax_at_each_token():
    case = random_chain(0)
    for weights in case.layer.parameters():
        torch.nn.init.zeros_(weights)
    alone = Independent(3)
    args = case.padded, case.mask, case.gold
    expected = -sum(
        torch.log_softmax(torch.from_numpy(scores), 1)[range(len(labels)), labels].sum()
        for scores, labels in zip(case.scores, case.labels, strict=True)
    )
    assert_allclose(alone.loss(*args).item(), expected.item(), rtol=1e-12)
    assert_allclose(case.layer.loss(*args).item(), expected.item(), rtol=1e-12)
    assert_array_equal(case.layer.best(*args[:2])[case.mask], alone.best(*args[:2])[case.mask])


def as_tokens(*sentences):
    """Sequences of tokens; a token is a word, and maybe tags behind slashes."""
    return [[tuple(token.split("/")) for token in sentence.split()] for sentence in sentences]


WORDS = as_tokens("De kat zat", "kat", "Zij zag de kat in 1999")
TAGGED = as_tokens("De/DET kat/N zat/V", "kat/N", "Zij/PRON zag/V de/DET kat/N")


def token_network(training, settings):
    encoder = TokenEncoder(training)
    inputs = TokenVectors(encoder.tables, settings)
    return encoder, Network("Bi-LSTM", inputs, 4, settings).eval()


def scores_of(encoder, network, sequences):
    arrays, spellings = encoder.encode(sequences)
    padded, mask = pad(arrays)
    with torch.inference_mode():
        scores = network(mask, encoder.tensors(padded, spellings))
    return [row[: len(array)].numpy() for row, array in zip(scores, arrays, strict=True)]


@pytest.mark.parametrize("X", [WORDS, TAGGED])
def test_other_sequences_of_a_batch_do_not_matter(X):
    torch.manual_seed(0)
    encoder, network = token_network(X, Settings(hidden=7))
    together = scores_of(encoder, network, X)
    for i, tokens in enumerate(X):
        assert_allclose(together[i], scores_of(encoder, network, [tokens])[0], atol=1e-6)


def test_scores_depend_on_both_sides_and_on_the_characters():
    torch.manual_seed(0)
    encoder, network = token_network(WORDS, Settings(hidden=7))
    sentences = as_tokens("de kat in", "in kat in", "de kat de")
    middle = [scores[1] for scores in scores_of(encoder, network, sentences)]
    for other in middle[1:]:
        assert np.abs(middle[0] - other).max() > 1e-4
    # The same word but for its characters.
    small, large = scores_of(encoder, network, as_tokens("zij", "Zij"))
    assert np.abs(small - large).max() > 1e-4


def test_both_directions_are_those_of_a_bidirectional_lstm():
    torch.manual_seed(0)
    network = Network("Bi-LSTM", Numbers(3), 2, Settings(hidden=4)).eval()
    both = torch.nn.LSTM(3, 4, batch_first=True, bidirectional=True)
    for name, weights in network.forwards.named_parameters():
        both.get_parameter(name).data = weights.data
    for name, weights in network.backwards.named_parameters():
        both.get_parameter(f"{name}_reverse").data = weights.data
    X = [
        np.random.default_rng(i).normal(size=(n, 3)).astype(np.float32)
        for i, n in enumerate((5, 2))
    ]
    padded, mask = pad(X)
    with torch.inference_mode():
        found = network(mask, (torch.from_numpy(padded),))
        for x, scores in zip(X, found, strict=True):
            expected = network.scores(both(torch.from_numpy(x)[None])[0][0])
            assert_allclose(scores[: len(x)], expected, atol=1e-6)


def test_encoder_numbers_words_and_spellings():
    encoder = TokenEncoder(WORDS)
    (array,), spellings = encoder.encode(as_tokens("DE hond DE 2007"))
    codes = array[:, 0]
    assert codes[0] == codes[2] == encoder.words["de"]
    assert codes[1] == UNKNOWN
    assert codes[3] == encoder.words["####"]
    assert array[:, 1].tolist() == [0, 1, 0, 2]
    # "E", "h", "o" and "2" are not in the training set.
    assert spellings[0, :2].tolist() == [encoder.characters["D"], UNKNOWN]
    assert spellings[1, :4].tolist() == [1, 1, encoder.characters["n"], encoder.characters["d"]]
    assert not spellings[0, 2:].any()
    words, forms, table, tags = (x.numpy() for x in encoder.tensors(array[None], spellings))
    assert tags.shape == (1, 4, 0)
    assert_array_equal(words[0], codes)
    assert_array_equal(table[forms[0]], spellings[array[:, 1], : table.shape[1]])


def test_only_words_that_occur_once_are_forgotten():
    encoder = TokenEncoder(WORDS)
    arrays, spellings = encoder.encode(WORDS)
    padded, _ = pad(arrays)
    rng = np.random.default_rng(0)
    drawn = [encoder.tensors(padded, spellings, rng)[0].numpy() for _ in range(50)]
    often = {encoder.words["de"], encoder.words["kat"]}
    for i, code in np.ndenumerate(padded[:, :, 0]):
        found = {words[i] for words in drawn}
        once = code > UNKNOWN and code not in often
        assert found == ({code, UNKNOWN} if once else {code})


def test_batches_hold_every_sequence_once_and_similar_lengths():
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 50, size=333)
    batches = batches_by_length(lengths, 8, rng)
    assert_array_equal(np.sort(np.concatenate(batches)), np.arange(333))
    assert max(map(len, batches)) == 8
    ranges = [np.ptp(lengths[batch]) for batch in batches]
    assert np.mean(ranges) < np.ptp(lengths) / 5


def accuracy(y_true, y_pred):
    return 100 * token_accuracy_score(y_true, y_pred)


def next_words(n, seed):
    """Words whose label is the next word: no tagger that sees the word alone can know it."""
    rng = np.random.default_rng(seed)
    X = [rng.choice(["a", "b", "c"], size=rng.integers(2, 9)).tolist() for _ in range(n)]
    return [as_tokens(" ".join(words))[0] for words in X], [[*words[1:], "end"] for words in X]


@pytest.mark.parametrize("kind", ["Bi-LSTM", "Bi-LSTM-CRF"])
def test_learner_keeps_the_best_epoch(kind):
    train, dev = next_words(200, 0), next_words(60, 1)
    settings = {"hidden": 20, "epochs": 12, "patience": 3, "learning_rate": 0.01}
    learner = NeuralLearner(kind, settings, 0, train, dev, accuracy, again=False)
    learner.fit(*train)
    assert len(learner.history) == len(learner.epoch_seconds) <= 12
    assert learner.epochs == 1 + int(np.argmax(learner.history))
    assert len(learner.history) in (12, learner.epochs + 3)
    # The weights are those of that epoch.
    assert accuracy(dev[1], learner.tag(dev[0])) == max(learner.history) > 95
    assert learner.tag([dev[0][0]]) == [learner.tag(dev[0])[0]]
    assert 4 * learner.n_weights() / 1e6 < learner.megabytes()["torch"] < 1


def test_learner_takes_rows_of_numbers():
    train, dev = next_words(200, 0), next_words(60, 1)
    codes = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [-1.0, 1.0]}
    parts = [
        ([np.array([codes[word] for (word,) in tokens]) for tokens in X], y)
        for X, y in (train, dev)
    ]
    settings = {"hidden": 20, "epochs": 12, "learning_rate": 0.01}
    learner = NeuralLearner("Bi-LSTM-CRF", settings, 0, *parts, accuracy, again=False)
    learner.fit(*parts[0])
    assert accuracy(dev[1], learner.tag(parts[1][0])) == max(learner.history) > 95


def test_learner_starts_again_on_all_of_the_training_set():
    train, dev = next_words(60, 0), next_words(20, 1)
    part = train[0][:40], train[1][:40]
    settings = {"hidden": 10, "epochs": 2}
    learner = NeuralLearner("Bi-LSTM", settings, 3, part, dev, accuracy, again=True)
    learner.fit(*train)
    # With as many epochs on the whole set and no choice, the same weights.
    whole = NeuralLearner(
        "Bi-LSTM",
        {**settings, "epochs": learner.epochs},
        3,
        train,
        dev,
        lambda *_: 0.0,
        again=False,
    )
    whole._start(*train)
    data = whole._encode(*train)
    for _ in range(learner.epochs):
        whole._learn_epoch(*data)
    for found, expected in zip(
        learner._network.parameters(), whole._network.parameters(), strict=True
    ):
        assert torch.equal(found, expected)


def test_learning_by_epoch_gives_the_weights_of_as_many_epochs():
    train, dev = next_words(60, 0), next_words(20, 1)
    settings = {"hidden": 10, "epochs": 3}
    learner = NeuralLearner("Bi-LSTM-CRF", settings, 3, train, dev, accuracy)
    learner.fit(*train)
    followed, scores = NeuralLearner("Bi-LSTM-CRF", settings, 3), []
    for seconds in followed.learn(*train, 3):
        assert seconds > 0
        scores.append(accuracy(dev[1], followed.tag(dev[0])))
    assert scores == learner.history


def test_linear_learner_by_epoch_learns_what_partial_fit_does():
    X, y = load_addresses(return_X_y=True)
    X, y = [[[f"w={word}"] for word in tokens] for tokens in X[:60]], y[:60]
    learner = LinearLearner("SAPOTagger", {}, 4)
    assert len(list(learner.learn(X, y, 3))) == 3
    expected = SAPOTagger(random_state=np.random.RandomState(4))
    for _ in range(3):
        expected.partial_fit(X, y)
    assert_array_equal(learner.tagger.coef_, expected.coef_)


def test_tuning_takes_one_setting_after_the_other(tmp_path, monkeypatch):
    train, dev = next_words(60, 0), next_words(20, 1)
    for name, part in {"fit": train, "dev": dev}.items():
        (tmp_path / f"{name}.pickle").write_bytes(pickle.dumps(part))
    (tmp_path / "description.json").write_text('{"measure": "token_accuracy"}')
    # A step that is too small learns nothing in two epochs.
    monkeypatch.setattr(child, "GRID", {"learning_rate": [1e-9, 0.02], "hidden": [10, 100]})
    found = tune(tmp_path, "Bi-LSTM-CRF, tuned", {"epochs": 2})
    assert found["parameters"]["learning_rate"] == 0.02
    tried = [(settings["learning_rate"], settings["hidden"]) for settings, _ in found["tried"]]
    # The first ones have the default, which is no other setting when its turn comes.
    assert tried == [(1e-9, 100), (0.02, 100), (0.02, 10)]
    best = max(found["tried"], key=lambda pair: pair[1])
    assert best[0] == found["parameters"]
    # As a run with these settings scores the development set.
    learner = NeuralLearner("Bi-LSTM-CRF", found["parameters"], 0, None, dev, accuracy)
    shuffled = np.random.default_rng(0).permutation(len(train[0]))
    learner.fit(*([part[i] for i in shuffled] for part in train))
    assert best[1] == pytest.approx(max(learner.history))


def test_tuned_systems_are_compared_with_tuned_ones():
    everything = comparisons([*LINEAR, *NEURAL])
    assert len(set(everything)) == len(everything)
    for network in NETWORKS:
        assert (f"{network}, tuned", network) in everything
        assert (network, "CRFTagger") in everything
    others = {other for system, other in everything if system in TUNED_NETWORKS}
    assert others == {*NETWORKS, "CRFTagger, tuned", "SAPOTagger, tuned"}
    assert comparisons(["SAPOTagger", *NETWORKS]) == [
        ("Bi-LSTM-CRF", "Bi-LSTM"),
        ("Bi-LSTM", "SAPOTagger"),
        ("Bi-LSTM-CRF", "SAPOTagger"),
    ]


def run_record(system, seed=0, corpus="addresses", **more):
    return {"kind": "run", "corpus": corpus, "system": system, "seed": seed, **more}


def test_runs_of_networks_are_compared_once_with_the_reference(tmp_path):
    y_true = [["A", "A", "B"], ["B", "A"]] * 20
    network = [["A", "A", "B"], ["B", "B"]] * 20
    reference = [["B", "B", "B"], ["B", "B"]] * 20
    folder = tmp_path / "tokens" / "ocr"
    folder.mkdir(parents=True)
    (folder / "test.pickle").write_bytes(pickle.dumps((None, y_true)))
    others = TaggerRecords(tmp_path / "others.jsonl")
    records = NeuralRecords(tmp_path / "runs.jsonl")
    mistakes = pack_mistakes(y_true, network)
    records.add(run_record("Bi-LSTM", 2, "ocr", mistakes=mistakes))
    runs = Runs("ocr", TASKS["ocr"], records, others, tmp_path)
    which = {"kind": "test", "corpus": "ocr", "system": "Bi-LSTM", "seed": 2, "other": REFERENCE}
    # Nothing to compare with.
    runs.compare_with_reference("Bi-LSTM", 2)
    assert records.find(**which) is None

    mistakes = pack_mistakes(y_true, reference)
    others.add(run_record(REFERENCE, corpus="ocr", mistakes=mistakes))
    for _ in range(2):
        runs.compare_with_reference("Bi-LSTM", 2)
    found = records.find(**which)
    # Four of five tokens are right, beside two of five.
    assert found["difference"] == pytest.approx(80 - 40)
    assert found["p"] < 0.01
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 2


def table_rows(path):
    """Cells of a generated table by row and column."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    head, _, *rows = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    return {row[0]: dict(zip(head, row, strict=True)) for row in rows}


def test_both_pages_have_the_same_scores_of_networks():
    generated = Path(__file__).parents[2] / "docs" / "benchmarks" / "generated"
    alone, beside = (table_rows(generated / n / "scores.md") for n in ("neural", "which_tagger"))
    for system in NEURAL:
        # Without the marks, and without the corpora that have no runs.
        cells = {key: cell.partition(" **")[0] for key, cell in beside[system].items()}
        assert {key: cell for key, cell in cells.items() if cell} == {
            key: cell for key, cell in alone[system].items() if cell
        }
