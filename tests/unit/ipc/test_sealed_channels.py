"""The two sealed channels: what is let through, what is refused and why, and in which order it is checked."""

from typing import Any

import pytest

from ipc import cbor, control, events, parse
from ipc.errors import (
    BadKey,
    BadMessage,
    BadTag,
    ChannelEnded,
    FrameTooLarge,
    Malformed,
    NotEncodable,
    NotReady,
    PeerError,
    SecretWiped,
    WrongChannel,
    WrongDirection,
    WrongSequence,
    WrongVersion,
)
from ipc.messages import Progress, Ready, RunLive, RunLogCredit, Shutdown
from ipc.sealed import LAST_SEQ, Direction, Lane, split
from ipc.secret import Secret
from waypost.ed25519 import SIGNATURE, PrivateKey
from waypost.testing import cases

CHANNEL = bytes(range(16))
HOST = PrivateKey(b"h" * 32)
CHILD = PrivateKey(b"c" * 32)
HOST_KEY = HOST.public
CHILD_KEY = CHILD.public
READY = Ready(key=CHILD_KEY, pid=7)
CREDIT = RunLogCredit(run="run_1_0000000000000000")
LIVE = RunLive(run="run_1_0000000000000000")
PROGRESS = Progress(run="run_1_0000000000000000", call="r1#1", seq=3, text="half way")


def body(frame: bytes) -> bytes:
    return frame[4:]


def sealed_by(key: PrivateKey, fields: object, *, direction: Direction = Direction.UP, name: str = "control") -> bytes:
    """A frame's body with a good signature over any envelope at all."""
    envelope = cbor.encode(fields)
    return cbor.encode([envelope, key.sign(Lane(name, direction, CHANNEL).prefix + envelope)])


def host_side() -> control.Receiver[Any]:
    return control.Receiver(None, CHANNEL, Direction.UP, parse=parse.from_child)


def pinned() -> control.Receiver[Any]:
    """The host's side after `ready`."""
    receiver = host_side()
    assert receiver.open(body(child_sender().seal(READY))) == READY
    return receiver


def child_sender(**options: int) -> control.Sender:
    return control.Sender(CHILD, CHANNEL, Direction.UP, **options)


def child_side() -> control.Receiver[Any]:
    return control.Receiver(HOST_KEY, CHANNEL, Direction.DOWN, parse=parse.to_child)


def test_both_directions_carry_typed_messages_in_order() -> None:
    """The plain case: ready first, then as many as there are, each way under its own key."""
    up, down = child_sender(), control.Sender(HOST, CHANNEL, Direction.DOWN)
    host, child = host_side(), child_side()
    assert [host.open(body(up.seal(message))) for message in (READY, CREDIT, CREDIT)] == [READY, CREDIT, CREDIT]
    assert [child.open(body(down.seal(message))) for message in (LIVE, Shutdown(reason="bye"))] == [
        LIVE,
        Shutdown(reason="bye"),
    ]


def test_the_event_channel_carries_progress() -> None:
    """The same envelope under the other authenticator."""
    key = Secret(b"e" * 32)
    sender, receiver = events.Sender(key, CHANNEL), events.Receiver(key, CHANNEL, parse=parse.from_child_events)
    assert [receiver.open(body(sender.seal(PROGRESS))) for _ in range(3)] == [PROGRESS] * 3


def test_the_first_frame_must_be_ready() -> None:
    """Before it no key is known, so nothing else could be verified."""
    with pytest.raises(NotReady):
        host_side().open(body(child_sender().seal(CREDIT)))


def test_the_key_in_ready_must_have_signed_that_very_frame() -> None:
    """A child can't introduce a key it doesn't hold."""
    with pytest.raises(BadTag):
        host_side().open(body(control.Sender(HOST, CHANNEL, Direction.UP).seal(READY)))


def test_the_key_is_pinned() -> None:
    """A second `ready` with another key, signed by that key, changes nothing."""
    other = Ready(key=HOST_KEY, pid=8)
    with pytest.raises(BadTag):
        pinned().open(sealed_by(HOST, [1, "up", CHANNEL, 2, {"t": "ready", "key": other.key, "pid": 8}]))


def test_a_first_frame_has_a_limit_of_its_own() -> None:
    """It is the one frame that is looked into before it is verified."""
    big = sealed_by(CHILD, [1, "up", CHANNEL, 1, b"x" * control.FIRST_FRAME])
    with pytest.raises(Malformed, match="too many for a first frame"):
        host_side().open(big)


