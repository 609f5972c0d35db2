"""Mail that is sent while no host runs, by Maildir's rules: whole and durable in ``new/``, or not there at all.

``leave`` returns when the mail survives a power cut; the host removes a file only when its mail is durably enqueued.
A mail that can't be enqueued for good is set aside in ``cur/`` with the reason beside it: nothing is ever lost.
"""

import os
import secrets
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from waypost.host.datadir.files import sync_directory, write_synced

_ABANDONED = 36 * 3600.0
"""Seconds after which a file in ``tmp/`` is nobody's any more (maildir(5))."""


@dataclass(frozen=True, slots=True)
class Spooled:
    """A mail that lies in a spool."""

    deployment: str
    path: Path


def leave(spool: Path, raw: bytes) -> Path:
    """Put a mail into ``new/``, durably. Raises OSError, and then nothing was left."""
    for folder in ("tmp", "new", "cur"):
        (spool / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    # The name sorts by time, so that the host takes in what came first first.
    name = f"{time.time_ns():020d}.{os.getpid()}_{secrets.token_hex(8)}.waypost"
    aside, there = spool / "tmp" / name, spool / "new" / name
    write_synced(aside, raw)
    try:
        aside.rename(there)
    except OSError:
        aside.unlink(missing_ok=True)
        raise
    sync_directory(spool / "new")
    sync_directory(spool)
    sync_directory(spool.parent)
    return there


def waiting(spool: Path, deployment: str) -> tuple[Spooled, ...]:
    """What lies in ``new/``, oldest first."""
    try:
        names = sorted(entry.name for entry in os.scandir(spool / "new") if not entry.name.startswith("."))
    except FileNotFoundError:
        return ()
    return tuple(Spooled(deployment, spool / "new" / name) for name in names)


def read(mail: Spooled, limit: int) -> bytes | None:
    """A mail, or its first ``limit`` bytes; None for what is no plain file and so no mail. Raises OSError.

    A pipe or a device that somebody has put there must not keep its reader waiting, nor a link lead out of the spool.
    """
    if not stat.S_ISREG(mail.path.lstat().st_mode):
        return None
    descriptor = os.open(mail.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(limit)


def remove(mail: Spooled) -> None:
    """The mail is durably enqueued: its file may go. One that has gone already is no error."""
    mail.path.unlink(missing_ok=True)
    sync_directory(mail.path.parent)


def set_aside(mail: Spooled, reason: str) -> Path:
    """Keep a mail that can't be enqueued in ``cur/``, with the reason in a file beside it; its new place."""
    there = mail.path.parent.parent / "cur" / mail.path.name
    there.with_name(f"{there.name}.reason").write_text(f"{reason}\n", encoding="utf-8")
    mail.path.rename(there)
    sync_directory(there.parent)
    sync_directory(mail.path.parent)
    return there


def tidy(spool: Path, now: float) -> None:
    """Remove what killed senders left in ``tmp/``; ``now`` is Unix time in seconds."""
    try:
        entries = list(os.scandir(spool / "tmp"))
    except FileNotFoundError:
        return
    for entry in entries:
        if now - entry.stat(follow_symlinks=False).st_mtime > _ABANDONED:
            (spool / "tmp" / entry.name).unlink(missing_ok=True)
