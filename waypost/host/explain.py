"""Why a run isn't moving, in words: what it waits on, since when, until when, and the command to run next.

Pure: from the run's log and what its deployment does at the moment.
"""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from waypost.host.answers import ChildExit, Line, RunShown, WaitingOn, Why
from waypost.host.narrate import Narrator, printable
from waypost.model import events as ev
from waypost.model.attempts import is_suspect
from waypost.model.ids import RunId
from waypost.model.limits import DEFAULT, Limits
from waypost.model.run import Absent, Driven, Ended, Parked, Paused, Run, evolve, ledger
from waypost.model.times import stamp
from waypost.model.waiting import Waiting, waiting_on

_REASON = 80
_CANCEL = "cancel"
"""No call's identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a deployment does: its supervisor's word, or that no host runs."""

    name: str
    address: str
    hosted: bool
    state: str = ""
    reason: str = ""
    until: str | None = None
    isolation: str = ""
    """Of its code; empty where no host runs it, so that none is in force."""
    code: str = ""
    """Why it is down, for programs."""
    since: str = ""
    exited: ChildExit | None = None
    limits: Limits = DEFAULT
    """What its host goes by; as a rule, where none runs it."""

    @property
    def words(self) -> str:
        """One line for people."""
        if not self.hosted:
            stopped = f"; and then it is {self.code or self.state}" if self.code or self.state else ""
            return f"no host runs it: nothing moves until one does{stopped}"
        reason = f": {printable(self.reason)}" if self.reason else ""
        until = f", until {self.until}" if self.until else ""
        return f"{self.state}{reason}{until}"


@dataclass(frozen=True, slots=True)
class Told:
    """A run's whole log: its state, its lines, and when each of its calls was last opened."""

    run: RunId
    state: Run
    lines: tuple[Line, ...]
    opened: dict[str, str]
    """Time of a call's newest StepStarted, TimerSet or SignalAwaited, and under "" of the newest pause."""
    started: ev.RunStarted | None
    changed: str
    ending: str = ""
    """The line of its end."""
    exits: tuple[ev.RunInterrupted, ...] = ()
    """Those since its last progress, oldest first."""


def read(run: RunId, raws: Iterable[bytes]) -> Told:
    """Fold a log of stored events. Raises Invalid, Illegal for bytes that are no such log."""
    state: Run = Absent()
    narrator, lines, opened = Narrator(), list[Line](), dict[str, str]()
    started: ev.RunStarted | None = None
    changed = ending = ""
    exits: tuple[ev.RunInterrupted, ...] = ()
    for raw in raws:
        event = ev.decode(raw)
        state = evolve(state, event, run_id=run)
        lines.append(Line(seq=event.seq, at=event.at, text=narrator.tell(event)))
        changed = event.at
        match event:
            case ev.RunStarted():
                started = event
            case ev.StepStarted() | ev.TimerSet() | ev.SignalAwaited():
                opened[event.call] = event.at
            case ev.RunPaused():
                opened[""] = event.at
            case ev.RunInterrupted():
                exits = (*exits, event) if event.attempt > 1 else (event,)
            case ev.CancelRequested():
                opened[_CANCEL] = event.at
            case ev.RunCompleted() | ev.RunFailed() | ev.RunCancelled():
                ending = lines[-1].text
            case _:
                pass
    known = ledger(state)
    counted = exits if known is not None and known.attempts else ()
    return Told(run, state, tuple(lines), opened, started, changed, ending, counted)


def state_name(run: Run) -> str:
    """The state as lists show it."""
    match run:
        case Absent():
            return "queued"
        case Driven():
            return "running" if run.ledger.cancel is None else "cancelling"
        case Parked():
            return "parked"
        case Paused():
            return "paused"
        case Ended():
            return run.outcome


def brief(run: Run) -> str:
    """What the run waits on in a few words, for a list; empty when it has ended."""
    found = waiting_on(run)
    return "; ".join(f"{w.kind}: {printable(w.detail, 60)}" for w in found[:2]) + (" …" if len(found) > 2 else "")  # noqa: PLR2004 - a list has room for two


def blocked(situation: Situation) -> WaitingOn | None:
    """What each live run of a deployment waits on before all else, where only an operator can let it go on."""
    name, first = situation.name, "" if situation.hosted else "waypost run FILE, then: "
    match situation.code or situation.state:
        case "held":
            command = f"{first}waypost resume {name}"
        case "recycle-failed":
            command = f"waypost resume {name}"
        case "crash-looping":
            command = f"{first}waypost reset {name}"
        case "damaged":
            command = f"waypost fsck {name}"
        case _ if situation.state == "down":
            command = "waypost run FILE   (anew, when the reason is gone)"
        case _:
            return None
    what = f"its deployment is {situation.code or situation.state}"
    return WaitingOn(kind="operator", detail=what, since=situation.since, command=command)


