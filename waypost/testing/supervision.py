"""One of each: the states of a supervisor, the messages it may get, and small helpers to step through them."""

from dataclasses import replace
from typing import Any

import msgspec

from actors.credentials import DeliverCredentials, DeliverSources
from actors.describing import ExitReason
from actors.draining import (
    ChildWeighed,
    Depart,
    Executing,
    GiveWay,
    Recycle,
    RecycleRequested,
    Rested,
    StillExecuting,
)
from actors.exits import ExitCounted
from actors.logic.supervisor import states as st
from actors.logic.supervisor.books import Books, Early, Leaving, Renewing, Resting, Setup
from actors.logic.supervisor.crashes import Crashes
from actors.logic.supervisor.decision import advance
from actors.logic.supervisor.sleep import Asleep, Audit, Auditing, Dormant, Dozing, LettingGo
from actors.messages import (
    ChannelViolated,
    ChildExited,
    ChildReady,
    DeploymentSpec,
    Describe,
    Forward,
    Role,
    Start,
    Stop,
    Woken,
)
from ipc.deliveries import CredentialsUpdated, Source, SourcesUpdated
from substrate.messages import (
    Done,
    Drain,
    DrainDeployment,
    Enqueue,
    GoesOn,
    Latch,
    LiveRuns,
    Outcome,
    Refused,
    ResetDeployment,
    Rest,
    ResumeDeployment,
    Snapshot,
    Withheld,
)
from waypost.acting import ActorEnded, Asked, Next
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, Deployment, Generation, RunId
from waypost.model.limits import Limits
from waypost.model.times import Now

CODE = "c" * 64
DEFINITION = "d" * 64


def a_spec(name: str = "orders", *, code: str = CODE, env: tuple[str, ...] = ()) -> DeploymentSpec:
    """A deployment that declares little."""
    return DeploymentSpec(
        name=Deployment(name),
        address=f"{name}@example.com",
        definition=DEFINITION,
        code=code,
        file=f"{name}.py",
        steps=(),
        mail_to=(),
        runs="thread",
        env=env,
        python="3.11",
        waypost="0",
    )


LIMITS = Limits(idle=0.0)
"""A child that runs is left alone: whether there is something to do is looked at where a test wants it."""
SLEEPY = Limits(idle=60.0)
SETUP = Setup(spec=a_spec(), limits=LIMITS)
SLEEPY_SETUP = Setup(spec=a_spec(), limits=SLEEPY)
NOW = Now(wall=1_000_000, mono=100.0)
TOKEN = 10
"""Correlation or wake-up's token of whatever a sample state waits for."""
LIFTED = 8
"""Correlation under which the sample supervisor has passed on that it may go on."""
RAISED = 9
"""Correlation under which the sample supervisor has asked for a generation."""
BOOKS = Books(last=TOKEN, incarnation=1, broadcaster=1, generation=Generation(3), launched=85.0)
SNAPSHOT = Snapshot(position=0, repository="r", generation=Generation(3), runs=(), queue=(), outbox=())
MAIL = Enqueue(b"mail")
CREDENTIALS = CredentialsUpdated(serial=1, bindings={"pay": ("github",)}, materials={"github": b"ghp_0123456789"})
SOURCES = SourcesUpdated(serial=1, sources=(Source(id="main", provider="p", model="m"),))
LATCHED = Latch(at="2026-11-29T08:00:00.000Z", detail="3 exits within 60 s, the last one: ended by SIGKILL")
DIED = ChildExited(Generation(3), ExitReason(signal="SIGKILL"))
YOUNGEST_FIRST = (Role.CHILD, Role.SCHEDULER, Role.DISPATCH, Role.BROADCASTER, Role.SUBSTRATE)


