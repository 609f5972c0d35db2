"""Whatever an event of the reference system holds, there is one of ours for it, and the log stays legal."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from waypost.model import events as ev
from waypost.model import run as fold
from waypost.testing.reference import event, written

KINDS = [
    "StepStarted",
    "StepCompleted",
    "StepFailed",
    "AttemptScheduled",
    "SignalAwaited",
    "SignalReceived",
    "SignalAwaitAbandoned",
    "TimerSet",
    "TimerFired",
    "CancelRequested",
    "CancelPropagated",
    "ChildSpawned",
    "ChildCompleted",
    "RunStarted",
    "RunCompleted",
    "RunFailed",
    "RunCancelled",
    "Odd",
]
NAMES = st.sampled_from(["s", "t", "__signal__:c", ""])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=()), max_size=30)
    | NAMES
    | st.sampled_from(
        ["inline:1", "inline:{", 'inline:"\\ud800"', "blob:" + "0" * 64, "input", "2026-01-02T03:04:05.000Z"]
    ),
    lambda below: st.lists(below, max_size=2) | st.fixed_dictionaries({"ref": below, "message": below, "code": below}),
    max_leaves=4,
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "stepId": NAMES | VALUES,
        "attempt": st.integers(1, 2) | VALUES,
        "nextAttempt": st.integers(1, 3) | VALUES,
        "output": st.just({"ref": "inline:1"}) | VALUES,
        "input": VALUES,
        "error": VALUES,
        "retriesExhausted": VALUES,
        "timerId": NAMES | VALUES,
        "fireAt": st.just("2026-01-02T03:04:05.000Z") | VALUES,
        "timeoutAt": VALUES,
        "signalName": NAMES | VALUES,
        "signalId": VALUES,
        "parkKind": st.just("input") | VALUES,
        "payload": VALUES,
        "reason": VALUES,
        "at": VALUES,
    },
)


@settings(max_examples=20)
@given(st.lists(st.tuples(st.sampled_from(KINDS), FIELDS), max_size=12))
def test_every_event_has_one_of_ours(theirs: list[tuple[str, dict[str, Any]]]) -> None:
    """Up to the run's end; each of them carries the hash of what it was made of, what only bridges doesn't."""
    ends = {"RunCompleted", "RunFailed", "RunCancelled"}
    last = next((number for number, (kind, _) in enumerate(theirs) if kind in ends), len(theirs))
    chosen = theirs[: last + 1]
    events, log = written(*(event(number, kind, **fields) for number, (kind, fields) in enumerate(chosen, 2)))
    assert sum(1 for each in events if each.original) == len(chosen)
    assert isinstance(log.known.run, fold.Ended) == (last < len(theirs))
    for each in events:
        assert ev.decode(ev.stored(each, seq=each.seq, at=each.at, prev=each.prev)[1]) == each
