"""What waits to be sent to a child: everything in order, the bulky parts a few at a time.

A page of a log or a part of a blob is as big as the host made it, so it is held here until the one before has left:
"4 MiB unsent" then always means a child that doesn't read, never a host that was quick. Pure.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from ipc.messages import BlobChunk, CredentialsUpdated, EventsCommitted, RunLog, ToChild

BULK_UNDER_WAY = 2
"""Bulky frames handed over and not yet gone: one that leaves, one that is ready behind it."""

_ENVELOPE = 256  # of a frame beside its payload's bytes, generously


@dataclass(frozen=True, slots=True)
class Blob:
    """A blob that is on its way; each frame takes ``chunk`` bytes from ``offset``."""

    id: int
    data: bytes
    offset: int = 0


Item: TypeAlias = ToChild | Blob


@dataclass(frozen=True, slots=True)
class Transmit:
    """Effect: seal this and hand it over. ``report``: come back with ``Written`` once it has left."""

    payload: ToChild
    report: bool = False


@dataclass(frozen=True, slots=True)
class Outbox:
    """``bulk`` counts bulky frames under way, ``light`` the bytes of what waits although it isn't bulky."""

    waiting: tuple[Item, ...] = ()
    bulk: int = 0
    light: int = 0

    @property
    def has_blob(self) -> bool:
        """Whether a blob is on its way; the next one is fetched after it, so that no more than one is in memory."""
        return any(isinstance(item, Blob) for item in self.waiting)


def push(outbox: Outbox, item: Item, *, page: int) -> Outbox:
    """Put something at the end. ``page``: bytes of events in a frame; a batch that holds more is divided."""
    items = tuple(_divided(item, page)) if isinstance(item, EventsCommitted) else (item,)
    return replace(outbox, waiting=(*outbox.waiting, *items), light=outbox.light + sum(map(_light, items)))


def written(outbox: Outbox) -> Outbox:
    """A bulky frame has left."""
    return replace(outbox, bulk=max(0, outbox.bulk - 1))


def pump(outbox: Outbox, *, chunk: int) -> tuple[Outbox, tuple[Transmit, ...]]:
    """Take out what may leave now. ``chunk``: bytes of a blob in one frame."""
    waiting, bulk, light = list(outbox.waiting), outbox.bulk, outbox.light
    waiting.reverse()
    leaving: list[Transmit] = []
    while waiting:
        item = waiting[-1]
        if not isinstance(item, RunLog | Blob):
            leaving.append(Transmit(item))
            light -= _light(item)
            waiting.pop()
            continue
        if bulk >= BULK_UNDER_WAY:
            break
        bulk += 1
        waiting.pop()
        if isinstance(item, RunLog):
            leaving.append(Transmit(item, report=True))
            continue
        data = item.data[item.offset : item.offset + chunk]
        part = BlobChunk(id=item.id, offset=item.offset, size=len(item.data), data=data)
        leaving.append(Transmit(part, report=True))
        if item.offset + len(data) < len(item.data):
            waiting.append(replace(item, offset=item.offset + len(data)))
    waiting.reverse()
    return Outbox(tuple(waiting), bulk, light), tuple(leaving)


def _divided(batch: EventsCommitted, page: int) -> Iterator[EventsCommitted]:
    events: list[bytes] = []
    size = 0
    for event in batch.events:
        if events and size + len(event) > page:
            yield EventsCommitted(run=batch.run, events=tuple(events))
            events, size = [], 0
        events.append(event)
        size += len(event)
    yield EventsCommitted(run=batch.run, events=tuple(events))


def _light(item: Item) -> int:
    match item:
        case RunLog() | Blob():
            return 0
        case EventsCommitted():
            return _ENVELOPE + sum(map(len, item.events))
        case CredentialsUpdated():
            return _ENVELOPE + sum(map(len, item.materials.values()))
        case _:
            return _ENVELOPE