def test_ready_with_the_longest_error_text_fits_the_first_frame() -> None:
    """A child whose code doesn't load must be able to say why, in any script."""
    ready = Ready(key=CHILD_KEY, pid=7, error="😀" * 262_144)
    assert host_side().open(body(child_sender().seal(ready))) == ready


SMALL_ORDER = [row for row in cases.rows("ed25519.tsv") if row["name"].startswith("small_order")]


@pytest.mark.parametrize("row", SMALL_ORDER, ids=lambda row: row["name"])
def test_ready_with_a_key_of_small_order_is_refused(row: dict[str, str]) -> None:
    """Anybody could sign for such a key."""
    forged = [1, "up", CHANNEL, 1, {"t": "ready", "key": bytes.fromhex(row["public_key_hex"]), "pid": 1}]
    with pytest.raises(BadKey):
        host_side().open(sealed_by(CHILD, forged))


def test_a_bad_host_key_is_refused_when_the_channel_is_made() -> None:
    """The child trusts what its environment says only after a look at it."""
    with pytest.raises(BadKey):
        control.Receiver(bytes(32), CHANNEL, Direction.DOWN, parse=parse.to_child)


GOOD = {"t": "run.log.credit", "run": "run_1_0000000000000000"}
ENVELOPES: list[tuple[str, object, type[PeerError]]] = [
    ("another version", [2, "up", CHANNEL, 2, GOOD], WrongVersion),
    ("version true", [True, "up", CHANNEL, 2, GOOD], WrongVersion),
    ("the other direction", [1, "down", CHANNEL, 2, GOOD], WrongDirection),
    ("another channel", [1, "up", bytes(16), 2, GOOD], WrongChannel),
    ("a short channel id", [1, "up", CHANNEL[:-1], 2, GOOD], WrongChannel),
    ("a channel id as text", [1, "up", CHANNEL.hex(), 2, GOOD], WrongChannel),
    ("a repeat", [1, "up", CHANNEL, 1, GOOD], WrongSequence),
    ("a gap", [1, "up", CHANNEL, 3, GOOD], WrongSequence),
    ("zero", [1, "up", CHANNEL, 0, GOOD], WrongSequence),
    ("a float", [1, "up", CHANNEL, 2.0, GOOD], WrongSequence),
    ("the top", [1, "up", CHANNEL, 2**64 - 1, GOOD], WrongSequence),
    ("a field more", [1, "up", CHANNEL, 2, GOOD, None], Malformed),
    ("a field less", [1, "up", CHANNEL, 2], Malformed),
    ("a map", {"seq": 2}, Malformed),
    ("an unknown message", [1, "up", CHANNEL, 2, {"t": "run.cancel"}], BadMessage),
    ("a message of the other direction", [1, "up", CHANNEL, 2, {"t": "shutdown", "reason": ""}], BadMessage),
    ("a message of the other channel", [1, "up", CHANNEL, 2, {"t": "progress"}], BadMessage),
    ("an unknown field", [1, "up", CHANNEL, 2, {**GOOD, "more": 1}], BadMessage),
    ("a wrong type", [1, "up", CHANNEL, 2, {**GOOD, "run": 7}], BadMessage),
    ("no message", [1, "up", CHANNEL, 2, None], BadMessage),
]


@pytest.mark.parametrize(("fields", "error"), [row[1:] for row in ENVELOPES], ids=[row[0] for row in ENVELOPES])
def test_an_authentic_envelope_that_breaks_a_rule_ends_the_channel(fields: object, error: type[PeerError]) -> None:
    """The child holds its key, so a good signature proves nothing about what it says."""
    receiver = pinned()
    with pytest.raises(error) as caught:
        receiver.open(sealed_by(CHILD, fields))
    assert (caught.value.channel, caught.value.seq) == ("control up", 2)
    with pytest.raises(ChannelEnded, match=error.code):
        receiver.open(sealed_by(CHILD, [1, "up", CHANNEL, 2, GOOD]))


def test_a_signature_for_another_lane_is_worth_nothing() -> None:
    """The prefix: neither the other direction's nor the other channel's signatures can be moved over."""
    fields = [1, "up", CHANNEL, 2, GOOD]
    for direction, name in ((Direction.DOWN, "control"), (Direction.UP, "events")):
        with pytest.raises(BadTag):
            pinned().open(sealed_by(CHILD, fields, direction=direction, name=name))


def test_nothing_is_decoded_before_it_is_verified() -> None:
    """An envelope that is no CBOR at all and has a bad tag is reported as not authentic, not as malformed."""
    with pytest.raises(BadTag):
        pinned().open(cbor.encode([b"\xff\xff\xff", bytes(64)]))


