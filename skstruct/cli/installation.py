"""``skstruct warm`` and ``skstruct versions``: compiled kernels, and facts for bug reports."""

import time

import click

from skstruct.ahead.warm import warm as compile_ahead
from skstruct.cli.output import standard_output, write_line
from skstruct.compiled.versions import show_versions


@click.command(short_help="Compile kernels ahead of time.")
@click.argument("estimators", nargs=-1)
@click.option(
    "-j", "--jobs", type=int, default=-1, help="Number of processes; by default one a processor."
)
@click.option("--native", is_flag=True, help="Compile for exactly this processor.")
def warm(estimators, jobs, native):
    """Compile kernels now, so that no later command has to wait for them.

    ESTIMATORS are names such as CRFTagger; without any, everything is compiled.

    \b
    Examples:
      skstruct warm
      skstruct warm CRFTagger TemplateVectorizer
    """
    begin = time.perf_counter()
    try:
        counts = compile_ahead(estimators or None, n_jobs=jobs, native=native)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="ESTIMATORS") from None
    n_found = sum(counts.values()) - counts.get("compiler", 0)
    seconds = time.perf_counter() - begin
    write_line(f"{counts.get('compiler', 0)} kernels compiled, {n_found} found, {seconds:.0f} s")


@click.command(short_help="Show versions, and where compiled kernels come from.")
def versions():
    """Show versions of packages, and where compiled kernels come from."""
    with standard_output():
        show_versions()
