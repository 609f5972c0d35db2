"""Places on a host's sockets: who hangs loses its own, who is answered keeps it, and who is refused takes nobody's."""

import asyncio
import http.client
import os
import select
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.server import ServerState

from waypost.cli.client import Client
from waypost.host.answers.records import Problem
from waypost.host.api.audience import SEATS, Audience
from waypost.host.api.metrics_server import Place, listen, metrics_server
from waypost.host.api.patience import Patient, gone
from waypost.host.api.reach import reached
from waypost.host.api.routes import problem_of
from waypost.host.api.server import AT_ONCE, ApiServer, bind
from waypost.model.errors import WaypostError
from waypost.testing.patience import eventually

LONG = "x" * 2_000_000
"""More than the buffers of a socket hold."""
GET = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    ("owing", "unsent", "before", "expected"),
    [
        (True, 0, 0, True),  # it has connected, and hangs
        (True, 9, 9, True),  # it reads nothing of its answer
        (True, 9, 0, False),  # its answer has just been made
        (True, 7, 9, False),  # it reads slowly
        (True, 0, 9, True),  # it has read all, and hangs
        (False, 9, 9, False),  # it is being answered: the answer itself waits for it
        (False, 0, 0, False),  # nothing has happened that it could be told
    ],
)
def test_who_loses_a_place(*, owing: bool, unsent: int, before: int, expected: bool) -> None:
    """Only one that has been given all the time it needs, and uses none of it."""
    assert gone(owing=owing, unsent=unsent, before=before) is expected


def test_whatever_comes_gives_a_connection_all_its_time_anew() -> None:
    """A request may come slowly, a piece at a time."""
    config = uvicorn.Config(Starlette())
    config.load()

    async def pieces() -> None:
        here, there = socket.socketpair()
        connection = Patient(config, ServerState(), {}, asyncio.get_running_loop())
        await asyncio.get_running_loop().create_connection(lambda: connection, sock=here)
        first = connection._next
        connection.data_received(b"GET /a")
        assert first is not None
        assert first.cancelled()
        assert connection._next is not None
        assert not connection._next.cancelled()
        connection.transport.close()
        there.close()

    asyncio.run(pieces())


class Stage:
    """An API's socket in front of a small application: ``children`` are refused, ``seats`` may follow."""

    def __init__(self, path: Path, patience: float = 30.0, room: int = 2) -> None:
        self.path = path
        self.children: tuple[int, ...] = ()
        self._over = asyncio.Event()
        self._audience = Audience(2)
        routes = [Route("/ask", self._ask), Route("/long", self._long), Route("/follow", self._follow)]
        routes += [Route("/end", self._end), Route("/wait", self._wait), Route("/v1/ask", self._ask)]
        app = Starlette(routes=routes, exception_handlers={WaypostError: _refused})
        self._open = ExitStack()
        self._server = ApiServer(bind(path), app, lambda: self.children, patience=patience, queue=room).start()
        self._open.callback(self._server.stop)

    def connect(self, *sent: bytes) -> socket.socket:
        """A connection, and what is said on it at once."""
        made = self._open.enter_context(socket.socket(socket.AF_UNIX))
        with reached(self.path) as name:
            made.connect(name)
        made.settimeout(30)
        made.sendall(b"".join(sent))
        return made

    def ask(self, path: str = "/ask") -> http.client.HTTPResponse:
        """An answer; its connection stays open where that is unread."""
        connection = http.client.HTTPConnection("x")
        connection.sock = self.connect()
        connection.request("GET", path)
        return connection.getresponse()

    def stop(self) -> None:
        """End the server; who is connected stays so."""
        self._server.stop()

    def close(self) -> None:
        """End all of it."""
        self._open.close()

    async def _ask(self, _request: Request) -> Response:
        return PlainTextResponse("fine")

    async def _long(self, _request: Request) -> Response:
        return PlainTextResponse(LONG)

    async def _follow(self, _request: Request) -> Response:
        return self._audience.told(self._lines())

    async def _wait(self, _request: Request) -> Response:
        await self._over.wait()
        return PlainTextResponse("at last")

    async def _end(self, _request: Request) -> Response:
        self._over.set()
        return PlainTextResponse("ended")

    async def _lines(self) -> AsyncIterator[bytes]:
        yield b"begun\n"
        await self._over.wait()
        yield b"ended\n"


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, WaypostError)
    return Response(msgspec.json.encode(problem_of(error)), 503)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Callable[..., Stage]]:
    """Makes one, and ends it."""
    with ExitStack() as made:

        def make(patience: float = 30.0, room: int = 2) -> Stage:
            one = Stage(tmp_path / "host.sock", patience, room)
            made.callback(one.close)
            return one

        yield make


