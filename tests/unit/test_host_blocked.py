"""What stops a whole deployment is what each of its runs waits on first, with the command that helps."""

import pytest

from substrate.messages import RunLine
from waypost.host import source
from waypost.host.answers import ChildExit
from waypost.host.explain import Situation, blocked, read, why
from waypost.model.ids import Deployment, run_id
from waypost.model.waiting import Waiting

RUN = run_id(3, b"12345678")
EXIT = ChildExit(generation=4, at="2026-11-29T08:00:00.000Z", why="exit status 1", stderr=("boom",))


def situation(state: str, code: str = "", *, hosted: bool = True) -> Situation:
    """A deployment that is like this."""
    return Situation(name="orders", address="orders@x", hosted=hosted, state=state, code=code, exited=EXIT)


@pytest.mark.parametrize(
    ("state", "code", "hosted", "command"),
    [
        ("down", "crash-looping", True, "waypost reset orders"),
        ("down", "crash-looping", False, "waypost run FILE, then: waypost reset orders"),
        ("held", "", True, "waypost resume orders"),
        ("held", "", False, "waypost run FILE, then: waypost resume orders"),
        ("stopped", "recycle-failed", True, "waypost resume orders"),
        ("down", "damaged", True, "waypost fsck orders"),
        ("down", "host-fault", True, "waypost run FILE   (anew, when the reason is gone)"),
        ("down", "storage-failed", True, "waypost run FILE   (anew, when the reason is gone)"),
    ],
)
def test_a_state_that_needs_an_operator_names_the_command(state: str, code: str, *, hosted: bool, command: str) -> None:
    """Whoever reads `why` at night runs what it says."""
    found = blocked(situation(state, code, hosted=hosted))
    assert found is not None
    assert (found.kind, found.command) == ("operator", command)
    assert (code or state) in found.detail


@pytest.mark.parametrize("state", ["", "running", "starting", "backing-off", "draining", "recycling", "stopping"])
def test_what_goes_on_by_itself_blocks_nobody(state: str) -> None:
    """A pause between two children is no reason to call anybody."""
    assert blocked(situation(state)) is None


def test_each_live_run_waits_on_it_and_how_the_last_process_ended_is_told() -> None:
    """Before what the run itself waits on, which is as true as before."""
    answer = why(read(RUN, ()), situation("down", "crash-looping"))
    assert [wait.kind for wait in answer.waiting] == ["operator", "dispatch"]
    assert answer.exited == EXIT
    assert "`waypost reset orders`" in answer.advice
    assert why(read(RUN, ()), situation("running")).exited is None


class Listed:
    """A source with one deployment, and two runs: one is live."""

    def situations(self) -> tuple[Situation, ...]:
        """One that is crash-looping."""
        return (situation("down", "crash-looping"),)

    def runs(self, _deployment: str, _limit: int) -> tuple[RunLine, ...]:
        """A live one and one that has ended."""
        waiting = (Waiting("step", None, "step pay", None),)
        return (
            RunLine(run=RUN, state="running", started="2", changed="2", seq=3, waiting=waiting),
            RunLine(run=run_id(2, b"12345678"), state="completed", started="1", changed="1", seq=9),
        )


def test_lists_say_it_of_live_runs_only() -> None:
    """What has ended needs nobody."""
    rows = source.runs(Listed()).runs  # type: ignore[arg-type]  # it is asked for no more than this
    assert [row.waiting for row in rows] == ["operator: its deployment is crash-looping; step: step pay", ""]
    assert {row.deployment for row in rows} == {Deployment("orders")}
