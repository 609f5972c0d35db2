"""Who is shown what: the decision of the TerminalBroadcasterActor.

A watcher stands outside the deployment, so it sees what is durable and nothing earlier (storage §2): every event once,
in order. To who watches one run its end is the last; who watches all of them is also told what becomes of the mails
that a run has left on their way. What a step says of its progress waits until the newest event that the step had seen
is durable. Nothing is kept for a watcher: only what isn't durable yet is held, once for all of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from actors.messages import BroadcasterMessage, Kin, ProgressCame, Seen, SeenProgress, SeenQueued, Unwatch, Watch
from actors.watching import APPROVALS, EVERYTHING, TURNS, Turned
from substrate.messages import Appended, Committed, Consumed, Durable, Held, Queued, Ref, ScheduleMoved, Snapshot
from waypost.acting import Next
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.child_mail import spawner
from waypost.model.ids import CallId, Deployment, RunId
from waypost.model.times import Now

HELD_PROGRESS = 256
"""Of a deployment, the newest of each call; what a child says of events that never come can't pile up."""
RESTING = 256
"""Runs without a step under way that are remembered: progress comes by a channel of its own, and may be late."""

_ASKING = (ev.SignalAwaited, ev.SignalReceived, ev.SignalAwaitAbandoned, ev.TimerFired, *ev.TERMINAL)
"""What may open or close an approval."""
_STEPS = (ev.StepStarted, ev.StepCompleted, ev.StepFailed, ev.RunResumed, ev.RunInterrupted)
"""All other events may change what a run waits on, or how much mail waits."""


@dataclass(frozen=True, slots=True)
class Show:
    """Effect: tell a watcher. Should it be gone, ``Unwatch(run, watcher)`` comes back."""

    run: RunId | None
    watcher: Ref
    what: Seen | SeenProgress | SeenQueued | Turned


@dataclass(frozen=True, slots=True)
class Present:
    """Where runs stood when the broadcaster was subscribed."""

    seqs: Mapping[RunId, int]