def left_by_the_host(connection: socket.socket) -> bool:
    """Whether the other side is closed; reads nothing of what it has sent."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    return any(event & (select.POLLRDHUP | select.POLLHUP) for _, event in poll.poll(0))


HANGING = {
    "silent": b"",
    "half a request": b"GET /ask HTTP/1.1\r\nHost:",
    "half a body": b"POST /ask HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
    "an answer unread": GET % b"/long",
}


@pytest.mark.parametrize("how", sorted(HANGING))
def test_who_hangs_is_sent_away(stage: Callable[..., Stage], how: str) -> None:
    """A few dozen of them kept everybody out, for as long as they hung."""
    host = stage(0.05)
    hanging = host.connect(HANGING[how])
    eventually(lambda: left_by_the_host(hanging), f"{how}: sent away")


def test_who_follows_stays_however_little_happens(stage: Callable[..., Stage]) -> None:
    """It has asked, and waits for the host: a run may take months."""
    host = stage(0.05)
    following = host.ask("/follow")
    assert following.readline() == b"begun\n"
    for _ in range(3):
        hanging = host.connect()
        eventually(lambda hanging=hanging: left_by_the_host(hanging), "time has passed")  # type: ignore[misc] # a lambda's default
    assert host.ask("/end").status == 200
    assert following.readline() == b"ended\n"


def test_whoever_is_refused_takes_nobodys_place(stage: Callable[..., Stage]) -> None:
    """A workflow's process may not ask; it could keep its operator from asking all the same."""
    host = stage()
    host.children = (os.getpid(),)
    refused = host.ask()
    assert (refused.status, msgspec.json.decode(refused.read(), type=Problem).code) == (403, "peer-refused")
    strangers = [host.connect() for _ in range(AT_ONCE)]
    last = host.connect()
    eventually(lambda: left_by_the_host(last), "no more of them are listened to")
    host.children = ()
    assert host.ask().read() == b"fine"
    assert strangers


def test_who_finds_no_place_waits_for_one_and_one_too_many_is_told_to_come_again(stage: Callable[..., Stage]) -> None:
    """First come, first served, and a row that has an end; nothing was read, so it may be asked once more."""
    host = stage()
    guests = [host.connect() for _ in range(AT_ONCE)]
    first, second = host.connect(GET % b"/ask"), host.connect(GET % b"/ask")
    busy = host.ask()
    assert (busy.status, msgspec.json.decode(busy.read(), type=Problem).code) == (503, "withheld")
    assert busy.headers["Retry-After"] == "1"
    guests.pop().close()
    assert first.recv(100).startswith(b"HTTP/1.1 200 OK")
    assert not select.select([second], [], [], 0)[0], "one place, and one who has it"
    first.close()
    assert second.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_who_waits_in_vain_is_told_to_come_again(stage: Callable[..., Stage]) -> None:
    """And isn't kept for as long as others are served, which may be days."""
    host = stage(0.05)
    served = [host.connect(GET % b"/wait") for _ in range(AT_ONCE)]
    vain = host.ask()
    assert (vain.status, vain.headers["Retry-After"]) == (503, "1")
    served.pop().close()
    eventually(lambda: host.ask("/end").status == 200, "there is room again")


def test_who_has_gone_while_he_waited_takes_nobodys_place(stage: Callable[..., Stage]) -> None:
    """Neither in the row nor when it is his turn."""
    host = stage()
    guests = [host.connect() for _ in range(AT_ONCE)]
    gone, last = host.connect(), host.connect(GET % b"/ask")
    gone.close()
    guests.pop().close()
    assert last.recv(100).startswith(b"HTTP/1.1 200 OK")


def test_a_host_that_ends_leaves_nobody_in_the_row_without_a_word(stage: Callable[..., Stage]) -> None:
    """What was asked wasn't read, so that it is known: nothing was done."""
    host = stage(room=1)
    guests = [host.connect() for _ in range(AT_ONCE)]
    waits = host.connect(GET % b"/ask")
    assert b"503" in host.connect(GET % b"/ask").recv(100), "the row is full: the one before is in it"
    host.stop()
    assert waits.recv(100).startswith(b"HTTP/1.1 503 Service Unavailable")
    assert guests


def test_two_hundred_at_once_are_all_answered_whether_they_wait_or_come_again(stage: Callable[..., Stage]) -> None:
    """A mail client, or a script, that sends what it has: none is turned away for good."""
    host = stage(room=50)
    with ThreadPoolExecutor(200) as threads:
        told = list(threads.map(lambda _: Client(host.path).text("ask"), range(200)))
    assert told == ["fine"] * 200


def test_those_who_follow_leave_room_for_those_who_ask(stage: Callable[..., Stage]) -> None:
    """Dashboards that somebody has left open must not keep an approval out."""
    assert SEATS < AT_ONCE
    host = stage()
    first, second = host.ask("/follow"), host.ask("/follow")
    assert {first.readline(), second.readline()} == {b"begun\n"}
    third = host.ask("/follow")
    assert third.status == 503
    assert "2 others follow" in msgspec.json.decode(third.read(), type=Problem).message
    assert host.ask("/end").status == 200
    assert first.read() == second.read() == b"ended\n"
    eventually(lambda: host.ask("/follow").status == 200, "a seat is free again")


def test_a_scrape_that_nobody_reads_keeps_no_place() -> None:
    """A close waits until all is read: sixteen that read nothing had the page for themselves."""

    async def page(_request: Request) -> Response:
        return PlainTextResponse(LONG * 10)

    listener = listen(Place("127.0.0.1", 0))
    server = metrics_server(listener, page, local=True, longest=0.05).start()
    try:
        with socket.socket() as unread, socket.socket() as after:
            unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            unread.connect(listener.getsockname())
            unread.sendall(GET % b"/metrics")
            after.connect(listener.getsockname())
            eventually(lambda: left_by_the_host(after), "the time of both is over")
            assert sum(map(len, iter(lambda: unread.recv(65536), b""))) < len(LONG * 10), "it was broken off"
    finally:
        server.stop()
