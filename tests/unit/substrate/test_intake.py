"""The queue's operations, on a tree in memory: what each commit holds, and what is refused and changes nothing."""

import dataclasses

import msgspec
import pytest

from substrate import layout
from substrate.messages import (
    Accepted,
    Append,
    BeginGeneration,
    Claim,
    Enqueue,
    Operation,
    Pause,
    QueueMail,
    Reject,
    Release,
    Supervisor,
    TakeUp,
    WorkflowProcess,
)
from substrate.operations import Settled
from substrate.operations.buckets import BUCKET_AGE
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId, message_key
from waypost.model.limits import Limits
from waypost.model.queue import decode
from waypost.testing.desk import ADDRESS, BOSS, SENDER, STARTED, Desk, Files, call, message

NOTHING = ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"null")))


def paths(desk: Desk, prefix: str) -> list[str]:
    return [path for path in files(desk) if path.startswith(prefix)]


def files(desk: Desk) -> dict[str, bytes]:
    assert isinstance(desk.tree, Files)
    return dict(desk.tree.files)


def place(desk: Desk, state: str) -> list[str]:
    return paths(desk, layout.queue_dir(ADDRESS, state))


def parked(desk: Desk, name: str = "m1@x", **wait: object) -> RunId:
    """A run that waits for its next mail at r1#1."""
    desk.begin()
    run = desk.start(message(name))
    desk.append(run, ev.SignalAwaited(call=call(1), park="input", seen=1, **wait))  # type: ignore[arg-type]  # fields by name
    return run


def test_an_accepted_mail_is_one_entry_and_its_bytes_once() -> None:
    """The claim-check pattern: entries move and refer, the message stays where it is."""
    desk = Desk()
    raw = message("m1@x")
    accepted = desk.must(Enqueue(raw))
    assert accepted == Accepted("enqueued", RunId("run_1_0000000000000001"), 1)
    assert desk.tree.read(layout.mail_path(1)) == raw
    (path,) = place(desk, "inbox")
    entry = decode(desk.tree.read(path) or b"")
    assert (entry.arrival, entry.run, entry.starts, entry.sender) == (1, accepted.run, True, SENDER)
    assert path.endswith(f"-{message_key(b'<m1@x>')}.json")
    desk.check()


@pytest.mark.parametrize("stage", ["inbox", "processing", "consumed"])
def test_the_same_message_id_is_accepted_once_wherever_the_first_one_stands(stage: str) -> None:
    """A sender that missed our answer sends again; that may never become a second run."""
    desk = Desk()
    desk.begin()
    desk.enqueue(message("m1@x"))
    if stage != "inbox":
        desk.must(Claim(1))
    if stage == "consumed":
        desk.must(TakeUp(arrival=1, start=STARTED))
    traced = b"Received: from a by b; Mon, 5 Jan 2026 10:00:00 +0000\r\n" + message("m1@x")
    for raw in (message("m1@x"), traced):
        found = desk.do(Enqueue(raw))
        assert found == Settled(Accepted("already-present", RunId("run_1_0000000000000001"), 1, stage))
    desk.check()


def test_the_commit_that_consumes_a_mail_holds_its_effect() -> None:
    """Consume and effect are one commit: there is no moment at which one is true and the other isn't."""
    desk = Desk()
    desk.begin()
    run = desk.start(message("m1@x"))
    change = desk.changes[-1]
    key = message_key(b"<m1@x>")
    assert change.subject == f"take up mail 1 as {run}"
    assert set(change.puts) == {
        layout.event_path(run, 1),
        layout.grants_path(run),
        layout.consumed_path(ADDRESS, 0, key),
        layout.STATE,
    }
    assert change.deletes == (layout.processing_path(ADDRESS, 1, key, 1),)
    (started,) = desk.events(run)
    assert isinstance(started, ev.RunStarted)
    assert started.prev == ev.genesis("0123456789abcdef", run, desk.tree.read(layout.grants_path(run)) or b"")
    assert (started.origin, started.generation, started.mail.arrival) == (key, 1, 1)
    assert desk.tree.read(layout.grants_path(run)) == b'{"mail":["%s","%s"],"secrets":[]}' % (
        SENDER.encode(),
        BOSS.encode(),
    )
    desk.check()


