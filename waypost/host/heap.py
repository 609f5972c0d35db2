"""How the C library keeps what was freed: it gives large pieces back to the system, and doesn't learn to keep them.

By itself glibc takes a large piece that was freed once as a sign that more of that size will be wanted, and keeps up to
twice as much of them from then on: packs that are merged and values that are read would stay with the host as memory
that nobody uses, some 10 MB. What Python makes of small objects isn't touched by this.
"""

import ctypes

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
"""mallopt(3)."""
_LARGE = 512 * 1024
"""Bytes of a piece that is asked of the system by itself; and of what may lie free at the end of the heap."""


def give_back() -> None:
    """From now on, in this process. Another C library than glibc, which has no such setting, is left as it is."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_TRIM_THRESHOLD, _LARGE)
