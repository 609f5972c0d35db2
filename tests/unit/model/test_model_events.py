"""Events have one encoding, and whatever isn't one is refused in words."""

import msgspec
import pytest

from waypost.model import events as ev
from waypost.model.errors import Invalid
from waypost.model.ids import CallId, Generation, RunId
from waypost.testing.samples import BEGAN, HASH

CALL = CallId("r1#2")


def mailed() -> ev.Mailed:
    return ev.Mailed(arrival=1, id="<a@b>", sha256=HASH, sender="ann@example.com")


EVERY: list[ev.AnyEvent] = [
    msgspec.structs.replace(BEGAN, after=RunId("run_0_0000000000000000")),
    ev.RunResumed(generation=Generation(2), attempt=1),
    ev.RunInterrupted(generation=Generation(2), attempt=1, reason="ended by SIGSEGV"),
    ev.RunPaused(code="code-changed", detail="recorded a, now b"),
    ev.RunUnpaused(by="ann"),
    ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b'{"a":[1,2.50,"\xc3\xa9"]}')), unread=(CALL,)),
    ev.CancelRequested(origin="self", reason="enough", call=CallId("r1#9")),
    ev.CancelPropagated(call=CallId("r1#1"), attempt=2),
    ev.RunCancelled(code="past-grace", detail="30 s"),
    ev.RunFailed(error=ev.Fault(type="ValueError", message="no", args=msgspec.Raw(b'["no"]'))),
    ev.StepStarted(call=CALL, step="extract", arguments=HASH),
    ev.StepCompleted(call=CALL, output=ev.Value(blob=HASH)),
    ev.StepFailed(call=CALL, error=ev.Fault(type="E", message="m", step="extract"), final=False),
    ev.AttemptScheduled(call=CALL, attempt=2, timer="r1#2/2"),
    ev.TimerSet(call=CALL, timer="r1#2", delay=1.5, seen=3, fire_at=1_700_000_000_000),
    ev.TimerFired(call=CALL, timer="r1#2"),
    ev.TimerCancelled(call=CALL, timer="r1#2"),
    ev.SignalAwaited(
        call=CALL, park="approval", seen=3, title="Pay?", who=("boss@example.com",), request="<q@x>", timeout=3.0
    ),
    ev.SignalReceived(
        call=CALL, signal="mail:1", mail=mailed(), decision=ev.Decision(approved=True, by="boss", via="mail")
    ),
    ev.SignalAwaitAbandoned(call=CALL),
    ev.MailQueued(call=CALL, message_id="<m@x>", to=("ann@example.com",), ordinal=4, sha256=HASH),
    ev.MailSent(call=CALL, ordinal=4),
    ev.MailFailed(call=CALL, reason="no grant"),
    ev.ChildSpawned(call=CALL, child=RunId("run_7_0000000000000000"), workflow="leg", arguments=HASH, seen=3),
    ev.ChildRefused(call=CALL, workflow="leg", reason="no grant"),
    ev.ChildCompleted(call=CALL, outcome="failed", error=ev.Fault(type="E", message="m")),
    ev.ChildCancelRequested(call=CALL),
    ev.CodeRested(seen=3),
    ev.Foreign(was="CancelRequested", about="drain", original=HASH),
]


def test_every_kind_of_event_has_an_example_here() -> None:
    """A new kind can't slip past the tests below."""
    assert {type(event) for event in EVERY} == set(ev.AnyEvent.__args__)


@pytest.mark.parametrize("event", EVERY, ids=ev.kind)
def test_stored_bytes_read_back_as_the_same_event(event: ev.AnyEvent) -> None:
    """The bytes are the event: what is hashed into the chain is what is read."""
    numbered, raw = ev.stored(event, seq=12, at="2026-11-29T08:00:00.000Z", prev=HASH)
    assert ev.decode(raw) == numbered
    assert raw.startswith(b'{"seq":12,"type":"%s","at":"2026-11-29T08:00:00.000Z","prev":"' % ev.kind(event).encode())
    assert msgspec.json.decode(raw)["seq"] == 12


@pytest.mark.parametrize("event", EVERY, ids=ev.kind)
def test_a_proposed_event_has_no_seq_time_or_link(event: ev.AnyEvent) -> None:
    """These three are the substrate's to set; a child that sets them is refused by what it sent."""
    keys = msgspec.json.decode(ev.proposed(event)).keys()
    assert not keys & {"seq", "at", "prev"}
    assert ev.decode(ev.proposed(event)) == event


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "not an event"),
        (b"[1]", "not an event"),
        (b'{"type":"Nope"}', "Nope"),
        (b'{"type":"RunUnpaused","by":"a","extra":1}', "extra"),
        (b'{"type":"RunUnpaused"}', "by"),
        (b'{"type":"RunUnpaused",\n"by":"a"}', "one line"),
        (b'{"type":"RunUnpaused","by":"\xff"}', "not an event"),
        (b'{"type":"StepStarted","call":"r1#1","step":"x","arguments":"short"}', "arguments"),
        (b'{"type":"StepStarted","call":"r1#1","step":"x","attempt":0,"arguments":"' + b"0" * 64 + b'"}', "attempt"),
        (b'{"type":"StepCompleted","call":"r1#1","output":{}}', "either an inline value or a blob"),
        (b'{"type":"StepCompleted","call":"r1#1","output":{"inline":1,"blob":"' + b"0" * 64 + b'"}}', "either"),
        (b"[" * 100_000, "not an event"),
    ],
)
def test_what_is_no_event_is_refused_in_words(raw: bytes, said: str) -> None:
    """Bytes from a child or a damaged repository end as Invalid, never as another exception."""
    with pytest.raises(Invalid, match="not an event") as refusal:
        ev.decode(raw)
    assert said in refusal.value.message


def test_the_chain_begins_with_repository_run_and_grants() -> None:
    """The first link binds a log to its place: the same events elsewhere have another chain."""
    run = RunId("run_0_0000000000000000")
    first = ev.genesis("repo", run, b"{}")
    assert first != ev.genesis("other", run, b"{}")
    assert first != ev.genesis("repo", run, b"{ }")
    assert len(first) == len(ev.digest(b"")) == 64


def test_blobs_are_found_where_values_are() -> None:
    """A blob enters the tree with the event that names it, so every name must be found."""
    assert ev.blobs(EVERY) == (HASH,)
