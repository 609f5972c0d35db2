"""What is known of a run and of its deployment, for whoever explains it: its log folded, and what its host says.

Pure.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from ipc.crowded import Crowd
from waypost.host.answers.records import ChildExit, Line
from waypost.host.reading.narrate import Narrator
from waypost.model import events as ev
from waypost.model.ids import RunId
from waypost.model.limits import DEFAULT, Limits
from waypost.model.run import Absent, Driven, Ended, Parked, Paused, Run, evolve, ledger
from waypost.model.why import Sentence

CANCEL, PAUSE = "cancel", ""
"""No calls' identities."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A deployment that a host was to run and doesn't: why, and the command that helps, to be pasted."""

    name: str
    why: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a deployment does: its supervisor's word, or that no host runs."""

    name: str
    address: str
    hosted: bool
    state: str = ""
    reason: str = ""
    isolation: str = ""
    """Of its code; empty where no host runs it, so that none is in force."""
    code: str = ""
    """Why it is down, for programs."""
    since: str = ""
    generation: int = 0
    """Of its process; 0 where that isn't known."""
    exited: ChildExit | None = None
    limits: Limits = DEFAULT
    """What its host goes by; as a rule, where none runs it."""
    file: str = ""
    """What its host was given to run, where it was given a file; FILE where a host has to be given one."""
    why: Sentence | None = None
    """Its supervisor's own sentence, where a host runs it."""
    live: tuple[RunId, ...] = ()
    """Of one that sleeps: its runs, as far as they are named."""
    stopped: tuple[int, ...] = ()
    """Processes of it that somebody has stopped, and that do nothing until they are let go on."""
    traced: tuple[int, ...] = ()
    """Those that a debugger holds."""
    crowd: Crowd | None = None
    """The limit that lets its process begin no more threads."""
    beside: bool = False
    """Whether a host runs here, and not this one."""
    left_out: LeftOut | None = None
    """Why not, where it was to."""
    stuck: Sentence | None = None
    """Of a mail of it that can't leave."""


@dataclass(frozen=True, slots=True)
class Told:
    """A run's whole log: its state, its lines, and when each of its calls was last opened."""

    run: RunId
    state: Run
    lines: tuple[Line, ...]
    opened: dict[str, str]
    """Time of a call's newest StepStarted, TimerSet, SignalAwaited or ChildSpawned; under "" of the newest pause."""
    started: ev.RunStarted | None
    changed: str
    ending: str = ""
    """The line of its end."""
    asked: str = ""
    """The line that tells who asked for its end, and why."""
    exits: tuple[ev.RunInterrupted, ...] = ()
    """Those since its last progress, oldest first."""
    traceback: str = ""
    """Of what it failed by, as it was recorded."""


def read(run: RunId, raws: Iterable[bytes]) -> Told:
    """Fold a log of stored events. Raises Invalid, Illegal for bytes that are no such log."""
    state: Run = Absent()
    narrator, lines, opened = Narrator(), list[Line](), dict[str, str]()
    started: ev.RunStarted | None = None
    changed = ending = asked = traceback = ""
    exits: tuple[ev.RunInterrupted, ...] = ()
    for raw in raws:
        event = ev.decode(raw)
        state = evolve(state, event, run_id=run)
        lines.append(Line(seq=event.seq, at=event.at, text=narrator.tell(event)))
        changed = event.at
        match event:
            case ev.RunStarted():
                started = event
            case ev.StepStarted() | ev.TimerSet() | ev.SignalAwaited() | ev.ChildSpawned():
                opened[event.call] = event.at
            case ev.RunPaused():
                opened[PAUSE] = event.at
            case ev.RunInterrupted():
                exits = (*exits, event) if event.attempt > 1 else (event,)
            case ev.CancelRequested():
                opened[CANCEL], asked = event.at, lines[-1].text
            case ev.RunFailed():
                ending, traceback = lines[-1].text, event.error.traceback
            case ev.RunCompleted() | ev.RunCancelled():
                ending = lines[-1].text
            case _:
                pass
    known = ledger(state)
    counted = exits if known is not None and known.attempts else ()
    return Told(run, state, tuple(lines), opened, started, changed, ending, asked, counted, traceback)


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
