"""Which wait a mail is for: one row, one rule."""

import msgspec
import pytest

from actors.logic.dispatch.routing import accepting_wait, no_answer_to
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.mail import scan
from waypost.testing.samples import BEGAN, HASH

RUN = RunId("run_1_0000000000000001")
CLAIM, REPLY = "<claim@x>", "<chat@x>"
FIRST, SECOND, NOTE = "<ask-1@waypost.x>", "<ask-2@waypost.x>", "<note@waypost.x>"
BOSS = "boss@example.com"


def wait(park: str, request: str = "", who: tuple[str, ...] = (BOSS,)) -> fold.Wait:
    """An open wait."""
    return fold.Wait(park, "Pay?", who if park == "approval" else (), request, None, "")


def ledger(**waits: fold.Wait) -> fold.Ledger:
    """A run that was given the claim and has sent three mails; keyword names are calls."""
    started = msgspec.structs.replace(BEGAN, mail=ev.Mailed(arrival=1, id=CLAIM, sha256=HASH))
    return fold.Ledger(
        run=RUN,
        seq=9,
        drive=1,
        seen=8,
        generation=Generation(1),
        attempts=0,
        started=started,
        waits={CallId(call): each for call, each in waits.items()},
        sent=frozenset({FIRST, SECOND, NOTE}),
        received=(CLAIM, REPLY),
    )


def reply(to: str = FIRST, text: str = "Yes, go ahead", sender: str = BOSS, more: str = "") -> bytes:
    """A mail in the thread."""
    return f"Message-ID: <r@x>\r\nFrom: {sender}\r\nIn-Reply-To: {to}\r\n{more}\r\n{text}\r\n".encode()


APPROVAL, OTHER, INPUT = wait("approval", FIRST), wait("approval", SECOND), wait("input")

ROWS = [
    ("a reply to the request answers it", {"a": APPROVAL}, reply(), "a"),
    ("of two approvals, the one whose request is named", {"a": APPROVAL, "b": OTHER}, reply(SECOND), "b"),
    ("an answer goes to the approval although a receive is older", {"i": INPUT, "a": APPROVAL}, reply(), "a"),
    ("anything else goes to the receive although it is newer", {"a": APPROVAL, "i": INPUT}, reply(CLAIM, "Hm"), "i"),
    ("the oldest receive comes first", {"i": INPUT, "j": INPUT}, reply(CLAIM, "Hello"), "i"),
    ("a mail that nothing accepts waits", {"a": APPROVAL}, reply(text="What is this?"), None),
    ("with no wait open it waits", {}, reply(), None),
    ("somebody else's yes is no answer", {"a": APPROVAL}, reply(sender="claire@example.com"), None),
    ("nor is it when the boss is one of two", {"a": APPROVAL}, reply(sender=f"{BOSS}, claire@example.com"), None),
    ("the domain's case doesn't matter", {"a": APPROVAL}, reply(sender="boss@EXAMPLE.com"), "a"),
    ("in the thread, to the only open approval", {"a": APPROVAL}, reply(CLAIM), "a"),
    ("in the thread, but two are open", {"a": APPROVAL, "b": OTHER}, reply(CLAIM), None),
    ("in no thread of the run", {"a": APPROVAL}, reply("<other@x>"), None),
    ("a late yes to a decided approval approves nothing else", {"b": OTHER}, reply(FIRST), None),
    ("a yes to another mail of the run approves nothing", {"a": APPROVAL}, reply(NOTE), None),
    ("the request is found behind a reply that was never taken up", {"a": APPROVAL},
     reply("<mine@x>", more=f"References: {CLAIM} {FIRST} <mine@x>\r\n"), "a"),
    ("an absence note decides nothing", {"a": APPROVAL}, reply(more="Auto-Submitted: auto-replied\r\n"), None),
]  # fmt: skip


@pytest.mark.parametrize(("waits", "raw", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_mail_goes_to_the_wait_that_accepts_it(waits, raw, expected):
    """Who may answer is part of the wait; belonging to the thread gives no rights."""
    found = accepting_wait(ledger(**waits), scan(raw))
    assert (found.call if found else None) == expected


def test_the_decision_says_who_what_and_by_which_way():
    """The host records the answer, so that a child can't forge one."""
    found = accepting_wait(ledger(a=APPROVAL), scan(reply(text="No.\r\nToo expensive")))
    assert found is not None
    assert found.decision == ev.Decision(approved=False, by=BOSS, text="Too expensive", via="mail")


def test_a_receive_gets_no_decision():
    """A yes to nobody's question is a mail like any other."""
    found = accepting_wait(ledger(i=INPUT), scan(reply()))
    assert found is not None
    assert found.decision is None


UNTOLD = [
    ("another word is no answer", {"a": APPROVAL}, reply(text="What is this?"), "a"),
    ("of two approvals, the one whose request is named", {"a": APPROVAL, "b": OTHER}, reply(SECOND, "Hm"), "b"),
    ("a yes is one", {"a": APPROVAL}, reply(), None),
    ("who wasn't asked isn't told", {"a": APPROVAL}, reply(text="Hm", sender="claire@example.com"), None),
    ("what a receive takes is for the workflow", {"a": APPROVAL, "i": INPUT}, reply(text="Hm"), None),
    ("nobody is told when on holiday", {"a": APPROVAL}, reply(text="Away", more="Auto-Submitted: auto-replied"), None),
    ("about a decided approval there is nothing to say", {"b": OTHER}, reply(FIRST, "Hm"), None),
]


@pytest.mark.parametrize(("rule", "waits", "raw", "told"), UNTOLD, ids=[row[0] for row in UNTOLD])
def test_whoever_was_asked_and_says_neither_yes_nor_no_is_told(
    rule: str, waits: dict[str, fold.Wait], raw: bytes, told: str | None
) -> None:
    """Decision 10; and a notice to the wrong one, or to a program, would do harm."""
    assert no_answer_to(ledger(**waits), scan(raw)) == told, rule
