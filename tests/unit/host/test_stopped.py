"""A process that somebody has stopped tells nobody; the kernel does, and `why` hands it on with what helps."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ipc.stopped import halted, stopped, traced
from waypost.host.reading.deployment_why import told
from waypost.host.reading.explain import Situation, read
from waypost.host.reading.run_why import why
from waypost.model import events as ev
from waypost.model.ids import CallId, run_id
from waypost.model.why import Sentence, beside
from waypost.testing.background import Background
from waypost.testing.patience import eventually
from waypost.testing.samples import BEGAN, HASH, log_of
from waypost.testing.sayings import check_reason

RUN = run_id(3, b"12345678")
HERE = Situation(
    name="expenses",
    address="expenses@example.com",
    hosted=True,
    state="running",
    isolation="namespace",
    why=Sentence(waits_for="mail, timers and answers", then="a run begins"),
)


def process(proc: Path, pid: int, state: str, *children: int) -> None:
    """A process as the kernel shows it; its name is as bad as names may be."""
    (proc / f"{pid}/task/{pid}").mkdir(parents=True)
    (proc / f"{pid}/stat").write_text(f"{pid} (a) T (b)) {state} 1 {pid} {pid} 0 -1")
    (proc / f"{pid}/task/{pid}/children").write_text("".join(f"{child} " for child in children))


@pytest.mark.parametrize("which", [(7,), (8,), (9,), (7, 9), (7, 8, 9), ()])
def test_in_a_namespace_any_of_its_three_processes_may_be_the_stopped_one(
    tmp_path: Path, which: tuple[int, ...]
) -> None:
    """And none of what its code has started: a step may stop and let go on what is its own."""
    states = {pid: "T" if pid in which else "S" for pid in (7, 8, 9)}
    process(tmp_path, 7, states[7], 8)
    process(tmp_path, 8, states[8], 9, 10)
    process(tmp_path, 9, states[9], 11)
    process(tmp_path, 10, "T")
    process(tmp_path, 11, "T")
    assert stopped(7, boxed=True, proc=tmp_path) == which
    assert halted(7, boxed=True, proc=tmp_path) == bool(which)
    assert stopped(7, boxed=False, proc=tmp_path) == which[:1] * (7 in which)


@pytest.mark.parametrize("state", ["S", "R", "t", "Z", "D"])
def test_no_other_state_is_taken_for_it(tmp_path: Path, state: str) -> None:
    """SIGCONT helps none of these; one under a debugger is its debugger's. Nor does one that is gone say anything."""
    process(tmp_path, 7, state)
    assert stopped(7, boxed=True, proc=tmp_path) == ()
    assert halted(7, boxed=True, proc=tmp_path) == (state == "t")  # it can't go on by itself, all the same
    assert traced(7, boxed=True, proc=tmp_path) == (7,) * (state == "t")
    assert stopped(8, boxed=True, proc=tmp_path) == ()


def test_the_kernel_says_it_of_a_real_one() -> None:
    """And no more when it was let go on."""
    with Background("-I", "-S", "-c", "import signal; signal.pause()", command=(sys.executable,)) as child:
        assert stopped(child.pid, boxed=True) == ()
        os.kill(child.pid, signal.SIGSTOP)
        eventually(lambda: stopped(child.pid, boxed=True) == (child.pid,), "it is stopped")
        os.kill(child.pid, signal.SIGCONT)
        eventually(lambda: stopped(child.pid, boxed=True) == (), "it goes on")


@pytest.mark.parametrize("state", ["running", "draining", "starting", "recycling"])
def test_why_names_the_processes_and_the_command(state: str) -> None:
    """Of the deployment and of its runs, before anything else; and it is one that needs somebody."""
    frozen = replace(HERE, state=state, stopped=(7, 9))
    run = read(RUN, log_of(BEGAN, ev.StepStarted(call=CallId("r1#1"), step="read_claim", arguments=HASH)))
    of_the_run, of_the_deployment = why(run, frozen), told(frozen)
    for answer in (of_the_run, of_the_deployment):
        assert answer.command == "kill -CONT 7 9"
        assert answer.needed
        assert "stopped (SIGSTOP)" in answer.waits_for
    for each in of_the_run.waiting:
        check_reason(each)
        assert "at work" not in each.waits_for
    assert "at work" in why(run, HERE).waits_for
    assert beside("kill -CONT 7 9", "--data", "/srv/x") == "kill -CONT 7 9", "it takes no option of ours"


@pytest.mark.parametrize("state", ["running", "draining", "starting", "recycling"])
def test_why_says_of_one_that_a_debugger_holds_that_it_does(state: str) -> None:
    """It was said to be at work; and SIGCONT, which helps one that was stopped, does nothing for it."""
    held = replace(HERE, state=state, traced=(7,))
    run = read(RUN, log_of(BEGAN, ev.StepStarted(call=CallId("r1#1"), step="read_claim", arguments=HASH)))
    of_the_run, of_the_deployment = why(run, held), told(held)
    for answer in (of_the_run, of_the_deployment):
        assert answer.command == "waypost recycle expenses --reason debugger"
        assert answer.needed
        assert "the debugger that holds its process (7)" in answer.waits_for
    for each in of_the_run.waiting:
        check_reason(each)
        assert "at work" not in each.waits_for
    assert of_the_run.waiting[-1].waits_for.endswith("whose process is held by a debugger") == (
        state in {"running", "draining"}
    )
