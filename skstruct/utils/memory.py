"""Available memory, checked where a small file asks for large arrays."""

import os
from contextlib import suppress
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None


_CGROUP_LIMITS = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


def usable_memory():
    """Bytes that this process may use: the least of machine, container and process limit.

    Returns
    -------
    n_bytes : float
        Infinite where the system does not say.
    """
    limits = [float("inf")]
    # Windows has neither of the first two, and a container need not have a limit.
    with suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    if resource is not None:
        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            limits.append(soft - _address_space())
    for path in _CGROUP_LIMITS:
        with suppress(OSError, ValueError):
            limits.append(int(Path(path).read_text(encoding="utf-8")))
    return min(limits)


def _address_space():
    """Bytes of address space in use by this process; 0 where the system does not say."""
    with suppress(OSError, ValueError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    return 0


def require_memory(n_bytes, what, advice):
    """Raise an error unless there is enough memory.

    Parameters
    ----------
    n_bytes : float
        Bytes that will certainly be needed at once.
    what : str
        Their purpose, the subject of a sentence with "need".
    advice : str
        Sentence on what needs less.

    Raises
    ------
    MemoryError
        If the process cannot have as much.
    """
    usable = usable_memory()
    if n_bytes > usable:
        raise MemoryError(
            f"{what} need {as_size(n_bytes)}, and this process may use {as_size(usable)}. {advice}"
        )


def as_size(n_bytes):
    """Text such as "11.2 GiB" or "300 MiB"."""
    for unit in ("bytes", "KiB", "MiB"):
        if n_bytes < 1024:
            return f"{n_bytes:,.0f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:,.1f} GiB"
