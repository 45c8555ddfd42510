"""Wheels with compiled kernels: what the environment variable SKSTRUCT_BASELINES asks for.

It names processors, such as "x86-64-v3,x86-64-v2", or is "all", or "best" for the class that serves
this machine best. Without it the wheel is plain Python, and kernels are compiled at their first
call. Kernels belong to the numba of the Python that builds.
"""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

BASELINES = os.environ.get("SKSTRUCT_BASELINES", "")
ROOT = Path(__file__).parent
# Inline links to files of the repository, and pictures.
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")
PICTURE = re.compile(r"(src(?:set)?=\")(?![a-z]+:)([^\"]+)")


def description():
    """Text of the README, with links that a package index can follow."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    text = LINK.sub(rf"]({project['urls']['Source']}/blob/main/\1)", text)
    return PICTURE.sub(rf"\1{project['urls']['Source']}/raw/main/\2", text)


class BuildPy(build_py):
    """Compile the kernels that were copied, and put them next to the copies."""

    def run(self):
        """Copy, then compile."""
        super().run()
        if BASELINES and not self.editable_mode:
            root = Path(self.build_lib).absolute()
            folder = root / "skstruct" / "compiled" / "archives"
            command = ["-m", "skstruct.ahead.build", str(folder), "--baselines", BASELINES]
            # From there, where `-m` finds the copies.
            subprocess.run([sys.executable, *command], check=True, cwd=root)


class BdistWheel(bdist_wheel):
    """A wheel with machine code is for one Python on one platform."""

    def finalize_options(self):
        """Settle the options."""
        super().finalize_options()
        if BASELINES:
            self.root_is_pure = False

    def get_tag(self):
        """Tags of Python, ABI and platform."""
        python, abi, system = super().get_tag()
        return python, abi, os.environ.get("SKSTRUCT_PLATFORM_TAG") or system


class BinaryDistribution(Distribution):
    """A distribution that is not pure where kernels are compiled."""

    def has_ext_modules(self):
        """Tell if there is machine code."""
        return bool(BASELINES)


setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    cmdclass={"build_py": BuildPy, "bdist_wheel": BdistWheel},
    distclass=BinaryDistribution,
)
