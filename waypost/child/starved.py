"""Runs whose code hasn't begun because no thread was to be had for it: a ``def`` run is a thread.

They wait, the one that has waited longest first, and no other run is touched: one is tried again with whatever else
happens in this child, as that may have freed a thread, and after ``AGAIN`` seconds, as somebody else may have.
"""

import sys

from waypost.child.drive import Drive
from waypost.model.ids import RunId

AGAIN = 1.0
"""Seconds until one is tried again where nothing else happens."""


class Starved:
    """Who waits; for the workflow's thread alone."""

    def __init__(self) -> None:
        self._waiting: dict[RunId, Drive] = {}
        self._said: set[RunId] = set()

    @property
    def patience(self) -> float | None:
        """Seconds to wait for something else to happen; None: for as long as it takes."""
        return AGAIN if self._waiting else None

    def add(self, drive: Drive) -> None:
        """No thread was to be had for this one."""
        self._waiting[drive.run] = drive
        if drive.run not in self._said:
            self._said.add(drive.run)
            what = f"no thread is to be had for {drive.run}: its code begins when there is one"
            print(f"waypost.child: {what}", file=sys.stderr)  # noqa: T201 - the child's log

    def take(self) -> tuple[Drive, ...]:
        """The one that is to be tried now, if any waits."""
        run = next(iter(self._waiting), None)
        return () if run is None else (self._waiting.pop(run),)

    def forget(self, run: RunId) -> None:
        """It is left."""
        self._waiting.pop(run, None)
        self._said.discard(run)
