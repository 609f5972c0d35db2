"""kill -9 of a host or of its child, at random moments that a seed decides: in time, or by what the host has said."""

import os
import random
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress

from waypost.testing.mortal import MortalHost, workers_of
from waypost.testing.patience import PATIENCE

_LOOK = 0.002
"""Seconds between two looks for something that nobody tells."""
Kill = Callable[[MortalHost], bool]
"""Kills something of a host; whether there was something to kill."""


def kill_host(host: MortalHost) -> bool:
    """Do kill -9 of the host, wherever it is in its life."""
    if not host.alive:
        return False
    host.kill()
    return True


def kill_child(host: MortalHost) -> bool:
    """Do kill -9 of the present child."""
    killed = False
    for pid in workers_of(host.pid):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            killed = True
    return killed


class Reaper:
    """Kills at random moments of a play, in a thread of its own: also while somebody waits for an answer."""

    def __init__(self, kill: Kill, moments: Iterable[tuple[int, float]]) -> None:
        self.kills = 0
        self._kill, self._moments = kill, tuple(moments)
        self._host: MortalHost | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="reaper", daemon=True)

    @classmethod
    def seeded(cls, kill: Kill, seed: int, *, kills: int, span: float, lines: int = 0) -> "Reaper":
        """That many kills; the seed says when.

        Each is up to ``span`` seconds after the one before; or after up to ``lines`` lines that a host has said since,
        so that it comes about as far in a play on a slow machine as on a fast one.
        """
        random_ = random.Random(seed)  # noqa: S311 - to be repeatable, not secret
        return cls(kill, [(random_.randint(0, lines), random_.uniform(0.0, span)) for _ in range(kills)])

    def watch(self, host: MortalHost) -> None:
        """From now on this is the host; the first call begins the reaper's time."""
        self._host = host
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """Kill nothing any more."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(PATIENCE)

    def _work(self) -> None:
        for lines, pause in self._moments:
            if not self._heard(lines) or self._over.wait(pause):
                return
            while self._host is None or not self._kill(self._host):
                if self._over.wait(_LOOK):  # nobody there at this moment: the next one is as good
                    return
            self.kills += 1

    def _heard(self, lines: int) -> bool:
        """Wait until the host that is there has said so many more; False where all is over before."""
        first = self._host
        before = 0 if first is None else len(first.lines)
        while (host := self._host) is None or len(host.lines) - (before if host is first else 0) < lines:
            if self._over.wait(_LOOK):
                return False
        return True
