"""What a drain and a recycle look like from outside: what is recorded, what is weighed, what is said, who is told."""

import os
import subprocess
import sys
from contextvars import Context
from dataclasses import replace

import pytest
from msgspec import UNSET

from actors.describing import Changed
from actors.draining import Executing, RecycleRequested, Renewed, StillExecuting, Weigh
from actors.effects import ToSupervisor
from actors.logic.child.states import Weighing
from actors.logic.supervisor.decision import WATCHING
from actors.logic.supervisor.states import Running
from actors.logic.supervisor.words import describe
from ipc.weight import resident
from substrate.messages import (
    BeginGeneration,
    DrainDeployment,
    GoesOn,
    HoldDeployment,
    LatchDeployment,
    ResetDeployment,
    ResumeDeployment,
    Unlatched,
)
from substrate.operations import Settled
from waypost import Invalid, recycle
from waypost.acting import Asked, Reply
from waypost.authoring.scope import InStep, enter
from waypost.cli.words import reset
from waypost.host.answers.records import DeploymentReset
from waypost.host.reading.status import followed, status_of
from waypost.model.ids import Generation, RunId
from waypost.testing import childhood
from waypost.testing.desk import Desk, message
from waypost.testing.supervision import BOOKS, DRAINING, EXECUTING, RUNNING, SETUP, step

# --- the repository ------------------------------------------------------------------------------------------------


def test_a_drained_deployment_is_held_by_one_commit_and_goes_on_by_another() -> None:
    """By the same word and the same verb as one that was restored; no epoch begins."""
    desk = Desk()
    desk.begin()
    assert desk.code(HoldDeployment()) == "not-draining"
    desk.must(DrainDeployment("ann"))
    assert desk.must(HoldDeployment()) is None
    assert (desk.index.state.held, desk.index.state.drain) == ("drain", UNSET)
    assert desk.changes[-1].subject == "hold the deployment: drained, by ann"
    assert desk.do(HoldDeployment()) == Settled()
    desk.enqueue(message("m1@x"))
    assert desk.index.state.held == "drain"
    desk.check()
    assert desk.must(ResumeDeployment("ann")) == GoesOn("drain")
    assert not desk.index.state.held
    desk.must(BeginGeneration())
    desk.check()


@pytest.mark.parametrize(("end", "to", "code"), [(False, "rest", "draining"), (True, "end", "retiring")])
def test_a_drain_is_recorded_before_anybody_is_told_that_it_has_begun(end, to, code) -> None:
    """Every host goes on with it; mail comes meanwhile, and a second one is told which is under way."""
    desk = Desk()
    desk.begin()
    made = desk.must(DrainDeployment("ann", end=end))
    assert (made.to, made.by, desk.index.state.drain) == (to, "ann", made)
    assert desk.code(DrainDeployment("bob")) == desk.code(DrainDeployment("bob", end=True)) == code
    desk.enqueue(message("m1@x"))
    desk.must(BeginGeneration())
    desk.check()
    assert desk.must(ResumeDeployment("bob")) == GoesOn("draining")
    assert desk.changes[-1].subject == "resume the deployment after draining, by bob"
    assert desk.index.state.drain is UNSET
    assert desk.code(ResumeDeployment("bob")) == "not-held"
    assert desk.code(HoldDeployment()) == "not-draining", "nobody wants that any more"
    desk.check()


def test_what_rests_already_is_not_drained() -> None:
    """One that is held, or has no child by its latch, has nothing that executes."""
    desk = Desk()
    desk.begin()
    desk.must(DrainDeployment("ann"))
    desk.must(HoldDeployment())
    assert desk.code(DrainDeployment("bob")) == "held"
    desk.must(ResumeDeployment("ann"))
    desk.must(LatchDeployment(detail="3 exits"))
    assert desk.code(DrainDeployment("bob")) == "latched"
    desk.must(ResetDeployment("ann"))
    desk.must(DrainDeployment("bob"))
    desk.must(LatchDeployment(detail="3 exits more"))
    assert desk.must(HoldDeployment()) is None
    desk.check()


@pytest.mark.parametrize(
    ("end", "held", "what"),
    [
        (False, False, Unlatched(held=True)),
        (False, True, Unlatched(held=True)),
        (True, False, Unlatched(ending=True)),
        (True, True, Unlatched(held=True)),
        (None, False, Unlatched()),
    ],
)
def test_whoever_resets_a_drained_deployment_is_told_what_stays(*, end, held, what) -> None:
    """It has no process, or one that begins no run: that its live runs go on wouldn't be true."""
    desk = Desk()
    desk.begin()
    if end is not None:
        desk.must(DrainDeployment("ann", end=end))
    desk.must(LatchDeployment(detail="3 exits"))
    if held:
        desk.must(HoldDeployment())
    assert desk.must(ResetDeployment("ann")) == what
    desk.check()


