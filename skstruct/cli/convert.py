"""``skstruct convert``: models from one format to another."""

import click

from skstruct.cli.models import check_chain, load_model, store_model
from skstruct.cli.options import can_be_written, require_other_files
from skstruct.crfpp import write_model as write_crfpp
from skstruct.crfsuite.model import write_model as write_crfsuite


@click.command(short_help="Convert a model to another format.")
@click.argument("source", type=click.Path(exists=True, dir_okay=False))
@click.argument("target", callback=can_be_written)
@click.option(
    "--to",
    type=click.Choice(["skops", "crfsuite", "crfpp"]),
    help="Format of TARGET; by default crfsuite for names that end in .crfsuite, else skops.",
)
def convert(source, target, to):
    """Convert the model SOURCE to TARGET.

    SOURCE is a model of ``skstruct train``, of CRFsuite, or a text model of CRF++ (crf_learn -t).
    For CRFsuite, the model must be without biases: train it with -p fit_intercept=false. Its
    attributes are then the names of the features. For CRF++, its template must be one of CRF++'s;
    crf_learn --convert turns the text into a binary model.

    \b
    Examples:
      skstruct convert model.txt model.skops
      skstruct convert old.crfsuite new.skops
      skstruct convert chunker.skops chunker.crfsuite
      skstruct convert --to crfpp chunker.skops chunker.txt
    """
    require_other_files([target], [source], "TARGET")
    if to is None:
        to = "crfsuite" if target.endswith(".crfsuite") else "skops"
    model = load_model(source)
    if to == "skops":
        store_model(model, target)
        return
    check_chain(model, source)
    if to == "crfpp":
        write_crfpp(model.as_estimator(), target)
        return
    names = None if model.vectorizer is None else model.vectorizer.get_feature_names_out()
    write_crfsuite(model.estimator, target, feature_names=names)
