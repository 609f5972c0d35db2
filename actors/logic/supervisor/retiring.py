"""A deployment is taken out of service: no run begins any more, and it waits until every run has ended; then it rests.

It asks the repository again and again who is left. Its clock counts only time in which steps execute that were declared
with ``on_drain="cancel"``; while all that is left waits for people or timers, or does anything else, it stands still,
and while somebody has stopped the child, of which that is asked as long as it would count.
At its limit the runs in such steps are asked to end, and no others. It goes on with another child, and under another
host: whenever another ``PART`` of its limit is over, that is noted in the repository, so a host that is killed takes
less than that along, and a drain makes no more commits than it has parts. Pure.
"""

from dataclasses import replace

import msgspec

from actors.draining import ChildWeighed, Weigh
from actors.logic.executing import named
from actors.logic.supervisor import states as st
from actors.logic.supervisor.books import Books, Setup
from actors.logic.supervisor.child import Internal, running
from actors.logic.supervisor.draining import shelve
from actors.logic.supervisor.effects import Effect, Pass, TellChild, TellDispatch
from actors.messages import ChannelViolated, ChildExited, GenerationDown, Woken
from substrate.messages import Cancel, Done, LiveRuns, NoteDrain, Outcome, ReadLive, Refused, Withheld
from waypost.acting import Next, WakeAt
from waypost.model.ids import RunId
from waypost.model.run import Driven
from waypost.model.times import Now

PART = 1 / 8
"""Of the clock's limit; but at least ``LEAST`` seconds."""
LEAST = 1.0
LOOKS = 2
"""Of ``drain_look`` that is counted at most between two looks: who looks again later than that stood still, and can't
say what executed meanwhile."""


def retire(state: st.Running) -> Next[st.State]:
    """Begin, with the child that runs: nothing new is begun by it from now on."""
    drain = state.books.drain
    spent = 0.0 if drain is None else (drain.spent or 0) / 1000
    return _look(st.Retiring(state.books, state.pid, state.since, 0, state.tick, spent=spent, broken=state.broken))


def part(spent: float, limit: float) -> int:
    """How many parts of its limit a clock has counted. All in seconds."""
    return int(spent / max(limit * PART, LEAST))


def retiring(setup: Setup, state: st.Retiring, message: Internal, now: Now) -> Next[st.State]:
    """The repository has said who is left; or it is time to ask again; or the child ends."""
    match message:
        case Outcome(state.asked, Done(value=LiveRuns() as left)):
            return _left(setup, state, left, now)
        case Outcome(state.asked, Refused() | Withheld()):
            return _later(setup, state, now)
        case Woken(state.asked):
            return _look(state)
        case ChildExited() | ChannelViolated():
            following = running(setup, st.Running(state.books, state.pid, state.since), message, now)
            return Next(state) if isinstance(following.state, st.Running) else following
        case _:
            return Next(state)


def seen(state: st.Retiring, weighed: ChildWeighed) -> Next[st.State]:
    """Whether the child is stopped: since when isn't known, so nothing counts from the last look on."""
    counted = None if weighed.halted else state.counted
    return Next(replace(state, halted=weighed.halted, counted=counted))


def _look(state: st.Retiring) -> Next[st.State]:
    books = state.books.numbered()
    first = (TellChild(Weigh(memory=False)),) if state.halted or state.counted is not None else ()
    return Next(replace(state, books=books, asked=books.last), (*first, Pass(books.last, ReadLive())))


def _later(setup: Setup, state: st.Retiring, now: Now, before: tuple[Effect, ...] = ()) -> Next[st.State]:
    books = state.books.numbered()
    wake = WakeAt(Woken(books.last), mono=now.mono + setup.limits.drain_look)
    return Next(replace(state, books=books, asked=books.last), (*before, wake))


def _left(setup: Setup, state: st.Retiring, left: LiveRuns, now: Now) -> Next[st.State]:
    books = state.books
    if not left.driven and not left.resting:
        return shelve(books, st.WHOLE, (TellDispatch(GenerationDown(books.generation, unexpected=False)),))
    short = tuple(run.ledger.run for run in left.driven if _may_be_cut(setup, run))
    most = LOOKS * setup.limits.drain_look
    spent = state.spent + (0.0 if state.counted is None else min(now.mono - state.counted, most))
    limit = setup.limits.drain_end
    over = short if spent >= limit else ()
    asked = _cancels(books.last, over, "" if books.drain is None else books.drain.by)
    books = _counted(replace(books, last=books.last + len(over)), spent)
    if part(min(spent, limit), limit) > part(min(state.spent, limit), limit):
        books = books.numbered()
        asked = (*asked, Pass(books.last, NoteDrain(_milliseconds(spent))))
    executing, more = named(left.driven)
    following = replace(
        state,
        books=books,
        counted=now.mono if short and not state.halted else None,
        halted=state.halted and bool(short),
        spent=spent,
        executing=executing,
        more=more,
        resting=left.resting,
    )
    return _later(setup, following, now, asked)


def _counted(books: Books, spent: float) -> Books:
    """For the next child: what is noted in the repository is for the next host."""
    milliseconds = _milliseconds(spent)
    if books.drain is None or milliseconds <= (books.drain.spent or 0):
        return books
    return replace(books, drain=msgspec.structs.replace(books.drain, spent=milliseconds))


def _milliseconds(spent: float) -> int:
    return int(spent * 1000)


def _may_be_cut(setup: Setup, run: Driven) -> bool:
    steps = {step.step for step in run.ledger.steps.values()}
    return run.ledger.cancel is None and not steps.isdisjoint(setup.spec.cut_short)


def _cancels(last: int, runs: tuple[RunId, ...], by: str) -> tuple[Effect, ...]:
    reason = "the deployment is taken out of service, and its time for this is up"
    return tuple(
        Pass(last + number, Cancel(run=run, reason=reason, origin="supervisor-drain", by=by))
        for number, run in enumerate(runs, start=1)
    )
