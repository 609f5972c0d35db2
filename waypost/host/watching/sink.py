"""SinkActor: tells whatever shows approvals what is open, as ``sink_logic`` decides; and its connections to the API.

A connection is told as fast as it writes; one that falls behind by ``MOST`` lines is ended, and learns everything
again when it comes back.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, assert_never

import msgspec

from actors.messages import Forward
from waypost.acting import Clock, Ref
from waypost.host.answers.records import ApprovalShown
from waypost.host.reading.source import approval_shown
from waypost.host.root.library import Look
from waypost.host.root.seats import sitting
from waypost.host.watching.sink_logic import advance
from waypost.host.watching.sink_states import (
    Announced,
    Connect,
    Disconnect,
    End,
    Hub,
    Inquire,
    Line,
    Listed,
    Ready,
    Say,
    Unread,
    Withdrawn,
)
from waypost.shell import Shell, tell

MOST = 10_000
"""Lines that a connection may leave unwritten."""
ALIVE = 15.0
"""Seconds after which an empty line is sent, so that either side notices when the other one is gone."""


class SinkActor(Shell):
    """One for a host; supervisors tell it of their deployments (``Asking``), the API of its connections.

    ``library`` reads what is of a deployment that sleeps.
    """

    def __init__(
        self, *, clock: Clock, parent: Ref | None = None, incarnation: int = 1, library: Ref | None = None
    ) -> None:
        super().__init__("sinks", Hub(), advance, clock=clock, parent=parent, incarnation=incarnation)
        self._library = library

    def perform(self, effect: Any) -> None:
        """Say a line, end a sink, or ask a repository."""
        match effect:
            case Say():
                effect.sink.say(effect.line)
            case End():
                effect.sink.end()
            case Inquire():
                if not tell(effect.supervisor, Forward(effect.question, self.actor_ref, effect.correlation)):
                    tell(self._library, Look(effect.deployment, effect.question, self.actor_ref, effect.correlation))
            case _:
                super().perform(effect)

    def finish(self) -> None:
        """Let nobody go on listening to what says nothing more: a connection comes again, and learns everything."""
        if isinstance(self._state, Hub):
            for sink in self._state.peers:
                sink.end()


class Connection:
    """A sink that is a connection: NDJSON, one line for each thing it is told. Made in the loop that serves it."""

    def __init__(self, hub: Ref | None) -> None:
        self._hub = sitting(hub)
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()

    def say(self, line: Line) -> None:
        """Take a line, from the actor's thread."""
        self._give(encoded(line))

    def end(self) -> None:
        """No more lines will come."""
        self._give(None)

    async def lines(self) -> AsyncIterator[bytes]:
        """The bytes to be sent, until the connection ends, from either side."""
        if not tell(self._hub, Connect(self)):
            return
        try:
            while True:
                try:
                    raw = await asyncio.wait_for(self._lines.get(), ALIVE)
                except TimeoutError:
                    # Gone before it had heard of this one, it ends nothing: who comes again learns everything.
                    raw = b"\n" if self._hub is not None and self._hub.is_alive() else None
                if raw is None or self._lines.qsize() > MOST:
                    return
                yield raw
                if self._lines.empty():
                    tell(self._hub, Ready(self))
        finally:
            tell(self._hub, Disconnect(self))

    def _give(self, raw: bytes | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed: so has the connection
            self._loop.call_soon_threadsafe(self._lines.put_nowait, raw)


class _Out(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One line; exactly one of its fields is set."""

    announced: ApprovalShown | None = None
    withdrawn: dict[str, str] | None = None
    listed: str | None = None
    unread: dict[str, str] | None = None


def encoded(line: Line) -> bytes:
    """A line as a program reads it."""
    match line:
        case Announced(deployment, address, approval):
            out = _Out(announced=approval_shown(deployment, address, approval))
        case Withdrawn(deployment, run, call, why):
            out = _Out(withdrawn={"deployment": deployment, "run": run, "call": call, "why": why})
        case Listed(deployment):
            out = _Out(listed=deployment)
        case Unread(deployment, why):
            out = _Out(unread={"deployment": deployment, "why": why})
        case _:
            assert_never(line)
    return msgspec.json.encode(out) + b"\n"