@pytest.mark.parametrize("size", [0, 1, 23, 24, 255, 256, 65_535, 65_536])
def test_a_body_is_taken_apart_at_every_width_of_header(size: int) -> None:
    """The outer array is read by arithmetic; it must agree with the encoder about every length."""
    lane = Lane("control", Direction.UP, CHANNEL)
    envelope, tag = b"e" * size, b"t" * 64
    assert split(lane, 1, cbor.encode([envelope, tag]), tag_size=64) == (envelope, tag)


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"\x82",
        cbor.encode([b"envelope"]),
        cbor.encode([b"envelope", bytes(63)]),
        cbor.encode([b"envelope", bytes(65)]),
        cbor.encode([b"envelope", bytes(64), 0]),
        cbor.encode(["envelope", bytes(64)]),
        cbor.encode([b"envelope", bytes(64)]) + b"\0",
        b"\x82\x58\x08envelope\x58\x40" + bytes(64),
        b"\x9f\x48envelope\x58\x40" + bytes(64) + b"\xff",
    ],
    ids=[
        "empty",
        "one-byte",
        "no-tag",
        "short-tag",
        "long-tag",
        "three",
        "text",
        "trailing",
        "long-header",
        "indefinite",
    ],
)
def test_a_body_that_is_not_envelope_and_tag_is_malformed(wrong: bytes) -> None:
    """Exactly one spelling, so that a frame can't be changed on its way and still be good."""
    with pytest.raises(Malformed):
        pinned().open(wrong)


def test_a_refused_payload_uses_up_no_number() -> None:
    """One message that is too large mustn't cost the child its channel."""
    sender, receiver = child_sender(frame=4096), host_side()
    assert receiver.open(body(sender.seal(READY))) == READY
    with pytest.raises(FrameTooLarge):
        sender.seal(b"x" * 4096)
    with pytest.raises(FrameTooLarge):
        sender.seal(b"x" * 4050)
    with pytest.raises(NotEncodable):
        sender.seal(float("nan"))
    assert receiver.open(body(sender.seal(CREDIT))) == CREDIT


def test_a_body_over_the_receivers_limit_is_malformed() -> None:
    """The limit holds even for a caller that reads frames in its own way."""
    receiver = control.Receiver(CHILD_KEY, CHANNEL, Direction.UP, parse=parse.from_child, frame=64)
    with pytest.raises(Malformed, match="over the limit of 64"):
        receiver.open(body(child_sender().seal(CREDIT)))


def test_the_event_channel_ends_with_its_first_violation() -> None:
    """As the control channel does: the good frame after it is not delivered."""
    key = Secret(b"e" * 32)
    sender, receiver = events.Sender(key, CHANNEL), events.Receiver(key, CHANNEL, parse=parse.from_child_events)
    good = body(sender.seal(PROGRESS))
    with pytest.raises(BadTag):
        receiver.open(good[:-1] + bytes((good[-1] ^ 1,)))
    with pytest.raises(ChannelEnded, match="bad-tag"):
        receiver.open(good)


def test_a_sender_stops_at_the_last_number() -> None:
    """It must never begin again: a number used twice is a message that can be replayed."""
    key = Secret(b"e" * 32)
    for sender in (child_sender(), events.Sender(key, CHANNEL)):
        sender._seq = LAST_SEQ
        with pytest.raises(ChannelEnded):
            sender.seal(None)


def test_a_wiped_key_ends_the_event_channel() -> None:
    """A key of zeros would be one that everybody knows."""
    key = Secret(b"e" * 32)
    sender, receiver = events.Sender(key, CHANNEL), events.Receiver(key, CHANNEL, parse=parse.from_child_events)
    frame = sender.seal(PROGRESS)
    key.wipe()
    with pytest.raises(SecretWiped):
        sender.seal(PROGRESS)
    with pytest.raises(SecretWiped):
        receiver.open(body(frame))


def test_a_channel_id_has_sixteen_bytes() -> None:
    """A shorter one is a mistake of ours and shows before anything is sent."""
    with pytest.raises(ValueError, match="16 bytes"):
        Lane("control", Direction.UP, b"short")


def test_signing_and_channel_agree_on_sizes() -> None:
    """The tag's size is what the outer array is taken apart by."""
    assert len(CHILD.sign(b"")) == SIGNATURE
    assert len(events._mac(Secret(b"e" * 32), b"")) == events.TAG
