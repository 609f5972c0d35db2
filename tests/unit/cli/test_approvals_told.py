"""How `waypost approvals --follow` says that something is asked no more."""

import msgspec
import pytest

from waypost.cli.asking import Line, in_words
from waypost.host.watching.sink_logic import how_closed
from waypost.model import events as ev
from waypost.model.ids import CallId

CALL = CallId("r1#2")
ASKED = ev.SignalAwaited(call=CALL, park="approval", seen=0, title="Pay?", who=("boss@example.com",))
ANSWERED = ev.SignalReceived(call=CALL, signal="s")
OTHER = ev.SignalReceived(call=CallId("r1#9"), signal="t")
ENDED = ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"1")))


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ((ASKED,), ""),
        ((ASKED, OTHER), ""),
        ((ASKED, OTHER, ANSWERED, ENDED), "answered"),
        ((ASKED, ev.TimerFired(call=CALL, timer=CALL)), "deadline"),
        ((ASKED, ev.TimerFired(call=CALL, timer="r1#2/2")), ""),
        ((ASKED, ev.SignalAwaitAbandoned(call=CALL)), "abandoned"),
        ((ASKED, OTHER, ENDED), "ended"),
    ],
)
def test_the_log_says_how_an_approval_was_closed(events: tuple[ev.AnyEvent, ...], why: str) -> None:
    """As it would have been said to who was there."""
    assert how_closed(events, CALL) == why


@pytest.mark.parametrize(
    ("said", "known", "words"),
    [
        ("answered", "", "answered"),
        ("gone", "answered", "answered"),
        ("gone", "", "it was closed while nobody could see it"),
    ],
)
def test_a_person_is_told_how_it_ended_where_the_log_knows(said: str, known: str, words: str) -> None:
    """A host that was away, or busy, has only seen that it is no longer there."""
    line = Line(withdrawn={"deployment": "orders", "run": "run_1_00", "call": CALL, "why": said})
    assert list(in_words(line, lambda _run, _call: known)) == [f"run_1_00 {CALL}  no longer asks: {words}"]
