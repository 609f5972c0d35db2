"""What the host itself tells the sender of a mail: once, in the commit that says so, and never to a program."""

import pytest

from substrate import layout
from substrate.messages import (
    Claim,
    Enqueue,
    MailDelivered,
    MailUndeliverable,
    NoAnswer,
    QueueMail,
    Reject,
    RejectHeld,
    TakeUp,
)
from waypost.model import events as ev
from waypost.model import mail
from waypost.model.ids import RunId
from waypost.model.queue import decode, decode_outgoing
from waypost.testing.desk import ADDRESS, BOSS, SENDER, Desk, Files, call, message

RAW = message("m1@x")


def rejected(raw: bytes) -> Desk:
    """A mail was accepted and then rejected."""
    desk = Desk()
    desk.begin()
    desk.enqueue(raw)
    desk.must(Claim(1))
    desk.must(Reject(1, "malformed"))
    desk.check()
    return desk


def asked() -> tuple[Desk, RunId, str]:
    """A run whose approval is open at r1#2; the Message-ID of what it asked with."""
    desk = Desk()
    child = desk.begin()
    run = desk.start(RAW)
    desk.must(QueueMail(by=child, run=run, call=call(1), to=(BOSS,), subject="Pay?", text="Pay 420?"))
    (added,) = desk.index.outbox.values()
    request = added.outgoing.message_id
    desk.must(MailDelivered(added.outgoing.ordinal))
    wait = ev.SignalAwaited(call=call(2), park="approval", seen=3, title="Pay 420?", who=(BOSS,), request=request)
    desk.append(run, wait)
    return desk, run, request


def reply(name: str, request: str, **more: str) -> bytes:
    """A mail of the boss's that answers the request, in words of its own."""
    return message(name, **{"sender": BOSS, "answers": request, "text": "let me think", **more})


def test_the_sender_of_a_rejected_mail_is_told_in_the_commit_that_rejects_it() -> None:
    """A mail that was accepted must not come to nothing behind its sender's back; no crash lies between the two."""
    desk = rejected(RAW)
    (added,) = desk.index.outbox.values()
    assert (added.outgoing.to, added.outgoing.about, added.outgoing.run) == ((SENDER,), 1, "")
    assert layout.outbox_path(1, added.outgoing.key) in desk.changes[-1].puts
    gist = mail.scan(added.message)
    assert (gist.sender, gist.automatic, gist.in_reply_to) == (ADDRESS, True, (b"<m1@x>",))
    assert gist.subject == "Not processed: about m1@x"
    assert desk.index.state.rejected == 1


def test_a_mail_that_is_rejected_from_hold_has_its_notice_too() -> None:
    """Its sender was told that it is safe."""
    desk = Desk()
    desk.enqueue(RAW)
    desk.must(Enqueue(message("m1@x", text="other")))
    desk.must(RejectHeld(2))
    (added,) = desk.index.outbox.values()
    assert (added.outgoing.about, b"same Message-ID" in added.message) == (2, True)
    desk.check()


@pytest.mark.parametrize(
    "field",
    [
        b"Auto-Submitted: auto-replied",
        b"Return-Path: <>",
        b"Precedence: bulk",
        b"List-Id: <all.example.com>",
        b"Content-Type: multipart/report",
        b"From: second@example.com",
    ],
)
def test_no_notice_goes_to_a_program_or_to_nobody_in_particular(field: bytes) -> None:
    """Two programs that answer each other never stop."""
    desk = rejected(field + b"\r\n" + RAW)
    assert not desk.index.outbox
    assert desk.index.state.rejected == 1


@pytest.mark.parametrize(
    "sender", [ADDRESS, ADDRESS.upper(), "", "not an address", "a@b\x00c", "<bob@[192.0.2.1]>", "<a..b@example.com>"]
)
def test_no_notice_goes_to_ourselves_or_to_what_is_no_address(sender: str) -> None:
    """A mail with a forged sender must not make this deployment write to itself, nor fail its rejection."""
    desk = rejected(message("m1@x", sender=sender))
    assert not desk.index.outbox
    assert 1 not in desk.index.queue
    assert desk.index.state.rejected == 1


