"""What waits to be sent to a child: in order, in as few frames as hold it, and the bulky ones a few at a time.

A page of a log or a part of a blob is as big as the host made it, so it is held here until the one before has left:
"4 MiB unsent" then always means a child that doesn't read, never a host that was quick. What has gathered behind it
leaves together: signature, check and write are paid for by the frame, however many messages are in it. Pure.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import msgspec

from ipc.messages import BUNDLE, BlobChunk, Bundle, EventsCommitted, RunLog, ToChild

BULK_UNDER_WAY = 2
"""Bulky frames handed over and not yet gone: one that leaves, one that is ready behind it."""

_ENVELOPE = 256  # of a message beside its payload's bytes, generously
_encoder = msgspec.msgpack.Encoder()


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

    payload: ToChild | Bundle
    report: bool = False


@dataclass(frozen=True, slots=True)
class Outbox:
    """``bulk`` counts bulky frames under way, ``light`` the bytes of what waits although it isn't bulky."""

    waiting: tuple[Item, ...] = ()
    bulk: int = 0
    light: int = 0
    blobs: int = 0
    """How many wait; the next one is fetched after that, so that no more than one is in memory."""


@dataclass(slots=True)
class _Frame:
    """A frame being filled; local to ``pump``."""

    messages: list[ToChild]
    weight: int
    bulky: bool


def push(outbox: Outbox, items: Iterable[Item], *, page: int) -> Outbox:
    """Put these at the end. ``page``: bytes of events in a frame; a batch that holds more is divided."""
    added: list[Item] = []
    for item in items:
        added += _divided(item, page) if isinstance(item, EventsCommitted) else (item,)
    return replace(
        outbox,
        waiting=(*outbox.waiting, *added),
        light=outbox.light + sum(map(_light, added)),
        blobs=outbox.blobs + sum(isinstance(item, Blob) for item in added),
    )


def written(outbox: Outbox) -> Outbox:
    """A bulky frame has left."""
    return replace(outbox, bulk=max(0, outbox.bulk - 1))


def pump(outbox: Outbox, *, chunk: int, page: int) -> tuple[Outbox, tuple[Transmit, ...]]:
    """Take out what may leave now. ``chunk``: bytes of a blob in one frame; ``page``: of several messages in one."""
    if not outbox.waiting or (outbox.bulk >= BULK_UNDER_WAY and isinstance(outbox.waiting[0], RunLog | Blob)):
        return outbox, ()  # nothing is looked at, nor copied: thousands of runs may wait
    waiting, bulk, light, blobs = deque(outbox.waiting), outbox.bulk, outbox.light, outbox.blobs
    frames: list[_Frame] = []
    while waiting:
        item = waiting[0]
        bulky = isinstance(item, RunLog | Blob)
        message, rest = _cut(item, chunk)
        weight = _weight(message)
        last = frames[-1] if frames and frames[-1].weight + weight <= page else None
        last = None if last is None or len(last.messages) == BUNDLE else last
        if bulky and (last is None or not last.bulky):
            if bulk >= BULK_UNDER_WAY:
                break
            bulk += 1
        if last is None:
            frames.append(_Frame([message], weight, bulky))
        else:
            last.messages.append(message)
            last.weight, last.bulky = last.weight + weight, last.bulky or bulky
        waiting.popleft()
        light -= _light(item)
        if rest is not None:
            waiting.appendleft(rest)
        elif isinstance(item, Blob):
            blobs -= 1
    return Outbox(tuple(waiting), bulk, light, blobs), tuple(map(_transmit, frames))


def _transmit(frame: _Frame) -> Transmit:
    several = len(frame.messages) > 1
    return Transmit(Bundle(messages=tuple(frame.messages)) if several else frame.messages[0], report=frame.bulky)


def _cut(item: Item, chunk: int) -> tuple[ToChild, Blob | None]:
    """The message that an item leaves as, and what is left of it then."""
    if not isinstance(item, Blob):
        return item, None
    data = item.data[item.offset : item.offset + chunk]
    part = BlobChunk(id=item.id, offset=item.offset, size=len(item.data), data=data)
    end = item.offset + len(data)
    return part, replace(item, offset=end) if end < len(item.data) else None


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
    return 0 if isinstance(item, RunLog | Blob) else _weight(item)


def _weight(message: ToChild) -> int:
    match message:
        case RunLog():
            return _ENVELOPE + sum(map(len, message.events)) + sum(map(len, message.mails))
        case EventsCommitted():
            return _ENVELOPE + sum(map(len, message.events))
        case BlobChunk():
            return _ENVELOPE + len(message.data)
        case _:
            return _ENVELOPE + len(_encoder.encode(message))
