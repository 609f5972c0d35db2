"""Mail that a run asks for, and what an operator does to a run."""

import hashlib
import hmac

import msgspec
import pytest

from substrate import layout
from substrate.errors import Damaged
from substrate.messages import (
    Answer,
    Append,
    Attachment,
    BeginGeneration,
    Claim,
    Hub,
    MailDelivered,
    MailUndeliverable,
    Pause,
    QueueMail,
    ResumeDeployment,
    Supervisor,
    TakeUp,
    Unpause,
    WorkflowProcess,
)
from substrate.operations import Settled
from substrate.operations.buckets import state_file
from substrate.settings import message_ids
from substrate.state import State
from waypost.model import events as ev
from waypost.model import mail
from waypost.model import run as fold
from waypost.model.ids import CallId, Generation, RunId, message_key
from waypost.model.limits import Limits
from waypost.testing.desk import ADDRESS, BOSS, SENDER, Desk, Files, call, first_files, message

CHILD = WorkflowProcess(Generation(1))
NULL = ev.Value(inline=msgspec.Raw(b"null"))


def begun() -> tuple[Desk, RunId]:
    desk = Desk()
    desk.begin()
    return desk, desk.start(message("m1@x"))


def ask(
    run: RunId, number: int = 1, *, to: str = BOSS, subject: str = "Please", reply_to_mail: str | None = None
) -> QueueMail:
    return QueueMail(
        by=CHILD, run=run, call=call(number), to=(to,), subject=subject, text="Pay?", reply_to_mail=reply_to_mail
    )


def waiting(desk: Desk, run: RunId, number: int = 1, who: tuple[str, ...] = (BOSS,)) -> str:
    """An approval is asked for at call number + 1; the Message-ID of the request."""
    desk.must(ask(run, number))
    queued = desk.events(run)[-1]
    assert isinstance(queued, ev.MailQueued)
    awaited = ev.SignalAwaited(
        call=call(number + 1), park="approval", seen=queued.seq, title="Pay?", who=who, request=queued.message_id
    )
    desk.append(run, awaited)
    return queued.message_id


YES = ev.Decision(approved=True, by="root", via="cli")


def test_a_mail_its_entry_and_its_event_are_one_commit() -> None:
    """There is no moment at which the log says queued and the outbox doesn't hold it."""
    desk, run = begun()
    desk.must(ask(run))
    queued = desk.events(run)[-1]
    assert isinstance(queued, ev.MailQueued)
    added = desk.index.outbox[1]
    assert set(desk.changes[-1].puts) == {
        layout.event_path(run, 2),
        layout.blob_path(run, queued.sha256),
        layout.outbox_path(1, message_key(queued.message_id.encode())),
        layout.STATE,
    }
    assert desk.changes[-1].subject == f"queue outgoing mail 1 for r1#1 of {run}"
    parsed = mail.parse(added.message)
    assert (parsed.sender, parsed.to, parsed.subject) == (ADDRESS, (BOSS,), "Please")
    assert (parsed.in_reply_to, parsed.references) == ("<m1@x>", ("<m1@x>",))
    desk.check()


def test_a_repeated_request_is_the_same_mail_and_queued_once() -> None:
    """After a crash the child asks again: one Message-ID per call makes the repeat recognisable."""
    desk, run = begun()
    desk.must(ask(run))
    assert desk.do(ask(run)) == Settled()
    desk.must(MailDelivered(1))
    assert desk.do(ask(run)) == Settled()
    assert desk.index.state.outbox == 2


def test_a_message_id_is_the_calls_and_only_this_host_can_make_it() -> None:
    """Whoever could guess it could claim the id before our mail has it, or answer what was never sent to them."""
    ours, key = message_ids(b"k" * 32, "orders@shop.example.com"), "0" * 64
    tag = hmac.new(b"k" * 32, key.encode(), hashlib.sha256).hexdigest()
    assert ours(key) == f"<{tag[:32]}@waypost.shop.example.com>"
    assert len({ours(key), ours("1" * 64), message_ids(b"l" * 32, "orders@shop.example.com")(key)}) == 3


def test_a_mail_without_a_grant_leaves_an_event_that_the_workflow_sees() -> None:
    """The host enforces grants, not the child; the workflow is told, not left waiting."""
    desk, run = begun()
    desk.must(ask(run, to="mallory@evil.example"))
    failed = desk.events(run)[-1]
    assert isinstance(failed, ev.MailFailed)
    assert "no grant to mail mallory@evil.example" in failed.reason
    assert not desk.index.outbox
    desk.must(ask(run, 2, to="boss@EXAMPLE.com"))  # domains are compared case-folded
    desk.must(ask(run, 3, to=SENDER))
    assert len(desk.index.outbox) == 2
    desk.check()


