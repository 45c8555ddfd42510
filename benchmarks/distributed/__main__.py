"""Learning from partitions on a Dask cluster, beside one process.

    python -m benchmarks.distributed
    python -m benchmarks.distributed --parts evaluations mixing

The part "evaluations": a conditional random field learns by L-BFGS from all sentences of CoNLL-2000
in two threads, and from 2, 8 and 64 partitions. An evaluation is one of the objective and its
gradient.

The part "mixing": online learners in one process, and from 2, 4, 8 and 64 partitions, with the same
number of epochs.

In these parts the shards learn one after the other in this process. They have the functions and
the arguments that workers get, and so give the same bits; what would travel is counted.

The others need a cluster of two workers with a thread each, and a quiet machine. Partitions are
files, which the workers read.

"seconds": an evaluation on the workers, by calls that go to them straight and through the
scheduler, beside one in two threads, in turn, and at the same weights; on CoNLL-2000 and on
part-of-speech tags of the Brown corpus.

"start": what a worker that is new takes until it has evaluated the objective.

"memory": what L-BFGS takes on the driver beside 64 partitions of made-up features.
"""

from benchmarks.common.commandline import make_parser, open_report, parse
from benchmarks.common.corpora import chunking_name
from benchmarks.distributed.driver import report_memory
from benchmarks.distributed.partitions import report_evaluations, report_mixing
from benchmarks.distributed.workers import report_seconds, report_start

PARTITIONS, QUICK_PARTITIONS = (2, 8, 64), (2,)
SHARDS, QUICK_SHARDS = (2, 4, 8, 64), (2,)
PARTS = ("evaluations", "mixing", "seconds", "start", "memory")


def main():
    """Run the benchmark."""
    parser = make_parser(__doc__, repeat=3)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="default all")
    arguments = parse(parser)
    quick, corpus = arguments.quick, chunking_name(arguments.quick)
    partitions = QUICK_PARTITIONS if quick else PARTITIONS
    with open_report("distributed", arguments) as report:
        if "evaluations" in arguments.parts:
            report_evaluations(corpus, partitions, report)
        if "mixing" in arguments.parts:
            shards = QUICK_SHARDS if quick else SHARDS
            report_mixing(corpus, shards, arguments.repeat, report)
        if "seconds" in arguments.parts:
            report_seconds(corpus, partitions, report)
        if "start" in arguments.parts:
            report_start(corpus, report, quick=quick)
        if "memory" in arguments.parts:
            report_memory(report, quick=quick)


if __name__ == "__main__":
    main()
