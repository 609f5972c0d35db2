"""The command's client, against hosts that don't answer as hosts do."""

import os
import signal
import socket
import sys
import threading
from pathlib import Path

import pytest

from waypost.cli.client import Client, HostStopped
from waypost.host.answers.records import Runs
from waypost.host.errors import NoHost, Unanswered
from waypost.host.exits import Exit, exit_for
from waypost.testing.background import Background


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{]", b"what?\r\n\r\n"])
def test_a_host_that_breaks_off_leaves_open_whether_it_took_the_request(tmp_path: Path, answer: bytes) -> None:
    """The mail may be durable: saying that nothing was stored would be a lie, and the user would act on it."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(1)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(answer)

        host = threading.Thread(target=serve)
        host.start()
        with pytest.raises(Unanswered, match="isn't known") as unanswered:
            Client(tmp_path / "s").post(Runs, "runs")
        host.join()
    assert "nothing was stored" not in unanswered.value.hint
    assert exit_for(unanswered.value.code) is Exit.WITHHELD


def test_a_question_that_a_dying_host_has_taken_is_answered_by_no_host(tmp_path: Path) -> None:
    """A killed process closes what it has open one after the other; whoever looks on must not be told of a request."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(1)

        def die() -> None:
            for number in range(3):
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{" if number else b"")
            listener.close()

        host = threading.Thread(target=die)
        host.start()
        with pytest.raises(NoHost):
            Client(tmp_path / "s").get(Runs, "runs")
        host.join()


def test_a_socket_that_nobody_serves_is_no_host(tmp_path: Path) -> None:
    """A killed host leaves its socket behind."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
    with pytest.raises(NoHost):
        Client(tmp_path / "s").get(Runs, "runs")


def test_a_host_that_was_stopped_is_named_at_once(tmp_path: Path) -> None:
    """The kernel connects to it all the same, as to Ctrl-Z in its terminal: whoever asks would wait for a minute."""
    listens = (
        "import socket, sys\n"
        "listener = socket.socket(socket.AF_UNIX)\n"
        "listener.bind(sys.argv[1])\n"
        "listener.listen()\n"
        "print('up', flush=True)\n"
        "while True:\n"
        "    with listener.accept()[0] as caller:\n"
        "        caller.recv(65_536)\n"
    )
    at = tmp_path / "s"
    with Background("-c", listens, str(at), command=(sys.executable,)) as host:
        host.wait_for("up")
        host.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, host.pid, os.WSTOPPED)
        with pytest.raises(HostStopped, match=f"process {host.pid}") as found:
            Client(at).post(Runs, "runs")
        assert f"kill -CONT {host.pid}" in found.value.hint
        assert exit_for(found.value.code) is Exit.WITHHELD
        host.signal(signal.SIGCONT)
        os.waitid(os.P_PID, host.pid, os.WCONTINUED)
        with pytest.raises(Unanswered):
            Client(at).post(Runs, "runs")


def test_a_host_that_is_stopped_while_somebody_follows_has_not_ended(tmp_path: Path) -> None:
    """Nor does another one take its place: `waypost run`, which helps against an end, would be refused."""
    tells = (
        "import socket, sys, threading\n"
        "listener = socket.socket(socket.AF_UNIX)\n"
        "listener.bind(sys.argv[1])\n"
        "listener.listen()\n"
        "print('up', flush=True)\n"
        "caller = listener.accept()[0]\n"
        "caller.recv(65_536)\n"
        "caller.sendall(b'HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\none\\n')\n"
        "threading.Event().wait()\n"
    )
    at = tmp_path / "s"
    with Background("-c", tells, str(at), command=(sys.executable,)) as host:
        host.wait_for("up")
        lines = Client(at, timeout=1).follow("follow")
        assert next(lines) == b"one\n"
        host.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, host.pid, os.WSTOPPED)
        with pytest.raises(HostStopped, match=f"process {host.pid}"):
            next(lines)


def test_a_host_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    """After the time that its caller gives it: checking a long history may take far longer than all else."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen(1)
        with pytest.raises(Unanswered, match="TimeoutError"):
            Client(tmp_path / "s", timeout=0.01).get(Runs, "runs")
