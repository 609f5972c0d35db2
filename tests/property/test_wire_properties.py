"""Properties of the wire: any cut, any bit, any bytes."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc import cbor, control, events, parse
from ipc.errors import BadCbor, ChannelEnded, PeerError
from ipc.frames import FrameReader, encode_frame
from ipc.messages import Progress, Ready, RunLogCredit
from ipc.sealed import Direction
from ipc.secret import Secret
from waypost.ed25519 import PrivateKey

CHANNEL = bytes(range(16))
CHILD = PrivateKey(b"c" * 32)
KEY = Secret(b"e" * 32)
READY = Ready(key=CHILD.public, pid=7)
CREDIT = RunLogCredit(run="run_1_0000000000000000")
PROGRESS = Progress(run="run_1_0000000000000000", call="r1#1", seq=3, text="half way")


def control_stream() -> tuple[list[bytes], list[Any]]:
    sender = control.Sender(CHILD, CHANNEL, Direction.UP)
    messages = [READY, CREDIT, CREDIT]
    return [sender.seal(message) for message in messages], messages


def event_stream() -> tuple[list[bytes], list[Any]]:
    sender = events.Sender(KEY, CHANNEL)
    return [sender.seal(PROGRESS) for _ in range(3)], [PROGRESS] * 3


def control_receiver() -> control.Receiver[Any]:
    return control.Receiver(None, CHANNEL, Direction.UP, parse=parse.from_child)


def event_receiver() -> events.Receiver[Any]:
    return events.Receiver(KEY, CHANNEL, parse=parse.from_child_events)


def read_all(wire: bytes, receiver: Any, delivered: list[Any]) -> None:
    """Read a whole stream to its end, as a host does."""
    reader = FrameReader("up")
    for body in reader.feed(wire):
        delivered.append(receiver.open(body))  # noqa: PERF401 - what came before a refusal counts
    reader.finish()


Stream = Callable[[], tuple[list[bytes], list[Any]]]
LANES: list[tuple[Stream, Callable[[], Any]]] = [(control_stream, control_receiver), (event_stream, event_receiver)]

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.binary(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(st.binary(max_size=40), max_size=8), st.data())
def test_frames_survive_any_cut(bodies: list[bytes], data: st.DataObject) -> None:
    """However the kernel slices the stream, the same bodies come out in the same order."""
    wire = b"".join(encode_frame(body) for body in bodies)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=10)))
    reader = FrameReader("control up")
    pieces = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    assert [body for piece in pieces for body in reader.feed(piece)] == bodies
    reader.finish()


@given(plain)
def test_any_plain_value_survives_the_wire(value: object) -> None:
    """Encode and decode agree about what is plain."""
    assert cbor.decode(cbor.encode(value)) == value


@given(st.binary(max_size=64))
def test_any_bytes_decode_to_themselves_or_are_refused(data: bytes) -> None:
    """No other exception gets out, and what is taken has no second spelling."""
    try:
        value = cbor.decode(data)
    except BadCbor:
        return
    assert cbor.encode(value) == data


@given(plain, st.data())
def test_a_damaged_item_decodes_to_itself_or_is_refused(value: object, data: st.DataObject) -> None:
    """Nearly right bytes get deeper into the decoder than random ones."""
    wire = bytearray(cbor.encode(value))
    at = data.draw(st.integers(0, len(wire) - 1))
    wire[at] ^= data.draw(st.integers(1, 255))
    try:
        changed = cbor.decode(bytes(wire))
    except BadCbor:
        return
    assert cbor.encode(changed) == bytes(wire)


@pytest.mark.parametrize(("stream", "receiver"), LANES, ids=["control", "events"])
@given(data=st.data())
def test_one_flipped_bit_is_a_violation_and_nothing_is_delivered_after_it(
    stream: Stream, receiver: Callable[[], Any], data: st.DataObject
) -> None:
    """Length, envelope or tag, first frame or last: what was whole before it stands, everything after is gone."""
    frames, messages = stream()
    hit = data.draw(st.integers(0, len(frames) - 1))
    bit = data.draw(st.integers(0, 8 * len(frames[hit]) - 1))
    wire = bytearray(b"".join(frames))
    start = sum(len(frame) for frame in frames[:hit])
    wire[start + bit // 8] ^= 1 << bit % 8
    delivered: list[Any] = []
    with pytest.raises(PeerError):
        read_all(bytes(wire), receiver(), delivered)
    assert delivered == messages[:hit]


@given(hit=st.integers(0, 2), bit=st.integers(0, 10_000))
def test_a_receiver_that_has_refused_once_takes_not_even_a_good_frame(hit: int, bit: int) -> None:
    """The good frame that should have come is no cure: the supervisor decides, not the peer."""
    frames, _ = control_stream()
    receiver = control_receiver()
    for frame in frames[:hit]:
        receiver.open(frame[4:])
    damaged = bytearray(frames[hit][4:])
    damaged[bit // 8 % len(damaged)] ^= 1 << bit % 8
    with pytest.raises(PeerError):
        receiver.open(bytes(damaged))
    for frame in frames[hit:]:
        with pytest.raises(ChannelEnded):
            receiver.open(frame[4:])
