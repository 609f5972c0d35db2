"""Hostile sequences of frames, through the real reader and receivers, as a host runs them."""

from collections.abc import Callable
from typing import Any

import pytest

from ipc import cbor, control, events, parse
from ipc.errors import BadMessage, BadTag, FrameTooLarge, NotReady, Oversized, PeerError, WrongChannel, WrongSequence
from ipc.frames import FrameReader
from ipc.messages import Progress, Ready, RunLogCredit
from ipc.sealed import LAST_SEQ, Direction, Lane
from ipc.secret import Secret
from waypost.ed25519 import PrivateKey
from waypost.testing import cases

CHANNEL = bytes(range(16))
HOST = PrivateKey(b"h" * 32)
CHILD = PrivateKey(b"c" * 32)
READY = Ready(key=CHILD.public, pid=7)
PROGRESS = Progress(run="run_1_0000000000000000", call="r1#1", seq=3, text="half way")

FRAMES = cases.rows("frames.jsonl")


def _host_side() -> control.Receiver[Any]:
    return control.Receiver(None, CHANNEL, Direction.UP, parse=parse.from_child)


class _Events:
    """The event channel of one row: frames as the row says, bodies through a real reader and a real receiver."""

    def __init__(self) -> None:
        self.key = Secret(b"e" * 32)
        self.reader = FrameReader("events up")
        self.delivered: list[Any] = []

    def wire(self, row: dict[str, Any]) -> bytes:
        return b"".join(self.frame(spec) for spec in row["frames"])

    def frame(self, spec: dict[str, Any]) -> bytes:
        own = spec["channelId"] == "A" * 32
        forged = events.Sender(self.key if spec["auth"] == "good" else Secret(b"x" * 32), CHANNEL if own else bytes(16))
        forged._seq = spec["seq"] - 1
        if spec["seq"] > LAST_SEQ:
            body = cbor.encode([1, "up", CHANNEL, spec["seq"], PROGRESS])
            tag = events._mac(self.key, Lane("events", Direction.UP, CHANNEL).prefix + body)
            whole = cbor.encode([body, tag])
            return len(whole).to_bytes(4, "big") + whole
        return forged.seal(PROGRESS if spec["type"] == "event" else {"t": spec["type"]})

    def read(self, wire: bytes, *, step: int | None = None) -> None:
        receiver = events.Receiver(self.key, CHANNEL, parse=parse.from_child_events)
        step = step or max(1, len(wire))
        for at in range(0, len(wire), step):
            for whole in self.reader.feed(wire[at : at + step]):
                self.delivered.append(receiver.open(whole))


def _delivers(count: int, *, step: int | None = None) -> Callable[[dict[str, Any]], None]:
    def handler(row: dict[str, Any]) -> None:
        channel = _Events()
        channel.read(channel.wire(row), step=step)
        assert channel.delivered == [PROGRESS] * count

    return handler


def _refuses(error: type[PeerError], *, after: int = 0) -> Callable[[dict[str, Any]], None]:
    def handler(row: dict[str, Any]) -> None:
        channel = _Events()
        with pytest.raises(error):
            channel.read(channel.wire(row))
        assert channel.delivered == [PROGRESS] * after

    return handler


def _reflected(row: dict[str, Any]) -> None:
    """What the host said, sent back up: other key, other prefix, other direction."""
    host, child = _host_side(), control.Sender(CHILD, CHANNEL, Direction.UP)
    echo = control.Sender(HOST, CHANNEL, Direction.DOWN).seal({"t": row["frames"][0]["type"]})[4:]
    with pytest.raises(NotReady):
        _host_side().open(echo)
    assert host.open(child.seal(READY)[4:]) == READY
    with pytest.raises(BadTag):
        host.open(echo)
    # Nor does the child take its own frames for the host's.
    own = control.Receiver(HOST.public, CHANNEL, Direction.DOWN, parse=parse.to_child)
    with pytest.raises(BadTag):
        own.open(child.seal(RunLogCredit(run="run_1_0000000000000000"))[4:])


def _not_ready(row: dict[str, Any]) -> None:
    first = control.Sender(CHILD, CHANNEL, Direction.UP).seal({"t": row["frames"][0]["type"], "reason": "x"})
    with pytest.raises(NotReady):
        _host_side().open(first[4:])


def _raw(row: dict[str, Any]) -> None:
    channel = _Events()
    with pytest.raises(Oversized):
        channel.read(bytes.fromhex(row["frames"][0]["raw"]))
    assert channel.reader.pending == 0


def _over_the_cap(row: dict[str, Any]) -> None:
    key = Secret(b"e" * 32)
    sender, receiver = events.Sender(key, CHANNEL), events.Receiver(key, CHANNEL, parse=parse.from_child_events)
    with pytest.raises(FrameTooLarge):
        sender.seal(bytes(row["frames"][0]["payload_bytes"]))
    assert receiver.open(sender.seal(PROGRESS)[4:]) == PROGRESS


HANDLERS: dict[str, Callable[[dict[str, Any]], None]] = {
    "in order": _delivers(3),
    "replay old": _refuses(WrongSequence, after=3),
    "reordered": _refuses(WrongSequence),
    "cross-channel": _refuses(WrongChannel, after=1),
    "bad tag first": _refuses(BadTag),
    "control frame on event channel": _refuses(BadMessage),
    "reflected frame": _reflected,
    "first frame is not ready": _not_ready,
    "length prefix 4 GiB": _raw,
    "1 byte per write": _delivers(1, step=1),
    "seq near 2^64-1": _refuses(WrongSequence),
    "payload over cap": _over_the_cap,
}


def test_every_hostile_sequence_has_its_handler() -> None:
    """A row that is added later must be thought about, not skipped."""
    assert {row["name"] for row in FRAMES} <= set(HANDLERS)


@pytest.mark.parametrize("row", FRAMES, ids=lambda row: row["name"])
def test_a_hostile_sequence_ends_in_its_right_outcome(row: dict[str, Any]) -> None:
    """Whole frames through the real reader and receiver, as the host runs them."""
    HANDLERS[row["name"]](row)
