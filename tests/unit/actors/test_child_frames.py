"""A frame that is begun and never ended ends its child; one that comes in parts, however slowly, doesn't."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.effects import ToSupervisor
from actors.logic.child import states as child_states
from actors.logic.child.decision import KILL, LOOK
from actors.logic.child.ears import Ears
from actors.logic.child.frames import MISSES, Frames, Unfinished, Watch, watched
from actors.messages import BytesCame, ChannelViolated
from ipc.secret import Secret
from waypost.acting import WakeAt
from waypost.model.ids import Generation
from waypost.model.limits import Limits
from waypost.testing.childhood import GREETING, NOW, PID, READY, SETUP, TALKING, step

HALF: Frames = (("control", 3, 5),)
MORE: Frames = (("control", 3, 6),)
NEXT: Frames = (("control", 4, 5),)
BOTH: Frames = (*MORE, ("events", 0, 1))


@pytest.mark.parametrize(
    ("watch", "found", "after", "look"),
    [
        (None, Unfinished(HALF), Watch(HALF), True),
        (Watch(HALF), Unfinished(MORE), Watch(HALF), False),
        (Watch(HALF), Unfinished((), looked=True), None, False),
        (Watch(HALF), Unfinished(HALF, looked=True), Watch(HALF, 1), True),
        (Watch(HALF, 1), Unfinished(HALF, looked=True), Watch(HALF, 2), True),
        (Watch(HALF, 1), Unfinished(HALF, looked=True, stopped=True), Watch(HALF), True),
        (Watch(HALF, 1), Unfinished(MORE, looked=True), Watch(MORE), True),
        (Watch(HALF, 1), Unfinished(NEXT, looked=True), Watch(NEXT), True),
        (Watch(MORE, 1), Unfinished(BOTH, looked=True), Watch(BOTH, 2), True),
        (None, Unfinished((), looked=True), None, False),
    ],
)
def test_a_look_finds_it_whole_or_further_or_as_it_was(
    watch: Watch | None, found: Unfinished, after: Watch | None, *, look: bool
) -> None:
    """One looks at a time, and none where there is nothing to look at."""
    assert watched(watch, found) == (after, look)


@given(st.lists(st.integers(0, 3), max_size=30))
def test_a_child_that_says_something_between_any_three_looks_is_never_ended(parts: list[int]) -> None:
    """``parts``: what has come by each look. And one of which nothing comes for two looks is, at the second."""
    watch, size, silent = Watch(HALF), 5, 0
    for part in parts:
        size, silent = size + part, 0 if part else silent + 1
        after, look = watched(watch, Unfinished((("control", 3, size),), looked=True))
        assert after is not None
        assert look
        assert (after.misses >= MISSES) == (silent >= MISSES)
        watch = after


@pytest.mark.parametrize("state", [GREETING, TALKING])
def test_its_supervisor_is_told_and_its_group_is_killed(state: child_states.State) -> None:
    """As for any frame that is none; what it says must be heard by somebody."""
    following = step(state, Unfinished(HALF))
    wake = WakeAt(LOOK, mono=NOW.mono + SETUP.limits.frame_look)
    assert following.effects == (wake,)
    assert step(following.state, Unfinished(MORE)).effects == ()
    once = step(following.state, Unfinished(HALF, looked=True))
    assert once.effects == (wake,)
    twice = step(once.state, Unfinished(HALF, looked=True))
    assert twice.state == child_states.Killed(PID)
    why = "it began a frame on its control channel, and went no further (5 bytes)"
    assert twice.effects == (ToSupervisor(ChannelViolated(Generation(3), why)), KILL)


def test_who_has_said_hello_meanwhile_is_looked_at_once() -> None:
    """Not by two, one for each state."""
    heard = step(step(GREETING, Unfinished(HALF)).state, child_states.Heard(READY))
    assert isinstance(heard.state, child_states.Talking)
    assert heard.state.watch == Watch(HALF)


def test_ears_say_what_is_not_whole() -> None:
    """After each bytes that leave something, and whenever they are asked."""
    ears = Ears(bytes(16), Secret(bytes(32)), Limits())
    begun = b"\0\x10\0\0"
    assert list(ears.hear(BytesCame("control", begun))) == [Unfinished((("control", 0, 4),))]
    assert list(ears.hear(BytesCame("events", b"\0"))) == [Unfinished((("control", 0, 4), ("events", 0, 1)))]
    assert ears.unfinished(looked=True) == Unfinished((("control", 0, 4), ("events", 0, 1)), looked=True)