def ledger_of_a_step(step: str) -> fold.Ledger:
    """Of a run that executes this step."""
    mail = ev.Mailed(id="<m1@x>", sha256="a" * 64, arrival=1)
    started = ev.RunStarted(
        definition=DEFINITION,
        code=CODE,
        python="3.11",
        waypost="0",
        grants="a" * 64,
        origin="a" * 64,
        generation=Generation(3),
        mail=mail,
    )
    ledger = fold.Ledger(
        run=RunId("run_3_00112233445566aa"),
        seq=2,
        drive=1,
        seen=0,
        generation=Generation(3),
        attempts=0,
        started=started,
    )
    since = "2026-11-29T08:00:00.000Z"
    return msgspec.structs.replace(ledger, steps={CallId("r1#1"): fold.OpenStep(step, 1, "a" * 64, since)})


def ending(then: st.Then, *left: Role) -> st.Ending:
    """A crew that is ending; without names, one that has no child."""
    return st.Ending(BOOKS, left or YOUNGEST_FIRST[1:], then, TOKEN)


def ended(role: str, *, failure: str | None = "boom", incarnation: int = 1, deployment: str = "orders") -> ActorEnded:
    """The end of an actor of the sample's crew; its child is of generation 3."""
    return ActorEnded(f"{deployment}/{role}", incarnation, failure)


def step(
    state: Any, message: Any, *, now: Now = NOW, setup: Setup = SETUP
) -> Next[Any]:  # Any: a test knows which state it expects
    """Advance the sample supervisor."""
    return advance(setup, state, message, now)


IDLE = st.Idle(BOOKS, (Early(1, MAIL),))
OPENING = st.Opening(BOOKS, TOKEN)
RAISING = st.Raising(BOOKS, RAISED)
STARTING = st.Starting(BOOKS, TOKEN)
RUNNING = st.Running(BOOKS, pid=77, since=90.0)
COUNTED = ExitCounted(generation=Generation(3), runs=())
EVICTING = st.Evicting(BOOKS, "bad frame")
EVICTING_COUNTED = st.Evicting(BOOKS, "bad frame", COUNTED)
COUNTING = st.Counting(BOOKS, "ended by SIGKILL", 10.0)
BRINK = replace(COUNTING, books=replace(BOOKS, crashes=Crashes((20.0, 10.0), 2)))
"""After two exits: the third one latches."""
DISMISSING = st.Dismissing(BOOKS, "code-changed", "run it again")
BACKING_OFF = st.BackingOff(BOOKS, TOKEN, 1_001_000, "ended by SIGKILL")
BACKING_OFF_RAISING = replace(BACKING_OFF, raised=RAISED)
BACKING_OFF_RAISED = replace(BACKING_OFF_RAISING, next=Generation(4))
EARLY = replace(BACKING_OFF_RAISED, wake=1, launch=TOKEN)
"""Woken, it launches its child before the pause is over."""
PREPARING = st.Preparing(BOOKS, 2, TOKEN, 1_001_000, "ended by SIGKILL")
PREPARED = replace(PREPARING, hello=ChildReady(Generation(3), 77, CODE, ""))
LATCHING = st.Latching(BOOKS, TOKEN, LATCHED.detail)
CRASH_LOOPING = st.CrashLooping(BOOKS, LATCHED)
RESETTING = st.Resetting(replace(BOOKS, asked={LIFTED: 6}), LATCHED, LIFTED)
UNMANNED = st.Unmanned(BOOKS, "code-changed", "run it again")
HELD = st.Held(BOOKS, "restore")
LIFTING = st.Lifting(replace(BOOKS, asked={LIFTED: 6}), "restore", LIFTED)
RENEWING = Renewing("operator", "leaks")
RESTING = Resting()
REST = Drain(to="rest", at="2026-11-29T08:00:00.000Z", by="ann")
END = Drain(to="end", at="2026-11-29T08:00:00.000Z", by="ann")
TO_REST = replace(BOOKS, drain=REST)
TO_END = replace(BOOKS, drain=END)
"""The repository says that it is to come to rest; that it is to be taken out of service."""
EXECUTING = Executing(RunId("run_3_00112233445566aa"), "step pay", "2026-11-29T08:00:00.000Z")
DRAINING = st.Draining(BOOKS, 77, 90.0, RENEWING, TOKEN, (EXECUTING,))
DRAINING_TO_REST = st.Draining(TO_REST, 77, 90.0, RESTING)
DRAINING_TO_STOP = st.Draining(BOOKS, 77, 90.0, Leaving((4,)), TOKEN)
EVICTING_TO_STOP = st.Evicting(BOOKS, "bad frame", goal=Leaving((4,)))
COUNTING_TO_REST = st.Counting(TO_REST, "ended by SIGKILL", 10.0)
STARTING_TO_END = st.Starting(TO_END, TOKEN)
DRAINED = 7
"""Correlation under which the sample supervisor has passed on a drain, or that it goes on."""
LEFT = fold.Driven(ledger_of_a_step("check"))
RETIRING = st.Retiring(TO_END, 77, 90.0, TOKEN)
SHELVING = st.Shelving(TO_REST, RAISED, st.WHOLE)
SUPERSEDING = st.Superseding(BOOKS, RENEWING, RAISED)
BEREFT = st.Bereft(BOOKS, RENEWING, RAISED)
REPLACING = st.Replacing(BOOKS, RENEWING, Generation(4))
SUCCEEDING = st.Succeeding(BOOKS, RENEWING, TOKEN)
LOOKING = st.Running(BOOKS, pid=77, since=10.0, look=TOKEN)
DOZING = Dozing(BOOKS, 77, 10.0)
LETTING_GO = LettingGo(BOOKS, 5)
AUDITING = Auditing(BOOKS, 5, TOKEN)
AUDITING_IN_VAIN = Auditing(BOOKS, 5, TOKEN, (Early(1, MAIL),))
DORMANT = Dormant(BOOKS, 2_000_000)
STOPPED = st.Stopped(BOOKS)
FAILED = st.Stopped(BOOKS, "the recycle failed: not ready within 30 s")
DOWN = st.Down(BOOKS, "damaged", "flush 7 is missing")
TOLD = tuple(
    replace(state, books=replace(state.books, asked={DRAINED: 6}))
    for state in (RAISING, STARTING, RUNNING, BACKING_OFF, DRAINING, DRAINING_TO_REST, RETIRING, SUCCEEDING)
)
"""An operator has asked for a drain, or for its end, and the repository hasn't answered."""

