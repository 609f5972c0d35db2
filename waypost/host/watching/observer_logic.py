"""What is known of all deployments at once, for `waypost top` and the metrics: the decision of the ObserverActor.

Three kinds of news come here. Timing marks are added up. That a deployment is in another state is told by the root, as
the timeline is told. And of what runs wait on, and how much mail waits, a repository is asked to count anew when
something has changed, at most once every ``PAUSE`` seconds: so an answer to whoever looks costs no question to anybody,
and a deployment where nothing happens is asked nothing.

Everything here is of durable facts, may be a second old, and can be lost: nobody rests on it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from actors.describing import Description
from actors.messages import StateChanged
from actors.watching import Asking, Turned
from substrate.messages import Census, Done, Outcome, ReadCensus, Ref
from waypost.acting import Asked as Question
from waypost.acting import Next, Reply, WakeAt
from waypost.host.watching.histogram import NONE, Histogram, Recent
from waypost.model.ids import Deployment
from waypost.model.times import Now
from waypost.observing import ClockSet, Enqueued, Flushed, Mark, Timed

PAUSE = 1.0
"""Seconds between two counts of one repository, as a rule."""
LEGS = ("enqueue", "claim", "consume", "events", "round_trip")


# --- messages and effects ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figures:
    """Asked: the answer is the ``State``."""


@dataclass(frozen=True, slots=True)
class CountNow:
    """The clock's: the pause after a count is over."""

    deployment: Deployment


@dataclass(frozen=True, slots=True)
class Count:
    """Effect: have a deployment's repository count; ``Outcome`` comes back."""

    supervisor: Ref
    correlation: int
    what: ReadCensus


ObserverMessage: TypeAlias = Question | Mark | StateChanged | Asking | Turned | Outcome | CountNow


# --- where a count stands ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Unasked:
    """Nobody is there who could be asked, or who was had no answer."""


@dataclass(frozen=True, slots=True)
class Counted:
    """It is known as of ``at`` (monotonic seconds), and nothing has changed."""

    at: float


@dataclass(frozen=True, slots=True)
class Due:
    """Something has changed; a wake-up is under way."""


@dataclass(frozen=True, slots=True)
class Counting:
    """It was asked for."""

    correlation: int


@dataclass(frozen=True, slots=True)
class Outdated:
    """It was asked for, and something has changed since."""

    correlation: int


Standing: TypeAlias = Unasked | Counted | Due | Counting | Outdated


