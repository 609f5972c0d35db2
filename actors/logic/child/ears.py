"""From a child's bytes to what it says: frames cut, verified and typed, on both of its channels.

Sans-io: bytes in, facts out. It keeps the channels' sequence numbers, so one pair of ears belongs to one spawn. After
the first violation it hears nothing more. A message that was cut short shows with the first byte that follows it, and
not when all that it announced would have come.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from actors.logic.child.frames import Unfinished
from actors.logic.child.states import Broke, Heard, HungUp
from actors.messages import BytesCame
from ipc import control, events
from ipc.errors import ChannelEnded, PeerError
from ipc.frames import FrameReader
from ipc.messages import FromChild, FromChildEvents
from ipc.parse import from_child, from_child_events
from ipc.sealed import Direction
from ipc.secret import Secret
from waypost.model.limits import Limits


@dataclass(slots=True)
class _Channel:
    frames: FrameReader
    receiver: control.Receiver[FromChild] | events.Receiver[FromChildEvents] = field(repr=False)
    whole: int = 0
    """Frames that came to their end."""


class Ears:
    """Hears one child. ``event_key`` authenticates its events channel; its control key comes in its first frame."""

    def __init__(self, channel_id: bytes, event_key: Secret, limits: Limits) -> None:
        up = control.Receiver(
            None, channel_id, Direction.UP, parse=from_child, frame=limits.frame, nesting=limits.nesting
        )
        told = events.Receiver(
            event_key, channel_id, parse=from_child_events, frame=limits.frame, nesting=limits.nesting
        )
        self._channels = {
            "control": _Channel(FrameReader("control up", limit=limits.frame), up),
            "events": _Channel(FrameReader("events up", limit=limits.frame), told),
        }

    def unfinished(self, *, looked: bool) -> Unfinished:
        """What has begun and isn't whole."""
        each = ((name, channel.whole, channel.frames.pending) for name, channel in self._channels.items())
        return Unfinished(tuple(frame for frame in each if frame[2]), looked=looked)

    def hear(self, came: BytesCame) -> Iterator[Heard | Broke | HungUp | Unfinished]:
        """What these bytes of ``control`` or ``events`` complete, in order; and what they leave unfinished."""
        if not came.data:
            if came.channel == "control":
                yield HungUp()
            return
        channel = self._channels[came.channel]
        with suppress(ChannelEnded):  # more from a channel that has been given up
            try:
                for body in channel.frames.feed(came.data):
                    channel.whole += 1
                    yield Heard(channel.receiver.open(body))
                if channel.frames.begun is not None:
                    channel.receiver.begun(*channel.frames.begun)
                if channel.frames.pending:
                    yield self.unfinished(looked=False)
            except PeerError as violation:
                yield Broke(violation.message)