def test_a_mail_of_the_thread_answers_the_wait_that_is_open() -> None:
    """A wait is named, so that a mail can't answer another one than it was claimed for."""
    desk = Desk()
    run = parked(desk)
    arrival = desk.enqueue(message("m2@x", answers="m1@x"))
    assert desk.index.queue[arrival].queued.entry.run == run
    assert not desk.index.queue[arrival].queued.entry.starts
    desk.must(Claim(arrival))
    assert desk.must(TakeUp(arrival=arrival, wait=call(1))) == run
    assert desk.changes[-1].subject == f"take up mail 2 at r1#1 of {run}"
    received = desk.events(run)[-1]
    assert isinstance(received, ev.SignalReceived)
    assert received.signal == f"mail:{message_key(b'<m2@x>')}"
    assert place(desk, "inbox") == place(desk, "processing") == []
    desk.check()


def test_a_run_for_each_message_gets_the_answer_that_it_asks_for_and_no_other_mail() -> None:
    """A run asks by mail and is answered by a reply: one that began a run of its own would leave the asker waiting."""
    desk = Desk(runs="message")
    desk.begin()
    run = desk.start(message("m1@x"))
    child = WorkflowProcess(Generation(1))
    for number in (1, 2):
        desk.must(QueueMail(by=child, run=run, call=call(number), to=(BOSS,), subject="Pay?", text="Pay?"))
    told, asked = (event.message_id for event in desk.events(run) if isinstance(event, ev.MailQueued))
    awaited = ev.SignalAwaited(call=call(3), park="approval", seen=3, title="Pay?", who=(BOSS,), request=asked)
    desk.append(run, awaited)

    def runs_of(*mails: bytes) -> list[RunId]:
        return [desk.index.queue[desk.enqueue(mail)].queued.entry.run for mail in mails]

    def reply(name: str, to: str, *before: str) -> bytes:
        return message(name, answers=to, sender=BOSS, references=" ".join((*before, to)))

    assert runs_of(reply("yes@x", asked), reply("again@x", "<yes@x>", asked)) == [run, run]
    others = (message("m2@x", answers="m1@x"), reply("thanks@x", told), reply("late@x", told, asked))
    assert run not in runs_of(*others)
    desk.append(run, ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"null")), unread=(call(3),)))
    assert run not in runs_of(reply("too-late@x", asked))
    desk.check()


def refused_take_ups() -> list[tuple[str, str]]:
    return [
        ("not-claimed", "not claimed"),
        ("wait-closed", "timer was quicker"),
        ("wait-closed", "no such wait"),
        ("paused", "paused"),
        ("ended", "ended"),
        ("live", "start of a live run"),
        ("not-ended", "reroute of a live run"),
        ("invalid", "neither start nor wait"),
        ("absent", "answer of a run that has not begun"),
        ("invalid", "start that can't be recorded"),
    ]


