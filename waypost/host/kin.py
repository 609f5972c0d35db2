"""Which processes of the machine are a data directory's: the children of its host, and all that those have started.

They are told by a mark that begins alike for one data directory, and for no other that is there at the same time: it is
made of the directory's place and identity, and so there is nothing to write down, and nothing that a copy takes along.
"""

import hashlib
import os

from ipc.strays import Mark, end
from waypost.host.datadir import DataDir
from waypost.host.reserved import Reserved
from waypost.host.sweeping import Sweeping
from waypost.host.users import known_users

_DIGITS = 32


def kin(data: DataDir) -> str:
    """The beginning of the marks of this data directory's children. Raises OSError."""
    found = data.path.stat()
    named = f"{os.path.realpath(data.path)}\0{found.st_dev}\0{found.st_ino}"
    return hashlib.sha256(named.encode("utf-8", "surrogateescape")).hexdigest()[:_DIGITS] + "."


def end_leftovers(data: DataDir, reserved: Reserved, sweeping: Sweeping | None = None) -> int:
    """Kill what the children of an earlier host have left behind; how many a scan has found. Under the lock only.

    No host of this data directory runs but the one that asks, so whatever is found is nobody's: but for the processes
    of a user that a host of another data directory has, too.
    """
    uids = [uid for uid in known_users(data.users).values() if reserved.take(uid)]
    if sweeping is not None:
        sweeping.end(uid for uid in uids if reserved.used(uid))
    return end(Mark(kin(data)), *(Mark(uid=uid) for uid in uids))
