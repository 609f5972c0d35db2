"""A child's requests, one by one: what the substrate is asked, what the child is told, what is refused or worse."""

import hashlib
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from actors.errors import RuleBroken
from actors.logic.child.outbox import Blob
from actors.logic.child.requests import Fetching, Given, Request, Requests, answer, commits, fetch, take
from ipc.messages import (
    AppendRequest,
    AppendResponse,
    Attached,
    BlobGet,
    BlobPut,
    BlobStored,
    CancelRequest,
    CancelResult,
    OutboundMessage,
    OutboundResult,
    PauseRequest,
    PauseResult,
)
from substrate.messages import (
    Append,
    Attachment,
    Cancel,
    Done,
    Pause,
    PutBlob,
    QueueMail,
    ReadBlob,
    Refused,
    Stage,
    WorkflowProcess,
)
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation
from waypost.model.limits import Limits
from waypost.testing.childhood import CALL, RUN, STARTED, append

GENERATION = Generation(3)
BY = WorkflowProcess(GENERATION)
LIMITS = Limits(value=1000, unreferenced_blobs=1500, requests=4)
NO = Refused("phase", "the run has ended")
WAITED = ev.SignalAwaitAbandoned(call=CallId(CALL))
ENDED = ev.RunFailed(error=ev.Fault(type="ValueError", message="no"))


def ask(requests: Requests, *several: Request, limits: Limits = LIMITS) -> list[Given]:
    """Take these in, one after the other."""
    given = []
    for request in several:
        given.append(take(requests, request, generation=GENERATION, limits=limits))
        requests = given[-1].requests
    return given


def parts(number: int, data: bytes, *, size: int = 100, sha256: str = "") -> list[BlobPut]:
    """A value in parts."""
    name = sha256 or hashlib.sha256(data).hexdigest()
    offsets = range(0, max(1, len(data)), size)
    return [
        BlobPut(
            id=number,
            run=RUN,
            sha256=name,
            offset=offset,
            data=data[offset : offset + size],
            last=offset + size >= len(data),
        )
        for offset in offsets
    ]


@pytest.mark.parametrize(
    ("event", "stage"),
    [(STARTED, Stage.DURABLE), (ENDED, Stage.DURABLE), (WAITED, Stage.COMMITTED)],
    ids=["a step starts", "the run ends", "bookkeeping"],
)
def test_what_lets_something_out_is_answered_when_durable(event: ev.AnyEvent, stage: Stage) -> None:
    """A step's body touches the world; bookkeeping doesn't (storage §2)."""
    (given,) = ask(Requests(), append(1, WAITED, event))
    (submitted,) = given.submit
    assert submitted.what == Append(by=BY, run=RUN, events=(WAITED, event))  # type: ignore[arg-type]  # a plain str
    assert submitted.stage == stage
    assert answer(given.requests, 1, Done(4)).say == (AppendResponse(id=1),)
    assert answer(given.requests, 1, NO).say == (AppendResponse(id=1, refused="the run has ended", code="phase"),)


def test_an_event_that_is_nested_beyond_every_bound_breaks_the_rules() -> None:
    """It could be read here, perhaps, and not where less stack is left: the host's next start, say."""
    deep = b"[" * 600 + b"]" * 600
    raw = b'{"type":"RunCompleted","result":{"inline":' + deep + b"}}"
    with pytest.raises(RuleBroken, match="nested"):
        ask(Requests(), msgspec.structs.replace(append(1, WAITED), events=(raw,)))


def test_a_mail_is_handed_on_whole() -> None:
    """Who may be mailed is the substrate's to check, from grants that the child never holds."""
    message = OutboundMessage(
        id=1,
        run=RUN,
        call=CALL,
        to=("boss@example.com",),
        subject="hello",
        text="text",
        attachments=(Attached(name="a.txt", content_type="text/plain", content=b"x"),),
    )
    (given,) = ask(Requests(), message)
    assert given.submit[0].what == QueueMail(
        by=BY,
        run=RUN,  # type: ignore[arg-type]  # a plain str
        call=CALL,  # type: ignore[arg-type]  # likewise
        to=("boss@example.com",),
        subject="hello",
        text="text",
        attachments=(Attachment(name="a.txt", content_type="text/plain", content=b"x"),),
    )
    assert answer(given.requests, 1, Done(4)).say == (OutboundResult(id=1),)
    assert answer(given.requests, 1, NO).say == (OutboundResult(id=1, refused="the run has ended"),)


