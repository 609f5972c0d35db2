"""The API's socket: bound by the host itself, private to its user, and served by uvicorn in one thread.

A peer is looked at when it connects, before a byte of it is read: another user's process is refused, and so is any
descendant of the host's own children (design §1). Those take nobody's place, and whoever is let in keeps one as long as
``patience`` says. Where all places are taken, the next ones wait in a queue, unread; who is one too many there, or
waits in vain, is told to come again (503 with Retry-After): nothing was read of the request, so it may be repeated.
"""

import asyncio
import enum
import http
import os
import socket
import stat
import threading
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, cast

import msgspec
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from waypost.host.answers.records import Problem
from waypost.host.api.patience import PATIENCE, Patient
from waypost.host.api.reach import reached
from waypost.host.errors import HostError, InTheWay, NotNow, NotWritable, Usage
from waypost.host.processes.guard import Peer, PeerRefused, admit
from waypost.host.processes.users import user_name

_BACKLOG = 64
AT_ONCE = 64
"""Who may be connected at once; and as many beside them that are refused."""
QUEUE = 256
"""So many more wait until one of those has gone."""
WAITING = 10.0
"""Seconds in which that has to be."""
AGAIN = 1
"""Seconds after which whoever had no place may try again."""
_BRIEFLY = 2.0
"""Seconds in which whoever is refused may ask, and be told why."""
_STOP = 5.0

Children = Callable[[], Collection[int]]


def bind(path: Path) -> socket.socket:
    """A listening socket at the path, 0600; to be called under the host's lock: a stale one is removed.

    Raises InTheWay when a file lies there that is no socket, NotWritable.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        _make_way(path)
        with reached(path) as name:
            # The directory is 0700, so nobody comes in between bind and chmod; and nobody listens yet.
            listener.bind(name)
        path.chmod(0o600)
        listener.listen(_BACKLOG)
    except OSError as failure:
        listener.close()
        raise NotWritable(str(path), failure) from failure
    except InTheWay:
        listener.close()
        raise
    return listener


class Server:
    """Serves an application on a listening socket, from ``start`` to ``stop``, in a thread of its own."""

    def __init__(
        self, listener: socket.socket, app: ASGIApp, protocol: type[asyncio.Protocol] = H11Protocol, name: str = "api"
    ) -> None:
        config = uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            log_level="error",  # what others send is answered, and not for them to write into the host's log
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=int(_STOP),
        )
        self._listener = listener
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def start(self) -> Self:
        """Begin; who has connected before is served now."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Finish what is being answered, then end; waits for that, a few seconds at most."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(2 * _STOP)
        self._listener.close()

    def _serve(self) -> None:
        self._server.run(sockets=[self._listener])


class ApiServer(Server):
    """Serves the API: who connects is looked at first."""

    def __init__(
        self,
        listener: socket.socket,
        app: ASGIApp,
        children: Children,
        kin: str = "",
        *,
        patience: float = PATIENCE,
        queue: int = QUEUE,
    ) -> None:
        super().__init__(listener, app, _protocol(Door(children, kin, patience, queue)))


def _make_way(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise InTheWay(str(path))
    path.unlink()


@dataclass(frozen=True, slots=True)
class Door:
    """Who is refused, how long whoever is let in may hang, and who waits for a place, first come first."""

    children: Children
    kin: str
    patience: float
    room: int
    """How many may wait."""
    queue: "deque[PeerProtocol]" = field(default_factory=deque)


class Standing(enum.Enum):
    """Where a connection stands."""

    SERVED = "it has a place"
    QUEUED = "it waits for one, unread"
    REFUSED = "whatever it asks, it is told why it is refused"
    LEAVING = "it was told to come again"


class PeerProtocol(Patient):
    """The protocol of uvicorn, with a look at who connects. For the API's one event loop."""

    door: Door
    standing = Standing.SERVED

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Let it in, have it wait, or refuse it."""
        # asyncio's wrapper of the socket; it has getsockopt and no more is needed
        connection = cast("socket.socket", transport.get_extra_info("socket"))
        self.patience = self.door.patience
        try:
            self.app = _introduced(self.app, admit(connection, self.door.children(), self.door.kin))
        except PeerRefused as refused:
            self.standing, self.app = Standing.REFUSED, _refusing(refused, http.HTTPStatus.FORBIDDEN)
            self.patience = min(_BRIEFLY, self.patience)
        full = self._count() >= AT_ONCE
        super().connection_made(transport)
        if full and self.standing is Standing.REFUSED:
            transport.abort()
        elif full:
            self._enqueue()

    def connection_lost(self, exc: Exception | None) -> None:
        """A place may be free now."""
        super().connection_lost(exc)
        queue = self.door.queue
        if self.standing is Standing.QUEUED:
            queue.remove(self)
        elif self.standing is Standing.SERVED and queue and self._count() < AT_ONCE:
            first = queue.popleft()
            first.standing = Standing.SERVED
            first.wait(self.door.patience)
            first.transport.resume_reading()

    def look(self) -> None:
        """Nothing has come for so long, or there was no place."""
        if self.standing is Standing.QUEUED:
            self._send_away()
        else:
            super().look()

    def shutdown(self) -> None:
        """The host ends."""
        if self.standing is Standing.QUEUED:
            self._send_away()
        else:
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """What came is no HTTP."""
        self.transport.write(_answer("400 Bad Request", _words(Usage(msg))))
        self.transport.close()

    def _count(self) -> int:
        """How many connections stand where this one does."""
        return sum(cast("PeerProtocol", one).standing is self.standing for one in self.connections)

    def _enqueue(self) -> None:
        self.transport.pause_reading()
        self.standing = Standing.QUEUED
        self.door.queue.append(self)
        if len(self.door.queue) > self.door.room:
            self._send_away()
        else:
            self.wait(min(WAITING, self.door.patience))

    def _send_away(self) -> None:
        self.door.queue.remove(self)
        self.standing = Standing.LEAVING
        self.transport.write(_busy())
        self.transport.close()


def _protocol(door: Door) -> type[asyncio.Protocol]:
    """That of one server."""

    class Protocol(PeerProtocol):
        pass

    Protocol.door = door
    return Protocol


def _busy() -> bytes:
    """The whole answer to who had no place; it doesn't depend on what is asked."""
    words = _words(NotNow(f"{AT_ONCE} others are connected to the host, and more wait"))
    return _answer("503 Service Unavailable", words, f"retry-after: {AGAIN}\r\n")


def _answer(status: str, body: bytes, more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n{more}"
    return f"{head}connection: close\r\n\r\n".encode() + body


def _introduced(app: Any, peer: Peer) -> Any:  # uvicorn's and starlette's names for an application differ
    """The application, told with each request who is calling."""

    async def with_peer(scope: Scope, receive: Receive, send: Send) -> None:
        # Whoever isn't the host's own user, and was let in, is root: an administrator of the machine.
        told = {"waypost.user": user_name(peer.uid), "waypost.admin": peer.uid != os.geteuid()}
        await app({**scope, **told}, receive, send)

    return with_peer


def _words(error: HostError) -> bytes:
    return msgspec.json.encode(Problem(code=error.code, message=error.message, hint=error.hint))


def _refusing(refused: HostError, status: int) -> Any:  # the same
    """Answers every request of a connection with the refusal."""
    body = _words(refused)

    async def refuse(_scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": [*headers, (b"connection", b"close")]})
        await send({"type": "http.response.body", "body": body})

    return refuse