OPEN = (
    *(RAISING, STARTING, RUNNING, EVICTING, EVICTING_COUNTED, DISMISSING, COUNTING, BRINK, BACKING_OFF),
    *(BACKING_OFF_RAISING, BACKING_OFF_RAISED, EARLY, PREPARING, PREPARED),
    *(DRAINING, DRAINING_TO_REST, DRAINING_TO_STOP, EVICTING_TO_STOP, COUNTING_TO_REST, SHELVING),
    *(RETIRING, SUPERSEDING, BEREFT, REPLACING, SUCCEEDING, STARTING_TO_END),
    *(LATCHING, CRASH_LOOPING, RESETTING, UNMANNED, HELD, LIFTING, LOOKING, DOZING, LETTING_GO),
    *TOLD,
)
"""States in which the repository is open."""
STATES = (
    IDLE,
    OPENING,
    *OPEN,
    ending(st.Again("the dispatch failed")),
    ending(st.Over((4,)), Role.SUBSTRATE),
    ending(st.Lost("damaged", "flush 7 is missing"), Role.SUBSTRATE),
    ending(Audit(5)),
    ending(Asleep(None), Role.SUBSTRATE),
    AUDITING,
    AUDITING_IN_VAIN,
    DORMANT,
    STOPPED,
    FAILED,
    DOWN,
)

