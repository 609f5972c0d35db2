"""FollowersActor, and one who follows: `waypost tail` on the host's side, a line of JSON for each event.

What a follower has not been sent yet is in the logs: where more waits for it than it is worth keeping, or something
may have passed it by, its run is read from there. So a reader as slow as can be misses nothing of a run, costs little
memory, and holds up nobody.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pykka
from anyio import to_thread

from actors.messages import Seen
from actors.watching import Asking, Sleeps
from substrate.messages import LogPage
from waypost.acting import Clock, Ref
from waypost.host.root.seats import sitting
from waypost.host.watching.following_logic import Ended, Follow, Following, Hub, advance
from waypost.model import events as ev
from waypost.model.errors import WaypostError
from waypost.model.ids import Deployment, RunId
from waypost.shell import Shell, tell

ALIVE = 15.0
"""Seconds after which an empty line is sent, so that either side notices when the other one is gone."""
KEPT = 1000
"""Events that are kept for a follower; the others are read from their logs."""
RUNS = 10_000
"""Runs that may wait for a follower, and of which it is remembered how far it has come: those that moved last."""
Page = Callable[[Deployment, RunId, int], LogPage | None]
"""Stored events of a run after a seq; None for a run that isn't there."""


class FollowersActor(Shell):
    """One for a host; told ``Asking`` by each supervisor, ``Follow`` by the API."""

    def __init__(self, *, clock: Clock, parent: Ref | None = None, incarnation: int = 1) -> None:
        super().__init__("followers", Hub(), advance, clock=clock, parent=parent, incarnation=incarnation)

    def finish(self) -> None:
        """Let nobody go on listening to what passes nothing more on: who follows comes again, from where it was."""
        if isinstance(self._state, Hub):
            for each in self._state.followers:
                tell(each.follower, Ended())


@dataclass(slots=True)
class Backlog:
    """What a follower is to be sent of one run: these events, and then, if it was ``cut``, what its log has more."""

    deployment: Deployment
    first: int
    raws: list[bytes] = field(default_factory=list)
    cut: bool = False


