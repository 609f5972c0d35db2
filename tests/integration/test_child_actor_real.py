"""A real ChildProcessActor with real processes: what a child can do to its host, and what is left of it afterwards."""

import os
import signal
from collections.abc import Iterator

import pytest

from actors.draining import ChildWeighed, Weigh
from actors.messages import (
    ChannelViolated,
    ChildReady,
    ProgressCame,
    Send,
    Terminate,
)
from ipc.messages import BlobStored, EventsCommitted, RunLive, RunLog, RunLogCredit
from ipc.process import open_descriptors
from ipc.stopped import stopped
from substrate.messages import Append, Done, Outcome, PutBlob, Refused, Stage, Submit, WorkflowProcess
from waypost.acting import ActorEnded
from waypost.model.ids import Generation
from waypost.model.limits import Limits
from waypost.testing.child_stage import ChildStage, alive
from waypost.testing.childhood import CODE, RUN
from waypost.testing.patience import eventually
from waypost.testing.scripted_child import plain, scripted

READY = f"child.ready({CODE!r})\n"
SERVE = READY + "child.serve()\n"
STOPS_ANOTHER = """
import os, subprocess
kid = subprocess.Popen(["sleep", "600"])
os.kill(kid.pid, 19)
os.waitid(os.P_PID, kid.pid, os.WSTOPPED)
"""
APPEND = f"""
from waypost.model import events as ev
from ipc.messages import AppendRequest
started = ev.StepStarted(call="r1#1", step="pay", arguments="a" * 64)
waited = ev.SignalAwaitAbandoned(call="r1#2")
def append(number, *events):
    child.say(AppendRequest(id=number, run={RUN!r}, events=tuple(map(ev.proposed, events))))
"""


@pytest.fixture
def stage() -> Iterator[ChildStage]:
    """A stage, which is empty again afterwards."""
    stage = ChildStage()
    yield stage
    stage.close()


# --- hello and goodbye ---------------------------------------------------------------------------------------------


def test_a_child_says_hello_and_leaves_when_asked(stage: ChildStage) -> None:
    """Shutdown and SIGTERM are enough for one that behaves; its actor ends with it, cleanly."""
    ref = stage.child(scripted(SERVE))
    ready = stage.parent.next(ChildReady)
    assert (ready.generation, ready.code, ready.error) == (1, CODE, "")
    assert ready.pid in stage.wires.pids
    ref.tell(Terminate("the test is over"))
    assert stage.exit().reason.signal in {"SIGTERM", ""}
    assert stage.parent.next(ActorEnded).failure is None
    assert not alive(ready.pid)
    assert stage.wires.pids == frozenset()


