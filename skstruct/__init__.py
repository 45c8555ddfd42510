"""Linear structured prediction the scikit-learn way."""

import sys

from skstruct.utils.public_paths import MovedClasses, export_stub
from skstruct.utils.startup import ImportOfLess

# What there is, `__init__.pyi` lists. Each name is imported when it is first asked for: kernels
# take time to load, and hardly any program needs all of them.
__getattr__, __dir__, __all__ = export_stub(__name__)

__version__ = "0.1.0.dev0"

sys.meta_path.insert(0, ImportOfLess())
sys.meta_path.append(MovedClasses())
