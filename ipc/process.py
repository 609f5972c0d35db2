"""What the host does about other processes of the same machine: hide from them, and know who is calling.

Without isolation this guards against mistakes, not against malice (design §1): a process that leaves its child, session
and all, is only recognised by its mark (`ipc.strays`), which it can take off.
"""

import os
import socket
import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from ipc.errors import KernelRefused, ProcessGone
from ipc.prctl import PR_SET_DUMPABLE, prctl

_UCRED = struct.Struct("iII")
_TRIES = 3
_LONGEST_LINE = 4096


@dataclass(frozen=True, slots=True)
class Peer:
    """Who connected to a unix socket, as the kernel knew it at that moment."""

    pid: int
    uid: int
    gid: int


def hide() -> None:
    """Make this process not dumpable: no core file, no ptrace, no reading of its memory by the same user.

    Lasts until the next exec. Raises KernelRefused.
    """
    prctl(PR_SET_DUMPABLE, 0)


def peer_of(connection: socket.socket) -> Peer:
    """The credentials of the other end of a connected unix socket (unix(7), SO_PEERCRED).

    Raises KernelRefused; ProcessGone for a peer without a pid here: not connected, or of another pid namespace.
    """
    try:
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    except OSError as failure:
        raise KernelRefused("SO_PEERCRED", failure.errno or 0, failure.strerror or str(failure)) from failure
    peer = Peer(*_UCRED.unpack(raw))
    if peer.pid <= 0:
        raise ProcessGone(peer.pid)
    return peer


def belongs_to(pid: int, ancestors: Collection[int]) -> bool:
    """Whether a process is one of these, descends from one, or is in the session of one.

    Each child leads a session of its own, so the session also recognises an orphan whose parents are gone. Raises
    ProcessGone when ``pid`` itself can't be seen: the caller refuses, as nothing is known about it.
    """
    for _ in range(_TRIES):
        answer = _walk(pid, ancestors)
        if answer is not None:
            return answer
    # Above the process something vanishes each time: what can be seen of its line holds none of them.
    return False


def _walk(pid: int, ancestors: Collection[int]) -> bool | None:
    """Climb from the process to the root; None where the line broke off because a parent vanished meanwhile."""
    parent, session = _parent_and_session(pid)
    if pid in ancestors or session in ancestors:
        return True
    for _ in range(_LONGEST_LINE):
        if parent in ancestors:
            return True
        if parent <= 1:
            return False
        try:
            parent, session = _parent_and_session(parent)
        except ProcessGone:
            return None
        if session in ancestors:
            return True
    return None


def _parent_and_session(pid: int) -> tuple[int, int]:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        raise ProcessGone(pid) from None
    # proc(5): "pid (name) state ppid pgrp session …"; the name may hold anything, blanks and brackets, too.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return int(fields[1]), int(fields[3])


def open_descriptors() -> list[int]:
    """The descriptors that this process holds, in rising order, without the one that the listing itself used."""
    with os.scandir("/proc/self/fd") as entries:
        listed = sorted(int(entry.name) for entry in entries)
    return [fd for fd in listed if _is_open(fd)]


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
