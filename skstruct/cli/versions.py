"""``skstruct versions``: what a bug report should say."""

from __future__ import annotations

import click

from skstruct.cli.output import standard_output
from skstruct.compiled.versions import show_versions

__all__ = ["versions"]


@click.command(short_help="Show versions, and where compiled kernels come from.")
def versions():
    """Show versions of packages, and where compiled kernels come from."""
    with standard_output():
        show_versions()