def shown(told: Told, situation: Situation) -> RunShown:
    """The answer of ``waypost show``."""
    return RunShown(
        run=told.run,
        deployment=situation.name,
        state=state_name(told.state),
        started=told.lines[0].at if told.lines else "",
        sender=told.started.mail.sender if told.started else "",
        seq=told.lines[-1].seq if told.lines else 0,
        lines=told.lines,
        waiting=waits(told, situation),
    )


def why(told: Told, situation: Situation, ahead: int = 0) -> Why:
    """The answer of ``waypost why``. ``ahead``: how many other runs are driven, of which a suspect waits for."""
    return Why(
        run=told.run,
        deployment=situation.name,
        state=state_name(told.state),
        deployment_state=situation.words,
        isolation=situation.isolation,
        waiting=waits(told, situation, ahead),
        advice=_advice(told, situation),
        exited=None if situation.state == "running" else situation.exited,
    )


def waits_its_turn(told: Told, situation: Situation) -> bool:
    """Whether the run is to be resumed alone: its newest exit made it a suspect, and no child was given it since."""
    if not isinstance(told.state, Driven) or not told.exits or not is_suspect(told.state.ledger, situation.limits):
        return False
    return told.exits[-1].generation == told.state.ledger.generation


def waits(told: Told, situation: Situation, ahead: int = 0) -> tuple[WaitingOn, ...]:
    """What the run waits on, each with the command that would move it: what its deployment does, then oldest first."""
    found = waiting_on(told.state)
    several = sum(w.kind == "approval" for w in found) > 1
    first = blocked(situation) if found else None
    own = tuple(
        WaitingOn(
            kind=w.kind,
            call=w.call,
            detail=printable(w.detail) + (_exits(told) if w.kind == "poison" else ""),
            since=told.opened.get(_CANCEL if w.kind == "cancel" else w.call or "", told.changed),
            deadline=None if w.deadline is None else stamp(w.deadline),
            command=_command(w, told.run, situation, several=several),
        )
        for w in found
    )
    turn = (_turn(told, ahead),) if waits_its_turn(told, situation) else ()
    return (*turn, *own) if first is None else (first, *turn, *own)


def _turn(told: Told, ahead: int) -> WaitingOn:
    """A suspect waits to be resumed alone."""
    others = f"; up to {ahead} {'other goes' if ahead == 1 else 'others go'} first" if ahead else ""
    what = f"it is resumed alone, after {len(told.exits)} unexpected exits{_exits(told)}{others}"
    return WaitingOn(kind="turn", detail=what, since=told.exits[-1].at)


def _exits(told: Told) -> str:
    """How the children ended that drove it, since its last progress."""
    return f" ({'; '.join(printable(each.reason, _REASON) for each in told.exits)})" if told.exits else ""


def _command(wait: Waiting, run: RunId, situation: Situation, *, several: bool) -> str:
    match wait.kind:
        case "approval":
            call = f" --call '{wait.call}'" if several else ""
            return f"waypost approve {run}{call}   (or: waypost reject {run}{call})"
        case "signal":
            return f"waypost signal {run} {shlex.quote(wait.detail)} < payload.json"
        case "mail":
            return f"waypost send {situation.address} < reply.eml   (a reply in the run's thread)"
        case "code":
            # Under the code that runs now it would be refused, or be paused again at once.
            verb = "`waypost deploy FILE`" if situation.hosted else "start `waypost run FILE`"
            return f"correct the file, {verb}, then: waypost resume {run}"
        case "operator" | "poison":
            return f"waypost resume {run}"
        case "cancel" | "step" | "child" | "timer" | "retry" | "dispatch":
            return "" if situation.hosted else "waypost run FILE"


def _advice(told: Told, situation: Situation) -> str:
    if isinstance(told.state, Ended):
        more = f"; `waypost log {told.run}` has the traceback" if told.state.outcome == "failed" else ""
        verb = "was" if told.state.outcome == "cancelled" else "has"
        return f"it {verb} {told.ending}\nnothing will follow{more}"
    first = "" if situation.hosted else "start the host, then "
    if situation.code == "crash-looping":
        why = "its deployment's process ended again and again, so no other one is started: mend the reason"
        return f"{why}, then {first}`waypost reset {situation.name}`; the run goes on where it was"
    if situation.state == "held":
        return f"its deployment is held: {first}`waypost resume {situation.name}` lists what would go out"
    if not situation.hosted:
        return "start the host with `waypost run FILE`: the run goes on where it was"
    if situation.state in {"down", "stopped"}:
        return "its deployment is down: start `waypost run FILE` again when the reason is gone; nothing is lost"
    return ""
