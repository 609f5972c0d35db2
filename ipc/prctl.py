"""The one door to prctl(2), which the standard library doesn't have."""

import ctypes
import os

from ipc.errors import KernelRefused

PR_SET_PDEATHSIG = 1
PR_GET_DUMPABLE = 3
PR_SET_DUMPABLE = 4


def prctl(option: int, value: int = 0) -> int:
    """Call prctl with one argument, the unused ones zero, and give what it returns. Raises KernelRefused."""
    result: int = ctypes.CDLL(None, use_errno=True).prctl(
        ctypes.c_int(option), ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)
    )
    if result < 0:
        errno = ctypes.get_errno()
        raise KernelRefused(f"prctl({option}, {value})", errno, os.strerror(errno))
    return result
