"""What the host knows about other processes, asked of real ones."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ipc.errors import KernelRefused, ProcessGone
from ipc.prctl import PR_GET_DUMPABLE, prctl
from ipc.process import Peer, belongs_to, open_descriptors, peer_of
from waypost.testing.background import Background

NOBODYS_PID = 2**22 + 1


@contextmanager
def running(code: str, *, session: bool = False) -> Iterator[tuple[int, int]]:
    """A process that runs this code: its pid, and the number that the code printed; ended afterwards."""
    with Background(command=(sys.executable, "-c", code), session=session) as process:
        yield process.pid, int(process.next())


WAITS = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
FORKS = """
import os, signal
r, w = os.pipe()
if (pid := os.fork()) == 0:
    os.close(w); os.read(r, 1); os._exit(0)
print(pid, flush=True); signal.pause()
"""
# The middle process ends, so that its child is nobody's: reparented, but still in the session.
ORPHANS = """
import os, signal
r, w = os.pipe()
report_r, report_w = os.pipe()
if (middle := os.fork()) == 0:
    if os.fork() == 0:
        os.write(report_w, b"%d" % os.getpid()); os.close(w); os.read(r, 1)
    os._exit(0)
os.waitpid(middle, 0)
print(int(os.read(report_r, 32)), flush=True); signal.pause()
"""


def test_a_process_belongs_to_itself_and_to_those_it_descends_from() -> None:
    """A child, and what a child starts, must not answer its own approvals."""
    with running(FORKS) as (child, grandchild):
        assert belongs_to(child, {child})
        assert belongs_to(grandchild, {child})
        assert belongs_to(grandchild, {os.getpid()})


def test_a_process_does_not_belong_to_its_sisters_or_descendants() -> None:
    """The user's own shell isn't taken for the child of a host that it started."""
    with running(WAITS, session=True) as (one, _), running(WAITS, session=True) as (two, _):
        assert not belongs_to(one, {two})
        assert not belongs_to(os.getpid(), {one, two})
        assert not belongs_to(1, {one})


def test_an_orphan_still_belongs_to_the_child_whose_session_it_is_in() -> None:
    """A fork in the background outlives its parent; the session says where it came from."""
    with running(ORPHANS, session=True) as (child, orphan):
        assert belongs_to(orphan, {child})


def test_a_process_that_is_gone_is_an_error_not_an_answer() -> None:
    """The caller refuses: nothing is known about it."""
    with pytest.raises(ProcessGone):
        belongs_to(NOBODYS_PID, {1})


def test_a_name_full_of_brackets_does_not_confuse_the_reading() -> None:
    """A process chooses its name, and could otherwise choose its parent."""
    code = f"open('/proc/self/comm', 'w').write(') S 1 1 1 ('); {WAITS}"
    with running(code, session=True) as (child, _):
        assert belongs_to(child, {os.getpid()})


def test_the_other_end_of_a_socket_is_known_by_the_kernel() -> None:
    """Not by what it says of itself."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert peer_of(ours) == Peer(os.getpid(), os.getuid(), os.getgid())


def test_a_socket_without_a_peer_names_none() -> None:
    """A typed error instead of the kernel's zero: pid 0 would belong to nobody and pass."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lonely, pytest.raises(ProcessGone):
        peer_of(lonely)


def test_a_socket_that_is_closed_is_a_typed_error() -> None:
    """A caller may hang up between accept and the question."""
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    with pytest.raises(KernelRefused):
        peer_of(ours)


def test_a_hidden_process_is_not_dumpable() -> None:
    """In a process of its own, since it can't be taken back safely here."""
    code = (
        "from ipc.process import hide, open_descriptors\nfrom ipc.prctl import PR_GET_DUMPABLE, prctl\n"
        "hide()\nprint(prctl(PR_GET_DUMPABLE), open_descriptors())"
    )
    before = prctl(PR_GET_DUMPABLE)  # another test may have had a host in this process
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("0 [0, 1, 2")
    assert prctl(PR_GET_DUMPABLE) == before


def test_a_refused_call_says_which_and_why() -> None:
    """A host that can't protect itself must not start as if it could."""
    with pytest.raises(KernelRefused) as caught:
        prctl(-1)
    assert caught.value.errno == 22


def test_the_open_descriptors_are_the_open_ones() -> None:
    """Both ends of a pipe, until they are closed."""
    reading, writing = os.pipe()
    assert {reading, writing} <= set(open_descriptors())
    os.close(reading)
    os.close(writing)
    assert not {reading, writing} & set(open_descriptors())
