"""The kernel's calls that isolation needs and that the standard library doesn't have. Linux, through the C library."""

import ctypes
import errno
import os
from collections.abc import Callable

from ipc.errors import KernelRefused
from ipc.filter import program as filter_for
from ipc.filter_sockets import program as sockets_for

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_NOATIME = 1024
MS_NODIRATIME = 2048
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
MS_RELATIME = 1 << 21
MNT_DETACH = 2

PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

_CAPABILITY_VERSION_3 = 0x20080522
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "loongarch64": 219, "ppc64le": 271, "s390x": 280}
_KEYCTL_JOIN_SESSION_KEYRING = 1

_SECCOMP = {"x86_64": 317, "aarch64": 277, "riscv64": 277, "loongarch64": 277, "ppc64le": 358, "s390x": 348}
_SET_FILTER, _SPEC_ALLOW = 1, 4

_libc = ctypes.CDLL(None, use_errno=True)


class _Filters(ctypes.Structure):
    """struct sock_fprog: how many lines, and where."""

    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_void_p))


def _refused(call: str) -> KernelRefused:
    number = ctypes.get_errno()
    return KernelRefused(call, number, os.strerror(number))


def unshare(flags: int) -> None:
    """Leave the namespaces of these kinds for new ones (unshare(2)). Raises KernelRefused."""
    if _libc.unshare(ctypes.c_int(flags)):
        raise _refused("unshare")


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Mount, or change a mount (mount(2)). Raises KernelRefused."""
    names = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    data = None if options is None else options.encode()
    if _libc.mount(*names, ctypes.c_ulong(flags), data):
        raise _refused(f"mount of {source} on {target}")


def unmount(target: str) -> None:
    """Take a mount away with all below it, at once for whoever looks it up (umount2(2)). Raises KernelRefused."""
    if _libc.umount2(os.fsencode(target), ctypes.c_int(MNT_DETACH)):
        raise _refused(f"umount of {target}")


def pivot_root(new: str, old: str) -> None:
    """Make ``new`` the root and have the root so far at ``old`` (pivot_root(2)). Raises KernelRefused."""
    if _libc.pivot_root(os.fsencode(new), os.fsencode(old)):
        raise _refused("pivot_root")


def bound_capabilities() -> None:
    """Let nothing that is executed from here on gain a capability; those that are held stay. Raises KernelRefused."""
    for capability in range(64):
        if _prctl(PR_CAPBSET_DROP, capability):
            if ctypes.get_errno() != errno.EINVAL:
                raise _refused("prctl(PR_CAPBSET_DROP)")
            break  # there are no more of them
    if _prctl(PR_SET_NO_NEW_PRIVS, 1):
        raise _refused("prctl(PR_SET_NO_NEW_PRIVS)")


def drop_capabilities() -> None:
    """Give up every capability that is held. Raises KernelRefused."""
    if _prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL):
        raise _refused("prctl(PR_CAP_AMBIENT)")
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    if _libc.capset(header, (ctypes.c_uint32 * 6)()):
        raise _refused("capset")


def new_session_keyring() -> None:
    """Leave the keyring that came with the session, and the keys in it (keyctl(2)). Raises KernelRefused.

    A kernel that was built without keyrings has nothing to leave.
    """
    machine = os.uname().machine
    number = _KEYCTL.get(machine)
    if number is None:
        raise KernelRefused(f"keyctl on {machine}", 0, "its number isn't known here")
    failed = _libc.syscall(ctypes.c_long(number), ctypes.c_long(_KEYCTL_JOIN_SESSION_KEYRING), None) < 0
    if failed and ctypes.get_errno() != errno.ENOSYS:
        raise _refused("keyctl")


def forbid_user_namespaces() -> None:
    """Have no user namespace made by this thread or what it starts, for good; after `bound_capabilities`.

    Raises KernelRefused: also where the kernel has no filters, or this machine's numbers aren't known here.
    """
    _filter(filter_for)


def forbid_other_sockets() -> None:
    """The same with sockets that a network namespace doesn't shut in (`ipc.filter_sockets`). Raises KernelRefused."""
    _filter(sockets_for)


def _filter(program_for: Callable[[str], bytes | None]) -> None:
    machine = os.uname().machine
    program, number = program_for(machine), _SECCOMP.get(machine)
    if program is None or number is None:
        raise KernelRefused(f"seccomp on {machine}", 0, "its number isn't known here")
    lines = ctypes.create_string_buffer(program, len(program))
    wanted = _Filters(len(program) // 8, ctypes.addressof(lines))
    # SPEC_ALLOW: it is no guard against what the process itself may guess, and mustn't cost it speed.
    words = (number, _SET_FILTER, _SPEC_ALLOW)
    if _libc.syscall(*map(ctypes.c_long, words), ctypes.byref(wanted)):
        raise _refused("seccomp")


def _prctl(option: int, value: int) -> int:
    # Of the other arguments the kernel insists that they are zero.
    result: int = _libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))
    return result
