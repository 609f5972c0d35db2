"""Timing marks: each mail's way is told once, when what it caused is durable; and nobody is the worse for it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.dispatch import DispatchActor
from actors.effects import Ask
from actors.logic.dispatch.marks import MOST, Around, Claiming, Marks, Taken, Working, watch
from actors.messages import DeploymentSpec
from substrate.messages import Append, Claim, Release, Stage, TakeUp, WorkflowProcess
from waypost.model import events as ev
from waypost.model.ids import Deployment, Generation, RunId
from waypost.observing import Mark, Timed
from waypost.testing.clock import ManualClock
from waypost.testing.dispatch_bench import CHILD, RUN, Bench

AROUND = Around("expenses", 3, 2)
RETURNS = Append(
    by=WorkflowProcess(Generation(1)), run=RUN, events=(ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"1"))),)
)


class Watched(Bench):
    """A bench whose dispatch is watched; each message takes a second."""

    def __init__(self) -> None:
        self.marks, self.timed, self.mono = Marks(), list[Timed](), 0.0
        super().__init__()

    def tell(self, message: Any) -> None:
        """One message, watched."""
        before = len(self.requests)
        super().tell(message)
        self.mono += 1.0
        asked = list(self.requests)[before:]
        self.marks, timed = watch(self.marks, message, asked, self.mono, AROUND)
        self.timed += timed


def test_a_mail_is_marked_once_when_what_its_run_did_is_durable() -> None:
    """Its legs don't overlap, and what its run has written is counted; a flush that fails would have told nothing."""
    bench = Watched()
    bench.up()
    bench.mail(1)
    bench.settle()
    assert bench.timed == []
    assert len(bench.marks.mails) == 1
    bench.paper.submit(RETURNS)
    bench.stream()
    assert bench.timed == []
    bench.settle()
    (mark,) = bench.timed
    assert mark.claim > 0
    assert mark.consume > 0
    assert mark.events > 0
    assert mark.round_trip >= mark.claim + mark.consume + mark.events
    assert (mark.written, mark.commits, mark.mails, mark.runs) == (2, 2, 3, 2)
    assert bench.marks == Marks()


def test_a_claim_that_goes_back_is_followed_no_further() -> None:
    """It will be claimed again, and that is another way."""
    bench = Watched()
    bench.mail(1)
    bench.stream()
    asked = (Ask(1, Claim(1), Stage.COMMITTED),)
    marks, _ = watch(Marks(), None, asked, 0.0, AROUND)
    assert marks.mails
    bench.marks = marks
    bench.paper.submit(Claim(1))
    bench.paper.submit(Release(1))
    for message in bench.paper.taken():
        bench.tell(message)
    assert bench.marks == Marks()


def test_a_mail_that_is_given_up_is_forgotten_with_its_run() -> None:
    """What a run works at is looked up by the run: a thousand others at work cost its commits nothing."""
    taken = Taken(Claiming(0.0, 1, 1), 1.0, 1.0)
    runs = [RunId(f"run_{number // 2}_{number // 2:016}") for number in range(MOST)]
    mails: dict[int, Working] = {number: Working(taken, run, 1.0, 2.0) for number, run in enumerate(runs)}
    working = {run: tuple(number for number in mails if runs[number] == run) for run in runs}
    marks = Marks(mails, working)
    for number in range(3):
        marks, _ = watch(marks, None, (Ask(1, Claim(MOST + number), Stage.COMMITTED),), 3.0, AROUND)
    assert len(marks.mails) == MOST
    assert runs[0] not in marks.working
    assert marks.working[runs[2]] == (3,)
    assert {each for arrivals in marks.working.values() for each in arrivals} == set(range(3, MOST))