def test_a_notice_is_no_mail_that_would_get_one() -> None:
    """Should it come back to a deployment of ours and be rejected there, that is the end of it."""
    (added,) = rejected(RAW).index.outbox.values()
    assert not rejected(added.message).index.outbox


def test_a_hostile_subject_stays_a_text_in_the_notice() -> None:
    """It is quoted to its own sender; it must not become a header or end the mail."""
    raw = RAW.replace(b"Subject: about m1@x", b"Subject: =?utf-8?b?YQ0KQmNjOiBldmlsQHg=?= " + b"x" * 500)
    (added,) = rejected(raw).index.outbox.values()
    assert b"\nBcc" not in added.message
    assert added.outgoing.message.encode() == added.message


@pytest.mark.parametrize("operation", [MailDelivered(1), MailUndeliverable(1, "nobody")])
def test_a_notice_that_went_out_leaves_nothing_but_its_commit(operation: MailDelivered | MailUndeliverable) -> None:
    """It belongs to no run, so there is no event; a second time is no error."""
    desk = rejected(RAW)
    desk.must(operation)
    assert desk.changes[-1].subject.endswith("a notice about mail 1")
    desk.must(operation)
    assert isinstance(desk.tree, Files)
    assert not [path for path in desk.tree.files if path.startswith("outbox/")]
    desk.check()


def test_who_was_asked_and_says_something_else_is_told_once_and_their_mail_stays() -> None:
    """Decision 10: any other word is no answer; else an approval waits for a person who thinks that they gave it."""
    desk, run, request = asked()
    arrival = desk.enqueue(reply("b1@x", request))
    desk.must(NoAnswer(arrival, call(2)))
    entry = desk.index.queue[arrival].queued.entry
    assert (entry.run, entry.told) == (run, "r1#2")
    assert decode(desk.tree.read(layout.inbox_path(ADDRESS, arrival, entry.key)) or b"") == entry
    (added,) = desk.index.outbox.values()
    assert (added.outgoing.to, b'"Pay 420?"' in added.message) == ((BOSS,), True)
    desk.check()

    assert desk.code(NoAnswer(arrival, call(2))) == "told"
    second = desk.enqueue(reply("b2@x", request))
    assert desk.code(NoAnswer(second, call(2))) == "told"  # a responder that answers every mail gets no second one
    again = desk.enqueue(reply("b3@x", request, references=added.outgoing.message_id, text="yes"))
    desk.must(Claim(again))
    yes = ev.Decision(approved=True, by=BOSS, text="", via="mail")
    assert desk.must(TakeUp(arrival=again, wait=call(2), decision=yes)) == run


def test_what_was_told_goes_along_when_the_mail_is_read_later() -> None:
    """It is kept for the workflow, as the notice says."""
    desk, run, request = asked()
    arrival = desk.enqueue(reply("b1@x", request))
    desk.must(NoAnswer(arrival, call(2)))
    desk.append(run, ev.SignalAwaited(call=call(3), park="input", seen=4))
    desk.must(Claim(arrival))
    desk.must(TakeUp(arrival=arrival, wait=call(3)))
    desk.check()


@pytest.mark.parametrize(
    ("case", "code"),
    [("claimed", "not-queued"), ("no such wait", "wait-closed"), ("automatic", "automatic"), ("gone", "not-queued")],
)
def test_a_notice_that_is_not_due_is_refused(case: str, code: str) -> None:
    """What dispatch saw may have changed before it asked."""
    desk, _, request = asked()
    raw = reply("b1@x", request)
    arrival = desk.enqueue(b"Auto-Submitted: auto-replied\r\n" + raw if case == "automatic" else raw)
    if case == "claimed":
        desk.must(Claim(arrival))
    number = call(9) if case == "no such wait" else call(2)
    assert desk.code(NoAnswer(arrival + 1 if case == "gone" else arrival, number)) == code
    assert not desk.index.outbox


def test_an_outbox_entry_of_before_reads_as_it_did() -> None:
    """A format is for ever."""
    raw = b'{"ordinal":4,"run":"run_1_0000000000000001","call":"r1#1","message_id":"<m@w>","to":["a@b"],"sha256":"00"}'
    outgoing = decode_outgoing(raw)
    assert (outgoing.run, outgoing.call, outgoing.about) == ("run_1_0000000000000001", "r1#1", 0)
