"""Reading one credential: from a file, a variable or a command; every way that this goes wrong is an answer in words.

A secret is text in UTF-8, of 1 to 65,536 bytes, without NUL; one line end at its end isn't part of it. A command gets
``PATH`` and ``HOME`` and no other variable, no input, a session of its own and ``PATIENCE`` seconds; whatever it has
started in that session is killed when it has ended, when its time is over, and when the host is gone. What it has
started outside of it, such as an agent that keeps a passphrase, may stay where it gave a secret; where it didn't, that
goes as well, as it is tried again and again. What it says on stderr is nobody's to show.

Promise: no answer but ``Had`` has anything of what was read; nothing here waits longer than ``PATIENCE`` for a command.
"""

import os
import secrets
import select
import signal
import stat
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from ipc import strays
from ipc.deliveries import VALUE
from ipc.environment import MARK
from ipc.secret import Secret
from waypost.host.credentials.file import FromCommand, FromEnvironment, FromFile, Way, whole
from waypost.host.processes.guardian import Guardian

PATIENCE = 10.0
"""Seconds that a command has."""
_PART = 65_536


@dataclass(frozen=True, slots=True)
class Had:
    """It was read. ``warning``: what somebody should see to all the same, in words."""

    value: Secret
    warning: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """It couldn't be read, and why; trying again may help."""

    why: str


Reading = Had | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What reading depends on. ``mark``: begins as those of this host's children do, so that a next host ends it."""

    environment: Mapping[str, str]
    folder: Path
    mark: str = ""
    patience: float = PATIENCE

    def __repr__(self) -> str:
        return f"Surroundings({self.folder})"


def read(way: Way, around: Surroundings) -> Reading:
    """Read it now. Waits for the disk, or for a command."""
    match way:
        case FromEnvironment(name):
            value = around.environment.get(name)
            if value is None:
                return Failed(f"the host's environment has no {name}; start the host with it")
            return _checked(value.encode("utf-8", "surrogateescape"), f"the variable {name}")
        case FromFile(path):
            return _file(around.folder / path)
        case FromCommand(words):
            return _command(words, around)
        case _:
            assert_never(way)


def _checked(raw: bytes, what: str, warning: str = "") -> Reading:
    raw = raw.removesuffix(b"\n").removesuffix(b"\r") if raw.endswith(b"\n") else raw
    if not raw:
        return Failed(f"{what} is empty")
    if len(raw) > VALUE:
        return Failed(f"{what} has more than {VALUE:,} bytes")
    try:
        raw.decode()
    except UnicodeDecodeError:
        return Failed(f"{what} is no text in UTF-8; keep a binary key as base64")
    if b"\0" in raw:
        return Failed(f"{what} has a NUL character in it")
    return Had(Secret(raw), warning)


# --- a file --------------------------------------------------------------------------------------------------------


def _file(path: Path) -> Reading:
    try:
        # Not held up by a FIFO that nobody writes to.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as failure:
        return Failed(f"{path}: {getattr(failure, 'strerror', None) or 'no path'}")
    with ExitStack() as opened:
        opened.callback(os.close, descriptor)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return Failed(f"{path} is no plain file")
        try:
            raw = whole(descriptor, VALUE + 3)
        except OSError as failure:
            return Failed(f"{path}: {failure.strerror or failure}")
    shared = stat.S_IMODE(found.st_mode) & 0o077
    return _checked(raw, str(path), f"{path} is open to others: chmod 600 it" if shared else "")


# --- a command -----------------------------------------------------------------------------------------------------


def _command(words: tuple[str, ...], around: Surroundings) -> Reading:
    what = f"the command {words[0]!r}"
    environment = {name: around.environment[name] for name in ("PATH", "HOME") if name in around.environment}
    mark = f"{around.mark}.{secrets.token_hex(16)}"
    environment[MARK] = mark
    with closing(Guardian()) as guardian:
        reading = _guarded(words, around, what, environment, guardian)
    if isinstance(reading, Failed):
        strays.end(strays.Mark(mark))
    return reading


def _guarded(
    words: tuple[str, ...], around: Surroundings, what: str, environment: dict[str, str], guardian: Guardian
) -> Reading:
    try:
        process = subprocess.Popen(  # noqa: S603 - the operator's own words, and never a shell's
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=around.folder,
            bufsize=0,
            start_new_session=True,
        )
    except (OSError, ValueError) as failure:
        return Failed(f"{what} can't be started ({getattr(failure, 'strerror', None) or 'not a command'})")
    assert process.stdout is not None
    guardian.watch(process.pid)  # a host that is killed leaves nothing that asks for a password for ever
    try:
        said = _heard(process, process.stdout.fileno(), time.monotonic() + around.patience)
    finally:
        # Not reaped yet: the number of its group can't have become another's.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        guardian.forget(process.pid)
        process.wait()
        process.stdout.close()
    if said is None:
        return Failed(f"{what} hasn't ended within {around.patience:g} s")
    if len(said) > VALUE + 2:
        return Failed(f"{what} prints more than {VALUE:,} bytes")
    if process.returncode < 0:
        return Failed(f"{what} was ended by signal {-process.returncode}")
    if process.returncode:
        return Failed(f"{what} ended with status {process.returncode}; run it yourself to see what it says")
    return _checked(said, f"what {what} prints")


def _heard(process: "subprocess.Popen[bytes]", out: int, deadline: float) -> bytes | None:
    """What it prints until it has ended, or has printed too much; None where it hasn't ended in time."""
    pidfd = os.pidfd_open(process.pid)
    said = b""
    try:
        os.set_blocking(out, False)
        poll = select.poll()
        poll.register(out, select.POLLIN)
        poll.register(pidfd, select.POLLIN)
        while (left := deadline - time.monotonic()) > 0:
            ready = {fd for fd, _ in poll.poll(left * 1000)}
            if out in ready:
                part = os.read(out, _PART)
                said += part
                if len(said) > VALUE + 2:
                    return said
                if not part:
                    poll.unregister(out)
            elif pidfd in ready:  # all that it has printed was read before
                return said
    finally:
        os.close(pidfd)
    return None
