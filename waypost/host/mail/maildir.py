"""Outgoing mail into a Maildir: exactly once, as long as the file is still in ``new/`` or ``cur/`` (storage §5).

The file's name is the mail's key, so that a repeat after a crash finds it; one that was read and deleted in the crash
window comes twice, under the same Message-ID.
"""

import os
from pathlib import Path

from waypost.host.datadir.files import place, sync_directory

FOLDERS = ("tmp", "new", "cur")


def deliver(maildir: Path, key: str, message: bytes, *, again: bool) -> bool:
    """Put a message into ``new/<key>``, durably; whether it was put there now. Raises OSError.

    ``again``: an earlier attempt may have put it there; then ``cur/`` is looked through, too. A Maildir that was moved
    away, with what was in it, or lacks a folder, is made anew.
    """
    try:
        return _deliver(maildir, key, message, again=again)
    except FileNotFoundError:
        for folder in (maildir, *(maildir / name for name in FOLDERS)):
            folder.mkdir(mode=0o700, exist_ok=True)
        sync_directory(maildir)
        sync_directory(maildir.parent)
        return _deliver(maildir, key, message, again=again)


def _deliver(maildir: Path, key: str, message: bytes, *, again: bool) -> bool:
    if again and _was_read(maildir, key):
        return False
    made = place(maildir / "new" / key, message, aside=maildir / "tmp")
    if not made:
        # The attempt that made it may have died before its name was durable.
        sync_directory(maildir / "new")
    return made


def _was_read(maildir: Path, key: str) -> bool:
    """Whether a mail program has taken the file over, perhaps under a name with flags (``key:2,S``)."""
    with os.scandir(maildir / "cur") as entries:
        return any(entry.name == key or entry.name.startswith(f"{key}:") for entry in entries)
