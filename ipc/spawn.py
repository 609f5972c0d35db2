"""Starting a child: its command, its descriptors, its process (design §8).

The child holds descriptors 0 to 5 and no other, leads its own session, and knows its secrets from a pipe that was
filled and closed before it ran. Either all of that holds, or nothing is left and SpawnFailed says why.
"""

import errno
import fcntl
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from ipc.cores import all_given
from ipc.environment import MARK
from ipc.errors import SpawnFailed
from ipc.parent import CONTROL_FD, EVENTS_FD, SECRETS_FD
from ipc.process import open_descriptors
from ipc.strays import NO_MARK, OPTION, Mark

_FIRST_FREE = 10
_STANDARD = 3
_SECRETS_LIMIT = 4096  # the least that any pipe holds: writing this much never waits for a reader


@dataclass(frozen=True, slots=True)
class Spawned:
    """A child that runs, and the host's ends of its descriptors.

    They belong to the caller, who closes each one once, and reaps ``pid``. All but ``pidfd`` are non-blocking.
    ``pid`` also names the child's process group and session.
    """

    pid: int
    pidfd: int
    control: int
    """Socket: both directions of the control channel."""
    events: int
    """Pipe, to be read."""
    stdout: int
    stderr: int
    mark: Mark = NO_MARK
    """By which all that it starts is found."""


def command(
    python: str, arguments: Sequence[str] = (), *, parent: int, argv_prefix: Sequence[str] = (), mark: Mark = NO_MARK
) -> tuple[str, ...]:
    """The command of a child: ``python -P -X utf8 -m waypost.child --parent PID ARGUMENTS…``.

    ``parent`` is the host's pid, for `ipc.parent.settle`. ``argv_prefix`` is a program that executes the rest; it must
    pass descriptors 0 to 5 on.
    """
    marked = (OPTION, mark.text) if mark.text else ()
    child = (python, "-P", "-X", "utf8", "-m", "waypost.child", "--parent", str(parent), *marked, *arguments)
    return (*argv_prefix, *child)


def spawn(argv: Sequence[str], environment: Mapping[str, str], secrets: bytes, *, mark: Mark = NO_MARK) -> Spawned:
    """Start a child. ``argv[0]`` is the program's path; ``secrets`` is at most 4 KiB (`SpawnKeys.for_child`).

    Returns when the program has been executed. Raises SpawnFailed with the errno of what went wrong. Safe with other
    threads around. *The calling thread must outlive the child*: the kernel's parent-death signal, which the child asks
    for, goes by the thread that started it.
    """
    if len(secrets) > _SECRETS_LIMIT:
        raise ValueError(f"secrets of {len(secrets)} bytes don't fit into {_SECRETS_LIMIT}")
    with ExitStack() as on_failure, ExitStack() as childs:
        try:
            ours, theirs = _channel(on_failure, childs, secrets)
            _close_strays_on_exec()
        except OSError as failure:
            raise SpawnFailed(argv[0], "descriptors", failure) from failure
        try:
            with all_given():  # a child's code may need more than the one core that is enough for the host
                pid = os.posix_spawn(
                    argv[0],
                    list(argv),
                    {**environment, MARK: mark.text} if mark.text else environment,
                    file_actions=_moves(theirs),
                    setsid=True,
                    setsigmask=(),
                    setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
                )
        except OSError as failure:
            raise SpawnFailed(argv[0], "exec", failure) from failure
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as failure:
            # Without a pidfd nobody could supervise it. ESRCH: it has ended and somebody else has reaped it (a process
            # that ignores SIGCHLD), so that the number may be another process's by now.
            if failure.errno != errno.ESRCH:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            raise SpawnFailed(argv[0], "pidfd", failure) from failure
        on_failure.pop_all()
        control, events, stdout, stderr = ours
        return Spawned(pid, pidfd, control, events, stdout, stderr, mark)


def _channel(on_failure: ExitStack, childs: ExitStack, secrets: bytes) -> tuple[tuple[int, ...], dict[int, int]]:
    """Make all pairs; give the host's ends (control, events, stdout, stderr), and the child's by target number."""
    control, childs_control = (end.detach() for end in socket.socketpair())
    on_failure.callback(os.close, control)
    childs.callback(os.close, childs_control)
    ours = [control]
    theirs = {CONTROL_FD: childs_control}
    for target in (EVENTS_FD, 1, 2):
        reading, writing = os.pipe()
        on_failure.callback(os.close, reading)
        childs.callback(os.close, writing)
        ours.append(reading)
        theirs[target] = writing
    reading, writing = os.pipe()
    childs.callback(os.close, reading)
    theirs[SECRETS_FD] = reading
    try:
        os.write(writing, secrets)
    finally:
        os.close(writing)
    for end in ours:
        os.set_blocking(end, False)
    return tuple(ours), {target: _raised(end, childs) for target, end in theirs.items()}


def _raised(end: int, childs: ExitStack) -> int:
    """The same end under a number above all targets, so that no move in the child overwrites one still to be moved."""
    copy = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
    childs.callback(os.close, copy)
    return copy


def _moves(theirs: Mapping[int, int]) -> list[tuple[int, int, str, int, int] | tuple[int, int, int]]:
    """What happens between fork and exec: standard input is empty, each end goes to its number."""
    moves = [(os.POSIX_SPAWN_DUP2, end, target) for target, end in sorted(theirs.items())]
    return [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), *moves]


def _close_strays_on_exec() -> None:
    """Make every descriptor of the host above the standard ones close-on-exec; nearly all of them are already.

    Marked here instead of closed there: a close that fails (a number above a limit lowered since) fails the spawn.
    """
    for fd in open_descriptors():
        if fd >= _STANDARD:
            with suppress(OSError):  # closed by another thread meanwhile
                os.set_inheritable(fd, False)  # noqa: FBT003 - positional only
