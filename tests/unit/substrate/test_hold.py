"""Mail on hold: it starts nothing, is never lost, and an operator lets it in or rejects it."""

import pytest
from msgspec import UNSET

from substrate import layout
from substrate.messages import Accepted, Claim, Enqueue, RejectHeld, Release, ReleaseHeld, TakeUp
from substrate.operations import Settled
from waypost.model import events as ev
from waypost.model.ids import RunId, message_key
from waypost.model.queue import Entry, decode
from waypost.testing.desk import ADDRESS, STARTED, Desk, message

FIRST = message("m1@x")
OTHER = message("m1@x", text="another mail")
TRACED = b"Received: from a by b; Mon, 5 Jan 2026 10:00:00 +0000\r\n" + OTHER
RUN = RunId("run_1_0000000000000001")


def held(desk: Desk, arrival: int = 2) -> Entry:
    """The entry on hold with this arrival, as the tree has it."""
    entry = desk.index.on_hold[arrival]
    raw = desk.tree.read(layout.hold_path(ADDRESS, arrival, entry.key))
    assert decode(raw or b"") == entry
    return entry


def clashed(stage: str = "inbox") -> Desk:
    """A first mail in this place, and another under its id."""
    desk = Desk()
    desk.begin()
    desk.enqueue(FIRST)
    if stage != "inbox":
        desk.must(Claim(1))
    if stage == "consumed":
        desk.must(TakeUp(arrival=1, start=STARTED))
    assert desk.must(Enqueue(OTHER)) == Accepted("on-hold", RUN, 2, "hold")
    return desk


@pytest.mark.parametrize("stage", ["inbox", "processing", "consumed"])
def test_another_mail_under_a_taken_id_is_kept_and_starts_nothing(stage: str) -> None:
    """Nothing that somebody writes into a header may make another's mail disappear, whichever of them comes first."""
    desk = clashed(stage)
    entry = held(desk)
    assert (entry.why, entry.clash, entry.starts) == ("id-clash", 1, False)
    assert desk.tree.read(layout.mail_path(2)) == OTHER
    assert 2 not in desk.index.queue
    assert desk.code(Claim(2)) == "not-queued"
    assert desk.do(Enqueue(FIRST)) == Settled(Accepted("already-present", RUN, 1, stage))
    desk.check()


@pytest.mark.parametrize("raw", [OTHER, TRACED])
def test_a_mail_on_hold_that_is_delivered_again_is_recognised(raw: bytes) -> None:
    """Its sender may have missed the answer, too; a relay's trace makes no other mail of it."""
    desk = clashed()
    assert desk.do(Enqueue(raw)) == Settled(Accepted("already-present", RUN, 2, "hold"))


def test_many_mails_under_one_id_are_all_kept() -> None:
    """Each of them may be the one that matters."""
    desk = clashed()
    third = message("m1@x", text="a third")
    assert desk.must(Enqueue(third)).arrival == 3
    assert list(desk.index.on_hold) == [2, 3]
    assert desk.tree.read(layout.mail_path(3)) == third
    desk.check()


def test_an_id_that_somebody_guessed_keeps_no_mail_out() -> None:
    """The id that a mail on hold is filed under can't be written into a header, so nobody can take it before."""
    desk = clashed()
    taken = held(desk).id
    forged = message("x@x").replace(b"<x@x>", b"%s" % taken.encode())
    assert desk.must(Enqueue(forged)).outcome == "enqueued"
    assert desk.index.queue[3].queued.entry.id == taken.strip()
    assert desk.index.queue[3].queued.entry.key != held(desk).key


def test_a_released_mail_is_one_of_its_own() -> None:
    """It runs beside the one that has its id, with idempotency keys of its own, and no thread is taken over."""
    desk = clashed("consumed")
    own = held(desk).key
    accepted = desk.must(ReleaseHeld(2))
    assert (accepted.outcome, accepted.arrival, accepted.place) == ("released", 2, "inbox")
    assert accepted.run != RUN
    desk.must(Claim(2))
    run = desk.must(TakeUp(arrival=2, start=STARTED))
    (started,) = desk.events(run)
    assert isinstance(started, ev.RunStarted)
    assert started.origin == own != message_key(b"<m1@x>")
    assert desk.do(Enqueue(OTHER)) == Settled(Accepted("already-present", run, 2, "consumed"))
    reply = desk.enqueue(message("m2@x", answers="m1@x"))
    assert desk.index.queue[reply].queued.entry.run == RUN
    desk.check()


