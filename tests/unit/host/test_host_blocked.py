"""What stops a whole deployment is what each of its runs waits on first, with the command that helps."""

from dataclasses import replace
from typing import Any

import pytest

from actors.credentials import Barred
from actors.logic.supervisor.words import describe
from substrate.messages import RunLine
from waypost.host.answers.records import ChildExit
from waypost.host.reading import runs
from waypost.host.reading.deployment_why import NO_HOST, all_told, blocks, sentence_of, told, urgency
from waypost.host.reading.explain import Situation, read
from waypost.host.reading.run_why import why
from waypost.host.reading.status import exit_of
from waypost.host.root.redeploying import described
from waypost.host.root.why import leaving
from waypost.model.ids import Deployment, Generation, RunId, run_id
from waypost.model.waiting import Waiting
from waypost.testing.sayings import check
from waypost.testing.supervision import (
    BACKING_OFF,
    BOOKS,
    CRASH_LOOPING,
    DOWN,
    DRAINING,
    FAILED,
    HELD,
    OPENING,
    RUNNING,
    SETUP,
    STARTING,
    STATES,
    STOPPED,
    SUPERSEDING,
    UNMANNED,
)

RUN = run_id(3, b"12345678")
EXIT = ChildExit(generation=4, at="2026-11-29T08:00:00.000Z", why="exit status 1", stderr=("boom",))


def situation(state: Any, *, beside: bool = False) -> Situation:
    """A deployment whose supervisor is in this state."""
    found = describe(SETUP, state)
    return Situation(
        name="orders",
        address="orders@x",
        hosted=True,
        state=found.state,
        code=found.code,
        reason=found.reason,
        since=found.since,
        exited=exit_of(found) or EXIT,
        why=found.why,
        beside=beside,
    )


def resting(state: str = "", code: str = "", *, beside: bool = False) -> Situation:
    """A deployment that no host runs."""
    return Situation(name="orders", address="orders@x", hosted=False, state=state, code=code, beside=beside)


@pytest.mark.parametrize(
    ("which", "command"),
    [
        (situation(CRASH_LOOPING), "waypost reset orders"),
        (situation(HELD), "waypost resume orders"),
        (situation(FAILED), "waypost resume orders"),
        (situation(DOWN), "waypost fsck orders"),
        (situation(UNMANNED), "waypost run"),
        (situation(STOPPED), "waypost run"),
        (resting(), "waypost run"),
        (resting("held"), "waypost run"),
        (resting("down", "crash-looping"), "waypost run"),
        (resting("unreadable"), "waypost fsck orders"),
        (resting("down", "rolled-back"), "waypost accept-rollback orders"),
        (resting(beside=True), "waypost run"),
    ],
)
def test_a_state_that_needs_an_operator_names_the_command(which: Situation, command: str) -> None:
    """Whoever reads `why` at night runs what it says."""
    assert blocks(which)
    check(sentence_of(which))
    answer = why(read(RUN, ()), which)
    assert [each.kind for each in answer.waiting] == ["operator", "dispatch"]
    assert (answer.command, answer.needed) == (command, True)
    shown = which.code or which.state or "run by nobody"
    assert answer.waiting[0].detail == f"its deployment is {shown}"
    assert (urgency(told(which)), told(which).name) == (0, "orders")


@pytest.mark.parametrize("state", [RUNNING, STARTING, BACKING_OFF, DRAINING, SUPERSEDING, OPENING])
def test_what_goes_on_by_itself_blocks_nobody(state: Any) -> None:
    """A pause between two children is no reason to call anybody; a run that can't go on before says what it is for."""
    which = situation(state)
    assert not blocks(which)
    kinds = [each.kind for each in why(read(RUN, ()), which).waiting]
    assert kinds == (["dispatch"] if state is RUNNING else ["deployment", "dispatch"])


def test_a_full_disk_and_code_that_does_not_load_are_what_a_queued_run_waits_for() -> None:
    """Its deployment runs, and still it can't begin."""
    full = why(read(RUN, ()), situation(replace(RUNNING, books=replace(BOOKS, scarce="the disk is full"))))
    assert [each.kind for each in full.waiting] == ["deployment", "dispatch"]
    assert "which is disk-full and waits for space on its disk" in full.waits_for
    broken = why(read(RUN, ()), situation(replace(RUNNING, broken="SyntaxError")))
    assert (broken.waiting[0].kind, broken.command) == ("deployment", "waypost deploy orders.py")


