"""``skstruct tag``: predict the labels of text, batch by batch, several files in parallel."""

import codecs
import os
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack
from functools import partial
from gzip import GzipFile
from itertools import chain, groupby, islice, pairwise
from operator import itemgetter

import click
from joblib import Parallel

from skstruct.cli.answers import Details, answer
from skstruct.cli.layout import layout_for, layout_options
from skstruct.cli.models import load_model
from skstruct.cli.options import (
    FILE,
    FILE_OR_INPUT,
    NewFile,
    jobs_option,
    require_other_files,
)
from skstruct.cli.output import plain_warnings, standard_output
from skstruct.cli.plain import check_takes_words, read_texts, tokenizer_option, write_text
from skstruct.cli.text import comments_in, read_sequences, write_columns, write_object
from skstruct.input.schemes import RUNS, scheme_of_classes
from skstruct.utils.files import check_writable, replaced
from skstruct.utils.parallel import in_process


@click.command(short_help="Tag text, or rerank candidates.")
@click.argument("files", nargs=-1, type=FILE_OR_INPUT)
@click.option("-m", "--model", required=True, type=FILE, help="File of the model.")
@click.option(
    "-o",
    "--output",
    type=NewFile(allow_dash=True),
    help="By default, standard output. Names that end in .gz make gzipped files, here and with "
    "--output-dir.",
)
@click.option(
    "--output-dir",
    metavar="FOLDER",
    type=click.Path(file_okay=False),
    help="Write a file of the same name for each of FILES into this folder.",
)
@click.option(
    "--n-best",
    type=click.IntRange(1),
    metavar="N",
    help="The N best labellings with their probabilities; the N best candidates.",
)
@click.option("--marginals", is_flag=True, help="Also the probability of each label.")
@click.option("--all-marginals", is_flag=True, help="Also the probabilities of all labels.")
@click.option("--spans", is_flag=True, help="Chunks with their probabilities, chosen for F1.")
@click.option(
    "--candidates",
    is_flag=True,
    help="Also the candidates of a ConformalTagger, or its labellings.",
)
@click.option(
    "--threshold",
    type=click.FloatRange(0, 1),
    help="With --spans: the probability that chunks are to exceed. By default the one that "
    "SpanTaggerCV has found in training, or 0.5.",
)
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    default=1000,
    metavar="N",
    help="Sequences to read before the first answer; 1 for answers at once.",
)
@jobs_option(
    "Files to tag in parallel, each in a process. -1: one a processor. With standard input among "
    "them, they are tagged one after the other."
)
@tokenizer_option
@layout_options
def tag(files, model, output, output_dir, batch_size, jobs, tokenizer, layout, **details):
    """Tag FILES, by default standard input, with a model of ``skstruct train``.

    Models of CRFsuite and text models of CRF++ work as well. Files have the columns that the model
    was trained on; a label in the last column may be missing. The output is the input with the
    predicted label in a further column; in CoNLL-U it takes the place of the label; JSON lines get
    "labels". Rerankers add the number of the "chosen" candidate to JSON lines.

    With --n-best, a line "# rank probability" precedes each labelling, in CoNLL-U "# n_best = rank
    probability". With --marginals, the probability of each label follows it in a column of its own,
    and in MISC in CoNLL-U. With --spans, labels mark the chunks that are more probable than
    --threshold, and the probability of its chunk follows each label; JSON lines get "spans".

    With --candidates, a line "# candidate start end type probability" for each candidate precedes
    a sentence, with tokens counted from 0 on and the end excluded; JSON lines get "candidates", or
    "labellings".

    With --tokenizer, the files are plain text, for a model whose features come from words alone.
    The output is the text with its chunks in brackets, "[Rome LOC] is old"; with --format jsonl
    objects with "text" and "spans" of characters.

    \b
    Examples:
      skstruct tag -m chunker.skops new.txt > tagged.txt
      printf 'The DT\\ncat NN\\n' | skstruct tag -m chunker.skops
      echo 'Rome is old' | skstruct tag -m names.skops --tokenizer whitespace
      skstruct tag -m names.skops --tokenizer mytools.text:split letters.txt
      skstruct tag -m chunker.skops --n-best 3 --marginals new.txt
      skstruct tag -m names.skops --spans --threshold 0.3 new.txt
      skstruct tag -m conformal.skops --candidates --format jsonl new.jsonl
      skstruct tag -m chunker.skops --output-dir tagged -j 4 part-*.txt
      skstruct tag -m crf.crfsuite --format jsonl features.jsonl
    """
    if output_dir is not None and output not in (None, "-"):
        raise click.UsageError("-o and --output-dir exclude each other.")
    files = list(files) or ["-"]
    outputs = [output or "-"] * len(files)
    if output_dir is not None:
        outputs = _outputs_in(output_dir, files)
    # Text may be tagged in place: the whole of it is in the output.
    require_other_files(outputs, [model], "-o" if output_dir is None else "--output-dir")
    details = Details(**details)
    if tokenizer is not None and (details.any_marginals or details.n_best is not None):
        raise click.UsageError("--tokenizer writes chunks: leave out --n-best and --marginals.")
    if tokenizer is not None and details.candidates and layout.format != "jsonl":
        raise click.UsageError("Candidates overlap: pass --format jsonl with --tokenizer.")
    texts = partial(
        _texts, layout=layout, details=details, batch_size=batch_size, tokenizer=tokenizer
    )
    followed = [next_one == one for one, next_one in pairwise([*outputs, None])]
    files = list(zip(files, followed, strict=True))
    tagged = zip(outputs, _tagged(files, model, texts, jobs), strict=True)
    for target, group in groupby(tagged, key=itemgetter(0)):
        _write(target, chain.from_iterable(pieces for _, pieces in group), layout.encoding)


