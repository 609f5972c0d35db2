"""The filter of system calls of a child without a network: only sockets that a network namespace shuts in.

Some kinds of sockets know no network namespaces (network_namespaces(7) lists what there is of them): by AF_VSOCK, a
program in an empty one reaches the machine that this one is a guest of, and what runs beside it there. So there are
sockets of the kinds in `KINDS`, and of no others. io_uring(7) makes sockets without the call that is judged here, so
it doesn't exist, and neither does socketcall(2), which hides the kind behind a pointer; who misses them does without.

A program for the kernel like that of `ipc.filter`, and beside it: a call is made when both allow it.
"""

import errno
import sys
from typing import Final

from ipc.filter import ALLOW, MACHINES, MISSING, Line, assemble

KINDS: Final = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK: the same on every machine."""
NO_KIND: Final = 0x00050000 | errno.EAFNOSUPPORT
IO_URING_SETUP: Final = 425
"""On every machine."""
SOCKET: Final = {
    0xC000003E: 41,
    0x40000003: 359,
    0xC00000B7: 198,
    0x40000028: 281,
    0xC00000F3: 198,
    0xC0000102: 198,
    0xC0000015: 326,
    0x80000016: 359,
}
"""socket(2), by linux/audit.h's number of the calling convention."""
SOCKETCALL: Final = {0x40000003: 102, 0x40000028: 102, 0xC0000015: 102, 0x80000016: 102}

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER, _FIRST = 0, 16


def program(machine: str, byteorder: str = sys.byteorder) -> bytes | None:
    """The filter for this machine, in its byte order; None for one whose numbers aren't known here."""
    conventions = MACHINES.get(machine)
    if conventions is None:
        return None
    low = 0 if byteorder == "little" else 4
    return assemble(((each.arch, _judge(each.arch, low)) for each in conventions), byteorder)


def _judge(arch: int, low: int) -> tuple[Line, ...]:
    """Of one convention."""
    missing = tuple(number for number in (IO_URING_SETUP, SOCKETCALL.get(arch)) if number is not None)
    refuse = len(missing) + len(KINDS) + 3  # these lines come before the three that return
    allow, absent = refuse + 1, refuse + 2
    lines: list[Line] = [(_LOAD, 0, 0, _NUMBER)]
    lines += [(_EQUAL, absent - at - 1, 0, number) for at, number in enumerate(missing, len(lines))]
    lines.append((_EQUAL, 0, allow - len(lines) - 1, SOCKET[arch]))
    lines.append((_LOAD, 0, 0, _FIRST + low))
    lines += [(_EQUAL, allow - at - 1, 0, kind) for at, kind in enumerate(KINDS, len(lines))]
    return (*lines, (_RETURN, 0, 0, NO_KIND), (_RETURN, 0, 0, ALLOW), (_RETURN, 0, 0, MISSING))
