"""How a figure is said: beside its limit, with what the disk alone takes meanwhile, and what else the machine does.

A figure over its limit is printed as such and changes no exit code: it is for a person, who sees the load beside it.
"""

import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

SPAN = 16 * 1024 * 1024
BLOCK = 1100
"""Bytes, about what one append of 300 bytes is in the journal."""
_MOVED = 1.25


def show(what: str, found: float, limit: float, unit: str, cpu: float | None = None, *, least: bool = False) -> None:
    """A figure and its limit; and how much of it was work, where the machine has other work, too."""
    over = "" if (found >= limit if least else found <= limit) else ("   UNDER" if least else "   OVER")
    work = "" if cpu is None else f"   (CPU {cpu:.2f} s)"
    kind = "at least" if least else "limit"
    print(f"{what:58} {found:8.2f} {unit:2}   {kind} {limit:6.2f} {unit}{over}{work}", flush=True)


def say(what: str, found: float, unit: str) -> None:
    """A figure without a limit."""
    print(f"{what:58} {found:8.2f} {unit}", flush=True)


def load() -> None:
    """What else the machine does: runnable processes over the last minute, and how many cores it has."""
    print(f"{'load (1 minute) on ' + str(os.cpu_count()) + ' cores':58} {os.getloadavg()[0]:8.2f}", flush=True)


def quantile(values: Sequence[float], q: float) -> float:
    """The ``q`` quantile, 0 to 1, of at least one value."""
    return sorted(values)[min(int(len(values) * q), len(values) - 1)]


def seconds(values: Sequence[float], name: str, scale: float = 1e6, unit: str = "us") -> None:
    """One line of a distribution of seconds."""
    middle, late, mean = quantile(values, 0.5), quantile(values, 0.99), statistics.fmean(values)
    print(
        f"{name:34} p50 {middle * scale:7.0f} {unit}   p99 {late * scale:7.0f} {unit}   mean {mean * scale:7.0f} {unit}"
    )


def steady(syncs: Sequence[float]) -> None:
    """Say how far the disk was the same disk: the calibration of a run's second half to its first, by medians.

    Where that moved by more than a quarter, the run's own figures are of two disks, and it is to be repeated.
    """
    half = len(syncs) // 2
    if not half:
        return
    moved = statistics.median(syncs[half:]) / statistics.median(syncs[:half])
    rejected = "" if 1 / _MOVED <= moved <= _MOVED else "   REJECTED: measure again"
    print(f"{'the bare fdatasync, second half to first (median)':58} {moved:8.2f} x{rejected}", flush=True)


class Probe:
    """A bare write and one fdatasync into space that has been written before: the calibration of all that is durable.

    Space that was only reserved costs more at its first sync, which a journal doesn't pay either.
    """

    def __init__(self, path: Path, size: int = BLOCK) -> None:
        """``size``: bytes of a write."""
        self._descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_TRUNC, 0o600)
        os.pwrite(self._descriptor, bytes(SPAN), 0)
        os.fsync(self._descriptor)
        self._body, self._at = os.urandom(size), 0

    def __call__(self) -> float:
        """Seconds that one took."""
        self._at = (self._at + len(self._body)) % (SPAN - len(self._body))
        begun = time.perf_counter()
        os.pwrite(self._descriptor, self._body, self._at)
        os.fdatasync(self._descriptor)
        return time.perf_counter() - begun

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        os.close(self._descriptor)
