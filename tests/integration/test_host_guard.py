"""Who may talk to the host: its own user, and nobody who descends from a workflow's own process."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipc.environment import MARK
from waypost.host.processes.child_log import ChildLog
from waypost.host.processes.guard import PeerRefused, admit

CALL = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(chr(0) + sys.argv[1]); s.recv(1)"
BY_A_GRANDCHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-S', '-c', {CALL!r}, sys.argv[1]])"


@pytest.fixture
def door(tmp_path: Path) -> Iterator[socket.socket]:
    """A listening socket, in Linux's abstract namespace: no folder's mode decides who may reach it."""
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(f"\0{tmp_path}")
        door.listen()
        door.settimeout(20)
        yield door


def called_by(code: str, door: socket.socket, mark: str = "") -> tuple["subprocess.Popen[bytes]", socket.socket]:
    """A process that calls, and the connection it made; with a mark, if there is one."""
    command = [sys.executable, "-I", "-S", "-c", code, door.getsockname()[1:].decode()]
    process = subprocess.Popen(command, env={**os.environ, MARK: mark} if mark else None)
    connection, _ = door.accept()
    return process, connection


def test_a_process_of_the_same_user_is_admitted(door: socket.socket) -> None:
    """That is the command line."""
    process, connection = called_by(CALL, door)
    with process, connection:
        peer = admit(connection, frozenset())
        connection.send(b"x")
    assert (peer.pid, peer.uid) == (process.pid, os.geteuid())


@pytest.mark.parametrize("code", [CALL, BY_A_GRANDCHILD], ids=["the child", "its child"])
def test_a_child_and_what_descends_from_it_are_refused(door: socket.socket, code: str) -> None:
    """An agent could otherwise approve what it has asked for itself."""
    process, connection = called_by(code, door)
    with process, connection:
        with pytest.raises(PeerRefused, match="descends from a workflow"):
            admit(connection, frozenset({process.pid}))
        connection.send(b"x")


@pytest.mark.parametrize("kin", ["0123.", "0124."])
def test_what_has_left_its_childs_session_is_refused_by_its_mark(kin: str, door: socket.socket) -> None:
    """And a child of another host of this user isn't: that one's workflows have no business here, but may ask."""
    process, connection = called_by(CALL, door, "0123.feed")
    with process, connection:
        if kin == "0123.":
            with pytest.raises(PeerRefused, match="descends from a workflow"):
                admit(connection, frozenset(), kin)
        else:
            assert admit(connection, frozenset(), kin).pid == process.pid
        connection.send(b"x")


def test_a_caller_that_is_gone_is_refused(door: socket.socket) -> None:
    """Nothing can be known about it any more."""
    process, connection = called_by(CALL, door)
    with process, connection:
        connection.send(b"x")
        process.wait()
        with pytest.raises(PeerRefused, match="gone"):
            admit(connection, frozenset({1}))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can call as somebody else")
def test_another_user_is_refused(door: socket.socket) -> None:
    """The socket's mode says so already; the kernel's word is checked all the same."""
    process, connection = called_by("import os, socket; os.setuid(65534)\n" + CALL, door)
    with process, connection:
        with pytest.raises(PeerRefused, match="another user"):
            admit(connection, frozenset())
        connection.send(b"x")


def test_a_connection_without_credentials_is_refused() -> None:
    """A socket of another kind has no peer that the kernel vouches for."""
    with socket.socket(socket.AF_INET) as stranger, pytest.raises(PeerRefused):
        admit(stranger, frozenset())


def test_a_childs_log_is_turned_over_and_never_grows_past_two_files(tmp_path: Path) -> None:
    """What floods stdout fills 2 MiB of disk and no more."""
    path = tmp_path / "orders.log"
    log = ChildLog(path, limit=1000)
    for number in range(50):
        log.write(b"%03d" % number * 33)
    assert path.stat().st_size <= 1000
    assert (tmp_path / "orders.log.1").stat().st_size <= 1000
    assert path.read_bytes().endswith(b"049" * 33)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["orders.log", "orders.log.1"]
    assert path.stat().st_mode & 0o077 == 0
    log.write(b"y" * 5000)
    assert path.read_bytes() == b"y" * 1000


def test_a_log_that_can_not_be_written_loses_output_and_nothing_else(tmp_path: Path) -> None:
    """A full disk may not end a child for what it prints."""
    path = tmp_path / "missing" / "orders.log"
    log = ChildLog(path)
    path.parent.write_bytes(b"in its way")
    log.write(b"lost")
    path.parent.unlink()
    log.write(b"kept")
    assert path.read_bytes() == b"kept", "a folder that was taken away is made anew"
