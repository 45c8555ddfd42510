"""The command ``skstruct``."""

from __future__ import annotations

import argparse
import time

__all__ = ["main"]


def main(arguments=None):
    """Run the command with the arguments given, or those of the process."""
    parser = argparse.ArgumentParser(prog="skstruct", description="Sequence taggers.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("versions", help="show versions, and where compiled kernels come from")
    warm = commands.add_parser("warm", help="compile kernels ahead of time")
    warm.add_argument("names", nargs="*", metavar="ESTIMATOR", help="all by default")
    warm.add_argument("--jobs", type=int, default=-1, help="processes, by default one a processor")
    warm.add_argument("--native", action="store_true", help="for exactly this processor")
    options = parser.parse_args(arguments)
    if options.command == "versions":
        from skstruct.compiled.versions import show_versions

        show_versions()
        return
    from skstruct.ahead.warm import warm as compile_ahead

    begin = time.perf_counter()
    try:
        counts = compile_ahead(options.names or None, n_jobs=options.jobs, native=options.native)
    except ValueError as error:
        parser.error(str(error))
    n_found = sum(counts.values()) - counts.get("compiler", 0)
    seconds = time.perf_counter() - begin
    print(f"{counts.get('compiler', 0)} kernels compiled, {n_found} found, {seconds:.0f} s")


if __name__ == "__main__":
    main()
