"""The filter of system calls, run by a machine of our own: what it refuses on each processor, and nothing more."""

import errno
import socket
import struct
from collections.abc import Callable

import pytest

from ipc import filter_sockets
from ipc.filter import ALLOW, MACHINES, MISSING, NEW_USER, REFUSE, X32, Convention, program

BIG = frozenset({"s390x"})
ANY = 0x6E020000
"""Every kind of namespace but a user's."""


def verdict(code: bytes, order: str, *, number: int, arch: int, arguments: tuple[int, ...] = ()) -> int:
    """What the kernel would do with a call: classic BPF, of which only these five instructions are in use."""
    data = struct.pack(f"{order}IIQ6Q", number, arch, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    lines = list(struct.iter_unpack(f"{order}HBBI", code))
    held = at = 0
    while True:
        what, yes, no, operand = lines[at]
        at += 1
        match what:
            case 0x20:
                (held,) = struct.unpack_from(f"{order}I", data, operand)
            case 0x15:
                at += yes if held == operand else no
            case 0x35:
                at += yes if held >= operand else no
            case 0x45:
                at += yes if held & operand else no
            case 0x06:
                assert isinstance(operand, int)
                return operand
            case _:
                raise AssertionError(what)


def judged(
    machine: str,
    convention: Convention,
    number: int,
    *arguments: int,
    program: Callable[[str, str], bytes | None] = program,
) -> int:
    """By the filter for a machine."""
    code = program(machine, "big" if machine in BIG else "little")
    assert code is not None
    order = ">" if machine in BIG else "<"
    return verdict(code, order, number=number, arch=convention.arch, arguments=arguments)


EVERY = [(machine, convention) for machine, several in MACHINES.items() for convention in several]


@pytest.mark.parametrize(("machine", "by"), EVERY, ids=lambda each: each if isinstance(each, str) else hex(each.arch))
def test_a_user_namespace_is_refused_however_it_is_asked_for_and_nothing_else_is(machine: str, by: Convention) -> None:
    """Alone, among other flags, with the rest of the word set; other namespaces, threads and other calls go through."""
    for flags in (NEW_USER, NEW_USER | ANY, NEW_USER | 1 << 63):
        assert judged(machine, by, by.unshare, flags) == REFUSE
        assert judged(machine, by, by.clone, *[0] * by.clone_flags, flags) == REFUSE
    for flags in (0, ANY, 0x003D0F00, NEW_USER << 32):
        assert judged(machine, by, by.unshare, flags) == ALLOW
        assert judged(machine, by, by.clone, *[NEW_USER] * by.clone_flags, flags, NEW_USER) == ALLOW
    assert judged(machine, by, by.clone3, 1 << 40, 88) == MISSING
    others = {0, 1, 59, 221, 1000} - {by.unshare, by.clone, by.clone3}
    assert {judged(machine, by, each, NEW_USER, NEW_USER, NEW_USER) for each in others} == {ALLOW}


def test_no_other_way_to_name_a_call_is_left() -> None:
    """A call by x32's numbers, or by a convention that isn't known, doesn't exist: else clone would have two names."""
    own = MACHINES["x86_64"][0]
    assert judged("x86_64", own, X32 | own.unshare, NEW_USER) == MISSING
    assert judged("x86_64", own, 0xFFFFFFFF) == MISSING
    assert judged("x86_64", own._replace(arch=0xC00000B7), 97, NEW_USER) == MISSING
    assert MISSING & 0xFFFF == errno.ENOSYS
    assert REFUSE & 0xFFFF == errno.EPERM


def test_a_machine_that_is_not_known_has_no_filter() -> None:
    """A guess at its numbers would forbid something else."""
    assert program("pdp11") is None
    assert filter_sockets.program("pdp11") is None


@pytest.mark.parametrize(("machine", "by"), EVERY, ids=lambda each: each if isinstance(each, str) else hex(each.arch))
def test_without_a_network_only_sockets_that_a_namespace_shuts_in_are_made(machine: str, by: Convention) -> None:
    """No other kind, whatever stands in the rest of the word; by no call that hides the kind; all else goes through."""

    def asked(number: int, *arguments: int) -> int:
        return judged(machine, by, number, *arguments, program=filter_sockets.program)

    own = filter_sockets.SOCKET[by.arch]
    for kind in range(64):
        allowed = kind in {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
        for word in (kind, kind | 1 << 40):
            assert asked(own, word, 1, 0) == (ALLOW if allowed else filter_sockets.NO_KIND)
    hidden = {filter_sockets.IO_URING_SETUP, filter_sockets.SOCKETCALL.get(by.arch, filter_sockets.IO_URING_SETUP)}
    assert {asked(number, 1, 0) for number in hidden} == {MISSING}
    assert {asked(number, 40, 40) for number in {0, 1, 59, 221, 1000} - {own}} == {ALLOW}
    assert filter_sockets.NO_KIND & 0xFFFF == errno.EAFNOSUPPORT