MESSAGES: dict[str, Any] = {
    "Start": Start(),
    "Stop": Stop(),
    "Asked Stop": Asked(8, Stop()),
    "Asked Stop, patiently": Asked(8, Stop(20.0)),
    "Asked Recycle": Asked(6, Recycle("leaks")),
    "Asked Drain": Asked(6, Forward(DrainDeployment("ann"))),
    "Asked Describe": Asked(7, Describe()),
    "Asked Forward": Asked(9, Forward(MAIL)),
    "Forward": Forward(MAIL),
    "opened": Outcome(TOKEN, Done(0, SNAPSHOT)),
    "opened, held": Outcome(TOKEN, Done(0, replace(SNAPSHOT, held="restore"))),
    "opened, latched": Outcome(TOKEN, Done(0, replace(SNAPSHOT, latch=LATCHED))),
    "opened, to rest": Outcome(TOKEN, Done(0, replace(SNAPSHOT, drain=REST))),
    "opened, to end": Outcome(TOKEN, Done(0, replace(SNAPSHOT, drain=END))),
    "opening refused": Outcome(TOKEN, Refused("damaged", "flush 7 is missing")),
    "opening withheld": Outcome(TOKEN, Withheld("no space")),
    "resume": Asked(5, Forward(ResumeDeployment("ann"))),
    "reset": Asked(5, Forward(ResetDeployment("ann"))),
    "latched": Outcome(TOKEN, Done(1, LATCHED)),
    "runs failed, others left": Outcome(TOKEN, Done(1, None)),
    "exit counted": COUNTED,
    "runs execute": StillExecuting(Generation(3), (EXECUTING,)),
    "nobody executes": StillExecuting(Generation(3), ()),
    "recycle requested": RecycleRequested(Generation(3), "leaks"),
    "runs are left": Outcome(TOKEN, Done(1, LiveRuns((LEFT,), 1))),
    "no run is left": Outcome(TOKEN, Done(1, LiveRuns((), 0))),
    "nothing is to be done": Outcome(TOKEN, Done(5, Rest(5, 0.0, "", None))),
    "something was done": Outcome(TOKEN, Done(6, Rest(6, 0.0, "", None))),
    "all is at rest": Rested(Generation(3), 5),
    "not all is at rest": Rested(Generation(3), None),
    "Asked DeliverCredentials": Asked(6, DeliverCredentials(CREDENTIALS)),
    "DeliverSources": DeliverSources(SOURCES),
    "give way": GiveWay(),
    "depart": Depart(),
    "weighed": ChildWeighed(Generation(3), 2**30),
    "lifted": Outcome(LIFTED, Done(1, None)),
    "lifting withheld": Outcome(LIFTED, Withheld("no space")),
    "told to rest": Outcome(DRAINED, Done(1, REST)),
    "told to end": Outcome(DRAINED, Done(1, END)),
    "told to go on": Outcome(DRAINED, Done(1, GoesOn("draining"))),
    "holding refused": Outcome(RAISED, Refused("not-draining", "an operator lets it go on")),
    "raised": Outcome(RAISED, Done(1, Generation(4))),
    "raising refused": Outcome(RAISED, Refused("x", "no")),
    "raising withheld": Outcome(RAISED, Withheld("no space")),
    "ready": ChildReady(Generation(3), 77, CODE, ""),
    "ready, other code": ChildReady(Generation(3), 77, "e" * 64, ""),
    "ready, broken": ChildReady(Generation(3), 77, "", "SyntaxError"),
    "exited": DIED,
    "violated": ChannelViolated(Generation(3), "bad frame"),
    "woken": Woken(TOKEN),
    "woken late": Woken(1),
    "old child exited": ChildExited(Generation(2), ExitReason(status=1)),
    "substrate ended": ended(Role.SUBSTRATE),
    "broadcaster ended": ended(Role.BROADCASTER),
    "dispatch ended": ended(Role.DISPATCH),
    "scheduler ended": ended(Role.SCHEDULER),
    "child actor ended": ended(Role.CHILD, incarnation=3),
    "a stranger ended": ended("cook"),
}
"""One of each kind that makes a difference, by the name that a diagram gives it."""