@pytest.mark.parametrize("subject", ["a\r\nBcc: everyone@evil.example", "a\x00b"])
def test_a_header_that_would_be_two_is_refused_and_the_workflow_sees_it(subject: str) -> None:
    """Nothing that a workflow passes on from a mail can add a recipient."""
    desk, run = begun()
    desk.must(ask(run, subject=subject))
    assert isinstance(desk.events(run)[-1], ev.MailFailed)
    assert not desk.index.outbox


def test_an_answer_threads_back_to_the_mail_it_answers() -> None:
    """By default to the one that started the run; or to any that the run was given, and to none that it wasn't."""
    desk, run = begun()
    desk.append(run, ev.SignalAwaited(call=call(1), park="input", seen=1))
    second = message("m2@x", answers="m1@x", references="<m1@x>")
    arrival = desk.enqueue(second)
    desk.must(Claim(arrival))
    desk.must(TakeUp(arrival=arrival, wait=call(1)))
    desk.must(ask(run, 2, reply_to_mail=mail.scan(second).sha256))
    parsed = mail.parse(desk.index.outbox[1].message)
    assert (parsed.in_reply_to, parsed.references) == ("<m2@x>", ("<m1@x>", "<m2@x>"))
    assert desk.code(ask(run, 3, reply_to_mail="0" * 64)) == "mail"


def test_a_reply_to_our_own_mail_belongs_to_the_run_that_sent_it() -> None:
    """The boss's answer names only our Message-ID; it must find its run."""
    desk, run = begun()
    request = waiting(desk, run)
    arrival = desk.enqueue(message("answer@y", sender=BOSS, answers=request))
    assert desk.index.queue[arrival].queued.entry.run == run


def test_attachments_travel() -> None:
    """A confirmation may carry a file."""
    desk, run = begun()
    pdf = Attachment(name="claim.pdf", content_type="application/pdf", content=b"%PDF")
    desk.must(QueueMail(by=CHILD, run=run, call=call(1), to=(BOSS,), subject="s", text="t", attachments=(pdf,)))
    (found,) = mail.parse(desk.index.outbox[1].message).attachments
    assert (found.name, found.content) == ("claim.pdf", b"%PDF")


@pytest.mark.parametrize(
    ("operation", "kind"), [(MailDelivered(1), ev.MailSent), (MailUndeliverable(1, "no such mailbox"), ev.MailFailed)]
)
def test_delivery_is_recorded_once_and_takes_the_entry_away(
    operation: MailDelivered | MailUndeliverable, kind: type[ev.Event]
) -> None:
    """Delivered, then killed before we noted it: noting it again is no error, and nothing is noted twice."""
    desk, run = begun()
    desk.must(ask(run))
    desk.must(operation)
    assert desk.do(operation) == Settled()
    assert isinstance(desk.events(run)[-1], kind)
    assert not desk.index.outbox
    assert desk.code(MailDelivered(7)) == "unknown"
    desk.check()


def test_a_mail_may_be_delivered_after_its_run_has_ended() -> None:
    """The confirmation is the last thing a run does; it is still on its way when the run ends."""
    desk, run = begun()
    desk.must(ask(run))
    desk.append(run, ev.RunCompleted(result=NULL))
    desk.must(MailDelivered(1))
    assert isinstance(desk.events(run)[-1], ev.MailSent)
    desk.check()


def test_a_mail_over_the_limit_is_not_queued_and_the_workflow_sees_it() -> None:
    """What we would not take from others we don't send; and the repository doesn't grow by what goes nowhere."""
    desk = Desk(limits=Limits(mail=1000))
    desk.begin()
    run = desk.start(message("m1@x"))
    desk.must(QueueMail(by=CHILD, run=run, call=call(1), to=(BOSS,), subject="s", text="x\n" * 1000))
    failed = desk.events(run)[-1]
    assert isinstance(failed, ev.MailFailed)
    assert failed.reason.endswith("over 1000")
    assert not desk.index.outbox
    desk.check()


@pytest.mark.parametrize("name", ["", "r1", "../../etc", "r1#2\n", "r1#1" + "0" * 600])
def test_a_mail_for_what_is_no_call_is_refused(name: str) -> None:
    """The call names the mail: from a name that the child made up there would be no way back to the workflow."""
    desk, run = begun()
    assert desk.code(QueueMail(by=CHILD, run=run, call=CallId(name), to=(BOSS,), subject="s", text="t")) == "call"
    assert desk.index.known(run).seq == 1


@pytest.mark.parametrize(("case", "code"), [("absent", "not-given"), ("ended", "terminal")])
def test_nobody_sends_for_a_run_that_is_not_there_or_has_ended(case: str, code: str) -> None:
    """A mail belongs to a run that can still be told what became of it."""
    desk, run = begun()
    desk.append(run, ev.RunCompleted(result=NULL))
    assert desk.code(ask(run if case == "ended" else RunId("run_9_0000000000000009"))) == code
    assert not desk.index.outbox


