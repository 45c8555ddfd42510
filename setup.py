"""Wheels with compiled kernels: what the environment variable SKSTRUCT_BASELINES asks for.

It names processors, such as "x86-64-v3,x86-64-v4", or is "all", or "best" for the class that serves
this machine best. Without it the wheel is plain Python, and kernels are compiled at their first
call. Kernels belong to the numba of the Python that builds. SKSTRUCT_PYTHONS names more
interpreters, with other releases of numba, which compile in turn. `.ci/build-wheel` sets both.
"""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

BASELINES = os.environ.get("SKSTRUCT_BASELINES", "")
PYTHONS = [sys.executable, *filter(None, os.environ.get("SKSTRUCT_PYTHONS", "").split(os.pathsep))]


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
            for python in PYTHONS:
                subprocess.run([python, *command], check=True, cwd=root)


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
        """Whether there is machine code."""
        return bool(BASELINES)


setup(cmdclass={"build_py": BuildPy, "bdist_wheel": BdistWheel}, distclass=BinaryDistribution)