def test_a_released_mail_comes_at_its_old_place_in_the_order() -> None:
    """Order is the order of arrival; an operator who looks late doesn't change it."""
    desk = clashed()
    desk.enqueue(message("m3@x"))
    desk.must(ReleaseHeld(2))
    assert list(desk.index.queue) == [1, 2, 3]
    desk.check()


def test_a_released_mail_of_a_thread_goes_to_the_run_of_that_thread() -> None:
    """Its place is decided when it is let in, by the same rule as at the door."""
    desk = Desk()
    desk.begin()
    run = desk.start(message("m0@x"))
    desk.enqueue(FIRST)
    other = desk.must(Enqueue(message("m1@x", answers="m0@x")))
    assert other.outcome == "on-hold"
    assert desk.must(ReleaseHeld(other.arrival)).run == run
    assert not desk.index.queue[other.arrival].queued.entry.starts
    desk.check()


def test_a_mail_that_is_rejected_from_hold_stays_readable() -> None:
    """It causes no event, its bytes stay, and it says why."""
    desk = clashed()
    key = held(desk).key
    desk.must(RejectHeld(2))
    entry = decode(desk.tree.read(layout.consumed_path(ADDRESS, 0, key)) or b"")
    assert (entry.rejected, entry.clash) == ("id-clash", 1)
    assert desk.tree.read(layout.mail_path(2)) == OTHER
    assert not desk.index.on_hold
    assert desk.do(Enqueue(OTHER)) == Settled(Accepted("already-present", RUN, 2, "consumed"))
    desk.check()


def poisoned() -> Desk:
    """A mail whose claims ended three times with the child, and another of its thread behind it."""
    desk = Desk()
    desk.begin()
    desk.enqueue(FIRST)
    desk.enqueue(message("m2@x", answers="m1@x"))
    for _ in range(desk.limits.attempts):
        assert 1 in desk.index.queue
        desk.must(Claim(1))
        desk.begin()
    return desk


def test_a_mail_whose_claims_end_with_the_child_three_times_goes_on_hold() -> None:
    """What kills its reader each time must not be given to every reader that comes."""
    desk = poisoned()
    entry = held(desk, 1)
    assert (entry.why, entry.attempt, entry.clash) == ("poison", 3, UNSET)
    assert desk.changes[-1].subject == "begin generation 4, hold 1 mail"
    assert desk.do(Enqueue(FIRST)) == Settled(Accepted("already-present", RUN, 1, "hold"))
    desk.check()


def test_what_waits_behind_a_poisoned_mail_starts_the_run() -> None:
    """One bad mail holds up nothing behind it."""
    desk = poisoned()
    desk.must(Claim(2))
    assert desk.must(TakeUp(arrival=2, start=STARTED)) == RUN
    desk.check()


def test_a_claim_that_was_given_back_is_no_attempt() -> None:
    """Only an end of the child is held against a mail, not that its run was busy."""
    desk = Desk()
    desk.begin()
    desk.enqueue(FIRST)
    for _ in range(5):
        desk.must(Claim(1))
        desk.must(Release(1))
    desk.must(Claim(1))
    desk.begin()
    assert desk.index.queue[1].queued.attempt == 1


def test_a_poisoned_mail_that_is_released_begins_anew() -> None:
    """The operator has mended what it broke; it gets three attempts again, in its old place."""
    desk = poisoned()
    assert desk.must(ReleaseHeld(1)).run == RUN
    assert (desk.index.queue[1].queued.attempt, desk.index.queued_for(RUN)) == (0, (1, 2))
    assert desk.must(Claim(1)) == 1
    assert desk.must(TakeUp(arrival=1, start=STARTED)) == RUN
    desk.check()


@pytest.mark.parametrize("operation", [ReleaseHeld(1), RejectHeld(1), ReleaseHeld(9), RejectHeld(9)])
def test_what_is_not_on_hold_is_neither_let_in_nor_rejected(operation: ReleaseHeld | RejectHeld) -> None:
    """An operator who mistypes a number must not lose a mail that waits."""
    desk = clashed()
    assert desk.code(operation) == "not-held"
    assert desk.code(Release(2)) == "not-claimed"
    desk.check()