@settings(max_examples=15, deadline=None)
@given(deeds=st.lists(st.sampled_from(["mail", "answer", "flush", "end", "crash"]), max_size=30))
def test_no_mail_is_marked_twice_and_no_leg_is_longer_than_the_whole(deeds: list[str]) -> None:
    """Whatever is late, and whichever child ends meanwhile."""
    bench, mails = Watched(), 0
    bench.up()
    for deed in deeds:
        match deed:
            case "mail":
                mails += 1
                bench.mail(mails)
            case "answer" if bench.requests:
                bench.answer()
            case "flush":
                bench.flush()
            case "end":
                bench.paper.submit(RETURNS)
                bench.stream()
            case "crash":
                bench.crash()
                bench.up()
            case _:
                continue
        assert len(bench.marks.mails) <= mails
    bench.settle()
    assert len(bench.timed) <= mails
    for mark in bench.timed:
        legs = (mark.claim, mark.consume, mark.events)
        assert min(legs) >= 0
        assert sum(legs) <= mark.round_trip
        assert 1 <= mark.commits <= mark.written


def test_what_is_followed_is_bounded() -> None:
    """A run may take a year for its mail."""
    marks = Marks()
    for arrival in range(MOST + 10):
        marks, _ = watch(marks, None, (Ask(arrival, Claim(arrival), Stage.COMMITTED),), 0.0, AROUND)
    assert len(marks.mails) == MOST
    assert min(marks.mails) == 10
    assert isinstance(marks.mails[10], Claiming)


def test_what_began_before_it_was_watched_is_followed_no_further() -> None:
    """A claim, a take-up, an end whose beginnings nobody has marked: nothing is made up."""
    bench = Bench()
    bench.up()
    bench.mail(1)
    marks, timed = Marks(), list[Timed]()
    tell = bench.tell

    def watched(message: Any) -> None:
        nonlocal marks
        before = len(bench.requests)
        tell(message)
        asked = [each for each in list(bench.requests)[before:] if not isinstance(each.what, Claim)]
        marks, more = watch(marks, message, asked, 0.0, AROUND)
        timed.extend(more)

    bench.tell = watched  # type: ignore[method-assign] # watched from here on, and blind to claims
    bench.settle()
    assert (marks, timed) == (Marks(), [])


def test_nothing_is_made_up_for_a_mail_beside_one_that_is_followed() -> None:
    """Each is looked up by itself: another's being followed marks no beginning of its own."""
    bench = Bench()
    bench.up()
    for number in (1, 2):
        bench.mail(number)
    marks, _ = watch(Marks(), None, (Ask(1, Claim(99), Stage.COMMITTED),), 0.0, AROUND)
    followed, tell, taken_up = marks, bench.tell, list[TakeUp]()

    def watched(message: Any) -> None:
        nonlocal marks
        before = len(bench.requests)
        tell(message)
        asked = [each for each in list(bench.requests)[before:] if isinstance(each.what, TakeUp)]
        marks, timed = watch(marks, message, asked, 1.0, AROUND)
        taken_up.extend(each.what for each in asked if isinstance(each.what, TakeUp))
        assert (marks, timed) == (followed, ())

    bench.tell = watched  # type: ignore[method-assign] # watched from here on, and blind to claims
    bench.settle()
    assert [each.arrival for each in taken_up] == [1, 2]


def test_dispatch_goes_on_when_its_being_watched_fails(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing rests on a mark: what fails there is logged once, and no longer called."""
    calls: list[object] = []

    def broken(*arguments: object) -> None:
        calls.append(arguments)
        raise ValueError("no")

    class Ear:
        def mark(self, what: Mark) -> None:
            raise AssertionError(what)

    monkeypatch.setattr("actors.dispatch.watch", broken)
    spec = DeploymentSpec(
        name=Deployment("expenses"), address="e@example.com", definition="d", code="c", file="f", steps=(),
        mail_to=(), runs="thread", env=(), python="3", waypost="0",
    )  # fmt: skip
    actor = DispatchActor.start(spec, CHILD, clock=ManualClock(), observer=Ear())
    paper = Bench().paper
    actor.tell(paper.snapshot())
    for number in (1, 2):
        paper.submit(Claim(number))
        for message in paper.taken():
            actor.tell(message)
    actor.stop()
    assert len(calls) == 1
    assert "nobody observes it any more" in caplog.text
