"""Events of the reference system in our words: what has none is only said to have been."""

import hashlib
import json
from typing import Any

import msgspec
import pytest

from substrate.reference.errors import Unreadable
from substrate.reference.rebuilt import MARK, rebuilt
from substrate.reference.records import moment, read_envelope, read_event, read_grants
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.mail import malformed, scan
from waypost.model.times import unstamp
from waypost.testing.reference import MAIL, event, payload, written
from waypost.testing.reference import moment as time_of

HASH = "0" * 64


def told(seq: int, kind: str, **fields: Any) -> bytes:
    return event(seq, kind, **fields)


def kinds(events: list[ev.AnyEvent]) -> list[str]:
    return [ev.kind(each) for each in events]


def test_a_retry_has_a_beginning_of_its_own_here() -> None:
    """There it has none; without one its outcome could not be told."""
    events, log = written(
        told(2, "StepStarted", stepId="s", attempt=1, input={"ref": "inline:1"}),
        told(3, "StepFailed", stepId="s", attempt=1, error={"message": "no", "code": "E"}, retriesExhausted=False),
        told(4, "TimerSet", stepId="s", timerId="t", fireAt=time_of(9)),
        told(5, "AttemptScheduled", stepId="s", nextAttempt=2, timerId="t", fireAt=time_of(9)),
        told(6, "TimerFired", timerId="t"),
        told(7, "StepCompleted", stepId="s", attempt=2, output={"ref": 'inline:{"a":1}'}),
        told(8, "RunCompleted"),
    )
    assert kinds(events) == [
        "StepStarted",
        "StepFailed",
        "TimerSet",
        "AttemptScheduled",
        "TimerFired",
        "StepStarted",
        "StepCompleted",
        "RunCompleted",
    ]
    assert [each.original for each in events].count(HASH) == 7
    first, failed, timer, *_, again, done, _ = events
    assert isinstance(first, ev.StepStarted)
    assert isinstance(failed, ev.StepFailed)
    assert isinstance(timer, ev.TimerSet)
    assert isinstance(again, ev.StepStarted)
    assert isinstance(done, ev.StepCompleted)
    assert (failed.error.type, failed.error.message, failed.final) == ("E", "no", False)
    assert timer.fire_at == unstamp(time_of(9))
    assert (again.attempt, again.arguments) == (2, hashlib.sha256(b"inline:1").hexdigest())
    assert done.output == ev.Value(inline=msgspec.Raw(b'{"a":1}'))
    assert isinstance(log.known.run, fold.Ended)


def test_a_try_of_any_number_is_recorded_somehow() -> None:
    """A number that no machine word holds would end in an exception of a library."""
    for attempt in (10**30, -(10**30), 2**63, 1.5, "1", None):
        events, _ = written(told(2, "StepStarted", stepId="s", attempt=attempt, input={"ref": "inline:1"}))
        assert kinds(events) == ["StepStarted"]


def test_a_wait_for_mail_is_one_and_its_second_record_changes_nothing() -> None:
    """There each answer is recorded twice, by two writers; a mail is taken in once."""
    wait = told(3, "SignalAwaited", stepId="s", signalName="__signal__:c", parkKind="input", timeoutAt=time_of(30))
    came = {"signalName": "__signal__:c", "signalId": "<b@x>", "payload": payload("b@x")}
    events, _ = written(wait, told(4, "SignalReceived", **came), told(5, "SignalReceived", **came))
    assert kinds(events) == ["SignalAwaited", "SignalReceived", "Foreign"]
    first, answer, _ = events
    assert isinstance(first, ev.SignalAwaited)
    assert isinstance(answer, ev.SignalReceived)
    assert (answer.mail, answer.call) == (MAIL, first.call)
    assert first.timeout_at == unstamp(time_of(30))


def test_a_cancelled_run_failed_here_with_the_reason() -> None:
    """Our vocabulary has no cancel yet; who asked for it stays readable all the same."""
    asked = told(2, "CancelRequested", reason="drainTimeout expired", origin="supervisor-drain", runId="r")
    events, _ = written(asked, told(3, "RunCancelled"))
    assert kinds(events) == ["Foreign", "RunFailed"]
    said, end = events
    assert isinstance(said, ev.Foreign)
    assert isinstance(end, ev.RunFailed)
    assert (said.was, said.about) == ("CancelRequested", "drainTimeout expired")
    assert (end.error.type, end.error.message) == ("Cancelled", "drainTimeout expired")


def test_a_long_value_lies_beside_the_log_and_a_named_one_is_found_there() -> None:
    """Inline there may be a megabyte; here an event holds 64 KiB of it."""
    long = json.dumps("x" * 70_000)
    name = hashlib.sha256(long.encode()).hexdigest()
    events, _ = written(
        told(2, "StepStarted", stepId="a", attempt=1, input={"ref": "inline:null"}),
        told(3, "StepCompleted", stepId="a", attempt=1, output={"ref": f"inline:{long}"}),
        told(4, "StepStarted", stepId="b", attempt=1, input={"ref": "inline:null"}),
        told(5, "StepCompleted", stepId="b", attempt=1, output={"ref": f"blob:{name}"}),
        stored=frozenset({name}),
    )
    outputs = [each.output for each in events if isinstance(each, ev.StepCompleted)]
    assert outputs == [ev.Value(blob=name)] * 2


STEP = told(2, "StepStarted", stepId="s", attempt=1, input={"ref": "inline:null"})