Watchers: TypeAlias = Mapping[RunId | None, tuple[Ref, ...]]
Item: TypeAlias = Present | Appended | Queued | Consumed | Held | ScheduleMoved
Ends: TypeAlias = Mapping[tuple[RunId, CallId], Kin]
Pending: TypeAlias = tuple[tuple[int, Item], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Who watches, and what isn't durable yet. It has one state: a broadcaster has nothing to wait for."""

    deployment: Deployment
    watchers: Watchers = field(default_factory=dict)
    pending: Pending = ()
    """Committed and not durable, with the position that must be."""
    seqs: Mapping[RunId, int] = field(default_factory=dict)
    """Runs with something under way, and those that came to rest last: the newest durable event."""
    resting: tuple[RunId, ...] = ()
    """Those of them that have come to rest, in that order, at most ``RESTING``."""
    held: Mapping[tuple[RunId, CallId], ProgressCame] = field(default_factory=dict)
    newest: int = -1
    """The highest arrival seen: a mail that is queued again isn't news."""


def advance(state: State, message: BroadcasterMessage, _now: Now) -> Next[State]:
    """The next state and what is to be shown, in order."""
    match message:
        case Watch(run, watcher):
            there = state.watchers.get(run, ())
            added = there if watcher in there else (*there, watcher)
            return Next(replace(state, watchers={**state.watchers, run: added}))
        case Unwatch(run, watcher):
            return Next(replace(state, watchers=_without(state.watchers, run, watcher)))
        case Snapshot():
            return Next(_snapshot(state, message))
        case Committed(last=last, facts=facts):
            new = (
                (last, fact) for fact in facts if isinstance(fact, Appended | Queued | Consumed | Held | ScheduleMoved)
            )
            return Next(replace(state, pending=(*state.pending, *new)))
        case Durable(up_to):
            return _durable(state, up_to)
        case ProgressCame():
            return _progress(state, message)
        case _:
            assert_never(message)


def _snapshot(state: State, snapshot: Snapshot) -> State:
    present = Present({run.ledger.run: run.ledger.seq for run in snapshot.runs})
    newest = max((queued.entry.arrival for queued in snapshot.queue), default=-1)
    return replace(state, pending=((snapshot.position, present),), newest=max(state.newest, newest))


def _durable(state: State, up_to: int) -> Next[State]:
    shown: list[Show] = []
    due = [item for position, item in state.pending if position <= up_to]
    state, ends = replace(state, pending=state.pending[len(due) :]), dict(_children(due))
    watchers, seqs = state.watchers.get(TURNS, ()), dict(state.seqs)  # copied once for all of it: it may be large
    for item in due:
        state, more = _become_durable(state, seqs, item, ends)
        shown += more
    state = replace(state, seqs=seqs)
    held: dict[tuple[RunId, CallId], ProgressCame] = {}
    for key, progress in state.held.items():
        if state.seqs.get(progress.run, -1) >= progress.seq:
            shown += _show_progress(state, progress)
        elif progress.run in state.seqs or _coming(state.pending, progress.run):
            held[key] = progress
    if watchers and any(map(_turns, due)):
        turned = Turned(state.deployment, tuple(outcome for item in due for outcome in _ended(item)))
        shown += [Show(TURNS, watcher, turned) for watcher in watchers]
    return Next(replace(state, held=held), tuple(shown))


def _children(due: Iterable[Item]) -> Iterator[tuple[tuple[RunId, CallId], Kin]]:
    """The child runs that have ended, by run and call that they are of: the same commit says so to those."""
    for item in due:
        if isinstance(item, Appended) and isinstance(item.state, fold.Ended) and (by := item.state.started.parent):
            yield (by.run, by.call), Kin(item.run, by.workflow)


def _become_durable(state: State, seqs: dict[RunId, int], item: Item, ends: Ends) -> tuple[State, tuple[Show, ...]]:
    """The state after it, but for ``seqs``, which is the caller's own and is changed in place."""
    match item:
        case Present(present):
            seqs.update(present)
            return state, ()
        case Consumed() | Held() | ScheduleMoved():
            return state, ()
        case Queued():
            news = item.attempt == 0 and item.entry.arrival > state.newest
            following = replace(state, newest=max(state.newest, item.entry.arrival))
            return following, tuple(_queued(state, item)) if news else ()
        case Appended(run=run, state=fold.Ended()):
            seqs.pop(run, None)
            resting = tuple(each for each in state.resting if each != run)
            watchers = {key: refs for key, refs in state.watchers.items() if key != run}
            return replace(state, resting=resting, watchers=watchers), tuple(_appended(state, item, ends))
        case Appended(run=run):
            resting = (*(each for each in state.resting if each != run), *((run,) if _rests(item.state) else ()))
            for forgotten in resting[:-RESTING]:
                seqs.pop(forgotten, None)
            seqs[run] = item.events[-1].event.seq
            return replace(state, resting=resting[-RESTING:]), tuple(_appended(state, item, ends))
        case _:
            assert_never(item)


def _turns(item: Item) -> bool:
    match item:
        case Appended(events=events):
            return any(not isinstance(each.event, _STEPS) for each in events)
        case Present():
            return False
        case Queued() | Consumed() | Held() | ScheduleMoved():
            return True
        case _:
            assert_never(item)


def _ended(item: Item) -> Iterator[str]:
    if isinstance(item, Appended):
        yield from (fold.outcome(each.event) for each in item.events if isinstance(each.event, ev.TERMINAL))


def _rests(run: fold.Run) -> bool:
    """Whether no step is under way that could still say how far it is."""
    ledger = fold.ledger(run)
    return ledger is not None and not isinstance(run, fold.Driven) and not ledger.steps


def _progress(state: State, progress: ProgressCame) -> Next[State]:
    if state.seqs.get(progress.run, -1) >= progress.seq:
        return Next(state, tuple(_show_progress(state, progress)))
    if progress.run not in state.seqs and not _coming(state.pending, progress.run):
        return Next(state)  # its run has ended
    held = {key: each for key, each in state.held.items() if key != (progress.run, progress.call)}
    oldest = list(held)[: max(0, len(held) + 1 - HELD_PROGRESS)]
    for key in oldest:
        del held[key]
    return Next(replace(state, held={**held, (progress.run, progress.call): progress}))


def _coming(pending: Pending, run: RunId) -> bool:
    """Whether events of the run are waiting to be durable, and its end isn't among them."""
    last: Present | Appended | None = None
    for _position, item in pending:
        if (isinstance(item, Present) and run in item.seqs) or (isinstance(item, Appended) and item.run == run):
            last = item
    return last is not None and not (isinstance(last, Appended) and isinstance(last.state, fold.Ended))


def _appended(state: State, fact: Appended, ends: Ends) -> Iterator[Show]:
    for recorded in fact.events:
        seen = Seen(state.deployment, fact.run, recorded, _child(fact, recorded.event, ends))
        for key, watcher in _who(state.watchers, fact.run):
            yield Show(key, watcher, seen)
        for watcher in state.watchers.get(EVERYTHING, ()):
            yield Show(EVERYTHING, watcher, seen)
        if isinstance(recorded.event, _ASKING):
            for watcher in state.watchers.get(APPROVALS, ()):
                yield Show(APPROVALS, watcher, seen)


def _child(fact: Appended, event: ev.AnyEvent, ends: Ends) -> Kin | None:
    """The child run that an event is about."""
    match event:
        case ev.ChildCompleted(call=call):
            return ends.get((fact.run, call))
        case ev.ChildCancelRequested(call=call):
            child = fact.state.children.get(call) if isinstance(fact.state, fold.Ended) else None
            ledger = fold.ledger(fact.state)
            child = ledger.children.get(call) if ledger is not None else child
            return ends.get((fact.run, call)) if child is None else Kin(child.child, child.workflow)
        case _:
            return None


def _queued(state: State, fact: Queued) -> Iterator[Show]:
    entry = fact.entry
    sender = "" if spawner(entry.id) else entry.sender  # a child's mail is from nobody, whomever it is on behalf of
    what = SeenQueued(state.deployment, entry.run, entry.arrival, sender, fact.gist.subject)
    for watcher in state.watchers.get(None, ()):
        yield Show(None, watcher, what)


def _show_progress(state: State, progress: ProgressCame) -> Iterator[Show]:
    what = SeenProgress(state.deployment, progress.run, progress.call, progress.text)
    for key, watcher in _who(state.watchers, progress.run):
        yield Show(key, watcher, what)


def _who(watchers: Watchers, run: RunId) -> Iterator[tuple[RunId | None, Ref]]:
    """The watchers of a run, each once, also if it watches this run and all runs."""
    everything = watchers.get(None, ())
    yield from ((None, watcher) for watcher in everything)
    yield from ((run, watcher) for watcher in watchers.get(run, ()) if watcher not in everything)


def _without(watchers: Watchers, run: RunId | None, watcher: Ref) -> Watchers:
    left = tuple(each for each in watchers.get(run, ()) if each != watcher)
    others = {key: refs for key, refs in watchers.items() if key != run}
    return {**others, run: left} if left else others
