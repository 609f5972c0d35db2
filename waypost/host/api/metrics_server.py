"""The metrics for a Prometheus that scrapes: one page, read-only, on a TCP port of its own.

It is there only when it was asked for (`waypost run --metrics`), and on the loopback interface unless another address
was said. Anybody who reaches the port may read it: names of deployments, and counts. On the loopback interface requests
for another name than this machine's own are refused, so that no page in a browser reads it by a name that it owns.
"""

import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from waypost.host.api.server import Server
from waypost.host.errors import HostError, Usage

PORT = 9464
"""Where such pages usually are."""
_LOCAL = frozenset(("localhost", "127.0.0.1", "[::1]"))
_HIGHEST = 65535
_AT_ONCE = 16
LONGEST = 30.0
"""Seconds after which a connection is closed, whatever it does."""


class PortTaken(HostError):
    """The port for the metrics can't be had."""

    code = "busy"

    def __init__(self, where: "Place", why: str) -> None:
        super().__init__(
            f"the metrics can't be served at {where}: {why}", hint="choose another port with --metrics PORT"
        )


@dataclass(frozen=True, slots=True)
class Place:
    """An address and a port; port 0: any that is free."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def local(self) -> bool:
        """Whether nobody from outside can reach it."""
        return ipaddress.ip_address(self.host).is_loopback


def place(text: str) -> Place:
    """``PORT`` on the loopback interface, or ``ADDRESS:PORT``. Raises Usage."""
    host, colon, port = text.rpartition(":")
    wrong = Usage(f"--metrics {text[:80]!r} is neither a port nor ADDRESS:PORT, such as 127.0.0.1:{PORT}")
    if not re.fullmatch(r"[0-9]{1,5}", port) or int(port) > _HIGHEST:
        raise wrong
    try:
        address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]")) if colon else "127.0.0.1"
    except ValueError:
        raise wrong from None
    return Place(str(address), int(port))


def listen(where: Place) -> socket.socket:
    """A listening socket there. Raises PortTaken."""
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    try:
        return socket.create_server((where.host, where.port), family=family, backlog=_AT_ONCE)
    except OSError as failure:
        raise PortTaken(where, failure.strerror or str(failure)) from failure


def metrics_server(
    listener: socket.socket,
    page: Callable[[Request], Awaitable[Response]],
    *,
    local: bool,
    longest: float = LONGEST,
) -> Server:
    """What serves the page there. ``local``: only to whoever asks this machine by its own name."""

    async def metrics(request: Request) -> Response:
        if local and _named(request.headers.get("host", "")) not in _LOCAL:
            return PlainTextResponse("this page is for this machine alone\n", 403)
        return await page(request)

    app = Starlette(
        routes=[Route("/metrics", metrics, methods=["GET"])],
        exception_handlers={HostError: _withheld, HTTPException: _nothing},
    )
    return Server(listener, app, type("Narrow", (_Narrow,), {"longest": longest}), "metrics")


class _Narrow(H11Protocol):
    """The protocol of uvicorn, for a few who connect at once, and not for long."""

    longest = LONGEST

    def connection_made(self, transport: object) -> None:
        super().connection_made(transport)  # type: ignore[arg-type] # as uvicorn has it
        self.loop.call_later(self.longest, self.transport.abort)  # also where what was said isn't read
        if len(self.connections) > _AT_ONCE:
            self.transport.abort()


def _named(host: str) -> str:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    return name.lower()


async def _withheld(_request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error}\n", 503)


async def _nothing(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PlainTextResponse("the metrics are at /metrics\n", error.status_code)