def test_a_child_that_ignores_sigterm_is_killed_after_its_grace(stage: ChildStage) -> None:
    """A host that stops must not hang on a child that doesn't (children.jsonl: ignores SIGTERM)."""
    ref = stage.child(scripted("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SERVE))
    stage.parent.next(ChildReady)
    ref.tell(Terminate("stop"))
    assert stage.exit().reason.signal == "SIGKILL"


def test_a_process_that_a_child_has_stopped_is_not_the_child(stage: ChildStage) -> None:
    """A step may stop what it has started: the clock of a drain goes on, and half a frame is not waited for."""
    ref = stage.child(scripted(STOPS_ANOTHER + SERVE))
    pid = stage.parent.next(ChildReady).pid
    ref.tell(Weigh(memory=False))
    assert not stage.parent.next(ChildWeighed).halted
    os.kill(pid, signal.SIGSTOP)
    eventually(lambda: stopped(pid, boxed=False) != (), "it is stopped")
    ref.tell(Weigh(memory=False))
    assert stage.parent.next(ChildWeighed).halted


def test_a_stopped_child_is_killed_all_the_same(stage: ChildStage) -> None:
    """A handler of SIGTERM never runs in a stopped process, SIGKILL needs none (children.jsonl: stopped)."""
    handler = "import signal, os; signal.signal(signal.SIGTERM, lambda *_: os._exit(0))\n"
    ref = stage.child(scripted(handler + SERVE))
    pid = stage.parent.next(ChildReady).pid
    os.kill(pid, signal.SIGSTOP)
    ref.tell(Terminate("stop"))
    assert stage.exit().reason.signal == "SIGKILL"


def test_kill_9_is_noticed_with_the_last_words(stage: ChildStage) -> None:
    """The reason of an exit is what a person looks for first."""
    stage.child(scripted(READY + "import sys; print('on fire', file=sys.stderr)\nchild.serve()\n"))
    pid = stage.parent.next(ChildReady).pid
    stage.printed(until=b"on fire\n")
    os.kill(pid, signal.SIGKILL)
    reason = stage.exit().reason
    assert reason.signal == "SIGKILL"
    assert reason.stderr == ("on fire",)


def test_a_program_that_can_not_be_executed_is_an_exit_with_the_reason(stage: ChildStage) -> None:
    """Not an exception in the host (children.jsonl: exec fails)."""
    stage.child(("/etc/passwd",))
    assert "/etc/passwd" in stage.exit().reason.failure
    stage.child(("/does/not/exist",))
    assert "/does/not/exist" in stage.exit().reason.failure


def test_an_actor_that_fails_takes_its_child_along(stage: ChildStage) -> None:
    """No process may outlive the one who supervises it."""
    ref = stage.child(scripted(SERVE))
    pid = stage.parent.next(ChildReady).pid
    ref.tell(Send(object()))  # type: ignore[arg-type]  # nothing that can travel: sealing it fails
    assert stage.parent.next(ActorEnded).failure
    eventually(lambda: not alive(pid), "the child of the failed actor ended")
    eventually(lambda: not stage.wires.pids, "it was reaped")


def test_a_grandchild_that_holds_the_pipes_delays_nothing_and_dies(stage: ChildStage) -> None:
    """The exit is noticed by the pidfd and the whole group is killed (children.jsonl: grandchild holds the pipes)."""
    stage.child(scripted(READY + "import subprocess; print(subprocess.Popen(['sleep', '300']).pid, flush=True)\n"))
    grandchild = int(stage.printed(until=b"\n"))
    assert stage.exit().reason.status == 0
    eventually(lambda: not alive(grandchild), "the grandchild was killed")


def test_nothing_is_left_open_after_many_children(stage: ChildStage) -> None:
    """A host respawns for years (children.jsonl: fd leak over respawns)."""
    stage.child(plain("raise SystemExit(3)"))
    stage.exit()
    stage.parent.next(ActorEnded)
    before = len(open_descriptors())
    for _ in range(8):
        stage.child(plain("raise SystemExit(3)"))
        assert stage.exit().reason.status == 3
        stage.parent.next(ActorEnded)
    # The thread of the wires may still be closing those of the last one, or looking for what it left behind.
    eventually(lambda: len(open_descriptors()) <= before, "all descriptors of eight children were closed")


# --- talk ----------------------------------------------------------------------------------------------------------


def test_requests_arrive_in_order_and_are_answered(stage: ChildStage) -> None:
    """A batch with a StepStarted is answered when it is durable, bookkeeping when it is committed (storage §2)."""
    script = """
append(1, started)
append(2, waited)
print(child.hear(), child.hear(), flush=True)
child.serve()
"""
    ref = stage.child(scripted(READY + APPEND + script))
    first, second = stage.substrate.next(Submit), stage.substrate.next(Submit)
    assert isinstance(first.what, Append)
    assert (first.stage, second.stage) == (Stage.DURABLE, Stage.COMMITTED)
    assert first.what.by == WorkflowProcess(Generation(1))
    assert first.reply_to == ref
    first.reply_to.tell(Outcome(first.correlation, Done(1)))
    second.reply_to.tell(Outcome(second.correlation, Refused("phase", "the run has ended")))
    printed = stage.printed(until=b"\n")
    assert b"AppendResponse(id=1, refused=UNSET" in printed
    assert b"the run has ended" in printed


def test_credit_and_progress_reach_their_actors(stage: ChildStage) -> None:
    """Progress comes by the other channel, with its own key."""
    script = f"""
from ipc.messages import Progress, RunLogCredit
child.say(RunLogCredit(run={RUN!r}))
child.hear()
child.progress(Progress(run={RUN!r}, call="r1#1", seq=4, text="half"))
child.serve()
"""
    ref = stage.child(scripted(READY + script))
    assert stage.dispatch.next(RunLogCredit).run == RUN
    ref.tell(Send(RunLive(run=RUN)))
    assert stage.broadcaster.next(ProgressCame).text == "half"


def test_a_big_value_travels_both_ways_in_parts(stage: ChildStage) -> None:
    """More than lies unread at any moment: parts are paced by what has left."""
    size = 6_000_000
    script = f"""
import hashlib
from ipc.messages import BlobGet, BlobPut
data = bytes(range(256)) * ({size} // 256)
name = hashlib.sha256(data).hexdigest()
step = 262144
for offset in range(0, len(data), step):
    child.say(BlobPut(id=1, run={RUN!r}, sha256=name, offset=offset, data=data[offset:offset + step],
                      last=offset + step >= len(data)))
print(child.hear(), flush=True)
child.say(BlobGet(id=2, run={RUN!r}, sha256=name))
back = b""
while len(back) < len(data):
    chunk = child.hear()
    assert chunk.offset == len(back)
    back += chunk.data
print("whole" if back == data else "torn", flush=True)
child.serve()
"""
    ref = stage.child(scripted(READY + script))
    put = stage.substrate.next(Submit)
    assert isinstance(put.what, PutBlob)
    ref.tell(Outcome(put.correlation, Done(1)))
    stage.printed(until=f"{BlobStored(id=1)}\n".encode())
    get = stage.substrate.next(Submit)
    ref.tell(Outcome(get.correlation, Done(1, put.what.data)))
    assert stage.printed(until=b"\n") == b"whole\n"


def test_a_child_that_does_not_read_is_ended(stage: ChildStage) -> None:
    """Its host keeps 4 MiB for it and no more; pages are paced, what is committed isn't."""
    ref = stage.child(scripted(READY + "import time; time.sleep(600)\n"))
    stage.parent.next(ChildReady)
    page = Send(RunLog(run=RUN, events=(b"x" * 900_000,)))
    for _ in range(12):
        ref.tell(page)
    for _ in range(12):
        ref.tell(Send(EventsCommitted(run=RUN, events=(b"x" * 900_000,))))
    assert "unread" in stage.parent.next(ChannelViolated).reason
    assert stage.exit().reason.signal == "SIGKILL"


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("garbage", "import os; child.raw(os.urandom(4096))"),
        ("4 GiB announced", "child.raw(b'\\xff' * 4)"),
        ("speaks before it is ready", APPEND + "append(1, started)"),
        ("ready twice", READY + READY),
        ("a frame repeated", READY + "f = child.up.seal({'t': 'run.log.credit', 'run': 'r'}); child.raw(f + f)"),
        ("an unknown message", READY + "child.raw(child.up.seal({'t': 'please'}))"),
        ("an event of its own", READY + APPEND + f"child.say(AppendRequest(id=1, run={RUN!r}, events=(b'{{}}',)))"),
        ("a run that can't be", READY + APPEND + "child.say(AppendRequest(id=1, run='../x', events=(b'{}',)))"),
        ("bad progress", READY + "import os; os.write(4, b'\\x00\\x00\\x00\\x02ab')"),
    ],
)
def test_a_violation_ends_the_child_and_nobody_else(stage: ChildStage, name: str, script: str) -> None:
    """One bad frame, and the process group is gone; the thread that serves all children goes on."""
    stage.child(scripted(script + "\nimport time; time.sleep(600)\n"))
    assert stage.parent.next(ChannelViolated).reason
    assert stage.exit().reason.signal == "SIGKILL"
    assert stage.parent.next(ActorEnded).failure is None
    stage.child(plain("print('next', flush=True)"))
    stage.printed(until=b"next")


def test_more_requests_than_the_limit_are_a_violation(stage: ChildStage) -> None:
    """A child waits for answers; one that doesn't would fill the host's memory."""
    script = "for number in range(1, 9): append(number, started)\nimport time; time.sleep(600)\n"
    stage.child(scripted(READY + APPEND + script), limits=Limits(kill_grace=0.3, requests=7))
    assert "more than 7 requests" in stage.parent.next(ChannelViolated).reason


def test_what_was_said_before_the_end_still_counts(stage: ChildStage) -> None:
    """A child may append its last event and be gone: what was read before its end was told is taken in."""
    stage.child(scripted(READY + APPEND + "append(1, waited)\n"))
    assert isinstance(stage.substrate.next(Submit).what, Append)
    assert stage.exit().reason.status == 0