def _outputs_in(folder, files):
    """Create a folder, and return the paths of the outputs in it."""
    names = [os.path.basename(file) for file in files]
    if "-" in files or len(set(names)) < len(names):
        raise click.UsageError("--output-dir needs files with different names.")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise click.UsageError(f"--output-dir {folder}: {error.strerror}.") from None
    paths = [os.path.join(folder, name) for name in names]
    for path in paths:
        check_writable(path)
    return paths


def _tagged(files, path, texts, jobs):
    """Yield the output of each file, in pieces; `files` say whether another one follows."""
    # Other processes do not have the standard input of this one.
    if len(files) == 1 or jobs == 1 or "-" in dict(files):
        model = load_model(path)
        yield from (texts(model, *file) for file in files)
        return
    parallel = Parallel(n_jobs=min(jobs, len(files)), return_as="generator")
    try:
        yield from parallel(in_process(_tag_file)(path, *file, texts) for file in files)
    except BrokenExecutor:
        raise OSError("A process of -j was killed, perhaps for want of memory.") from None


def _tag_file(path, file, is_followed, texts):
    with plain_warnings():
        return list(texts(load_model(path), file, is_followed))


def _write(path, texts, encoding):
    """Write texts to a file, gzipped if its name says so, or to standard output at once."""
    # One encoder for all texts: some encodings begin with a byte order mark.
    encode = codecs.getincrementalencoder(encoding)().encode
    with ExitStack() as stack:
        file = stack.enter_context(standard_output() if path == "-" else replaced(path))
        if path.endswith(".gz"):
            # Without name and time, the same text makes the same file.
            packed = GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
            file = stack.enter_context(packed)
        for text in texts:
            try:
                file.write(encode(text))
            except UnicodeEncodeError as error:
                odd = error.object[error.start : error.end]
                raise ValueError(f"{odd!r} cannot be written in {encoding}.") from None
            if path == "-":
                file.flush()


def _texts(model, file, is_followed, *, layout, details, batch_size, tokenizer):
    """Output of a file in pieces; if another one follows, a blank line ends its last sequence."""
    in_columns = False
    if tokenizer is None:
        layout = layout_for(model, layout, file)
        in_columns = layout.format != "jsonl"
        sequences = read_sequences(file, layout, labelled=False)
        write = partial(write_columns if in_columns else write_object, layout=layout)
    else:
        check_takes_words(model)
        sequences = read_texts(file, layout, tokenizer)
        scheme = scheme_of_classes(list(map(str, model.estimator.classes_)))
        reading = RUNS if scheme == RUNS else "conlleval"
        write = partial(write_text, layout=layout, scheme=reading)
    n_comments, text = 0, ""
    while batch := list(islice(sequences, batch_size)):
        n_comments += sum(comments_in(sequence, layout) for sequence in batch)
        text = "".join(map(write, batch, answer(model, batch, details)))
        yield text
    if is_followed and in_columns and text and not f"\n{text}".endswith("\n\n"):
        yield "\n"
    if n_comments:
        click.echo(f"{file}: lines taken as comments: {n_comments:,}", err=True)
