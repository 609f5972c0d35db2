"""Processes that left a child's group and session, and how they are found all the same, and ended.

Whatever a child starts inherits its *mark*: a variable of its environment, and, where it only forked, its command line.
A mark is of one child of one host, so whatever bears it is nobody else's, whatever has become of process numbers. Only
who takes trouble to lose it isn't found: without isolation, this guards against mistakes. Where a child has a user of
its own, all that this user runs is the child's. Linux, proc(5).
"""

import itertools
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ipc.environment import MARK

OPTION = "--mark"
_ROUNDS = 100
"""Times that a scan may find more: whoever forks faster than it is killed isn't ended by this."""


class Mark(NamedTuple):
    """What to look for: a child's mark, or the beginning of one; and the user that is its own (0: it has none)."""

    text: str = ""
    uid: int = 0


NO_MARK = Mark()


def end(*marks: Mark) -> int:
    """Kill everything that bears one of these marks or belongs to its user, but this process; how many there were."""
    wanted = tuple(mark for mark in marks if mark != NO_MARK)
    killed: set[int] = set()
    for _ in range(_ROUNDS if wanted else 0):
        found = [pid for pid in _running() if pid not in killed and bears(pid, *wanted)]
        if not found:
            break
        for pid in found:
            killed.add(pid)
            _kill(pid, wanted)
    return len(killed)


def bears(pid: int, *marks: Mark) -> bool:
    """Whether a process bears one of these marks, or belongs to its user. One that has ended bears none."""
    words = _read(pid, "cmdline").split(b"\0")
    told = [then for first, then in itertools.pairwise(words) if first == OPTION.encode()]
    named = MARK.encode() + b"="
    told += [each[len(named) :] for each in _read(pid, "environ").split(b"\0") if each.startswith(named)]
    texts = tuple(mark.text.encode() for mark in marks if mark.text)
    if texts and any(text.startswith(texts) for text in told):
        return True
    users = {str(mark.uid).encode() for mark in marks if mark.uid}
    return bool(users) and not users.isdisjoint(_users(pid))


def _running() -> list[int]:
    """Every process but this one."""
    try:
        listed = os.listdir("/proc")  # noqa: PTH208 - a string for each is all that is needed
    except OSError:
        return []  # no /proc: nothing can be known of others
    return [int(name) for name in listed if name.isdigit() and int(name) != os.getpid()]


def _kill(pid: int, marks: tuple[Mark, ...]) -> None:
    """By a pidfd that is checked after it was opened: the number may be another process's by now."""
    with suppress(OSError):
        pidfd = os.pidfd_open(pid)
        try:
            if bears(pid, *marks):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)


def _users(pid: int) -> set[bytes]:
    """By its status: the folder is root's where a process isn't dumpable. One that has ended runs as nobody."""
    lines = _read(pid, "status").split(b"\n")
    if any(line.startswith(b"State:\tZ") for line in lines):
        return set()
    return {user for line in lines if line.startswith(b"Uid:") for user in line.split()[1:]}


def _read(pid: int, name: str) -> bytes:
    """Empty for a process that is gone, or that the kernel doesn't show us."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""
