"""The command ``skstruct``."""

import sys

from skstruct.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
