"""What 10^9 and 10^11 tokens would take: a plan on paper from costs that are measured here.

    python -m benchmarks.scale_plan

Costs of a token are measured on CoNLL-2000 in one thread: reading, making features, an epoch or an
iteration of each learner, and the bytes of a batch. So is the share of all weights that a partition
has, which falls as a power of the number of partitions. The rest is arithmetic for a cluster: every
processor has a partition, computing divides by the processors, and all weights that travel go
through the network of the driver. The cluster, the numbers of weights and rounds, and the price of
a machine are assumptions, most of which are options.
"""

import math
import tempfile
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import CORPORA, chunking_name, write_sentences
from benchmarks.common.features import CHUNKING, crfsuite_attributes
from benchmarks.common.processes import seconds_of
from benchmarks.common.report import machine, table
from skstruct.input.training_set import batch_rows

TOKENS = (1e9, 1e11)
PARTITIONS = (2, 8, 64)
CALLS = 3
# Bytes of L-BFGS for a weight, of a weight that travels, and at most of its place in the vector.
LBFGS, NUMBER, PLACE = 116, 8, 1
# Rounds: evaluations of L-BFGS, epochs of the others.
ROUNDS = {"L-BFGS": 150, "perceptron": 10, "SGD": 10}


def epoch_of(tagger, batch, y, few=4, many=16):
    """Seconds of the processor for an epoch or iteration: a long fit less a short one."""
    seconds = [
        seconds_of(lambda n=n: tagger.set_params(max_iter=n).fit(batch, y), CALLS, process_time)
        for n in (few, many)
    ]
    return (seconds[1] - seconds[0]) / (many - few)


def batch_bytes(batch):
    """Bytes of the arrays of a batch."""
    return sum(part.nbytes for part in batch_rows(batch)) + batch.offsets.nbytes


