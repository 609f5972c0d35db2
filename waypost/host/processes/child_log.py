"""A child's own output on disk: one file, turned over once it is full, so that two of them are all there ever is.

For people who look for a reason, never for truth: a write that fails loses that piece of output and nothing else.
"""

import logging
import os
from pathlib import Path

from waypost.model.limits import DEFAULT

log = logging.getLogger(__name__)


class ChildLog:
    """Appends to ``path``; what was there before lies in ``path`` + ``.1``. ``limit``: bytes of one file."""

    def __init__(self, path: Path, *, limit: int = DEFAULT.log_bytes) -> None:
        self._path = path
        self._limit = limit

    def write(self, data: bytes) -> None:
        """Append; never raises. Called by one actor at a time, as a deployment has one child at a time."""
        try:
            self._append(data[-self._limit :])
        except OSError as failure:
            why = failure.strerror or str(failure)
            log.warning("%d bytes of a child's output are lost: %s can't be written: %s", len(data), self._path, why)

    def _append(self, data: bytes) -> None:
        # Opened anew each time: somebody may have moved or removed the file, and no descriptor stays open.
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except FileNotFoundError:  # their folder was taken away
            self._path.parent.mkdir(mode=0o700)
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size + len(data) > self._limit:
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                os.close(fd)
                fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            while data:
                data = data[os.write(fd, data) :]
        finally:
            os.close(fd)