@pytest.mark.parametrize(
    ("barred", "command"),
    [
        (Barred(Generation(3), "the credential github: its command failed"), "waypost credentials check"),
        (Barred(Generation(3), "it isn't granted", (("pay", "bank"),)), "waypost grants set orders pay --secret bank"),
    ],
)
def test_a_run_that_can_not_begin_for_want_of_a_right_or_a_secret_says_so(barred: Barred, command: str) -> None:
    """With the command that settles it; and programs see it in the deployment's code."""
    which = situation(replace(RUNNING, books=replace(BOOKS, barred=barred)))
    answer = why(read(RUN, ()), which)
    assert [each.kind for each in answer.waiting] == ["deployment", "dispatch"]
    assert (answer.command, which.code) == (command, "barred")
    assert barred.why in answer.waits_for


def test_how_the_last_process_ended_is_told_where_none_runs() -> None:
    """While one runs it would only worry people."""
    assert told(situation(BACKING_OFF)).exited == EXIT
    assert told(situation(RUNNING)).exited is None


def test_of_many_those_come_first_that_need_somebody() -> None:
    """Then where mail is withheld, then what is on its way, then the rest; one answer for all of them."""
    full = replace(RUNNING, books=replace(BOOKS, scarce="the disk is full"))
    several = [
        replace(situation(state), name=f"d{number}") for number, state in enumerate((RUNNING, BACKING_OFF, full, HELD))
    ]
    found = all_told((*several, replace(resting(), name="e")))
    assert [each.name for each in found.deployments] == ["d3", "e", "d2", "d1", "d0"]
    assert found.hosted
    assert found.deployments[1].state == NO_HOST
    assert not all_told([resting()]).hosted


@pytest.mark.parametrize("state", STATES, ids=lambda state: type(state).__name__)
def test_every_state_of_a_deployment_gives_each_of_its_runs_a_sentence(state: Any) -> None:
    """Whatever the deployment does, a run says what it waits for."""
    answer = why(read(RUN, ()), situation(state))
    assert answer.waits_for
    assert answer.then
    assert answer.waiting[-1].kind == "dispatch"


class Listed:
    """A source with one deployment, and two runs: one is live."""

    def situations(self) -> tuple[Situation, ...]:
        """One that is crash-looping."""
        return (situation(CRASH_LOOPING),)

    def runs(self, _deployment: str, _limit: int, _before: RunId | None = None) -> tuple[RunLine, ...]:
        """A live one and one that has ended."""
        waiting = (Waiting("step", None, "step pay", None),)
        return (
            RunLine(run=RUN, state="running", started="2", changed="2", seq=3, waiting=waiting),
            RunLine(run=run_id(2, b"12345678"), state="completed", started="1", changed="1", seq=9),
        )


def test_lists_say_it_of_live_runs_only() -> None:
    """What has ended needs nobody."""
    rows = runs.listed(Listed()).runs  # type: ignore[arg-type]  # it is asked for no more than this
    assert [row.waiting for row in rows] == ["operator: its deployment is crash-looping; step: step pay", ""]
    assert {row.deployment for row in rows} == {Deployment("orders")}


@pytest.mark.parametrize("state", ["idle", "starting", "waking", "down"])
def test_a_deployment_without_a_supervisor_says_what_it_waits_for(state: str) -> None:
    """It is the root that speaks then; one that is given up names what helps."""
    found = described(SETUP.spec, state, "its supervisor failed: boom")
    check(found.why)
    assert (found.why.needed, found.code) == ((True, "host-fault") if state == "down" else (False, ""))


def test_a_deployment_that_makes_way_for_other_code_says_that_it_comes_back() -> None:
    """Its supervisor knows only that it is to end."""
    found = leaving(describe(SETUP, DRAINING)).why
    assert found.then == "other code takes its place, and it starts with that"
    assert found.waits_for == describe(SETUP, DRAINING).why.waits_for
