"""Mail of a child run: whom it may write to, and which mails it may answer."""

import hashlib

import pytest

from substrate import layout
from substrate.messages import Append, Enqueue, MailDelivered, QueueMail
from substrate.routing import Runs
from waypost.model import events as ev
from waypost.model.ids import CallId, RunId
from waypost.model.limits import Limits
from waypost.testing.desk import BOSS, SENDER, message
from waypost.testing.families import ONE, Family

CALL = CallId("r1#1")
SEND = CallId("r1#2")


def reply(family: Family, run: RunId, sha256: str) -> QueueMail:
    """An answer to that mail, by this run."""
    return QueueMail(
        by=family.by, run=run, call=SEND, to=(SENDER,), subject="Re: claim", text="paid", reply_to_mail=sha256
    )


def given(family: Family, run: RunId) -> str:
    """SHA-256 of the mail that began a run."""
    return family.ledger(run).started.mail.sha256


def test_a_child_answers_the_mail_that_its_parent_was_given() -> None:
    """The parent has handed it on; the answer lies in the sender's own thread, however deep the child does."""
    family = Family()
    root = family.root()
    child = family.child(root, CALL)
    grandchild = family.child(child, CALL)
    family.desk.must(reply(family, grandchild, given(family, root)))
    queued = family.desk.events(grandchild)[-1]
    assert isinstance(queued, ev.MailQueued)
    raw = family.desk.tree.read(layout.blob_path(grandchild, queued.sha256)) or b""
    assert b"In-Reply-To: <root1@x>" in raw
    family.check()


def test_a_mail_of_nobody_above_is_none_that_it_was_given() -> None:
    """Neither its sibling's, nor its child's."""
    family = Family()
    root, other = family.root(), family.root()
    child = family.child(root, CALL)
    for stranger in (given(family, other), hashlib.sha256(b"nobody's").hexdigest()):
        assert family.desk.code(reply(family, child, stranger)) == "mail"
    assert family.desk.code(reply(family, root, given(family, child))) == "mail"


def test_a_child_whose_parent_has_ended_answers_its_own_mail_alone() -> None:
    """It is told to end, and what it sends while it cleans up is its own."""
    family = Family()
    root = family.root()
    child = family.child(root, CALL)
    above = given(family, root)
    family.desk.must(Append(by=family.by, run=root, events=(ONE,)))
    assert family.desk.code(reply(family, child, above)) == "mail"
    family.desk.must(reply(family, child, given(family, child)))


def asked_by(family: Family, run: RunId) -> str:
    """The Message-ID of a mail with which a run asks its boss."""
    family.desk.must(QueueMail(by=family.by, run=run, call=CALL, to=(BOSS,), subject="Pay?", text="yes or no"))
    queued = family.desk.events(run)[-1]
    assert isinstance(queued, ev.MailQueued)
    waits = ev.SignalAwaited(
        call=SEND, park="approval", seen=queued.seq, who=(BOSS,), request=queued.message_id, title="?"
    )
    family.desk.append(run, waits)
    return queued.message_id


@pytest.mark.parametrize("runs", ["thread", "message", "deployment"])
def test_the_answer_to_a_childs_approval_goes_to_the_child(runs: Runs) -> None:
    """Whatever mails share a run: its mail asked to be answered by a reply."""
    family = Family(runs=runs)
    root = family.root()
    child = family.child(root, CALL)
    asked = asked_by(family, child)
    assert family.desk.must(Enqueue(message("yes@x", sender=BOSS, answers=asked, text="yes"))).run == child
    family.check()


@pytest.mark.parametrize("sealed", [False, True])
def test_what_is_for_a_child_that_has_ended_is_for_its_parent(sealed: bool) -> None:  # noqa: FBT001 - pytest names it
    """It wrote on the parent's behalf, and that may wait for the answer; where nobody goes on, a new run begins."""
    family = Family()
    root = family.root()
    child = family.child(root, CALL)
    grandchild = family.child(child, CALL)
    family.desk.must(reply(family, grandchild, given(family, root)))
    sent = family.desk.events(grandchild)[-1]
    assert isinstance(sent, ev.MailQueued)
    family.desk.must(MailDelivered(sent.ordinal))
    for run in (grandchild, child):
        family.desk.append(run, ONE)
    while sealed and family.desk.fold_away():
        pass
    for number in (1, 2):
        came = family.desk.must(Enqueue(message(f"thanks{number}@x", answers=sent.message_id))).run
        assert came == root if number == 1 else came not in {root, child, grandchild}
        if number == 1:
            family.desk.append(root, ONE)


def test_a_parent_that_cannot_be_read_keeps_no_mail_out() -> None:
    """It begins a run, as a mail for a run that has ended does."""
    family = Family(limits=Limits(folds=0))
    root = family.root()
    child = family.child(root, CALL)
    family.desk.must(reply(family, child, given(family, child)))
    sent = family.desk.events(child)[-1]
    assert isinstance(sent, ev.MailQueued)
    family.desk.append(child, ONE)
    family.desk.settle()
    family.files.files[layout.event_path(root, 1)] = b"{"
    assert family.desk.must(Enqueue(message("late@x", answers=sent.message_id))).run not in {root, child}
