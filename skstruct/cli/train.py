"""``skstruct train``: fit a tagger or a reranker, and store it."""

from __future__ import annotations

import click

from skstruct.cli.options import (
    assignments,
    can_be_written,
    jobs_option,
    layout_options,
    quiet_option,
    read_layout,
)
from skstruct.cli.work.estimators import estimator_names
from skstruct.cli.work.training import Plan, run

__all__ = ["train"]


@click.command(short_help="Train a tagger or a reranker.")
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(allow_dash=True, exists=True, dir_okay=False)
)
@click.option(
    "-m", "--model", metavar="FILE", callback=can_be_written, help="File to store the model in."
)
@click.option(
    "-e",
    "--estimator",
    type=click.Choice(estimator_names(), case_sensitive=False),
    default="CRFTagger",
    show_default=True,
    help="Tagger or reranker.",
)
@click.option(
    "-p",
    "--param",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    callback=assignments("-p"),
    help="Parameter of the estimator; may be repeated. Those of the parts of NBestReranker have "
    "two underscores: tagger__l2=0.5.",
)
@click.option(
    "--order",
    type=click.IntRange(1, 2),
    help="Order of the tagger's chain, as -p order=2: 2 for weights of label triples.",
)
@click.option(
    "--features",
    type=click.Choice(["auto", "words", "template", "none"]),
    default="auto",
    show_default=True,
    help="words: those of WordVectorizer. template: those of TemplateVectorizer's default. none: "
    "each column is a feature. auto: words, or none where JSON lines have feature dicts.",
)
@click.option(
    "-t",
    "--template",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Template of CRF++ or Wapiti, in place of --features.",
)
@click.option(
    "-f",
    "--feature-param",
    "feature_parameters",
    multiple=True,
    metavar="NAME=VALUE",
    callback=assignments("-f"),
    help="Parameter of the vectoriser; may be repeated.",
)
@click.option(
    "--gazetteer",
    "gazetteers",
    multiple=True,
    metavar="NAME=FILE",
    callback=assignments("--gazetteer", read_value=str),
    help="File with a name in each line, for --features words; may be repeated.",
)
@click.option(
    "--clusters",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Brown clusters for --features words: path, tab, word.",
)
@click.option(
    "--dev",
    multiple=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Validation set, scored at every epoch, for NBestReranker once at the end; may be "
    "repeated.",
)
@click.option(
    "--early-stopping",
    is_flag=True,
    help="Stop when the score of the validation set no longer rises. Without --dev, a tenth of "
    "the training set is held out for it.",
)
@click.option(
    "--cv",
    type=click.IntRange(2),
    metavar="K",
    help="Cross-validate with K folds first; without -m, do nothing else.",
)
@jobs_option("Threads to train with; processes for --cv. -1: all processors.")
@quiet_option
@layout_options
def train(
    files,
    model,
    estimator,
    parameters,
    order,
    features,
    template,
    feature_parameters,
    gazetteers,
    clusters,
    dev,
    early_stopping,
    cv,
    jobs,
    quiet,
    **layout,
):
    """Train a tagger or a reranker on FILES.

    In a column file, each line has a token: the word, maybe further columns such as its part of
    speech, and the label last. A blank line follows each sentence. JSON lines have {"tokens":
    [...], "labels": [...]}, where a token is a word, a list of columns, or a dict of features. For
    rerankers, they have {"candidates": [{...}, ...], "costs": [...]}, a dict of features and a cost
    for each candidate; in place of costs, "oracle" is the number of the best one.

    NBestReranker learns from tokens and labels: it trains a tagger, by default CRFTagger, and a
    reranker, by default VRDAReranker, which chooses among the tagger's best labellings by what
    their labels have as a whole, such as two chunks of a type that occurs once.

    \b
    Examples:
      skstruct train train.txt -m chunker.skops
      skstruct train train.txt -m chunker.skops --dev dev.txt --early-stopping
      skstruct train train.txt --cv 5 -p l2=0.5
      skstruct train train.txt -m names.skops -e PerceptronTagger -p max_iter=20
      skstruct train train.txt -m second.skops --order 2
      skstruct train train.txt -m names.skops -f affixes=5 --gazetteer place=cities.txt
      skstruct train en-train.conllu -m pos.skops --columns form --label upos
      skstruct train train.txt -m model.skops -t template.txt
      skstruct train nbest.jsonl -m reranker.skops -e VRDAReranker
      skstruct train train.txt -m both.skops -e NBestReranker -p n_best=5 -p tagger__l2=0.5
    """
    if model is None and cv is None:
        raise click.UsageError("Pass -m FILE to store the model, or --cv K, or both.")
    run(
        Plan(
            files=list(files),
            path=model,
            estimator=estimator,
            parameters=parameters,
            order=order,
            features=features,
            template=template,
            feature_parameters=feature_parameters,
            gazetteers=gazetteers,
            clusters=clusters,
            dev=list(dev),
            early_stopping=early_stopping,
            cv=cv,
            jobs=jobs,
            quiet=quiet,
            layout=read_layout(**layout),
        )
    )