class Follower(pykka.ActorRef[Any]):
    """One connection: told like any actor, by any thread; it only hands on to the loop that serves it."""

    def __init__(self, run: RunId | None, after: int, deployment: Deployment | None) -> None:
        # Not of an actor: nobody but those who tell it, and ask whether it is there, has it.
        self._loop = asyncio.get_running_loop()
        self._run, self._deployment = run, deployment
        self._open = True
        self._news = asyncio.Event()
        self._waiting: dict[RunId, Backlog] = {}
        self._kept = 0
        self._known: dict[RunId, tuple[Deployment, int]] = {}
        self._awaited: set[Deployment] | None = None
        self._unread: set[RunId] = set()
        """Runs whose logs couldn't be read when that was needed."""
        self._left_out = 0
        self._over = False
        if run is not None and deployment is not None:
            self._known[run] = deployment, after

    def __repr__(self) -> str:
        return f"<Follower of {self._run or self._deployment or 'everything'}>"

    __str__ = __repr__

    def is_alive(self) -> bool:
        """Whether somebody still reads."""
        return self._open

    def tell(self, message: Any) -> None:
        """Take news, from any thread. Raises pykka.ActorDeadError."""
        if not self._open:
            raise pykka.ActorDeadError(str(self))
        with suppress(RuntimeError):  # the loop has been closed: so has the connection
            self._loop.call_soon_threadsafe(self._take, message)

    # --- in the loop -------------------------------------------------------------------------------------------------

    async def lines(self, hub: Ref | None, page: Page) -> AsyncIterator[bytes]:
        """What is to be sent, until the run ends, the host does, or nobody reads any more."""
        hub = sitting(hub)
        if hub is None or not tell(hub, Follow(self, self._deployment)):
            return
        try:
            if self._run is not None:
                self._look_again(self._run)
            while True:
                async for line in self._told(page):
                    yield line
                if self._over:
                    return
                try:
                    await asyncio.wait_for(self._news.wait(), ALIVE)
                except TimeoutError:
                    unread, self._unread = self._unread, set()
                    for run in unread if self._run is None else (self._run,):
                        self._look_again(run)
                    yield b"\n"
                    if self._run is None and not hub.is_alive():
                        return  # gone before it had heard of this one: who comes again is followed by another
                self._news.clear()
        finally:
            self._open = False

    async def _told(self, page: Page) -> AsyncIterator[bytes]:
        while self._waiting:
            run, backlog = next(iter(self._waiting.items()))
            del self._waiting[run]
            self._kept -= len(backlog.raws)
            async for raw in self._events(run, backlog, page):
                yield _line(_Out(deployment=backlog.deployment, run=run, event=msgspec.Raw(raw)))
                if self._over:
                    return
        if self._left_out:
            count, self._left_out = self._left_out, 0
            yield _line(_Out(left_out=count))
        if self._awaited is not None and not self._awaited:
            self._awaited = None
            yield _line(_Out(following=True))

    async def _events(self, run: RunId, backlog: Backlog, page: Page) -> AsyncIterator[bytes]:
        """The events of a run that it hasn't been sent, in order."""
        known = self._known.get(run, (backlog.deployment, backlog.first - 1))[1]
        self._remember(run, backlog.deployment, known)
        if known < backlog.first - 1:
            backlog.cut, backlog.raws = True, []
        for raw in backlog.raws[max(0, known + 1 - backlog.first) :]:
            known += 1
            yield self._sent(run, backlog.deployment, known, raw)
        while backlog.cut:
            try:
                found = await to_thread.run_sync(page, backlog.deployment, run, known)
            except WaypostError:  # its deployment is being made anew, or is very busy: it is looked at again
                self._unread.add(run)
                return
            for raw in () if found is None else found.events:
                known += 1
                yield self._sent(run, backlog.deployment, known, raw)
            backlog.cut = found is not None and known < found.last and bool(found.events)

    def _sent(self, run: RunId, deployment: Deployment, seq: int, raw: bytes) -> bytes:
        ended = isinstance(ev.decode(raw), ev.TERMINAL)
        if ended and run == self._run:
            self._over = True
        if ended:
            self._known.pop(run, None)
        else:
            self._remember(run, deployment, seq)
        return raw

    def _remember(self, run: RunId, deployment: Deployment, seq: int) -> None:
        self._known.pop(run, None)  # so that it is the newest of them
        self._known[run] = deployment, seq
        if len(self._known) > RUNS:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._unread.discard(oldest)

    def _take(self, message: Any) -> None:
        match message:
            case Seen(deployment, run, recorded):
                if self._run in {None, run} and self._deployment in {None, deployment}:
                    self._seen(deployment, run, recorded.event.seq, recorded.raw)
            case Asking(deployment) | Sleeps(deployment):
                # Between two crews, or on the way to sleep, something may have passed it by.
                for run in [run for run, (whose, _) in self._known.items() if whose == deployment]:
                    self._look_again(run)
                for backlog in self._waiting.values():
                    backlog.cut = backlog.cut or backlog.deployment == deployment
                if self._awaited is not None:
                    self._awaited.discard(deployment)
            case Following(deployments):
                self._awaited = set(deployments)
            case Ended():
                self._over = True
            case _:
                return
        self._news.set()

    def _seen(self, deployment: Deployment, run: RunId, seq: int, raw: bytes) -> None:
        backlog = self._waiting.get(run)
        if backlog is None:
            if len(self._waiting) >= RUNS:
                self._left_out += 1
                return
            backlog = self._waiting[run] = Backlog(deployment, seq)
        if backlog.cut or self._kept >= KEPT or seq != backlog.first + len(backlog.raws):
            backlog.cut = True
            return
        backlog.raws.append(raw)
        self._kept += 1

    def _look_again(self, run: RunId) -> None:
        if run in self._known:
            deployment, seq = self._known[run]
            self._waiting.setdefault(run, Backlog(deployment, seq + 1)).cut = True


class _Out(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One line: an event, or that the follower is told of every event from now on, or how many runs it missed."""

    deployment: str = ""
    run: str = ""
    event: msgspec.Raw = msgspec.Raw(b"null")
    following: bool = False
    left_out: int = 0


def _line(out: _Out) -> bytes:
    return msgspec.json.encode(out) + b"\n"