@pytest.mark.parametrize(("code", "case"), refused_take_ups())
def test_a_take_up_that_comes_too_late_is_refused_and_its_claim_can_go_back(code: str, case: str) -> None:
    """The first of answer, deadline and abandonment closes a wait; what comes after must not be consumed."""
    desk = Desk()
    run = parked(desk, timeout=60.0)
    arrival = desk.enqueue(message("m2@x", answers="m1@x"))
    operation = TakeUp(arrival=arrival, wait=call(1))
    if case != "not claimed":
        desk.must(Claim(arrival))
    match case:
        case "timer was quicker":
            desk.must(Append(by=Supervisor(), run=run, events=(ev.TimerFired(call=call(1), timer="r1#1"),)))
        case "no such wait":
            operation = TakeUp(arrival=arrival, wait=call(7))
        case "paused":
            desk.must(Pause(run=run, code="operator", detail="lunch"))
        case "ended":
            desk.append(run, NOTHING)
        case "start of a live run":
            operation = TakeUp(arrival=arrival, start=STARTED)
        case "reroute of a live run":
            operation = TakeUp(arrival=arrival, start=STARTED, reroute=True)
        case "neither start nor wait":
            operation = TakeUp(arrival=arrival)
        case "answer of a run that has not begun":
            desk.must(Release(arrival))
            arrival = desk.enqueue(message("first@x"))
            desk.must(Claim(arrival))
            operation = TakeUp(arrival=arrival, wait=call(1))
        case "start that can't be recorded":
            desk.must(Release(arrival))
            arrival = desk.enqueue(message("first@x"))
            desk.must(Claim(arrival))
            operation = TakeUp(arrival=arrival, start=dataclasses.replace(STARTED, definition="no hash"))
        case "not claimed":
            pass
        case other:
            raise AssertionError(other)
    before = files(desk)
    assert desk.code(operation) == code
    assert files(desk) == before
    if case != "not claimed":
        desk.must(Release(arrival))
        assert arrival in desk.index.queue
        assert place(desk, "processing") == []
    desk.check()


@pytest.mark.parametrize("claimed", [True, False])
def test_a_mail_whose_run_has_ended_starts_one_that_names_it_and_takes_the_others_along(*, claimed: bool) -> None:
    """Two mails of a thread that arrive before its end was seen must not become two runs, nor be lost."""
    desk = Desk()
    old = parked(desk)
    first, second = (desk.enqueue(message(name, answers="m1@x")) for name in ("m2@x", "m3@x"))
    desk.must(Claim(first))
    desk.must(Claim(second))
    desk.append(old, NOTHING)
    assert desk.code(TakeUp(arrival=second, start=STARTED, reroute=True)) == "order"
    if not claimed:
        desk.must(Release(second))
    new = desk.must(TakeUp(arrival=first, start=STARTED, reroute=True))
    assert new != old
    started = desk.events(new)[0]
    assert isinstance(started, ev.RunStarted)
    assert started.after == old
    moved = desk.index.queue[second]
    assert (moved.queued.entry.run, moved.claimed, moved.queued.attempt) == (new, False, 0)
    assert desk.index.queued_for(new) == (second,)
    assert desk.changes[-1].subject == f"take up mail 2 as {new}, after {old}"
    desk.check()


def test_a_reply_to_a_finished_run_is_routed_to_a_new_one_at_the_door() -> None:
    """The common case, when the end was seen before the mail came; the next reply joins the same new run."""
    desk = Desk()
    old = parked(desk)
    desk.append(old, NOTHING)
    entries = [desk.index.queue[desk.enqueue(message(n, answers="m1@x"))].queued.entry for n in ("m2@x", "m3@x")]
    assert [(entry.run == old, entry.old, entry.starts) for entry in entries] == [
        (False, old, True),
        (False, old, False),
    ]
    assert entries[0].run == entries[1].run


def test_a_run_starts_with_its_oldest_mail_and_when_that_is_rejected_with_the_next() -> None:
    """FIFO per run; a rejected first mail must not leave the second one waiting for ever."""
    desk = Desk()
    desk.begin()
    first = desk.enqueue(message("m1@x"))
    second = desk.enqueue(message("m2@x", answers="m1@x"))
    desk.must(Claim(first))
    desk.must(Claim(second))
    assert desk.code(TakeUp(arrival=second, start=STARTED)) == "order"
    desk.must(Reject(first, "malformed"))
    run = desk.must(TakeUp(arrival=second, start=STARTED))
    assert run == "run_1_0000000000000001"
    rejected = decode(desk.tree.read(layout.consumed_path(ADDRESS, 0, message_key(b"<m1@x>"))) or b"")
    assert (rejected.rejected, rejected.starts) == ("malformed", True)
    desk.check()