def test_a_pause_names_the_generation_that_asks() -> None:
    """So that an old child can't pause what a new one drives."""
    (given,) = ask(Requests(), PauseRequest(id=1, run=RUN, code="code-changed", detail="recorded a, now b"))
    assert given.submit[0].what == Pause(
        run=RUN,  # type: ignore[arg-type]  # a plain str
        code="code-changed",
        detail="recorded a, now b",
        generation=GENERATION,
    )
    assert answer(given.requests, 1, Done(4)).say == (PauseResult(id=1),)


def test_a_runs_wish_to_end_names_the_generation_that_asks_and_is_its_own() -> None:
    """A child can't pass for an operator: whose wish it is, is not the child's to say."""
    (given,) = ask(Requests(), CancelRequest(id=1, run=RUN, call=CALL, reason="nobody wants it"))
    (submitted,) = given.submit
    assert submitted.what == Cancel(
        run=RUN,  # type: ignore[arg-type]  # a plain str
        reason="nobody wants it",
        origin="self",
        call=CallId(CALL),
        generation=GENERATION,
    )
    assert submitted.stage == Stage.COMMITTED
    assert answer(given.requests, 1, Done(4)).say == (CancelResult(id=1),)
    assert answer(given.requests, 1, NO).say == (CancelResult(id=1, refused="the run has ended"),)


def test_a_commit_is_what_has_changed_a_log() -> None:
    """A value that is stored changes none until an event names it; nor does what was refused, or isn't open."""
    wish = ask(Requests(), CancelRequest(id=1, run=RUN, call=CALL, reason="enough"))[-1].requests
    value = ask(Requests(), *parts(1, b"x"))[-1].requests
    assert commits(wish, 1, Done(4))
    assert not commits(wish, 1, NO)
    assert not commits(wish, 2, Done(4))
    assert not commits(value, 1, Done(4))


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 1000])
def test_a_value_is_stored_once_it_is_whole(size: int) -> None:
    """Whatever its length: the last part completes it."""
    data = bytes(size % 251 for _ in range(size))
    given = ask(Requests(), *parts(1, data))
    assert [len(each.submit) for each in given] == [0] * (len(given) - 1) + [1]
    stored = given[-1].submit[0].what
    assert stored == PutBlob(by=BY, run=RUN, sha256=hashlib.sha256(data).hexdigest(), data=data)  # type: ignore[arg-type]  # a plain str
    assert answer(given[-1].requests, 1, Done(4)).say == (BlobStored(id=1),)


def test_a_value_with_a_wrong_name_is_refused() -> None:
    """Nothing is stored under a hash that it doesn't have."""
    given = ask(Requests(), *parts(1, b"x" * 150, sha256="0" * 64))
    assert not given[-1].submit
    (said,) = given[-1].say
    assert isinstance(said, BlobStored)
    assert "hash" in str(said.refused)


def test_a_value_over_the_limit_is_refused_alone_and_its_parts_are_not_kept() -> None:
    """The request is refused, the child lives; what it went on sending weighs nothing."""
    given = ask(Requests(), *parts(1, b"x" * 1200), append(2))
    refusals = [said for each in given for said in each.say]
    assert len(refusals) == 1
    assert "1000 bytes" in str(refusals[0])
    assert given[-1].submit
    assert not given[-2].requests.parts


