"""A message that was cut short, and bytes between two messages, show with the next one: nobody waits for the rest."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.logic.child.ears import Ears
from actors.logic.child.frames import Unfinished
from actors.logic.child.states import Broke, Heard
from actors.messages import BytesCame
from ipc import control, events
from ipc.messages import Progress, Ready
from ipc.sealed import Direction
from ipc.secret import Secret
from waypost.ed25519 import PrivateKey
from waypost.model.limits import DEFAULT

CHANNEL = bytes(range(16))
CHILD = PrivateKey(b"c" * 32)
KEY = b"e" * 32
SIZES = (0, 1, 5, 60, 120, 250, 300, 66_000)
"""So that the envelope's length takes one, two, three and five bytes."""


def said(size: int) -> tuple[bytes, bytes]:
    """The first frame on control and on events, of about this size."""
    up = control.Sender(CHILD, CHANNEL, Direction.UP).seal(Ready(key=CHILD.public, pid=7, error="x" * size))
    told = events.Sender(Secret(KEY), CHANNEL).seal(Progress(run="r", call="c", seq=1, text="x" * min(size, 900)))
    return up, told


def ears() -> Ears:
    return Ears(CHANNEL, Secret(KEY), DEFAULT)


def heard(each: Ears, channel: str, *parts: bytes) -> Iterator[object]:
    for part in parts:
        yield from each.hear(BytesCame(channel, part))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("channel", "number"), [("control", 0), ("events", 1)])
def test_a_message_may_come_in_pieces(channel: str, number: int, size: int) -> None:
    """A pipe gives what it has; whatever is there of an honest message is the beginning of one."""
    frame = said(size)[number]
    for cut in (*range(1, min(len(frame), 120)), len(frame) - 1):
        begun, one = heard(ears(), channel, frame[:cut], frame[cut:])
        assert isinstance(begun, Unfinished)
        assert isinstance(one, Heard)


@pytest.mark.parametrize(("channel", "number"), [("control", 0), ("events", 1)])
@given(st.sampled_from(SIZES[:-1]), st.data())
def test_half_a_message_is_refused_when_the_next_one_comes(
    channel: str, number: int, size: int, data: st.DataObject
) -> None:
    """Its length may promise megabytes: a run would hang until so many had come."""
    frame = said(size)[number]
    cut = data.draw(st.integers(4, min(len(frame) - 1, 34)))
    longer = (len(frame) - 4 + data.draw(st.sampled_from([0, 1 << 16, 1 << 18]))).to_bytes(4, "big")
    (one,) = heard(ears(), channel, longer + frame[4:cut] + frame)
    assert isinstance(one, Broke)


@given(st.binary(min_size=1, max_size=40))
def test_bytes_between_two_messages_are_refused_when_the_next_ones_come(junk: bytes) -> None:
    """A step that prints to the wrong descriptor. At most a few messages go by, where the junk promises a short one."""
    sender = control.Sender(CHILD, CHANNEL, Direction.UP)
    frames = [sender.seal(Ready(key=CHILD.public, pid=7, error="x" * 60)) for _ in range(4)]
    (first, *others) = heard(ears(), "control", frames[0], junk, *frames[1:])
    assert isinstance(first, Heard)
    assert any(isinstance(each, Broke) for each in others)
    assert not any(isinstance(each, Heard) for each in others)
