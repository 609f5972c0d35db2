"""One of each: the states of a child's decision, the messages it may get, and a helper to step through them."""

from typing import Any

from actors.logic.child import states as st
from actors.logic.child.decision import advance
from actors.logic.child.frames import Unfinished
from actors.messages import (
    BytesCame,
    Launch,
    ProcessEnded,
    Send,
    Spawned,
    SpawnFailed,
    Stalled,
    Terminate,
    Woken,
    Written,
)
from ipc.messages import AppendRequest, Progress, Ready, RecycleRequest, RunLive, RunLogCredit
from substrate.messages import Done, Outcome, Refused, Withheld
from waypost.acting import Next
from waypost.model import events as ev
from waypost.model.ids import Generation
from waypost.model.limits import Limits
from waypost.model.times import Now

RUN = "run_0_" + "0" * 16
CALL = "r1#1"
CODE = "c" * 64
SETUP = st.Setup(generation=Generation(3), limits=Limits())
NOW = Now(wall=1_000_000, mono=100.0)
PID = 77

STARTED = ev.StepStarted(call=CALL, step="pay", arguments="a" * 64)  # type: ignore[arg-type]  # CallId is a NewType
READY = Ready(key=bytes(32), pid=PID, code=CODE)


def append(number: int, *events: ev.AnyEvent) -> AppendRequest:
    """A child's request to add events to the sample run."""
    return AppendRequest(id=number, run=RUN, events=tuple(map(ev.proposed, events or (STARTED,))))


def step(state: Any, message: Any, *, setup: st.Setup = SETUP, now: Now = NOW) -> Next[Any]:
    """Advance the sample child; Any, as a test knows which state it expects."""
    return advance(setup, state, message, now)


NEW = st.New()
LAUNCHING = st.Launching()
DOOMED = st.Doomed()
GREETING = st.Greeting(PID)
TALKING = st.Talking(PID)
BUSY = step(TALKING, st.Heard(append(1))).state
"""A child that waits for the answer to its request 1, under correlation 1."""
LEAVING = st.Leaving(PID)
KILLED = st.Killed(PID)
GONE = st.Gone()
STATES = (NEW, LAUNCHING, DOOMED, GREETING, TALKING, BUSY, LEAVING, KILLED, GONE)

MESSAGES: dict[str, Any] = {
    "Launch": Launch(),
    "Send": Send(RunLive(run=RUN)),
    "Terminate": Terminate("the deployment is stopped"),
    "spawned": Spawned(PID),
    "spawn failed": SpawnFailed("no such file"),
    "stdout": BytesCame("stdout", b"hello\n"),
    "stderr": BytesCame("stderr", b"Traceback\n"),
    "stdout closed": BytesCame("stdout", b""),
    "heard ready": st.Heard(READY),
    "heard ready, broken": st.Heard(Ready(key=bytes(32), pid=PID, error="SyntaxError")),
    "heard ready, empty": st.Heard(Ready(key=bytes(32), pid=PID)),
    "heard request": st.Heard(append(2)),
    "heard nonsense": st.Heard(AppendRequest(id=2, run=RUN, events=(b"{}",))),
    "heard credit": st.Heard(RunLogCredit(run=RUN)),
    "heard recycle request": st.Heard(RecycleRequest(reason="leaks")),
    "heard progress": st.Heard(Progress(run=RUN, call=CALL, seq=1, text="half")),
    "bad frame": st.Broke("control up, frame 3: it isn't authentic"),
    "half a frame": Unfinished((("control", 3, 5),)),
    "hung up": st.HungUp(),
    "stalled": Stalled(5_000_000),
    "written": Written(),
    "woken": Woken(1),
    "done": Outcome(1, Done(4)),
    "refused": Outcome(1, Refused("phase", "the run has ended")),
    "withheld": Outcome(1, Withheld("no space")),
    "exited": ProcessEnded(1, signalled=False),
    "killed": ProcessEnded(9, signalled=True),
}
"""One of each kind that makes a difference, by the name that a diagram gives it."""
