"""How a host has all that runs as one of its deployments' users ended: by `ipc.sweep`, a process of its own.

For isolation ``uid`` alone: in a namespace the kernel ends everything, and without isolation the user is everybody's.
"""

import logging
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from ipc import strays, sweep
from ipc.strays import Mark
from waypost.host.processes.reserved import PLACE, Reserved

PATIENCE, EACH = 30.0, 0.1
"""Seconds that all of it has, and for each user more; it needs some forty thousandths, and three for each."""

TURN = 5.0
"""Seconds that somebody's turn at a shared user is waited for, who needs a tenth unless they are stopped."""

log = logging.getLogger(__name__)
_STOPPED = (
    "somebody on this machine who looks at code as user %d, too, seems to be stopped (SIGSTOP, Ctrl-Z) in the middle "
    "of it: what is looked at now may be ended, and seem to fail, when that one goes on"
)


class Sweeping:
    """Ends what runs as a user that is reserved. ``end`` is for one thread at a time; ``close`` comes last."""

    def __init__(self, reserved: Reserved) -> None:
        self._reserved = reserved
        self._apart: int | None = None
        if reserved.descriptor is not None:
            try:
                self._apart = os.open(f"/proc/self/fd/{reserved.descriptor}", os.O_RDWR | os.O_CLOEXEC)
            except OSError as failure:
                log.warning("what runs as the deployments' users isn't ended with this host: %s", failure)

    @property
    def apart(self) -> tuple[int, ...]:
        """A descriptor of the same file, that reserves nothing: for whoever goes on when this host has ended."""
        return () if self._apart is None else (self._apart,)

    @property
    def last(self) -> tuple[str, ...]:
        """The command for whoever has inherited ``apart``, to which users are to be added; none where it can't be."""
        return () if self._apart is None else _command(self._apart, ())

    def expect(self, uid: int) -> None:
        """Something will run as this user, whom a later host may have to ``end``. From any thread."""
        self._reserved.use(uid)

    def end(self, uids: Iterable[int]) -> None:
        """End all that runs as these users. What isn't ended is logged; a scan may still find it."""
        given, held = sorted(set(uids)), self._reserved.descriptor
        if not given or held is None:
            return
        try:
            done = subprocess.run(  # noqa: S603 - our own program
                _command(held, given),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                env={},
                cwd="/",
                pass_fds=(held,),
                start_new_session=True,
                timeout=PATIENCE + EACH * len(given),
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as failure:
            log.warning("what runs as the users %s couldn't be ended at once: %s", given, failure)
            return
        if done.returncode:
            log.warning("what runs as the users %s isn't all ended at once: %s", given, done.stderr.strip())

    def close(self) -> None:
        """A second time is no error."""
        apart, self._apart = self._apart, None
        if apart is not None:
            os.close(apart)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def end_strays(left: Iterable[Mark], alive: Iterable[Mark], sweeping: Sweeping | None) -> None:
    """End what the children with these marks have left behind.

    ``alive``: the marks of those that run. One of them may have the same user already, where whoever owned the one
    before was replaced: then what only the user tells is ended with that one.
    """
    spared = {mark.uid for mark in alive}
    marks = [Mark(mark.text) if mark.uid in spared else mark for mark in left]
    if sweeping is not None:
        sweeping.end(mark.uid for mark in marks if mark.uid)
    strays.end(*marks)


@contextmanager
def shared(uid: int, place: Path = PLACE) -> Iterator[Reserved | None]:
    """Run something as a user that others share, in this block; None where it is a deployment's of another host.

    Whoever is alone with it, as the first or as the last, ends what others have left, whatever itself does as that
    user. ``place``: of the file of all that is reserved on this machine. Raises OSError.
    """
    with Reserved.begin(place) as reserved, Sweeping(reserved) as sweeping:
        with reserved.turn(uid, TURN) as began:
            if began:
                _end_left(uid, reserved, sweeping)
            else:
                log.warning(_STOPPED, uid)
            had = reserved.share(uid)
        try:
            yield reserved if had else None
        finally:
            with reserved.turn(uid, TURN if began else 0.0) as ours:
                reserved.leave(uid)
                if ours:  # else the next one does that is alone
                    _end_left(uid, reserved, sweeping)
                    reserved.leave(uid)


def _end_left(uid: int, reserved: Reserved, sweeping: Sweeping) -> None:
    """All that runs as it, where nobody else has it."""
    if reserved.take(uid) and reserved.used(uid):
        sweeping.end([uid])


def _command(descriptor: int, uids: Iterable[int]) -> tuple[str, ...]:
    program = str(Path(sweep.__file__).resolve())
    return (sys.executable, "-I", "-S", "-B", program, str(descriptor), *map(str, uids))
