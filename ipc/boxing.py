"""A child shuts itself into its box, before it reads a key and before any user code (design §1, §8).

In a namespace it becomes three processes in one process group. The *outer* one is the host's child: it waits, hands on
SIGTERM, and ends as the worker ended. *init* is process 1 of the pid namespace: it reaps what others leave, so that the
worker gets nobody's exit status but its own children's, and signals mean to it what they mean to any process. The
*worker* is what returns from ``enter``. When outer or init ends, however it ends, the kernel ends all that is in the
namespace; and the outer one ends with the host.

There is no way back: capabilities are gone for good, setuid programs have no effect, and no user namespace, in which
there would be capabilities, can be made (`ipc.filter`).
"""

# By pathlib this would be shorter, and the start of a child 6 ms longer.
# ruff: noqa: PTH109, PTH123

import os
import select
import signal
from contextlib import suppress
from typing import NoReturn

from ipc import view
from ipc.box import Box
from ipc.errors import KernelRefused
from ipc.parent import die_with
from ipc.prctl import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, prctl
from ipc.syscalls import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    bound_capabilities,
    drop_capabilities,
    forbid_other_sockets,
    forbid_user_namespaces,
    new_session_keyring,
    unshare,
)

ROOM = 1 << 30
"""Bytes of /tmp, of the home directory and of /dev/shm at most, each, where memory isn't limited."""
_DESCRIPTORS = 6
_HEARD = {signal.SIGTERM, signal.SIGCHLD}
"""What outer and init wait for, both at once. Blocked from before they are forked, so that none is lost on the way: the
kernel drops what process 1 has no handler for, and a handler may run in the moment before a wait begins."""
_NAMESPACES = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS


def enter(box: Box, parent_pid: int) -> None:
    """Shut this process in; in a namespace, the one that returns is another. Single-threaded callers only.

    ``parent_pid`` is the host's, as for `ipc.parent.settle`, which has been called. Raises KernelRefused.
    """
    try:
        match box.mode:
            case "namespace":
                _namespace(box, parent_pid)
            case "uid":
                new_session_keyring()
                _give_up(box.uid)
                die_with(parent_pid)  # anew: the kernel forgets it when the user changes
            case "none":
                pass
        _limit(box)
    except OSError as failure:
        raise KernelRefused("isolation", failure.errno or 0, f"{failure.strerror}: {failure.filename}") from failure


def _namespace(box: Box, parent_pid: int) -> None:
    uid, gid = (box.uid, box.uid) if box.uid else (os.getuid(), os.getgid())
    here = os.getcwd()
    kinds = _NAMESPACES | (0 if box.network else CLONE_NEWNET)
    unshare(kinds if box.uid else kinds | CLONE_NEWUSER)
    if not box.uid:
        _map(uid, gid)
    view.build(box.entries, uid=uid, gid=gid, room=box.memory or ROOM)
    outer = os.pidfd_open(os.getpid())
    told, telling = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    init = os.fork()
    if init:
        # Nothing is left to do here that needs a right, and it shares its user with the worker.
        _give_up(box.uid)
        die_with(parent_pid)
        os.close(telling)
        _outer(init, told)
    os.close(told)
    view.finish()
    if not box.network:
        _loopback()
    _give_up(box.uid)
    if not box.network:
        forbid_other_sockets()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([outer], [], [], 0)[0]:
        os._exit(0)  # its parent was gone before it could ask to be told
    os.close(outer)
    worker = os.fork()
    if worker:
        _init(worker, telling)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
    os.close(telling)
    new_session_keyring()
    try:
        os.chdir(here)
    except OSError:
        os.chdir("/")


def _outer(init: int, told: int) -> NoReturn:
    """Wait for the end, and end alike."""
    _let_go(told)
    ended = (0, 0)
    while not ended[0]:
        if signal.sigwait(_HEARD) == signal.SIGTERM:
            os.kill(init, signal.SIGTERM)  # not reaped yet, so its number is nobody else's
        else:
            ended = os.waitpid(init, os.WNOHANG)  # it ends when nothing is left in the namespace
    said = os.read(told, 16)
    code = os.waitstatus_to_exitcode(int(said) if said else ended[1])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
    if code < 0:
        with suppress(OSError):  # SIGKILL has no other disposition
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)  # not dumpable, so there is no second core file
    os._exit(code if code >= 0 else 128 - code)


def _init(worker: int, telling: int) -> NoReturn:
    """Reap until the worker ends, and say how it did; with the end of this process everything in the namespace ends."""
    _let_go(telling)
    while True:
        if signal.sigwait(_HEARD) == signal.SIGTERM:
            os.kill(worker, signal.SIGTERM)
            continue
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:  # several may have ended for one signal
            if ended[0] == worker:
                os.write(telling, b"%d" % ended[1])
                os._exit(0)


def _let_go(kept: int) -> None:
    """Hide, and close the child's descriptors: they are the worker's alone, as their end says that it ended."""
    prctl(PR_SET_DUMPABLE, 0)
    for fd in range(_DESCRIPTORS):
        if fd != kept:
            with suppress(OSError):  # not there while a file is looked at
                os.close(fd)


def _give_up(uid: int) -> None:
    """Become the user, where there is one, and lose every capability, with the one way to get any."""
    bound_capabilities()
    if uid:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    drop_capabilities()
    forbid_user_namespaces()


def _map(uid: int, gid: int) -> None:
    """Be the same user in the new user namespace: no other, and not its root."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def _loopback() -> None:
    """A network namespace begins with nothing, not even a way to oneself (netdevice(7))."""
    import fcntl
    import socket
    import struct

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH22x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: up, running


def _limit(box: Box) -> None:
    import resource

    wanted = {
        resource.RLIMIT_DATA: box.memory,
        resource.RLIMIT_NPROC: box.processes,
        resource.RLIMIT_NOFILE: box.files,
    }
    for kind, value in wanted.items():
        if value:
            hard = resource.getrlimit(kind)[1]
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (bound, bound))
