"""Child runs in their parent's log: what each event changes, what may not follow, and when a parent rests."""

from collections.abc import Sequence

import msgspec
import pytest

from waypost.model import events as ev
from waypost.model.child_mail import Spawner, child_id, child_mail, input_line, input_of, spawner
from waypost.model.errors import Invalid
from waypost.model.ids import CallId, RunId
from waypost.model.mail import scan
from waypost.model.run import Driven, Ended, Illegal, Parked, Paused, Run, evolve, ledger
from waypost.model.waiting import waiting_on
from waypost.testing.desk import ADDRESS
from waypost.testing.samples import BEGAN, HASH, NULL, folded

RUN, CHILD, OTHER = (RunId(f"run_{n}_00000000000000aa") for n in (7, 8, 9))
A, B = CallId("r1#1"), CallId("r1#2")
BOOM = ev.Fault(type="ValueError", message="boom")
STARTED = BEGAN
SPAWNED = ev.ChildSpawned(call=A, child=CHILD, workflow="pay", arguments=HASH, seen=1)
SECOND = ev.ChildSpawned(call=B, child=OTHER, workflow="pay", arguments=HASH, seen=1)
UNSEEN = ev.ChildSpawned(call=B, child=OTHER, workflow="pay", arguments=HASH, seen=0)
DONE = ev.ChildCompleted(call=A, outcome="completed", result=NULL)
FAILED = ev.ChildCompleted(call=A, outcome="failed", error=BOOM)
LET_GO = ev.ChildCancelRequested(call=A)
CANCELLED = ev.ChildCompleted(call=A, outcome="cancelled", error=BOOM)
PAUSED = ev.RunPaused(code="operator")
CANCEL = ev.CancelRequested(origin="parent", reason="enough")


def fold(events: Sequence[ev.AnyEvent]) -> Run:
    return folded(RUN, events)


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ([STARTED, SPAWNED], Parked),
        ([STARTED, UNSEEN], Driven),
        ([STARTED, UNSEEN, SPAWNED], Parked),
        ([STARTED, SPAWNED, DONE], Driven),
        ([STARTED, SPAWNED, FAILED], Driven),
        ([STARTED, SPAWNED, SECOND, DONE], Driven),
        ([STARTED, SPAWNED, SECOND, DONE, ev.CodeRested(seen=4)], Parked),
        ([STARTED, SPAWNED, SECOND, DONE, ev.CodeRested(seen=3)], Driven),
        ([STARTED, SPAWNED, LET_GO], Driven),
        ([STARTED, SPAWNED, SECOND, LET_GO], Parked),
        ([STARTED, SPAWNED, SECOND, LET_GO, CANCELLED], Parked),
        ([STARTED, SPAWNED, SECOND, LET_GO, DONE], Parked),
        ([STARTED, SPAWNED, DONE, LET_GO], Driven),
        ([STARTED, ev.ChildRefused(call=A, workflow="pay", reason="no"), SECOND], Driven),
        ([STARTED, SPAWNED, PAUSED, DONE], Paused),
        ([STARTED, SPAWNED, CANCEL], Driven),
        ([STARTED, SPAWNED, ev.RunCompleted(result=NULL)], Ended),
    ],
)
def test_each_arrow_leads_to_its_state(events: list[ev.AnyEvent], state: type) -> None:
    """A run that waits for children alone is parked; whose end nobody awaits gives its code nothing to do."""
    assert isinstance(fold(events), state)


@pytest.mark.parametrize(
    ("events", "refused", "code"),
    [
        ([], SPAWNED, "phase"),
        ([STARTED, SPAWNED], SPAWNED, "child"),
        ([STARTED], DONE, "child"),
        ([STARTED, SPAWNED, DONE], DONE, "child"),
        ([STARTED, SPAWNED], ev.ChildCompleted(call=A, outcome="completed"), "result"),
        ([STARTED, SPAWNED], ev.ChildCompleted(call=A, outcome="completed", result=NULL, error=BOOM), "result"),
        ([STARTED, SPAWNED], ev.ChildCompleted(call=A, outcome="failed"), "result"),
        ([STARTED, SPAWNED], ev.ChildCompleted(call=A, outcome="failed", result=NULL), "result"),
        ([STARTED], ev.ChildSpawned(call=A, child=CHILD, workflow="pay", arguments=HASH, seen=2), "seen"),
        ([STARTED], ev.CodeRested(seen=2), "seen"),
        ([STARTED, PAUSED], SPAWNED, "paused"),
        ([STARTED, PAUSED], ev.ChildRefused(call=A, workflow="pay", reason="no"), "paused"),
        ([STARTED, SPAWNED, PAUSED], LET_GO, "paused"),
        ([STARTED, SPAWNED, PAUSED], ev.CodeRested(seen=1), "paused"),
        ([STARTED, SPAWNED, ev.RunCompleted(result=NULL)], DONE, "terminal"),
    ],
)
def test_what_may_not_follow_is_refused_by_rule(events: list[ev.AnyEvent], refused: ev.AnyEvent, code: str) -> None:
    """Each call has one child and one outcome, and a log that has ended is told nothing more."""
    run = fold(events)
    with pytest.raises(Illegal) as refusal:
        evolve(run, ev.stored(refused, seq=len(events) + 1, at="now", prev=HASH)[0], run_id=RUN)
    assert refusal.value.code == code