def measure(corpus):
    """Microseconds and bytes of a token, and the share of the features in a partition."""
    from skstruct import (
        CRFTagger,
        HashingTemplateVectorizer,
        PerceptronTagger,
        SequenceVectorizer,
        TemplateVectorizer,
    )
    from skstruct.datasets import read_conll

    X, y = CORPORA[corpus]()["train"]
    n_tokens = sum(map(len, X))
    hashing = HashingTemplateVectorizer(CHUNKING, n_features=2**18)
    batch = TemplateVectorizer(CHUNKING).fit_transform(X)
    options = {"tol": None, "random_state": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train"
        write_sentences(X, y, path)
        seconds = {
            "reading a column file": seconds_of(lambda: read_conll(path), CALLS, process_time)
        }
    seconds["features by a template, hashed"] = seconds_of(
        lambda: hashing.transform(X), CALLS, process_time
    )

    def in_python():
        return SequenceVectorizer().fit_transform(map(crfsuite_attributes, X))

    seconds["features made in Python, and vectorised"] = seconds_of(in_python, 1, process_time)
    lbfgs = CRFTagger(l2=1.0, tol=0)
    seconds["iteration of L-BFGS"] = epoch_of(lbfgs, batch, y)
    seconds["epoch of the perceptron"] = epoch_of(PerceptronTagger(**options), batch, y)
    sgd = CRFTagger(solver="sgd", **options)
    seconds["epoch of SGD"] = epoch_of(sgd, batch, y)
    micro = {name: 1e6 * value / n_tokens for name, value in seconds.items()}
    return micro, batch_bytes(batch) / n_tokens, shares(batch, y)


def shares(batch, y):
    """Share of the weights that a partition has, by the number of partitions.

    A feature has a weight for each label that it occurs with in any partition.
    """
    rows = batch_rows(batch)
    _, codes = np.unique([label for labels in y for label in labels], return_inverse=True)
    pairs = rows.indices * np.int64(codes.max() + 1) + np.repeat(codes, np.diff(rows.indptr))
    n_weights = np.bincount(np.unique(pairs) // (codes.max() + 1), minlength=batch.n_features)
    found = {}
    for n in PARTITIONS:
        cuts = np.linspace(0, len(batch), n + 1).astype(int)
        parts = [batch[a:b] for a, b in pairwise(cuts) if a < b]
        own = [n_weights[np.unique(batch_rows(part).indices)].sum() for part in parts]
        found[n] = float(np.mean(own)) / n_weights.sum()
    return found


def exponent(found):
    """Power of the number of partitions that fits the shares best."""
    logs = np.log(list(found.items()))
    return float(np.dot(logs[:, 0], logs[:, 1]) / np.dot(logs[:, 0], logs[:, 0]))


class Plan:
    """Rows of the table: what a way to learn takes for so many tokens.

    Parameters
    ----------
    micro : dict of str to float
        Microseconds of a token.
    n_bytes : float
        Bytes of a token.
    power : float
        Of the share of the weights that a partition has.
    assumed : Namespace
        Options of the command line.
    """

    def __init__(self, micro, n_bytes, power, assumed):
        self._micro, self._bytes, self._power, self._assumed = micro, n_bytes, power, assumed
        prepared = ("reading a column file", "features by a template, hashed")
        self._prepare = sum(micro[name] for name in prepared)

    def stream(self, n_tokens):
        """One processor reads, makes features and learns, in every pass."""
        cost = self._prepare + self._micro["epoch of the perceptron"]
        return self._row(1e-6 * cost * n_tokens, 0, 0, 1, 1)

    def one_machine(self, n_tokens):
        """L-BFGS with a thread for each processor of one machine."""
        cores = self._assumed.cores
        seconds = 1e-6 * self._micro["iteration of L-BFGS"] * n_tokens / cores
        prepare = 1e-6 * self._prepare * n_tokens / cores
        memory = self._bytes * n_tokens + LBFGS * self._assumed.weights
        return self._row(seconds, 0, prepare, ROUNDS["L-BFGS"], 1, 0, memory)

    def cluster(self, n_tokens, method, *, dense=False):
        """Every processor of every machine has a partition."""
        assumed = self._assumed
        n_parts = assumed.machines * assumed.cores
        unit = "iteration of L-BFGS" if method == "L-BFGS" else f"epoch of {_the(method)}"
        share = 1.0 if dense else n_parts**self._power
        each_way = NUMBER * assumed.weights * share * n_parts
        # An average travels back with the weights.
        ways = 3 if method == "perceptron" else 2
        traffic = ways * each_way / (assumed.gigabits * 1e9 / 8)
        computing = 1e-6 * self._micro[unit] * n_tokens / n_parts
        prepare = 1e-6 * self._prepare * n_tokens / n_parts
        memory = self._bytes * n_tokens / assumed.machines
        # What partitions send is added a few at a time. Online learners need places of features,
        # which are far fewer than weights.
        if method == "L-BFGS":
            driver = LBFGS * assumed.weights + each_way / NUMBER * PLACE
        else:
            driver = 2 * NUMBER * (ways - 1) * assumed.weights
        rounds = ROUNDS[method], assumed.machines
        return self._row(computing, traffic, prepare, *rounds, each_way, memory, driver)

    def _row(
        self, computing, traffic, prepare, n_rounds, n_machines, each_way=0, memory=0, driver=0
    ):
        seconds = computing + traffic
        hours = (prepare + n_rounds * seconds) / 3600
        price = self._assumed.price * n_machines
        return [
            _seconds(computing),
            _seconds(traffic) if traffic else "",
            f"{each_way / 1e9:,.0f}" if each_way else "",
            n_rounds,
            f"{hours:,.1f}" if hours >= 10 else f"{hours:.2f}",
            _money(price * seconds / 3600),
            _money(price * hours),
            f"{memory / 1e9:,.1f}" if memory else "",
            f"{driver / 1e9:,.0f}" if driver else "",
        ]


def _the(method):
    return f"the {method}" if method == "perceptron" else method


def _seconds(value):
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


def _money(value):
    if value == 0:
        return "0"
    digits = max(0, 1 - math.floor(math.log10(value)))
    return f"{value:,.{min(digits, 4)}f}"


def write_report(micro, n_bytes, found, assumed, report):
    """Write the costs, and the plan that follows from them."""
    rows = [[name, f"{value:.2f}"] for name, value in micro.items()]
    note = f"A token of a batch has {n_bytes:.0f} bytes. {machine()}"
    report.write("units", table(["", "microseconds a token"], rows), note)
    power = exponent(found)
    rows = [[n, f"{100 * share:.0f}", f"{100 * n**power:.0f}"] for n, share in found.items()]
    head = ["partitions", "weights of a partition, % of all", f"partitions ^ {power:.2f}, %"]
    report.write("shares", table(head, rows, left=()))
    plan, rows = Plan(micro, n_bytes, power, assumed), []
    for n_tokens in TOKENS:
        size = f"10^{math.log10(n_tokens):.0f}"
        rows += [
            ["stream, one processor: perceptron", size, *plan.stream(n_tokens)],
            ["one machine: L-BFGS", size, *plan.one_machine(n_tokens)],
            ["cluster: L-BFGS, all weights", size, *plan.cluster(n_tokens, "L-BFGS", dense=True)],
            *(
                [f"cluster: {method}", size, *plan.cluster(n_tokens, method)]
                for method in ("L-BFGS", "perceptron", "SGD")
            ),
        ]
    head = ["", "tokens", "computing a round, s", "traffic a round, s", "GB each way", "rounds"]
    head += ["hours in all", "$ a round", "$ in all", "GB a machine", "GB on the driver"]
    note = (
        f"{assumed.weights:.0e} weights; {assumed.machines} machines with {assumed.cores} "
        f"processors each, a driver with {assumed.gigabits:g} Gbit/s; ${assumed.price:g} a machine "
        "hour. Rounds are evaluations or epochs; hours include reading and making features once."
    )
    report.write("plan", table(head, rows), note)


def main():
    """Run the benchmark."""
    parser = make_parser(__doc__)
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--cores", type=int, default=16, help="processors of a machine")
    parser.add_argument("--gigabits", type=float, default=10, help="a second, of the driver")
    parser.add_argument("--weights", type=float, default=1e8)
    parser.add_argument("--price", type=float, default=1.0, help="$ for a machine hour")
    arguments = parse(parser)
    measured = measure(chunking_name(arguments.quick))
    with open_report("scale_plan", arguments) as report:
        write_report(*measured, arguments, report)


if __name__ == "__main__":
    main()
