"""``waypost why`` of a parent, asked of a repository: in what state each child is, also one that nobody can start."""

import pytest

from substrate.indexing import kept
from substrate.messages import BeginGeneration, Kept, LogPage, Pause, ReadHold, ReadLog, ReadRuns, Refused, RunLine
from substrate.questions import read_log, read_runs
from waypost.cli.explaining import run_words
from waypost.host.reading import reasons, runs
from waypost.host.reading.explain import Situation
from waypost.model import events as ev
from waypost.model.ids import RunId
from waypost.model.limits import Limits
from waypost.testing.corrupted import NULL
from waypost.testing.desk import call
from waypost.testing.families import Family
from waypost.testing.sayings import check_reason

HERE = Situation(name="expenses", address="expenses@example.com", hosted=True, state="running", isolation="none")


class OfAFamily:
    """The source that a family's repository is."""

    def __init__(self, family: Family) -> None:
        self.index = family.desk.index

    def situations(self) -> tuple[Situation, ...]:
        """One deployment, at work."""
        return (HERE,)

    def runs(self, _deployment: str, limit: int, _before: RunId | None = None) -> tuple[RunLine, ...]:
        """As a host answers."""
        return read_runs(self.index, ReadRuns(limit=limit))

    def page(self, _deployment: str, run: RunId, after: int) -> LogPage | None:
        """The same of a log."""
        found = read_log(self.index, ReadLog(run=run, after=after, limit=1_000_000))
        return None if isinstance(found, Refused) else found

    def on_hold(self, _deployment: str, limit: int) -> tuple[Kept, ...]:
        """The same of mail on hold."""
        return kept.on_hold(self.index, self.index.on_hold.values(), ReadHold(limit=limit))


def said(family: Family, run: RunId) -> list[str]:
    """What a run waits for, each in its words; every sentence and command holds what it promises."""
    answer = reasons.of_run(OfAFamily(family), run)  # type: ignore[arg-type]  # it is asked for no more than this
    for each in (answer, *answer.waiting):
        check_reason(each)
    return [each.waits_for for each in answer.waiting]


def test_each_child_is_named_with_how_it_is() -> None:
    """Queued, at work, parked, paused: whoever asks sees at once which of them to look at."""
    family = Family()
    run = family.root()
    at_work, parked, paused = (family.child(run, call(n), seen=1) for n in (1, 2, 3))
    family.desk.append(parked, ev.SignalAwaited(call=call(1), park="input", seen=1))
    family.desk.must(Pause(run=paused, code="operator", detail="look at it"))
    queued = family.spawn(run, call(4), workflow="ask", seen=1)
    assert said(family, run) == [
        f"its child run (pay, as {at_work}, which is running (child)) to end",
        f"its child run (pay, as {parked}, which is parked (mail)) to end",
        f"its child run (pay, as {paused}, which is paused (operator)) to end",
        f"its child run (ask, as {queued}, which is queued) to end",
    ]


def test_a_child_on_hold_is_said_with_the_mail_to_look_at() -> None:
    """Nothing goes on before somebody lets it in, or rejects it."""
    family = Family(limits=Limits(attempts=1))
    run = family.root()
    child = family.spawn(run, call(1), seen=1)
    arrival = family.claim(run, call(1))
    family.desk.must(BeginGeneration(blame=True))
    (words,) = said(family, run)
    assert f"(pay, as {child}, which is on hold: `waypost why expenses/{arrival}`)" in words


def test_a_child_that_is_queued_says_whose_it_is() -> None:
    """Its log isn't there yet; its mail says it, to whoever wonders where the run comes from."""
    family = Family()
    run = family.root()
    child = family.spawn(run, call(1), seen=1)
    answer = reasons.of_run(OfAFamily(family), child)  # type: ignore[arg-type]  # it is asked for no more than this
    assert (answer.state, answer.parent, answer.child) == ("queued", run, "")
    assert next(run_words(answer)) == f"{child}  expenses  queued  child of {run}"


def test_a_list_says_whose_child_each_run_is() -> None:
    """For programs; for people its subject does."""
    family = Family()
    run = family.root()
    child = family.child(run, call(1))
    rows = runs.listed(OfAFamily(family)).runs  # type: ignore[arg-type]  # it is asked for no more than this
    assert [(row.run, row.parent) for row in rows] in ([(child, run), (run, "")], [(run, ""), (child, run)])
    assert {row.run: row.subject for row in rows}[child] == f"Child pay of {run}"


@pytest.mark.parametrize("ended", [False, True])
def test_a_run_without_children_asks_for_no_list(*, ended: bool) -> None:
    """Its own log says all of it."""
    family = Family()
    run = family.root()
    if ended:
        family.desk.append(run, ev.RunFailed(error=ev.Fault(type="E", message="m")))
    else:
        family.desk.append(run, ev.SignalAwaited(call=call(1), park="input", seen=1))

    class Deaf(OfAFamily):
        def runs(self, _deployment: str, limit: int, _before: RunId | None = None) -> tuple[RunLine, ...]:
            raise AssertionError(limit)

    answer = reasons.of_run(Deaf(family), run)  # type: ignore[arg-type]  # it is asked for no more than this
    assert (answer.parent, answer.child) == ("", "")


def test_a_child_that_was_told_to_end_says_by_whom() -> None:
    """Also one that never began: that its mail was queued is no reason to end it."""
    family = Family()
    run = family.root()
    queued = family.spawn(run, call(1), seen=1)
    family.desk.append(run, ev.RunCompleted(result=NULL))
    words = reasons.of_run(OfAFamily(family), queued).waits_for  # type: ignore[arg-type]  # as in ``said``
    assert words.startswith("nothing, as it was cancelled: it had not begun")
    assert words.endswith(f"; cancel was asked for (parent): its parent {run} has ended (completed)")
