"""A deployment is taken out of service: no run begins any more, and it waits until every run has ended; then it rests.

It asks the repository again and again who is left. Its clock counts only time in which steps execute that were declared
with ``on_drain="cancel"``; while all that is left waits for people or timers, or does anything else, it stands still.
At its limit the runs in such steps are asked to end, and no others. With another child it begins anew, as those steps
do. Pure.
"""

from dataclasses import replace

from actors.logic import supervisor_states as st
from actors.logic.executing import named
from actors.logic.supervisor_books import Books, Setup
from actors.logic.supervisor_child import Internal, running
from actors.logic.supervisor_draining import shelve
from actors.logic.supervisor_effects import Effect, Pass, TellDispatch
from actors.messages import ChannelViolated, ChildExited, GenerationDown, Woken
from substrate.messages import Cancel, Done, LiveRuns, Outcome, ReadLive, Refused, Withheld
from waypost.acting import Next, WakeAt
from waypost.model.ids import RunId
from waypost.model.run import Driven
from waypost.model.times import Now


def retire(state: st.Running) -> Next[st.State]:
    """Begin, with the child that runs: nothing new is begun by it from now on."""
    return _look(state.books, st.Retiring(state.books, state.pid, state.since, 0))


def retiring(setup: Setup, state: st.Retiring, message: Internal, now: Now) -> Next[st.State]:
    """The repository has said who is left; or it is time to ask again; or the child ends."""
    match message:
        case Outcome(state.asked, Done(value=LiveRuns() as left)):
            return _left(setup, state, left, now)
        case Outcome(state.asked, Refused() | Withheld()):
            return _later(setup, state, now)
        case Woken(state.asked):
            return _look(state.books, state)
        case ChildExited() | ChannelViolated():
            following = running(setup, st.Running(state.books, state.pid, state.since), message, now)
            return Next(state) if isinstance(following.state, st.Running) else following
        case _:
            return Next(state)


def _look(books: Books, state: st.Retiring) -> Next[st.State]:
    books = books.numbered()
    return Next(replace(state, books=books, asked=books.last), (Pass(books.last, ReadLive()),))


def _later(setup: Setup, state: st.Retiring, now: Now, before: tuple[Effect, ...] = ()) -> Next[st.State]:
    books = state.books.numbered()
    wake = WakeAt(Woken(books.last), mono=now.mono + setup.limits.drain_look)
    return Next(replace(state, books=books, asked=books.last), (*before, wake))


def _left(setup: Setup, state: st.Retiring, left: LiveRuns, now: Now) -> Next[st.State]:
    books = state.books
    if not left.driven and not left.resting:
        return shelve(books, st.WHOLE, (TellDispatch(GenerationDown(books.generation, unexpected=False)),))
    short = tuple(run.ledger.run for run in left.driven if _may_be_cut(setup, run))
    spent = state.spent + (0.0 if state.counted is None else now.mono - state.counted)
    over = short if spent >= setup.limits.drain_end else ()
    asked = _cancels(books.last, over, "" if books.drain is None else books.drain.by)
    books = replace(books, last=books.last + len(over))
    executing, more = named(left.driven)
    following = replace(
        state,
        books=books,
        counted=now.mono if short else None,
        spent=spent,
        executing=executing,
        more=more,
        resting=left.resting,
    )
    return _later(setup, following, now, asked)


def _may_be_cut(setup: Setup, run: Driven) -> bool:
    steps = {step.step for step in run.ledger.steps.values()}
    return run.ledger.cancel is None and not steps.isdisjoint(setup.spec.cut_short)


def _cancels(last: int, runs: tuple[RunId, ...], by: str) -> tuple[Effect, ...]:
    reason = "the deployment is taken out of service, and its time for this is up"
    return tuple(
        Pass(last + number, Cancel(run=run, reason=reason, origin="supervisor-drain", by=by))
        for number, run in enumerate(runs, start=1)
    )
