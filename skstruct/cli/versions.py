"""``skstruct versions``: what a bug report should say."""

from __future__ import annotations

import click

from skstruct.compiled.versions import show_versions

__all__ = ["versions"]


@click.command(short_help="Show versions, and where compiled kernels come from.")
def versions():
    """Show versions of packages, and where compiled kernels come from."""
    show_versions()