def test_a_reason_longer_than_an_event_may_hold_is_cut_and_the_mail_given_up() -> None:
    """Refused, it would be neither on its way nor given up until the next start, and then again."""
    desk, run = begun()
    desk.must(ask(run))
    desk.must(MailUndeliverable(1, "no such mailbox " * 100_000))
    failed = desk.events(run)[-1]
    assert isinstance(failed, ev.MailFailed)
    assert failed.reason.startswith("no such mailbox")
    assert len(failed.reason) <= 2000
    assert not desk.index.outbox
    desk.check()


def test_an_event_about_a_mail_has_the_limit_of_every_event() -> None:
    """A reason may quote what a stranger or another server wrote; the log holds nothing over its limit all the same."""
    desk = Desk(limits=Limits(event=900))
    desk.begin()
    run = desk.start(message("m1@x"))
    assert desk.code(ask(run, to="\x01" * 200 + "@x")) == "too-large"  # each is six characters in the log
    desk.must(ask(run, 2))
    assert desk.code(MailUndeliverable(1, "x" * 900)) == "too-large"
    assert list(desk.index.outbox) == [1]
    desk.must(MailUndeliverable(1, "no such mailbox"))
    assert not desk.index.outbox
    desk.check()


@pytest.mark.parametrize(
    "raw", [None, b"", b"{", b"[]", b'{"mail":["mallory@evil.example"],"more":1}', b'{"mail":["\xff"]}']
)
def test_grants_that_cannot_be_read_are_damage_and_allow_nothing(raw: bytes | None) -> None:
    """To take them for none would tell the workflow, for ever, that it lacks a grant which it has."""
    desk, run = begun()
    request = waiting(desk, run)
    assert isinstance(desk.tree, Files)
    del desk.tree.files[layout.grants_path(run)]
    desk.tree.files |= {} if raw is None else {layout.grants_path(run): raw}
    asking = ev.SignalAwaited(call=call(4), park="approval", seen=2, who=(BOSS,), request=request)
    for operation in (ask(run, 3), Append(by=CHILD, run=run, events=(asking,))):
        with pytest.raises(Damaged, match="not a grants"):
            desk.do(operation)
    assert desk.index.known(run).seq == 3


def test_a_run_that_is_not_there_has_no_grants() -> None:
    """An administrator is held by no generation; whom a run may ask is said by its own beginning all the same."""
    desk, _ = begun()
    asking = ev.SignalAwaited(call=call(1), park="approval", seen=0, who=(BOSS,))
    assert desk.code(Append(by=Hub("root"), run=RunId("run_9_0000000000000009"), events=(asking,))) == "grants"


def test_an_older_child_can_not_send() -> None:
    """The fence holds for mail as for events."""
    desk, run = begun()
    desk.must(BeginGeneration())
    assert desk.code(ask(run)) == "generation"
    other = QueueMail(by=WorkflowProcess(Generation(2)), run=run, call=call(1), to=(BOSS,), subject="s", text="t")
    assert desk.code(other) == "not-given"


# --- answers -------------------------------------------------------------------------------------------------------


def test_an_operator_answers_the_one_open_approval_once() -> None:
    """The second answer is told who decided and when: nobody has to guess which of two counted."""
    desk, run = begun()
    waiting(desk, run)
    assert desk.must(Answer(run=run, call=None, decision=YES)) == call(2)
    assert desk.changes[-1].subject == f"approve r1#2 of {run}"
    refused = desk.do(Answer(run=run, call=None, decision=YES))
    assert refused == desk.do(Answer(run=run, call=call(2), decision=YES))
    assert "was approved already, by root (cli), 2026-11-29 08:00:00 UTC" in str(refused)
    desk.append(run, ev.RunCompleted(result=NULL))
    assert desk.code(Answer(run=run, call=None, decision=YES)) == "already-decided"


def test_an_answer_that_has_no_question_is_refused() -> None:
    """Each with the way on: which runs there are, which approvals are open, that a mail is to be taken up first."""
    desk, run = begun()
    queued = desk.index.queue[desk.enqueue(message("q@x"))].queued.entry.run
    assert desk.code(Answer(run=queued, call=None, decision=YES)) == "not-begun"
    assert desk.code(Answer(run=RunId("run_9_0000000000000009"), call=None, decision=YES)) == "no-run"
    assert desk.code(Answer(run=run, call=None, decision=YES)) == "no-approval"
    waiting(desk, run, 1)
    waiting(desk, run, 3)
    assert desk.code(Answer(run=run, call=None, decision=YES)) == "several"
    assert desk.code(Answer(run=run, call=call(9), decision=YES)) == "no-approval"
    assert desk.must(Answer(run=run, call=call(4), decision=YES)) == call(4)


