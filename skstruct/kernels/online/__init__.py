"""Online learners: the epoch, the update rules, and helpers before and after an epoch."""

import lazy_loader

# Models stored by 0.1.0.dev0 name `skstruct.kernels.online.OnlineState`.
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={"loop": ["OnlineState"]})
