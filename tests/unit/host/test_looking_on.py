"""Looking on at a drain or a recycle while the host does something else with the deployment: what is said at last."""

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from waypost.cli import draining
from waypost.host.answers.records import DeploymentDraining, DeploymentFollowed, DeploymentRecycling, DeploymentStatus
from waypost.host.exits import Exit
from waypost.host.keeping_errors import CameOtherwise, DrainedLater, Forgotten


def status(state: str, reason: str = "", code: str = "", generation: int = 1) -> DeploymentStatus:
    return DeploymentStatus(name="slow", address="slow@x", state=state, reason=reason, code=code, generation=generation)


DRAINS, STOPPED = status("draining"), status("stopped", "it is being drained")
FAILED = status("stopped", "the recycle failed: exit status 9", "recycle-failed")


class Says:
    """A host that begins what it is asked, says how the deployment is each time that it is asked, and ends."""

    def __init__(self, data: Path, begun: DeploymentDraining | DeploymentRecycling, said: Sequence[DeploymentStatus]):
        (data / "format.json").write_bytes(b'{"format": 1}')
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(data / "host.sock"))
        self._listener.listen(8)
        marks = enumerate(said)
        self._answers = (begun, *(DeploymentFollowed(status=each, mark=str(number)) for number, each in marks))
        self._thread = threading.Thread(target=self._serve)

    def _serve(self) -> None:
        for answer in self._answers:
            connection, _ = self._listener.accept()
            with connection:
                connection.recv(65_536)
                body = msgspec.json.encode(answer)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        self._listener.close()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # nobody asks any more, whatever went wrong
        self._thread.join()
        self._listener.close()


def drained(data: Path, *said: DeploymentStatus) -> Exit:
    with Says(data, DeploymentDraining(deployment="slow", by="ann"), said):
        return draining.drain("slow", str(data), end=False)


def recycled(data: Path, *said: DeploymentStatus) -> Exit:
    with Says(data, DeploymentRecycling(deployment="slow", generation=1), said):
        return draining.recycle("slow", "it leaks", str(data))


def test_a_drain_whose_host_is_stopped_is_gone_on_with_by_the_next_one(tmp_path: Path) -> None:
    """Each deployment is stopped before its host ends: "it isn't drained" would be untrue, as it will be."""
    with pytest.raises(DrainedLater, match="the next host goes on with it"):
        drained(tmp_path, DRAINS, STOPPED)


def test_a_drain_goes_on_while_other_code_is_taken(tmp_path: Path) -> None:
    """The deployment is stopped for it, and started again."""
    assert drained(tmp_path, DRAINS, STOPPED, status("starting"), DRAINS, status("held")) is Exit.OK


def test_a_recycle_whose_host_is_stopped_is_forgotten(tmp_path: Path) -> None:
    """The next host begins a process of its own; "no fresh process" is for a recycle that failed."""
    with pytest.raises(Forgotten):
        recycled(tmp_path, status("draining"), status("stopped"))


def test_a_recycle_that_failed_ends_the_looking(tmp_path: Path) -> None:
    """It stays stopped until somebody resumes it, with the reason."""
    with pytest.raises(CameOtherwise, match="exit status 9"):
        recycled(tmp_path, status("recycling"), FAILED)
