"""Everybody outside talks to the repository through the supervisor: what is handed on, kept, withheld, answered.

A few words to the repository are words to the supervisor, too: what an operator lets go on begins when that is durable.
"""

from dataclasses import replace
from typing import assert_never

from actors.logic.supervisor import states as st
from actors.logic.supervisor.books import Books, Early, Setup
from actors.logic.supervisor.child import raise_child
from actors.logic.supervisor.crashes import NONE
from actors.logic.supervisor.effects import Pass
from actors.logic.supervisor.ending import answer, opening, wind, withhold
from actors.logic.supervisor.sleep import Asleep, Audit, Auditing, Dormant, Dozing, LettingGo
from substrate.messages import Done, Drain, GoesOn, Outcome, Refused, ResetDeployment, Result, ResumeDeployment
from substrate.requests import READING
from waypost.acting import Next
from waypost.model.times import Now

_ASLEEP = Refused("asleep", "nobody has its repository open: what is in it is read from the disk")
"""To whoever only wants to know something: that is no reason to wake it."""
EARLY = 256
"""Forwards that are kept while the repository is opening; what comes after them is withheld."""


def forwarded(  # noqa: C901, PLR0911, PLR0912 - one return per kind of state
    state: st.State, forward: Early
) -> Next[st.State]:
    """Hand it on, in order; or keep it, or withhold it with the reason."""
    match state:
        case Dormant() | Auditing() | st.Ending(then=Audit() | Asleep()) if isinstance(forward.what, READING):
            return Next(state, answer(forward.asker, _ASLEEP))
        case Dormant():
            return opening(state.books, (forward,))
        case st.Idle() | st.Opening() | Auditing():
            if len(state.early) >= EARLY:
                return Next(state, withhold((forward.asker,), "the repository is still opening; try again"))
            return Next(replace(state, early=(*state.early, forward)))
        case st.Ending(then=st.Again() | Audit() | Asleep() as again):
            if len(again.early) >= EARLY:
                return Next(state, withhold((forward.asker,), "the repository is being opened anew; try again"))
            return Next(replace(state, then=replace(again, early=(*again.early, forward))))
        case st.Stopped(reason=reason) if reason and isinstance(forward.what, ResumeDeployment):
            if state.books.drain is not None:  # it was drained before: that is what goes on, or is lifted
                return opening(state.books, (forward,))
            following = opening(state.books, ())
            return Next(following.state, (*answer(forward.asker, Done(0, None)), *following.effects))
        case st.Ending() | st.Stopped() | st.Down():
            return Next(state, withhold((forward.asker,), _why_not(state)))
        case st.Held(why=why) if isinstance(forward.what, ResumeDeployment):
            books = state.books.asked_by(forward.asker)
            return Next(st.Lifting(books, why, books.last), (Pass(books.last, forward.what),))
        case st.CrashLooping(latch=latch) if isinstance(forward.what, ResetDeployment):
            books = state.books.asked_by(forward.asker)
            return Next(st.Resetting(books, latch, books.last), (Pass(books.last, forward.what),))
        case st.Latching() if isinstance(forward.what, ResetDeployment):
            return Next(state, withhold((forward.asker,), "it is being latched at this very moment; try again"))
        case _ if isinstance(state, st.Open | Dozing | LettingGo):
            books = state.books.asked_by(forward.asker)
            return Next(replace(state, books=books), (Pass(books.last, forward.what),))
        case _:
            assert_never(state)


def _why_not(state: st.Ending | st.Stopped | st.Down) -> str:
    match state:
        case st.Ending(then=st.Lost(reason, message)) | st.Down(reason=reason, message=message):
            return f"the deployment is down ({reason}): {message}"
        case st.Ending(then=st.Over(reason=reason)) | st.Stopped(reason=reason) if reason:
            return f"the deployment is stopped: {reason}"
        case _:
            return "the deployment is stopped"


def answered(setup: Setup, state: st.State, outcome: Outcome, now: Now) -> Next[st.State]:
    """The answer of the repository: passed on to who asked, and where it concerns the supervisor, acted upon."""
    asker = state.books.asked[outcome.correlation]
    asked = {key: other for key, other in state.books.asked.items() if key != outcome.correlation}
    after = replace(state, books=_drained(replace(state.books, asked=asked), outcome.result))
    told = answer(asker, outcome.result)
    if isinstance(after, st.Lifting) and after.lifted == outcome.correlation:
        if isinstance(outcome.result, Done):
            # Everything is built anew, from a log that now says that nothing is held.
            return wind(
                setup, after.books, tuple(reversed(st.HELD)), st.Again("an operator resumed it"), now, before=told
            )
        return Next(st.Held(after.books, after.why), told)
    if isinstance(after, st.Resetting) and after.reset == outcome.correlation:
        if isinstance(outcome.result, Done):
            following = raise_child(replace(after.books, crashes=NONE))
            return Next(following.state, (*told, *following.effects))
        return Next(st.CrashLooping(after.books, after.latch), told)
    return Next(after, told)


def _drained(books: Books, result: Result) -> Books:
    """What the repository says of a drain has changed; what follows from that, ``supervisor_heeding`` says."""
    match result:
        case Done(value=Drain() as drain):
            return replace(books, drain=drain)
        case Done(value=GoesOn()):
            return replace(books, drain=None)
        case _:
            return books
