"""Files of the package that go into an application, beside the modules that it imports."""

from importlib.util import find_spec
from pathlib import Path

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

# Solvers are imported by name, which PyInstaller cannot see, and so are the parts of skops that
# store estimators. Its folder "old" has no __init__.py, which hides it from `collect_submodules`.
skops = Path(find_spec("skops.io").origin).parent
hiddenimports = [
    *collect_submodules("skstruct", filter=lambda name: "_pyinstaller" not in name),
    *collect_submodules("skops.io", filter=lambda name: ".tests" not in name),
    *(f"skops.io.old.{path.stem}" for path in skops.glob("old/*.py")),
]
datas = collect_data_files("skstruct", excludes=["**/__pycache__"])
# Compiled kernels belong to the text of the kernels, which is read when they are looked for.
module_collection_mode = {"skstruct": "pyz+py"}