@pytest.mark.parametrize(
    ("held", "ending", "word"), [(True, False, "held"), (False, True, "no run begins"), (False, False, "go on where")]
)
def test_a_reset_says_it(*, held, ending, word) -> None:
    """In the first line, and where something more is to be done, by which verb."""
    first, *more = reset(DeploymentReset(deployment="expenses", by="ann", held=held, ending=ending))
    assert word in first
    assert any("`waypost resume expenses`" in line for line in more) == (held or ending)


@pytest.mark.parametrize("held", [True, False])
def test_whoever_lets_a_crash_looping_deployment_go_on_is_told_that_it_does_not_yet(*, held: bool) -> None:
    """A drain that it crashed in, or a backup of one that had: lifting that gives it no process."""
    desk = Desk()
    desk.begin()
    desk.must(DrainDeployment("ann"))
    desk.must(LatchDeployment(detail="3 exits"))
    if held:
        desk.must(HoldDeployment())
    assert desk.must(ResumeDeployment("ann")) == GoesOn("drain" if held else "draining", latched=True)
    desk.check()


# --- the kernel ----------------------------------------------------------------------------------------------------


def test_all_of_a_session_is_weighed_and_nothing_else() -> None:
    """A process may put its weight into another one that it begins."""
    heavy = "import os, sys; b = bytearray(40_000_000); pid = os.fork()"
    script = f"{heavy}; sys.stdout.write('.'); sys.stdout.flush(); sys.stdin.read()"
    one = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert one.stdout is not None
        assert one.stdout.read(2) == b".."
        assert 80_000_000 < resident(one.pid) < 400_000_000
    finally:
        one.communicate()
    assert resident(one.pid) == 0
    assert resident(os.getsid(0)) > 0


def test_a_child_that_talks_is_weighed() -> None:
    """By the number of its process as the host has it, never by what it says of itself."""
    assert Weighing(childhood.TALKING.pid) in childhood.step(childhood.TALKING, Weigh()).effects
    alone = childhood.step(childhood.TALKING, Weigh(memory=False)).effects
    assert alone == (Weighing(childhood.TALKING.pid, memory=False),)
    assert not childhood.step(childhood.NEW, Weigh()).effects


def test_a_child_that_wants_a_successor_says_so_to_its_supervisor() -> None:
    """And goes on: it is told when it has to go."""
    following = childhood.step(childhood.TALKING, childhood.MESSAGES["heard recycle request"])
    assert following.effects == (ToSupervisor(RecycleRequested(childhood.SETUP.generation, "leaks")),)
    assert following.state == childhood.TALKING


def test_a_step_asks_for_it_in_one_line() -> None:
    """In a plain process, such as a test of the workflow, nobody hears it."""
    said: list[str] = []

    def body() -> None:
        enter(InStep("0" * 64, print, renew=said.append))
        recycle("it\nleaks " + "x" * 2000)

    Context().run(body)
    assert said == [("it leaks " + "x" * 2000)[:1000]]
    recycle("nobody is here")
    with pytest.raises(Invalid):
        recycle(1)  # type: ignore[arg-type]  # what is tested


# --- people --------------------------------------------------------------------------------------------------------


def test_whoever_looks_on_is_answered_when_something_has_changed() -> None:
    """And at once where it has changed since; nobody asks again and again."""
    known = describe(SETUP, DRAINING)
    waits = step(DRAINING, Asked(5, Changed(known)))
    assert waits.effects == ()
    late = step(DRAINING, Asked(5, Changed(describe(SETUP, RUNNING))))
    assert late.effects == (Reply(5, known),)
    more = (EXECUTING, Executing(RunId("run_4_00112233445566aa"), "between two steps", ""))
    told = step(waits.state, StillExecuting(Generation(3), more))
    answers = [effect for effect in told.effects if isinstance(effect, Reply)]
    assert answers == [Reply(5, describe(SETUP, told.state))]
    assert told.state.books.watching == ()


def test_of_many_who_look_on_the_last_ones_are_answered_at_once() -> None:
    """Nobody can make a supervisor remember without end."""
    state = replace(DRAINING, books=replace(BOOKS, watching=tuple(range(WATCHING))))
    assert step(state, Asked(99, Changed(describe(SETUP, state)))).effects == (Reply(99, describe(SETUP, state)),)


def test_a_status_says_what_is_waited_for_and_whence_the_process_comes() -> None:
    """For programs: the same as people are told."""
    renewed = Renewed("operator", "ann: leaks", 1_764_403_200_000, Generation(2))
    status = status_of(describe(SETUP, replace(DRAINING, books=replace(BOOKS, renewed=renewed))))
    (one,) = status.executing
    assert (one.run, one.step, one.since) == (EXECUTING.run, "step pay", EXECUTING.since)
    assert status.renewed is not None
    assert (status.renewed.origin, status.renewed.after) == ("operator", 2)


def test_a_mark_differs_when_anything_does() -> None:
    """Else somebody would wait for what has happened already."""
    marks = {followed(describe(SETUP, state)).mark for state in (RUNNING, DRAINING, Running(BOOKS, 78, 0.0))}
    assert len(marks) == 3
    assert followed(describe(SETUP, RUNNING)).mark == followed(describe(SETUP, RUNNING)).mark