def test_open_children_count_as_calls_and_are_what_a_run_waits_on() -> None:
    """One that is let go of is still a run of somebody's, and nothing that its parent waits on."""
    run = fold([STARTED, SPAWNED, SECOND, LET_GO])
    known = ledger(run)
    assert known is not None
    assert (known.open_calls, known.children[A].cancelling, known.children[B].cancelling) == (2, True, False)
    assert [(wait.kind, wait.call, wait.detail) for wait in waiting_on(run)] == [("child-run", B, f"pay, as {OTHER}")]


def test_a_run_that_has_ended_says_which_children_had_not() -> None:
    """They were told to end in the same commit; whoever looks later can see whose they were."""
    run = fold([STARTED, SPAWNED, SECOND, DONE, ev.RunCompleted(result=NULL)])
    assert isinstance(run, Ended)
    assert list(run.children) == [B]


def test_a_run_without_a_parent_is_written_as_before() -> None:
    """Histories of before there were child runs keep their bytes."""
    assert b"parent" not in ev.proposed(STARTED)
    parent = ev.Parent(run=RUN, call=A, workflow="pay", depth=1)
    raw = ev.stored(msgspec.structs.replace(STARTED, parent=parent), seq=1, at="now", prev=HASH)[1]
    assert raw.endswith(b'"parent":{"run":"' + RUN.encode() + b'","call":"r1#1","workflow":"pay","depth":1}}')
    assert ev.blobs([ev.ChildCompleted(call=A, outcome="completed", result=ev.Value(blob=HASH))]) == (HASH,)


# --- its mail ---------------------------------------------------------------------------------------------------------


def test_the_id_of_a_childs_mail_names_its_parents_call_and_no_mail_can_have_it() -> None:
    """A header's value is trimmed, and this one begins with a blank."""
    identity = child_id(RUN, A)
    assert identity == f" child:{RUN}:r1#1"
    assert spawner(identity) == Spawner(RUN, A)
    forged = b"From: a@x\r\nMessage-ID:" + identity.encode() + b"\r\n\r\ntext"
    assert scan(forged).id != identity.encode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "<1@x>",
        "child:run_7_00000000000000aa:r1#1",
        " child:",
        " child:run_7:r1#1",
        f" child:{RUN}",
        f" child:{RUN}:x",
        f" child:{RUN}:r1#1\n",
        f" child:{RUN}:r1#1:r1#2",
        " sha256:00",
    ],
)
def test_other_ids_are_of_no_child(text: str) -> None:
    """An id that is only nearly one would lead to a run of nobody's."""
    assert spawner(text) is None


@pytest.mark.parametrize("data", [b"null", b"[1]", '{"a":"ü\\n"}'.encode(), b'"' + b"x" * 100_000 + b'"'])
def test_the_input_comes_back_as_it_was(data: bytes) -> None:
    """Its hash is in the parent's log: not a byte may change on the way, whatever mails do to lines."""
    raw = child_mail(
        address=ADDRESS, workflow="pay", by=Spawner(RUN, A), message_id="<x@y>", date_ms=0, data=input_line(data)
    )
    assert input_of(raw) == data
    gist = scan(raw)
    assert (gist.automatic, gist.subject) == (True, f"Child pay of {RUN}")


@pytest.mark.parametrize("data", [b"", b"{", b"[1]\n", b"[\n1]", b" 1", b'"\xff"', b"[" * 5000, b"NaN"])
def test_what_is_no_line_of_json_is_no_input(data: bytes) -> None:
    """It is refused where it is asked for, not found out by the child."""
    with pytest.raises(Invalid):
        input_line(data)


def test_another_mail_has_no_input() -> None:
    """What came from outside is never read as one."""
    for raw in (b"", b"From: a@x\r\n\r\n[1]", b"Content-Type: application/json\r\n\r\n[1]"):
        with pytest.raises(Invalid):
            input_of(raw)