def test_an_answer_that_does_not_fit_into_the_log_is_refused_and_the_question_stays_open() -> None:
    """Nobody's yes is cut short or half recorded; they are told, and may say it in fewer words."""
    desk, run = begun()
    waiting(desk, run)
    long = ev.Decision(approved=True, by="root", text="x" * 300_000, via="cli")
    assert desk.code(Answer(run=run, call=None, decision=long)) == "invalid"
    assert desk.must(Answer(run=run, call=None, decision=YES)) == call(2)
    desk.check()


@pytest.mark.parametrize(("by", "code"), [(BOSS, ""), ("boss@EXAMPLE.com", ""), ("mallory@evil.example", "who")])
def test_a_mail_answers_an_approval_only_for_who_was_asked(by: str, code: str) -> None:
    """Belonging to the thread gives no rights: who may answer is part of the wait."""
    desk, run = begun()
    request = waiting(desk, run)
    arrival = desk.enqueue(message("a@y", sender=by, answers=request, text="yes"))
    desk.must(Claim(arrival))
    operation = TakeUp(
        arrival=arrival, wait=call(2), decision=ev.Decision(approved=True, by=by, text="yes", via="mail")
    )
    if code:
        assert desk.code(operation) == code
    else:
        desk.must(operation)
        received = desk.events(run)[-1]
        assert isinstance(received, ev.SignalReceived)
        assert isinstance(received.decision, ev.Decision)
        assert (received.decision.by, received.mail is not msgspec.UNSET) == (by, True)
    desk.check()


def test_an_approval_is_not_answered_by_just_any_mail() -> None:
    """A mail that holds no decision is no answer."""
    desk, run = begun()
    request = waiting(desk, run)
    arrival = desk.enqueue(message("a@y", sender=BOSS, answers=request, text="hm"))
    desk.must(Claim(arrival))
    assert desk.code(TakeUp(arrival=arrival, wait=call(2))) == "payload"


# --- pauses --------------------------------------------------------------------------------------------------------


def test_a_paused_run_takes_results_and_nothing_new() -> None:
    """Work under way isn't thrown away; but nothing begins until an operator says so."""
    desk, run = begun()
    desk.append(run, ev.StepStarted(call=call(1), step="s", arguments="0" * 64))
    desk.must(Pause(run=run, code="operator", detail="", generation=Generation(1)))
    assert desk.do(Pause(run=run, code="operator", detail="")) == Settled()
    assert desk.code(ask(run, 2)) == "paused"
    assert desk.code(Answer(run=run, call=None, decision=YES)) == "paused"
    desk.append(run, ev.StepCompleted(call=call(1), output=NULL))
    desk.must(Unpause(run=run, by="root"))
    assert isinstance(desk.index.known(run).run, fold.Driven)
    assert desk.code(Unpause(run=run, by="root")) == "not-paused"
    desk.check()


def test_a_run_that_its_code_does_not_fit_waits_for_other_code() -> None:
    """The child has let go of it: were it resumed in the same generation, nobody would drive it, unseen."""
    desk, run = begun()
    desk.must(Pause(run=run, code="code-changed", detail="step a, now step b", generation=Generation(1)))
    assert desk.code(Unpause(run=run, by="root")) == "same-code"
    desk.must(BeginGeneration())
    desk.must(Unpause(run=run, by="root"))
    assert isinstance(desk.index.known(run).run, fold.Driven)
    desk.check()


def test_a_pause_of_an_older_child_or_with_an_unknown_code_is_refused() -> None:
    """A child asks for a pause of its own runs only, and for reasons that somebody can act on."""
    desk, run = begun()
    assert desk.code(Pause(run=run, code="because", detail="")) == "invalid"
    assert desk.code(Pause(run=run, code="operator", detail="", generation=Generation(3))) == "generation"
    assert desk.code(Pause(run=RunId("run_9_0000000000000009"), code="operator", detail="")) == "no-run"
    desk.must(BeginGeneration())
    assert desk.code(Pause(run=run, code="operator", detail="", generation=Generation(2))) == "not-given"
    desk.must(Append(by=Supervisor(), run=run, events=(ev.RunFailed(error=ev.Fault(type="X", message="")),)))
    assert desk.do(Pause(run=run, code="operator", detail="")) == Settled()


def test_only_a_deployment_that_is_held_can_be_let_go_on() -> None:
    """Twice is once: the second operator is told, and nothing is written."""
    desk = Desk(Files({**first_files(), **state_file(State(held="restore"))}))
    desk.must(ResumeDeployment(by="ann"))
    assert desk.index.state == State()
    assert desk.changes[-1].subject == "resume the deployment after restore, by ann"
    assert desk.code(ResumeDeployment(by="bob")) == "not-held"
    desk.check()
