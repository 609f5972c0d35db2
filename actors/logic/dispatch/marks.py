"""How long each mail's way took, seen from beside dispatch: what it was told, and what it asked for in return.

No decision depends on it. A mail is followed from the claim that is asked for to the moment at which what its run did
is durable; a claim that goes back is followed no further. What is followed is bounded: beyond ``MOST`` mails the oldest
is no longer. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from actors.effects import Ask
from substrate.messages import Appended, Claim, Claimed, Committed, Consumed, Durable, Queued, TakeUp
from waypost.model import run as fold
from waypost.model.ids import RunId
from waypost.observing import Timed

MOST = 1024
"""Mails that are followed at once."""


@dataclass(frozen=True, slots=True)
class Around:
    """Where it is seen, and what is there at the moment: mails that no run has yet, and runs driven or with mail."""

    deployment: str
    mails: int
    runs: int


@dataclass(frozen=True, slots=True)
class Claiming:
    """Its claim was asked for at ``asked``, in monotonic seconds; ``mails`` and ``runs`` were there then."""

    asked: float
    mails: int
    runs: int


@dataclass(frozen=True, slots=True)
class Taken:
    """Its claim took ``claim`` seconds; its take-up was asked for at ``asked``, if it was."""

    begun: Claiming
    claim: float
    asked: float | None = None


@dataclass(frozen=True, slots=True)
class Working:
    """It was consumed at ``since`` by ``run``, which has written so much since."""

    taken: Taken
    run: RunId
    consume: float
    since: float
    written: int = 0
    commits: int = 0


@dataclass(frozen=True, slots=True)
class Resting:
    """Its run has come to rest; that counts once ``position`` is durable."""

    work: Working
    position: int


Stage: TypeAlias = Claiming | Taken | Working | Resting


@dataclass(frozen=True, slots=True)
class Marks:
    """The mails that are followed, by arrival, and those of them that a run works at, by run."""

    mails: Mapping[int, Stage] = field(default_factory=dict)
    working: Mapping[RunId, tuple[int, ...]] = field(default_factory=dict)


def watch(
    marks: Marks, message: object, effects: Iterable[Any], mono: float, around: Around
) -> tuple[Marks, tuple[Timed, ...]]:
    """What is followed after one message of dispatch's, and the marks that are complete by it."""
    asked = [effect.what for effect in effects if isinstance(effect, Ask) and isinstance(effect.what, Claim | TakeUp)]
    if not asked and not (marks.mails and isinstance(message, Committed | Durable)):
        return marks, ()
    following, working = dict(marks.mails), dict(marks.working)
    if isinstance(message, Committed):
        _committed(following, working, message, mono)
    timed = _durable(following, message, mono, around.deployment) if isinstance(message, Durable) else ()
    for what in asked:
        stage = following.get(what.arrival)
        if isinstance(what, Claim):
            following[what.arrival] = Claiming(mono, around.mails, around.runs)
        elif isinstance(stage, Taken):
            following[what.arrival] = replace(stage, asked=mono)
    for arrival in list(following)[: max(0, len(following) - MOST)]:
        stage = following.pop(arrival)
        if isinstance(stage, Working):
            others = tuple(each for each in working.pop(stage.run, ()) if each != arrival)
            working.update({stage.run: others} if others else {})
    return Marks(following, working), timed


def _durable(following: dict[int, Stage], message: Durable, mono: float, deployment: str) -> tuple[Timed, ...]:
    done = {
        arrival: stage.work
        for arrival, stage in following.items()
        if isinstance(stage, Resting) and stage.position <= message.up_to
    }
    for arrival in done:
        del following[arrival]
    return tuple(_timed(work, mono, deployment) for work in done.values())


def _committed(
    following: dict[int, Stage], working: dict[RunId, tuple[int, ...]], message: Committed, mono: float
) -> None:
    for fact in message.facts:
        match fact:
            case Claimed(arrival=arrival):
                stage = following.get(arrival)
                if isinstance(stage, Claiming):
                    following[arrival] = Taken(stage, mono - stage.asked)
            case Consumed(arrival=arrival, run=run):
                stage = following.pop(arrival, None)
                if isinstance(stage, Taken) and stage.asked is not None and run is not None:
                    following[arrival] = Working(stage, run, mono - stage.asked, mono)
                    working[run] = (*working.get(run, ()), arrival)
            case Queued(entry=entry):
                following.pop(entry.arrival, None)
            case _:
                pass
    # After those: the commit that consumes a mail holds the first event of its run.
    for fact in message.facts:
        if isinstance(fact, Appended):
            _appended(following, working, fact, message.last)


def _appended(
    following: dict[int, Stage], working: dict[RunId, tuple[int, ...]], fact: Appended, position: int
) -> None:
    rests = not isinstance(fact.state, fold.Driven)
    for arrival in working.pop(fact.run, ()) if rests else working.get(fact.run, ()):
        stage = following[arrival]
        assert isinstance(stage, Working), "a run works at mails that it has consumed"
        work = replace(stage, written=stage.written + len(fact.events), commits=stage.commits + 1)
        following[arrival] = Resting(work, position) if rests else work


def _timed(work: Working, mono: float, deployment: str) -> Timed:
    return Timed(
        deployment=deployment,
        claim=work.taken.claim,
        consume=work.consume,
        events=mono - work.since,
        round_trip=mono - work.taken.begun.asked,
        written=work.written,
        commits=work.commits,
        mails=work.taken.begun.mails,
        runs=work.taken.begun.runs,
    )
