"""A test's body in a pid namespace of its own: what signals everything that it may reaches nothing of the machine's.

The process is forked, and a fork of that one, process 1 of the new namespace, has a /proc of its own and reaps; a fork
of that one runs the body. When the body has ended, whatever it has started ends with the namespace. Root's alone.
"""

import functools
import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, ParamSpec

import pytest

from ipc.errors import KernelRefused
from ipc.prctl import PR_SET_PDEATHSIG, prctl
from ipc.syscalls import CLONE_NEWNS, CLONE_NEWPID, MS_PRIVATE, MS_REC, mount, unshare

CANT = b"skip "
_PART = 65_536


_Given = ParamSpec("_Given")


class CantBeHad(Exception):
    """There is no pid namespace to be had here, and why."""


def in_own_pids(test: Callable[_Given, None]) -> Callable[_Given, None]:
    """Have a test's body run in there; it is skipped, with the reason, where that can't be had."""

    @functools.wraps(test)
    def inside(*args: _Given.args, **kwargs: _Given.kwargs) -> None:
        try:
            within(lambda: test(*args, **kwargs))
        except CantBeHad as why:
            pytest.skip(str(why))

    return inside


def within(body: Callable[[], object]) -> None:
    """Run it in there. Raises CantBeHad; AssertionError with the traceback of whatever it raised."""
    if os.geteuid() != 0:
        raise CantBeHad("only root can make a pid namespace with a /proc of its own")
    reading, writing = os.pipe()
    outer = os.fork()
    if not outer:
        os.close(reading)
        _outer(body, writing)
    os.close(writing)
    said = b""
    try:
        while part := os.read(reading, _PART):
            said += part
    finally:
        os.close(reading)
        os.kill(outer, signal.SIGKILL)  # of a test that was given up; else it has ended
        os.waitpid(outer, 0)
    if said.startswith(CANT):
        raise CantBeHad(said.removeprefix(CANT).decode())
    assert said == b"done", said.decode(errors="replace") or "it ended without a word"


def _outer(body: Callable[[], object], writing: int) -> NoReturn:
    try:
        machine = Path("/proc/self/ns/pid").readlink()
        unshare(CLONE_NEWPID | CLONE_NEWNS)
        mount("none", "/", None, MS_REC | MS_PRIVATE)
    except KernelRefused as refused:
        os.write(writing, CANT + str(refused).encode())
        os._exit(0)
    init = os.fork()
    if not init:
        _init(body, writing, machine)
    os.close(writing)
    os.waitpid(init, 0)
    _unmeasured()


def _unmeasured() -> NoReturn:
    """End, and save no coverage: all that was measured before the fork would be written again, by each process."""
    os.execv("/bin/true", ("true",))  # noqa: S606 - it does nothing


def _init(body: Callable[[], object], writing: int, machine: Path) -> NoReturn:
    """Process 1: the end of it is the end of everything in here."""
    try:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        mount("proc", "/proc", "proc", 0)
        assert os.getpid() == 1
        assert Path("/proc/self/ns/pid").readlink() != machine
    except BaseException:  # noqa: BLE001 - told to the test
        os.write(writing, traceback.format_exc().encode())
        os._exit(1)
    worker = os.fork()
    if not worker:
        try:
            body()
        except BaseException:  # noqa: BLE001 - the same
            os.write(writing, traceback.format_exc().encode())
        else:
            os.write(writing, b"done")
        os._exit(0)
    while os.wait()[0] != worker:
        pass
    _unmeasured()
