"""The end of all that runs as one user, in one call: ``python -I -S sweep.py DESCRIPTOR UID…``, started by root.

Who looks for processes in /proc misses those that fork and end without a pause. The kernel misses none: ``kill(-1,
SIGKILL)`` signals whatever the caller may signal, but itself, under the lock that each fork takes to be seen, and a
fork by a process that has such a signal pending is none (kill(2); kernel/signal.c, kernel/fork.c). So for each user a
process becomes that user, for good, and calls it. It may be stopped, limited or killed by those that it is to end: it
is let go on, or tried again.

Promise: nothing is signalled under another user than the one that was asked for. That one is no user of the system and
has no name here; no other host has it reserved (``DESCRIPTOR`` is one of the file of `processes/reserved.py`, where it
is noted, too, that nothing runs as this user); and the
process that signals has looked, after it let go of root, that all its ids are that user's and that it has no
capability. Whatever isn't so is said on stderr, that user is left alone, and the exit status is 1.

Only what a bare interpreter has is used, because the host's folder may be gone by now.
"""

import fcntl
import os
import pwd
import select
import signal
import struct
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress

LEAST = 1000
"""Users below are the system's."""
NOBODYS = frozenset({65_534, 65_535, 2**32 - 1})
"""What the kernel shows users as that it can't name, and what stands for none at all."""
NOTHING = b"\0"
"""A user's byte, once nothing runs as it."""
SWEPT = 2**32
"""So far above a user's byte, in the file, is the one that is locked while all that runs as it is ended."""
PATIENCE = 0.25
"""Seconds that one try has: it needs a thousandth, unless it was stopped."""
STEP = 0.001
"""Seconds after which it is let go on, in case that it was."""
BUDGET = 3.0
"""Seconds for all tries for a user: those that are killed at once may be many."""
_CAPABILITIES = ("CapInh", "CapPrm", "CapEff", "CapAmb")


def main(arguments: Sequence[str]) -> int:
    """Sweep these users; the exit status."""
    descriptor, *uids = map(int, arguments)
    refused = [f"uid {uid}: {why}" for uid, why in sweep(uids, descriptor) if why]
    for line in refused:
        print(line, file=sys.stderr)  # noqa: T201 - a program of its own
    return 1 if refused else 0


def sweep(uids: Iterable[int], descriptor: int) -> list[tuple[int, str]]:
    """End all that runs as these users; for each why not, or nothing. Closes the descriptor. Raises OSError."""
    # Sorted: two that sweep the same users wait for each other in one order.
    said = {uid: unfit(uid, os.getresuid()) or _owner(uid) for uid in sorted(set(uids))}
    fit = [uid for uid, why in said.items() if not why]
    if not fit:
        return list(said.items())
    apart = os.open(f"/proc/self/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
    try:
        for uid in fit:
            # Whoever wants to reserve it waits for this one, and so takes it from nobody while it is swept.
            fcntl.fcntl(apart, fcntl.F_OFD_SETLKW, _byte(uid + SWEPT))
            if not (_locked(apart, uid) or _locked(descriptor, uid)):
                said[uid] = "another host has reserved it"
                _unlocked(apart, uid)
        # A host that ends meanwhile has nothing reserved any more: not these users, which that lock is enough for, and
        # not its others, which its guardian or its next start may ask for.
        os.close(descriptor)
        for uid in fit:
            if not said[uid]:
                said[uid] = _ended(uid, apart)
                _unlocked(apart, uid)
    finally:
        os.close(apart)
    return list(said.items())


def _ended(uid: int, apart: int) -> str:
    until = time.monotonic() + BUDGET
    while time.monotonic() < until:
        if (said := _tried(uid)) is not None:
            if not said:
                os.pwrite(apart, NOTHING, uid)
            return said
    return "it stops, limits or kills whoever would end it"


def _owner(uid: int) -> str:
    with suppress(KeyError):
        return f"it is {pwd.getpwuid(uid).pw_name}'s"
    return ""


def unfit(uid: int, ours: tuple[int, int, int]) -> str:
    """Why this user can't be swept by a process with these ids, whatever the machine is like; or nothing. Pure."""
    if ours != (0, 0, 0):
        return "only root can sweep"
    if not LEAST <= uid < 2**32 or uid in NOBODYS:
        return "it is no user that a deployment is given"
    return ""


def astray(uid: int, users: tuple[int, ...], groups: tuple[int, ...], more: Sequence[int], status: str) -> str:
    """What isn't as it must be in a process that is about to signal all that it may; or nothing. Pure.

    ``users``, ``groups``: real, effective, saved. ``more``: other groups. ``status``: /proc/self/status, proc(5).
    """
    if unfit(uid, (0, 0, 0)) or users != (uid,) * 3 or groups != (uid,) * 3 or more:
        return "it couldn't be become"
    lines = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    if lines.get("Uid", "").split() != [str(uid)] * 4:
        return "the kernel says that it wasn't become"
    if any(set(lines.get(name, "?").strip()) != {"0"} for name in _CAPABILITIES):
        return "a capability is left"
    return ""


def _byte(uid: int, kind: int = fcntl.F_WRLCK) -> bytes:
    return struct.pack("@hhqqi4x", kind, os.SEEK_SET, uid, 1, 0)


def _locked(descriptor: int, uid: int) -> bool:
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _byte(uid))
    except (BlockingIOError, PermissionError):
        return False
    return True


def _unlocked(descriptor: int, uid: int) -> None:
    for byte in (uid, uid + SWEPT):  # in this order: who waits for the second finds the first one free
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _byte(byte, fcntl.F_UNLCK))


def _tried(uid: int) -> str | None:
    """Once: why not, nothing, or None where it wasn't let come to its end."""
    reading, writing = os.pipe()
    signaller = os.fork()
    if not signaller:
        try:
            os.write(writing, _signalled(uid).encode())
        finally:
            os._exit(0)
    os.close(writing)
    try:
        done, until = list[int](), time.monotonic() + PATIENCE
        while not done and time.monotonic() < until:
            os.kill(signaller, signal.SIGCONT)
            done = select.select([reading], [], [], STEP)[0]
        said = os.read(reading, 1024).decode() if done else ""
    finally:
        os.close(reading)
        os.kill(signaller, signal.SIGKILL)
        os.waitpid(signaller, 0)
    return said.removesuffix(".") if said else None


def _signalled(uid: int) -> str:
    """Become the user and signal everything that it may; what went wrong, and a full stop. Never as another user.

    Raises what fails once it is that user, whose other processes may limit it then (prlimit(2)): it is tried again.
    """
    try:
        here = os.open("/proc/self/status", os.O_RDONLY)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    except OSError as failure:
        return f"{failure!r}."
    # From here on nothing can be loaded: the user may not be let to where the interpreter is.
    status = os.read(here, 65_536).decode(errors="replace")  # as of now, whenever it was opened
    if wrong := astray(uid, os.getresuid(), os.getresgid(), os.getgroups(), status):
        return f"{wrong}."
    with suppress(ProcessLookupError, PermissionError):  # nothing runs as it
        os.kill(-1, signal.SIGKILL)
    return "."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
