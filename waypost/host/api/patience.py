"""How long a connection keeps its place: whoever neither asks, nor sends on, nor reads is sent away.

A host serves so many at once and no more. A program that has connected and hangs, or reads nothing of its answer, would
keep a place for ever, and a few dozen of them everybody out. What is being answered, however long that takes, is never
broken off for its length: who follows a run waits for days.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE = 30.0
"""Seconds in which something has to come, or to be taken."""


def gone(*, owing: bool, unsent: int, before: int) -> bool:
    """Whether a connection that has sent nothing for all its time is to be closed.

    ``owing``: it has no request under way, or its body isn't whole; ``unsent``: bytes that it hasn't taken yet, and
    ``before``: how many that were at the last look.
    """
    taking = 0 < unsent != before
    return owing and not taking


class Patient(H11Protocol):
    """The protocol of uvicorn, with an end to waiting: whatever comes gives it all its time anew."""

    patience = PATIENCE
    _unsent = 0
    _next: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Somebody has connected."""
        super().connection_made(transport)
        self.wait(self.patience)

    def wait(self, patience: float) -> None:
        """Have it so much patience from now on, in seconds."""
        if self._next is not None:
            self._next.cancel()
        self.patience = patience
        self._next = self.loop.call_later(patience, self.look)

    def data_received(self, data: bytes) -> None:
        """Something has come."""
        self.wait(self.patience)
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        if self._next is not None:
            self._next.cancel()
        super().connection_lost(exc)

    def look(self) -> None:
        """Nothing has come for so long."""
        cycle = getattr(self, "cycle", None)  # before the first request it is None, which its annotation leaves out
        owing = cycle is None or cycle.response_complete or cycle.more_body
        unsent = self.transport.get_write_buffer_size()
        if gone(owing=owing, unsent=unsent, before=self._unsent):
            self.transport.abort()  # and not close, which would wait until all has been taken
            return
        self._unsent = unsent
        self.wait(self.patience)