def test_values_that_no_event_names_may_not_pile_up() -> None:
    """Held, on their way and being gathered count together; what an event has named doesn't count any more."""
    first, second = b"a" * 900, b"b" * 900
    requests = ask(Requests(), *parts(1, first))[-1].requests
    assert "no event names" in str(ask(requests, *parts(2, second))[-1].say)
    requests = answer(requests, 1, Done(4)).requests
    assert requests.held == {(RUN, hashlib.sha256(first).hexdigest()): 900}
    assert "no event names" in str(ask(requests, *parts(2, second))[-1].say)
    named = ev.StepCompleted(call=CallId(CALL), output=ev.Value(blob=hashlib.sha256(first).hexdigest()))
    requests = ask(requests, append(2, named))[-1].requests
    assert answer(requests, 2, NO).requests.held, "a refused append has named nothing"
    requests = answer(requests, 2, Done(5)).requests
    assert requests.held == {}
    assert ask(requests, *parts(3, second))[-1].submit


def test_a_run_that_ends_leaves_no_value_behind_that_weighs_on_the_others() -> None:
    """Else one run that failed with a value stored and not named would cost every other run its large values."""
    left, wanted = b"a" * 900, b"b" * 900
    requests = answer(ask(Requests(), *parts(1, left))[-1].requests, 1, Done(4)).requests
    requests = answer(
        ask(requests, append(2, ev.RunFailed(error=ev.Fault(type="X", message=""))))[-1].requests, 2, Done(5)
    ).requests
    assert requests.held == {}
    assert ask(requests, *parts(3, wanted))[-1].submit


def test_blobs_are_fetched_one_at_a_time() -> None:
    """Each may weigh 64 MiB; the next is asked for when this one is answered."""
    gets = [BlobGet(id=number, run=RUN, sha256=f"{number:064}") for number in (1, 2)]
    requests = ask(Requests(), *gets)[-1].requests
    first = fetch(requests, generation=GENERATION)
    assert first.submit[0].what == ReadBlob(run=RUN, sha256=f"{1:064}", by=BY)  # type: ignore[arg-type]  # a plain str
    assert fetch(first.requests, generation=GENERATION) == Given(first.requests)
    came = answer(first.requests, 1, Done(4, b"data"))
    assert came.say == (Blob(1, b"data"),)
    second = fetch(came.requests, generation=GENERATION)
    assert second.requests.open == {2: Fetching(2)}
    (refused,) = answer(second.requests, 2, NO).say
    assert refused == BlobStored(id=2, refused="the run has ended")


def test_an_answer_to_nothing_is_ignored() -> None:
    """Correlations are ours; one that isn't open is late news."""
    assert answer(Requests(), 5, Done(1)) == Given(Requests())


@pytest.mark.parametrize(
    "requests",
    [
        [append(2), append(2)],
        [append(2), append(1)],
        [AppendRequest(id=1, run="../x", events=(b"{}",))],
        [AppendRequest(id=1, run=RUN, events=(b"{}",))],
        [AppendRequest(id=1, run=RUN, events=(ev.proposed(STARTED), b"not json"))],
        [OutboundMessage(id=1, run=RUN, call="r0", to=("a@example.com",), subject="", text="")],
        [CancelRequest(id=1, run=RUN, call="r0", reason="x")],
        [append(number) for number in range(5)],
        [BlobGet(id=number, run=RUN, sha256="0" * 64) for number in range(5)],
        [parts(number, b"x" * 150)[0] for number in range(5)],
        [parts(1, b"x" * 150)[1]],
        [parts(1, b"x" * 350)[0], parts(1, b"x" * 350)[2]],
        [parts(1, b"x" * 350)[0], parts(1, b"y" * 350)[1]],
        [parts(1, b"x" * 1350)[0], parts(1, b"x" * 1350)[0]],
    ],
)
def test_what_no_honest_runtime_asks_for_breaks_the_rules(requests: list[Any]) -> None:
    """An id used twice, a name that can't be, an event that isn't one, too much at once, parts that don't fit."""
    *good, bad = requests
    before = ask(Requests(), *good)[-1].requests if good else Requests()
    with pytest.raises(RuleBroken):
        ask(before, bad)


def test_answered_requests_make_room() -> None:
    """The limit counts what is under way, not what ever was."""
    requests = Requests()
    for number in range(20):
        given = ask(requests, append(number))[-1]
        requests = answer(given.requests, given.submit[0].correlation, Done(number)).requests
    assert replace(requests, correlation=0, last=-1) == Requests()
