"""The filter of system calls that shuts one door for good: a user namespace of one's own (user_namespaces(7)).

Whoever makes one holds every capability in it. It opens nothing that isolation has shut, but it reaches parts of the
kernel that nobody without a capability reaches. A filter is the one way to forbid it that any process has, and that
whatever it starts inherits; no limit on namespaces is a process's own. Everything else is allowed.

A program of classic BPF over `struct seccomp_data` (seccomp(2)), as bytes. Calls of another calling convention of the
same machine (32-bit programs, x32) are judged by their own numbers, or don't exist (ENOSYS): else one could call by
another name. clone3(2) hides its flags behind a pointer, so it doesn't exist either; C libraries call clone then.
"""

import errno
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

Line: TypeAlias = tuple[int, int, int, int]
"""Code, how many lines to skip where it holds and where it doesn't, operand."""

NEW_USER: Final = 0x10000000
"""CLONE_NEWUSER."""
ALLOW: Final = 0x7FFF0000
REFUSE: Final = 0x00050000 | errno.EPERM
MISSING: Final = 0x00050000 | errno.ENOSYS


class Convention(NamedTuple):
    """How one kind of program calls the kernel: linux/audit.h's number, and the calls that make namespaces."""

    arch: int
    unshare: int
    clone: int
    clone3: int = 435
    clone_flags: int = 0
    """Which argument of clone they are."""


_GENERIC = (97, 220)
MACHINES: Final[Mapping[str, tuple[Convention, ...]]] = {
    "x86_64": (Convention(0xC000003E, 272, 56), Convention(0x40000003, 310, 120)),
    "aarch64": (Convention(0xC00000B7, *_GENERIC), Convention(0x40000028, 337, 120)),
    "riscv64": (Convention(0xC00000F3, *_GENERIC),),
    "loongarch64": (Convention(0xC0000102, *_GENERIC),),
    "ppc64le": (Convention(0xC0000015, 282, 120),),
    "s390x": (Convention(0x80000016, 303, 120, clone_flags=1),),
}
"""By `os.uname().machine`."""
X32: Final = 0x40000000
"""Calls of x86_64 from this number on are those of x32."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16


def program(machine: str, byteorder: str = sys.byteorder) -> bytes | None:
    """The filter for this machine, in its byte order; None for one whose numbers aren't known here."""
    conventions = MACHINES.get(machine)
    if conventions is None:
        return None
    little = byteorder == "little"
    blocks = (
        (each.arch, tuple(_judge(each, x32=machine == "x86_64" and each is conventions[0], little=little)))
        for each in conventions
    )
    return assemble(blocks, byteorder)


def assemble(blocks: Iterable[tuple[int, tuple[Line, ...]]], byteorder: str) -> bytes:
    """A program of what each calling convention is judged by; by any other one, no call exists."""
    code: list[Line] = [(_LOAD, 0, 0, _ARCH)]
    for arch, block in blocks:
        code.append((_EQUAL, 0, len(block), arch))
        code.extend(block)
    code.append((_RETURN, 0, 0, MISSING))
    order = "<" if byteorder == "little" else ">"
    return b"".join(struct.pack(f"{order}HBBI", *line) for line in code)


def _judge(convention: Convention, *, x32: bool, little: bool) -> Iterator[Line]:
    """Of one convention."""
    low = 0 if little else 4
    yield (_LOAD, 0, 0, _NUMBER)
    if x32:
        yield (_AT_LEAST, 9, 0, X32)  # to the last line
    yield (_EQUAL, 8, 0, convention.clone3)  # to the last line
    yield (_EQUAL, 1, 0, convention.unshare)  # to its flags
    yield (_EQUAL, 2, 4, convention.clone)  # to its flags, or out
    yield (_LOAD, 0, 0, _ARGUMENTS + low)
    yield (_ANY_BIT, 3, 2, NEW_USER)
    yield (_LOAD, 0, 0, _ARGUMENTS + 8 * convention.clone_flags + low)
    yield (_ANY_BIT, 1, 0, NEW_USER)
    yield (_RETURN, 0, 0, ALLOW)
    yield (_RETURN, 0, 0, REFUSE)
    yield (_RETURN, 0, 0, MISSING)