def test_a_new_generation_puts_claims_back_and_counts_them() -> None:
    """What an exit left half-done is done again; a mail that kills its child every time must be recognisable."""
    desk = Desk()
    desk.begin()
    desk.enqueue(message("m1@x"))
    for attempt in (1, 2):
        assert desk.must(Claim(1)) == attempt
        assert desk.must(BeginGeneration()) == attempt + 1
        desk.check()
    assert desk.changes[-1].subject == "begin generation 3, put back 1 mail"
    assert desk.index.queue[1].queued.attempt == 2
    desk.must(Claim(1))
    desk.must(Release(1))
    assert desk.index.queue[1].queued.attempt == 2  # a release is nobody's fault


def test_a_claim_that_only_outlived_its_child_does_not_count() -> None:
    """No child has anything to do with a mail before it is taken up: three crashes of others mustn't set it aside."""
    desk = Desk()
    desk.begin()
    desk.enqueue(message("m1@x"))
    for _ in range(5):
        assert desk.must(Claim(1)) == 1
        desk.must(BeginGeneration(blame=False))
        desk.check()
    assert desk.index.queue[1].queued.attempt == 0
    assert not desk.index.on_hold


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        (Claim(9), "not-queued"),
        (Release(1), "not-claimed"),
        (Reject(1, "no"), "not-claimed"),
        (TakeUp(arrival=9, start=STARTED), "not-claimed"),
        (Enqueue(b""), "malformed"),
        (Enqueue(b"hello\n"), "malformed"),
    ],
)
def test_what_breaks_a_rule_of_the_queue_is_refused(operation: Operation, code: str) -> None:
    """The door of the substrate takes nothing on trust."""
    desk = Desk()
    desk.enqueue(message("m1@x"))
    assert desk.code(operation) == code


def test_a_mail_over_the_limit_is_refused() -> None:
    """Limits on everything from outside."""
    desk = Desk(limits=Limits(mail=100))
    assert desk.code(Enqueue(message("m1@x", text="x" * 200))) == "malformed"


def test_a_bucket_closes_after_a_day_but_a_clock_that_goes_back_closes_nothing() -> None:
    """Buckets follow the order of consumption; a clock jump costs at most one bucket."""
    desk = Desk()
    desk.begin()
    desk.start(message("m1@x"))
    desk.wall += BUCKET_AGE
    desk.start(message("m2@x"))
    assert (desk.index.state.bucket, desk.index.state.bucket_entries) == (1, 1)
    desk.wall -= 30 * BUCKET_AGE
    desk.start(message("m3@x"))
    assert (desk.index.state.bucket, desk.index.state.bucket_entries) == (1, 2)
    assert isinstance(desk.do(Enqueue(message("m1@x"))), Settled)
    desk.check()


def test_no_id_or_address_stands_in_a_path_or_a_commit_message() -> None:
    """What an outsider chose is data: it may not reach a shell, a ref, a log viewer or a file system as a name."""
    desk = Desk()
    desk.begin()
    desk.enqueue(message("secret-id@evil", sender="mallory@evil.example"))
    desk.must(Claim(1))
    desk.must(TakeUp(arrival=1, start=STARTED))
    for change in desk.changes:
        for text in (change.subject, *change.puts, *change.deletes):
            assert "evil" not in text
            assert "@" not in text


def test_hundreds_of_mails_leave_every_directory_bounded() -> None:
    """The thousandth append costs what the first did only if no directory grows without limit."""
    desk = Desk()
    desk.begin()
    for number in range(300):
        desk.enqueue(message(f"m{number}@x"))
        desk.must(Claim(number + 1))
        desk.must(Reject(number + 1, "test"))
    desk.check()


def test_every_move_of_the_queue_is_a_commit_by_the_supervisor() -> None:
    """The queue is the host's: nothing of it is done in a child's name."""
    desk = Desk()
    parked(desk)
    assert {(change.author, change.subject.split()[0]) for change in desk.changes} == {
        ("supervisor", "begin"),
        ("supervisor", "enqueue"),
        ("supervisor", "claim"),
        ("supervisor", "take"),
        ("workflow-process", "append"),
    }
