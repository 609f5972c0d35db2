"""Mail of a child run: whom it may write to, and which mails it may answer."""

import hashlib

from substrate import layout
from substrate.messages import Append, QueueMail
from waypost.model import events as ev
from waypost.model.ids import CallId, RunId
from waypost.testing.desk import SENDER
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
