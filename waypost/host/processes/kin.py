"""Which processes of the machine are a data directory's: the children of its host, and all that those have started.

They are told by a mark that begins alike for one data directory, and for no other that is there at the same time: it is
made of the directory's place and identity, and so there is nothing to write down, and nothing that a copy takes along.
"""

import hashlib
import os
import threading
import time
from collections.abc import Collection

from ipc.strays import Mark, end
from waypost.host.datadir.directory import DataDir
from waypost.host.processes.reserved import Reserved
from waypost.host.processes.sweeping import Sweeping
from waypost.host.processes.users import known_users, taken

_DIGITS = 32
_DYING, _LOOK = 2.0, 0.05
"""Seconds until what is being killed has ended, and between two looks."""


def kin(data: DataDir) -> str:
    """The beginning of the marks of this data directory's children. Raises OSError."""
    found = data.path.stat()
    named = f"{os.path.realpath(data.path)}\0{found.st_dev}\0{found.st_ino}"
    return hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS] + "."


def end_leftovers(data: DataDir, reserved: Reserved, sweeping: Sweeping | None = None) -> int:
    """Kill what the children of an earlier host have left behind; how many a scan has found. Under the lock only.

    No host of this data directory runs but the one that asks, so whatever is found is nobody's: but for the processes
    of a user that a host of another data directory has, too. That one has reserved it; or, where it isn't noted that
    anything of ours may run as this user, and something does, that host's file was removed.
    """
    known = known_users(data.users).values()
    if sweeping is not None:
        for uid in _others([uid for uid in known if not reserved.used(uid)]):
            reserved.refuse(uid)
    uids = [uid for uid in known if reserved.take(uid)]
    if sweeping is not None:
        sweeping.end(uid for uid in uids if reserved.used(uid))
    return end(Mark(kin(data)), *(Mark(uid=uid) for uid in uids))


def _others(uids: Collection[int]) -> frozenset[int]:
    """Which of these users somebody runs as, and goes on to: what the guardian has just killed may not be gone yet."""
    until, pause = time.monotonic() + _DYING, threading.Event()
    while found := taken().intersection(uids):
        if time.monotonic() > until:
            return found
        pause.wait(_LOOK)
    return frozenset()
