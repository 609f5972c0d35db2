"""What bodies of requests may hold of the host's memory: each one its limit, and all of them together a room.

A body is counted as it comes and until its request is answered, so a host that many mails are sent to at once takes in
what fits and withholds the others: their senders come again.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

from waypost.host.errors import NotNow, TooLarge


class Bodies:
    """``room`` in bytes. For the API's one event loop: between a look and the step after it nobody else comes."""

    def __init__(self, room: int) -> None:
        self._left = room

    @asynccontextmanager
    async def whole(self, request: Request, limit: int, what: str) -> AsyncIterator[bytes]:
        """The body, never more of it in memory than ``limit`` bytes. Raises TooLarge, NotNow."""
        parts: list[bytes] = []
        size = 0
        try:
            async for part in request.stream():
                if size + len(part) > limit:
                    raise TooLarge(what, limit)
                if len(part) > self._left:
                    raise NotNow("what others are sending fills the memory that is set aside for it")
                size += len(part)
                self._left -= len(part)
                parts.append(part)
            yield b"".join(parts)
        finally:
            self._left += size
