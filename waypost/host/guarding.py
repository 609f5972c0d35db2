"""The guardian is guarded: that it has ended is seen by the I/O thread, which has another one take its place at once.

For that thread alone, in whose selector its pidfd is. Any word to the guardian may replace it, too, so what is watched
is looked at after each.
"""

import os
import selectors
import time
from contextlib import suppress

from waypost.host.guardian import Guardian


class Guarding:
    """Hands words on to the guardian, where there is one, and is what the selector gives when that has ended."""

    def __init__(self, guardian: Guardian | None, selector: selectors.BaseSelector) -> None:
        self._guardian, self._selector = guardian, selector
        self._watched: tuple[int, int] | None = None
        """The process that is watched, and its pidfd."""

    def look(self) -> None:
        """Watch the process that there is now."""
        pid = None if self._guardian is None else self._guardian.pid
        if self._watched is not None and self._watched[0] == pid:
            return
        self.close()
        if pid is not None:
            with suppress(OSError):  # no descriptor to spare: it is replaced with the next word to it
                self._watched = pid, os.pidfd_open(pid)
                self._selector.register(self._watched[1], selectors.EVENT_READ, self)

    def watch(self, group: int) -> None:
        """Kill this group when the host is gone."""
        if self._guardian is not None:
            self._guardian.watch(group)
            self.look()

    def forget(self, group: int) -> None:
        """No more; to be called before the group's leader is reaped."""
        if self._guardian is not None:
            self._guardian.forget(group)
            self.look()

    def ended(self) -> None:
        """The process that was watched has."""
        if self._guardian is not None:
            self._guardian.ended()
            self.look()

    def patience(self) -> float | None:
        """Seconds until it is to be looked whether a guardian can be had again; None while there is one."""
        due = None if self._guardian is None else self._guardian.due
        return None if due is None else max(0.0, due - time.monotonic())

    def again(self) -> None:
        """Have another one, where the pause after the last one is over."""
        if self._guardian is not None and self.patience() == 0.0:
            self._guardian.again()
            self.look()

    def close(self) -> None:
        """Watch nothing any more."""
        if self._watched is not None:
            self._selector.unregister(self._watched[1])
            os.close(self._watched[1])
            self._watched = None
