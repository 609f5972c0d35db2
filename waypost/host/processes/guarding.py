"""The guardians are guarded: that one has ended is seen by the I/O thread, which has another take its place at once.

For that thread alone, in whose selector their pidfds are. Any word to a guardian may replace it, too, so what is
watched is looked at after each.
"""

import os
import selectors
import time
from collections.abc import Sequence
from contextlib import suppress

from waypost.host.processes.guardian import Guardian


class Guarding:
    """Hands words on to the guardians, as many as there are, and is what the selector gives when one has ended."""

    def __init__(self, guardians: Sequence[Guardian], selector: selectors.BaseSelector) -> None:
        self._guardians, self._selector = tuple(guardians), selector
        self._watched: dict[Guardian, tuple[int, int]] = {}
        """The process that is watched, and its pidfd."""

    def look(self) -> None:
        """Watch the processes that there are now."""
        for guardian in self._guardians:
            pid, watched = guardian.pid, self._watched.get(guardian)
            if watched is not None and watched[0] == pid:
                continue
            self._let_go(guardian)
            if pid is not None:
                with suppress(OSError):  # no descriptor to spare: it is replaced with the next word to it
                    self._watched[guardian] = pid, os.pidfd_open(pid)
                    self._selector.register(self._watched[guardian][1], selectors.EVENT_READ, self)

    def watch(self, group: int) -> None:
        """Kill this group when the host is gone."""
        for guardian in self._guardians:
            guardian.watch(group)
        self.look()

    def forget(self, group: int) -> None:
        """No more; to be called before the group's leader is reaped."""
        for guardian in self._guardians:
            guardian.forget(group)
        self.look()

    def watch_user(self, uid: int) -> None:
        """End all that runs as this user when the host is gone; 0: there is none."""
        if uid:
            for guardian in self._guardians:
                guardian.watch_user(uid)
            self.look()

    def forget_user(self, uid: int) -> None:
        """No more: nothing runs as it."""
        if uid:
            for guardian in self._guardians:
                guardian.forget_user(uid)
            self.look()

    def ended(self, pidfd: int) -> None:
        """The process that this is of has ended, if it is still a guardian's."""
        for guardian, (_, watched) in tuple(self._watched.items()):
            if watched == pidfd and _over(pidfd):
                guardian.ended()
        self.look()

    def patience(self) -> float | None:
        """Seconds until it is to be looked whether a guardian can be had again; None while there are all."""
        due = [guardian.due for guardian in self._guardians if guardian.due is not None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def again(self) -> None:
        """Have another one, where the pause after the last one is over."""
        now = time.monotonic()
        for guardian in self._guardians:
            if guardian.due is not None and guardian.due <= now:
                guardian.again()
                self.look()

    def close(self) -> None:
        """Watch nothing any more."""
        for guardian in self._guardians:
            self._let_go(guardian)

    def _let_go(self, guardian: Guardian) -> None:
        watched = self._watched.pop(guardian, None)
        if watched is not None:
            with suppress(KeyError):
                self._selector.unregister(watched[1])
            os.close(watched[1])


def _over(pidfd: int) -> bool:
    """Whether it has ended: its number may be another one's since the selector spoke of it."""
    try:
        return os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True  # reaped by somebody else