@pytest.mark.parametrize(
    "raw",
    [
        told(3, "StepCompleted", stepId="s", attempt=1, output={"ref": f"blob:{HASH}"}),
        told(3, "StepCompleted", stepId="s", attempt=1, output={"ref": "inline:{"}),
        told(3, "StepCompleted", stepId="s", attempt=1, output={"ref": "inline:" + "[" * 5000 + "]" * 5000}),
        told(3, "StepCompleted", stepId="s", attempt=1, output={"ref": "inline:" + "[" * 300 + "]" * 300}),
        told(3, "StepCompleted", stepId="s", attempt=1, output=None),
        told(3, "StepCompleted", stepId="s", attempt=7, output={"ref": "inline:1"}),
        told(3, "StepCompleted", stepId="t", attempt=1, output={"ref": "inline:1"}),
        told(3, "AttemptScheduled", stepId="s", nextAttempt=2, timerId="t"),
        told(3, "StepCompleted", stepId="s", attempt=10**30, output={"ref": "inline:[1]x"}),
        told(3, "AttemptScheduled", stepId="s", nextAttempt=10**30, timerId="t"),
        told(3, "TimerSet", timerId="t"),
        told(3, "TimerSet", timerId="t", fireAt=1e300),
        told(3, "TimerFired", timerId="t"),
        told(3, "SignalAwaited", stepId="s", signalName="x", parkKind="approval"),
        told(3, "SignalReceived", signalName="x", signalId="y", payload=1),
        told(3, "SignalAwaitAbandoned", stepId="s", signalName="x"),
        told(3, "ChildSpawned", stepId="s", childRunId="c", childDefinitionRef="d"),
        told(3, "RunStarted", runId="r"),
        told(3, "Something else"),
        told(3, "\ud800", stepId="\udc00" * 5000),
    ],
    ids=range(20),
)
def test_what_has_no_word_or_may_not_follow_is_only_said_to_have_been(raw: bytes) -> None:
    """Total: whatever an event of theirs holds, there is one of ours, and the log goes on from a legal state."""
    events, log = written(STEP, raw)
    last = events[-1]
    assert isinstance(last, ev.Foreign)
    assert last.was
    assert fold.ledger(log.known.run) is not None


@pytest.mark.parametrize(
    "raw",
    [b"", b"[]", b"{", b"\xff", b'{"seq":-1,"type":"X"}', b'{"seq":true,"type":"X"}', b'{"seq":1.0,"type":"X"}',
     b'{"seq":1}', b'{"seq":1,"type":1}', b'{"seq":NaN,"type":"X"}', b"[" * 100_000, b'{"seq":' + b"9" * 5000 + b"}"],
    ids=range(12),
)  # fmt: skip
def test_what_its_own_system_would_have_refused_is_unreadable(raw: bytes) -> None:
    """In a type, with the path; never an exception of a library."""
    with pytest.raises(Unreadable, match="events/1"):
        read_event("events/1", raw)


@pytest.mark.parametrize(
    "change",
    [{"messageId": ""}, {"messageId": 1}, {"messageId": "\ud800"}, {"receivedAt": -1}, {"receivedAt": "x"},
     {"receivedAt": True}, {"receivedAt": 1e400}, {"address": None}, {"rawMessage": "?"}, {"rawMessage": 1}],
    ids=range(10),
)  # fmt: skip
def test_an_entry_that_is_none_is_unreadable(change: dict[str, object]) -> None:
    """It is listed then; half an entry must not become a mail."""
    body = {"messageId": "<a@x>", "receivedAt": 1, "address": "a@x", **change}
    with pytest.raises(Unreadable, match="inbox/1"):
        read_envelope("inbox/1", json.dumps(body).encode(), consumed=False)


def test_grants_are_a_list_of_records() -> None:
    """They are kept as they are, on one line."""
    assert read_grants("g", b'{\n "grants": [ {"a": 1.50} ], "more": 1}') == b'{"grants":[{"a":1.5}]}'
    for raw in (b"[]", b"{}", b'{"grants":{}}', b'{"grants":[1]}'):
        with pytest.raises(Unreadable):
            read_grants("g", raw)


@pytest.mark.parametrize("value", [None, True, "", "soon", -1, 4_102_444_800_001, float("inf"), "0001-01-01T00:00:00Z"])
def test_what_is_no_time_is_none(value: Any) -> None:
    """A deadline of the year 50,000 would end in an exception of a library somewhere."""
    assert moment(value) is None


@pytest.mark.parametrize(
    "recorded",
    [payload("a@x"), None, {}, [1], "text", {"rawHeaders": {"subject": ["a\r\nX-Evil: b"], "message-id": [1]}},
     {"rawHeaders": {"subject": ["\ud800"]}, "parts": [{"text": "\ud800"}, 1, {}]}],
    ids=range(7),
)  # fmt: skip
def test_a_mail_is_made_again_of_any_record_and_says_so(recorded: Any) -> None:
    """It is a mail that the door would take, with no field that nobody wrote."""
    raw = rebuilt(recorded, "run r, seq 1", message_id="<a@x>")
    assert malformed(raw, limit=1 << 20) is None
    assert f"{MARK}: run r, seq 1".encode() in raw
    assert b"\r\nX-Evil" not in raw
    assert scan(raw).id == b"<a@x>"
    assert raw == rebuilt(recorded, "run r, seq 1", message_id="<a@x>")
