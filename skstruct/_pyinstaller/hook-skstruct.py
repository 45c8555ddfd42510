"""What goes into an application, beside the modules that it imports."""

from PyInstaller.utils.hooks import collect_all, collect_submodules

# Imported by name: names of the package, its solvers, and what stores estimators. Compiled kernels
# belong to the text of the sources, which is read when they are looked for.
datas, binaries, hiddenimports = collect_all("skstruct")
hiddenimports += collect_submodules("skops.io") + collect_submodules("skops.io.old")
