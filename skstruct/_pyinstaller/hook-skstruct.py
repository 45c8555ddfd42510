"""Files of the package that go into an application, beside the modules that it imports."""

from PyInstaller.utils.hooks import collect_data_files, collect_submodules

# Solvers are imported by name, which PyInstaller cannot see.
hiddenimports = collect_submodules("skstruct", filter=lambda name: "_pyinstaller" not in name)
datas = collect_data_files("skstruct", excludes=["**/__pycache__"])
# Compiled kernels belong to the text of the kernels, which is read when they are looked for.
module_collection_mode = {"skstruct.chain": "pyz+py", "skstruct.kernels": "pyz+py"}
