"""Who follows what happens: answers of the API that don't end by themselves, so many at once and no more.

Each keeps a connection for hours. The places that are left are for who asks something, or answers a run.
"""

from collections.abc import AsyncIterator

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from waypost.host.api.server import AT_ONCE
from waypost.host.errors import NotNow

SEATS = AT_ONCE * 3 // 4
"""How many may follow at once, on one host."""


class Audience:
    """All of a host's followers, for the API's one event loop: between a look and the step after it nobody comes."""

    def __init__(self, seats: int = SEATS) -> None:
        self.seats, self.taken = seats, 0

    def told(self, lines: AsyncIterator[bytes]) -> "Told":
        """The answer to one of them: a line of JSON each, until either side ends. To send it raises NotNow: no seat."""
        return Told(lines, self)


class Told(StreamingResponse):
    """An answer that takes a seat for as long as it lasts."""

    def __init__(self, lines: AsyncIterator[bytes], audience: Audience) -> None:
        super().__init__(lines, media_type="application/x-ndjson")
        self._audience = audience

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer; raises NotNow."""
        audience = self._audience
        if audience.taken >= audience.seats:
            raise NotNow(f"{audience.seats} others follow what happens on this host")
        audience.taken += 1
        try:
            await super().__call__(scope, receive, send)
        finally:
            audience.taken -= 1