# --- the state -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One deployment. What counts up does so from the host's start."""

    supervisor: Ref | None = None
    standing: Standing = field(default_factory=Unasked)
    census: Census | None = None
    flushes: Histogram = NONE
    recent: Recent = field(default_factory=Recent)
    """Of its flushes."""
    ended: Mapping[str, int] = field(default_factory=dict)
    """Runs by how they have ended."""
    generation: int = 0
    """The newest that was told of."""
    dozed: int = 0
    """The one that was let go because there was nothing to do."""
    restarts: int = 0
    wakes: int = 0
    exits: int = 0
    """Children that ended unasked."""
    exit_at: int = 0

    @property
    def flush_p99(self) -> float | None:
        """Of its last thousand flushes, in seconds; None before the first."""
        return self.recent.quantile(0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All of them; the legs of mails, and what their work consisted of, are added up over all."""

    pause: float = PAUSE
    """Seconds between two counts of one repository: several of them within the time after which one is let go."""
    deployments: Mapping[Deployment, Watched] = field(default_factory=dict)
    legs: Mapping[str, Histogram] = field(default_factory=dict)
    mails: int = 0
    """That were followed from their claim to what they caused."""
    written: int = 0
    commits: int = 0
    ahead: int = 0
    """Mails that waited, and (``beside``) runs that were at work or had mail, when each of those was claimed."""
    beside: int = 0
    clock_jumps: int = 0
    last: int = 0
    """The last correlation that was given out."""
    asked: Mapping[int, Deployment] = field(default_factory=dict)


def advance(state: State, message: ObserverMessage, now: Now) -> Next[State]:  # noqa: C901, PLR0911 - a table
    """Add it up, and count where something has changed."""
    match message:
        case Question():
            return Next(state, (Reply(message.token, state),))
        case Enqueued():
            legged = replace(state, legs=_longer(state.legs, {"enqueue": message.seconds}))
            return _changed(legged, Deployment(message.deployment), now)
        case Timed():
            return _changed(_timed(state, message), Deployment(message.deployment), now)
        case Flushed():
            name = Deployment(message.deployment)
            one = _of(state, name)
            seconds = message.seconds
            return Next(
                _with(state, name, replace(one, flushes=one.flushes.add(seconds), recent=one.recent.add(seconds)))
            )
        case ClockSet():
            return Next(replace(state, clock_jumps=state.clock_jumps + 1))
        case StateChanged(description):
            return Next(_with(state, description.name, _described(_of(state, description.name), description)))
        case Asking(name, _, supervisor):
            return _ask(_with(state, name, replace(_of(state, name), supervisor=supervisor)), name, now)
        case Turned(name, ended):
            return _changed(_with(state, name, _more(_of(state, name), ended)), name, now)
        case CountNow(name):
            return _ask(state, name, now) if isinstance(_of(state, name).standing, Due) else Next(state)
        case Outcome():
            return _counted(state, message, now)
        case _:
            assert_never(message)


def _timed(state: State, mark: Timed) -> State:
    legs = {"claim": mark.claim, "consume": mark.consume, "events": mark.events, "round_trip": mark.round_trip}
    return replace(
        state,
        legs=_longer(state.legs, legs),
        mails=state.mails + 1,
        written=state.written + mark.written,
        commits=state.commits + mark.commits,
        ahead=state.ahead + mark.mails,
        beside=state.beside + mark.runs,
    )


def _described(one: Watched, description: Description) -> Watched:
    exited, generation = description.exited, max(one.generation, description.generation)
    if exited is not None and exited.at != one.exit_at:
        one = replace(one, exits=one.exits + 1, exit_at=exited.at)
    if generation > one.generation > 0:
        woke = one.dozed == one.generation
        one = replace(one, wakes=one.wakes + woke, restarts=one.restarts + (not woke))
    if description.state != "dormant":
        return replace(one, generation=generation)
    # Nobody is there any more who could be asked: what was counted holds, if nothing has changed since.
    known = one.census if isinstance(one.standing, Counted) else None
    return replace(one, generation=generation, dozed=generation, supervisor=None, standing=Unasked(), census=known)


def _more(one: Watched, ended: tuple[str, ...]) -> Watched:
    counts = dict(one.ended)
    for outcome in ended:
        counts[outcome] = counts.get(outcome, 0) + 1
    return replace(one, ended=counts) if ended else one


# --- counting ------------------------------------------------------------------------------------------------------


def _changed(state: State, name: Deployment, now: Now) -> Next[State]:
    """Something has: it is counted anew, now, or when the last count is old enough."""
    one = _of(state, name)
    match one.standing:
        case Counted(at) if now.mono - at >= state.pause:
            return _ask(state, name, now)
        case Counted(at):
            return _wake(state, name, at + state.pause)
        case Counting(correlation):
            return Next(_with(state, name, replace(one, standing=Outdated(correlation))))
        case Unasked():
            return _ask(state, name, now)
        case Due() | Outdated():
            return Next(state)
        case _:
            assert_never(one.standing)


def _ask(state: State, name: Deployment, now: Now) -> Next[State]:
    one, correlation = _of(state, name), state.last + 1
    if one.supervisor is None:
        return Next(state)
    # Of an answer that was to come from somebody who is gone, nobody hears any more.
    asked = {each: whose for each, whose in state.asked.items() if whose != name}
    after = replace(state, last=correlation, asked={**asked, correlation: name})
    return Next(
        _with(after, name, replace(one, standing=Counting(correlation))),
        (Count(one.supervisor, correlation, ReadCensus(now.wall)),),
    )


def _counted(state: State, outcome: Outcome, now: Now) -> Next[State]:
    name = state.asked.get(outcome.correlation)
    if name is None:
        return Next(state)  # of a supervisor that is gone
    state = replace(state, asked={each: whose for each, whose in state.asked.items() if each != outcome.correlation})
    one = _of(state, name)
    if not isinstance(outcome.result, Done):
        # It falls asleep, is being stopped or made anew: who comes then says where it is, and it is counted.
        return Next(_with(state, name, replace(one, standing=Unasked())))
    after = _with(state, name, replace(one, census=outcome.result.value, standing=Counted(now.mono)))
    return _wake(after, name, now.mono + state.pause) if isinstance(one.standing, Outdated) else Next(after)


def _wake(state: State, name: Deployment, mono: float) -> Next[State]:
    due = replace(_of(state, name), standing=Due())
    return Next(_with(state, name, due), (WakeAt(CountNow(name), mono=mono),))


# --- small things --------------------------------------------------------------------------------------------------


def _of(state: State, name: Deployment) -> Watched:
    return state.deployments.get(name) or Watched()


def _with(state: State, name: Deployment, one: Watched) -> State:
    return replace(state, deployments={**state.deployments, name: one})


def _longer(legs: Mapping[str, Histogram], seconds: Mapping[str, float]) -> Mapping[str, Histogram]:
    return {**legs, **{leg: legs.get(leg, NONE).add((each,)) for leg, each in seconds.items()}}
