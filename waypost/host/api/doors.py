"""What a door of the host's API is made of: a route, what the request says, a thread for what waits, JSON both ways."""

import functools
from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

import anyio.to_thread
import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from waypost.host.answers.records import Answer
from waypost.host.errors import Usage

SMALL = 64 * 1024
"""Bytes of a JSON body."""
T = TypeVar("T")
Door: TypeAlias = Callable[[Request], Awaitable[Answer]]
Given: TypeAlias = Callable[[Request], object]
"""Finds one argument in a request."""


async def in_thread(function: Callable[..., T], *arguments: object) -> T:
    """Run what waits for actors or disks in a thread of its own: the loop serves others meanwhile."""
    return await anyio.to_thread.run_sync(functools.partial(function, *arguments))


def route(path: str, door: Door, method: str = "GET", *, status: int = 200) -> Route:
    """The door at its path; its answer as JSON."""

    async def endpoint(request: Request) -> Response:
        return as_json(await door(request), status)

    return Route(path, endpoint, methods=[method])


def asks(function: Callable[..., Answer], *given: Given) -> Door:
    """A door that calls the function, in a thread, with what these find in the request."""

    async def door(request: Request) -> Answer:
        return await in_thread(function, *(find(request) for find in given))

    return door


def named(name: str) -> Given:
    """What the path has under this name."""
    return lambda request: request.path_params[name]


def user(request: Request) -> str:
    """Who is calling, as the kernel says (``waypost.host.api.server``)."""
    found: str = request.scope["waypost.user"]
    return found


def as_json(answer: Answer, status: int = 200) -> Response:
    """The answer as the API sends it."""
    return Response(msgspec.json.encode(answer), status, media_type="application/json")


def decoded(raw: bytes, kind: type[T]) -> T:
    """A JSON body. Raises Usage."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise Usage(f"the body can't be read: {bad}") from None


def number(request: Request, name: str, default: int) -> int:
    """A number from the query. Raises Usage."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 15:  # noqa: PLR2004 - any seq fits
        raise Usage(f"{name}={text[:40]!r} is no number")
    return int(text)
