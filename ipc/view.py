"""The file system that a child in a namespace sees: a new root with what its box lists, and the old one gone.

Built in two parts, as /proc can only be mounted by a process of the new pid namespace: ``build``, then ``finish``
there. After that nothing of the machine is left but what the entries brought, and of these nothing can be written but
``rw`` and ``tmp``. A mount that can't be made as it was asked for is an error; there is no view with a hole in it.
"""

# By pathlib this would be shorter, and the start of a child 6 ms longer.
# ruff: noqa: PTH102, PTH103, PTH106, PTH112, PTH120, PTH123, PTH211

import os
from collections.abc import Iterator, Sequence

from ipc.box import Entry, covering
from ipc.syscalls import (
    MS_BIND,
    MS_NOATIME,
    MS_NODEV,
    MS_NODIRATIME,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_RELATIME,
    MS_REMOUNT,
    mount,
    pivot_root,
    unmount,
)

OLD = "/.old"
_WORKSHOP = "/tmp"  # noqa: S108 - any folder that is always there: a mount on it, in this namespace alone, becomes the root
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}
_FLAGS = {
    "ro": MS_RDONLY,
    "nosuid": MS_NOSUID,
    "nodev": MS_NODEV,
    "noexec": MS_NOEXEC,
    "noatime": MS_NOATIME,
    "nodiratime": MS_NODIRATIME,
    "relatime": MS_RELATIME,
}
_SAFE = MS_NOSUID | MS_NODEV
_MOUNTPOINT, _OPTIONS = 4, 5


def build(entries: Sequence[Entry], *, uid: int, gid: int, room: int) -> None:
    """Make the new root and everything in it but /proc; what was the root so far is at ``OLD``.

    ``uid``, ``gid`` own what is the child's; ``room``: bytes that each ``tmp`` takes at most. To be called in a mount
    namespace of one's own, with the right to mount there. Raises KernelRefused, OSError.
    """
    before = os.umask(0o022)
    try:
        mount("none", "/", None, MS_REC | MS_PRIVATE)
        mount("tmpfs", _WORKSHOP, "tmpfs", _SAFE, "mode=0755,size=1m")
        os.mkdir(_WORKSHOP + OLD)
        pivot_root(_WORKSHOP, _WORKSHOP + OLD)
        os.chdir("/")
        _devices(uid, gid, room)
        for entry in entries:
            _place(entry, uid, gid, room)
    finally:
        os.umask(before)
    with open(f"{OLD}/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        mounts = tuple(mounted(table.read()))
    for point, flags in mounts:
        above = covering(entries, point)
        if above is not None and above.kind in {"ro", "rw", "veil"}:
            closed = 0 if above.kind == "rw" else MS_RDONLY
            mount("none", point, None, MS_REMOUNT | MS_BIND | flags | _SAFE | closed)


def finish() -> None:
    """Mount /proc, let go of the old root, and close the new one. Raises KernelRefused, OSError."""
    os.mkdir("/proc", 0o555)
    mount("proc", "/proc", "proc", _SAFE | MS_NOEXEC)
    unmount(OLD)
    os.rmdir(OLD)
    mount("none", "/", None, MS_REMOUNT | MS_BIND | _SAFE | MS_RDONLY)


def mounted(mountinfo: str) -> Iterator[tuple[str, int]]:
    """The mount points in a mountinfo text (proc(5)), parents first, each with the flags that a remount must keep."""
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        flags = 0
        for option in fields[_OPTIONS].split(","):
            flags |= _FLAGS.get(option, 0)
        yield _unescaped(fields[_MOUNTPOINT]), flags


def _unescaped(text: str) -> str:
    """Blanks, tabs, newlines and backslashes are written as a backslash and three octal digits."""
    first, *rest = text.split("\\")
    return first + "".join(chr(int(part[:3], 8)) + part[3:] for part in rest)


def _place(entry: Entry, uid: int, gid: int, room: int) -> None:
    kind, target, source = entry
    match kind:
        case "link":
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink(source, target)
        case "tmp":
            os.makedirs(target, exist_ok=True)
            mount("tmpfs", target, "tmpfs", _SAFE, f"mode={source},uid={uid},gid={gid},size={room}")
        case "veil":
            os.makedirs(target, exist_ok=True)
            mount("tmpfs", target, "tmpfs", _SAFE, "mode=0755,size=64k")
        case "ro" | "rw":
            _prepare(target, OLD + source)
            mount(OLD + source, target, None, MS_BIND | MS_REC)


def _prepare(target: str, source: str) -> None:
    """Make what a mount can lie on: a folder for a folder, a file for anything else."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if not os.path.lexists(target):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))


def _devices(uid: int, gid: int, room: int) -> None:
    os.mkdir("/dev")
    for name in DEVICES:
        _prepare(f"/dev/{name}", f"{OLD}/dev/{name}")
        mount(f"{OLD}/dev/{name}", f"/dev/{name}", None, MS_BIND)
    for name, target in _LINKS.items():
        os.symlink(target, f"/dev/{name}")
    os.mkdir("/dev/pts")
    mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    os.symlink("pts/ptmx", "/dev/ptmx")
    os.mkdir("/dev/shm")  # noqa: S108 - that of this namespace
    mount("tmpfs", "/dev/shm", "tmpfs", _SAFE, f"mode=1777,uid={uid},gid={gid},size={room}")  # noqa: S108 - the same
