"""Frames: bytes in, bodies out, whatever the cut; nothing over the limit is ever kept."""

import pytest

from ipc.errors import ChannelEnded, FrameTooLarge, Oversized, Truncated
from ipc.frames import FrameReader, encode_frame
from waypost.model.limits import DEFAULT

BODIES = [b"", b"a", b"\x00\x00\x00\x01", b"b" * 19]
WIRE = b"".join(encode_frame(body) for body in BODIES)


@pytest.mark.parametrize("cut", range(len(WIRE) + 1))
def test_frames_come_out_whole_at_every_cut(cut: int) -> None:
    """A pipe gives what it has: a frame may end anywhere in a read, in its length, too."""
    reader = FrameReader("control up")
    assert [*reader.feed(WIRE[:cut]), *reader.feed(WIRE[cut:])] == BODIES
    assert reader.pending == 0
    reader.finish()


@pytest.mark.parametrize("size", range(1, len(WIRE) + 1))
def test_frames_come_out_whole_in_pieces_of_every_size(size: int) -> None:
    """A peer that writes one byte at a time is slow, not wrong."""
    reader = FrameReader("control up")
    assert [body for at in range(0, len(WIRE), size) for body in reader.feed(WIRE[at : at + size])] == BODIES


def test_what_was_fed_is_taken_even_if_nobody_iterates() -> None:
    """A lazy reader would lose bytes when its caller looks at the frames later."""
    reader = FrameReader("control up")
    first = reader.feed(WIRE[:7])
    second = reader.feed(WIRE[7:])
    assert [*first, *second] == BODIES


def test_a_length_over_the_limit_is_refused_before_its_body_comes() -> None:
    """Four bytes are enough to know; a hostile length must cost no memory."""
    reader = FrameReader("control up")
    with pytest.raises(Oversized) as caught:
        list(reader.feed(b"\xff\xff\xff\xff"))
    assert (caught.value.channel, caught.value.size, caught.value.limit) == ("control up", 0xFFFFFFFF, DEFAULT.frame)
    assert reader.pending == 0


def test_the_limit_itself_is_allowed_and_one_more_is_not() -> None:
    """The limit counts the body; both ends must agree about the last byte."""
    reader = FrameReader("control up", limit=8)
    assert list(reader.feed(encode_frame(b"x" * 8, limit=8))) == [b"x" * 8]
    with pytest.raises(FrameTooLarge) as caught:
        encode_frame(b"x" * 9, channel="control up", limit=8)
    assert (caught.value.size, caught.value.limit) == (9, 8)
    with pytest.raises(Oversized):
        list(reader.feed(b"\x00\x00\x00\x09"))


def test_good_frames_before_a_refused_one_are_delivered_and_nothing_after_it() -> None:
    """What the peer said before it broke the rules was said; after that there is no telling where a frame begins."""
    reader = FrameReader("control up", limit=8)
    frames = reader.feed(encode_frame(b"good") + b"\x00\x00\x00\x09" + encode_frame(b"late"))
    assert next(frames) == b"good"
    with pytest.raises(Oversized):
        next(frames)
    with pytest.raises(ChannelEnded):
        reader.feed(encode_frame(b"late"))


def test_a_stream_that_ends_inside_a_frame_is_a_violation() -> None:
    """A child that was killed while it wrote must not look like one that said all it had to say."""
    reader = FrameReader("events up")
    assert list(reader.feed(encode_frame(b"whole") + b"\x00\x00")) == [b"whole"]
    with pytest.raises(Truncated) as caught:
        reader.finish()
    assert caught.value.pending == 2


def test_a_reader_keeps_no_more_than_the_frame_it_waits_for() -> None:
    """Memory of the host per child is bounded by one frame, however many went before."""
    reader = FrameReader("control up", limit=64)
    for _ in range(100):
        assert list(reader.feed(encode_frame(b"x" * 64) + b"\x00")) == [b"x" * 64]
        assert reader.pending == 1
        assert list(reader.feed(encode_frame(b"y" * 3)[1:])) == [b"yyy"]
        assert reader.pending == 0
