"""How each state of a deployment's supervisor is described to people, and to programs. Pure."""

from dataclasses import fields
from operator import attrgetter
from typing import assert_never

from actors.describing import Budget, Description
from actors.draining import Executing
from actors.logic.supervisor import states as st
from actors.logic.supervisor.books import Books, Leaving, Renewing, Resting, Setup
from actors.logic.supervisor.sleep import Asleep, Audit, Auditing, Dormant, Dozing, LettingGo
from actors.logic.supervisor.why import drained, sentence
from actors.messages import Role

FAILED = "recycle-failed"
"""Why a deployment is stopped that nobody has stopped, for programs."""
BROKEN = "broken-code"
"""Why a deployment that runs begins nothing and lets nothing go on, for programs."""
FULL = "disk-full"
"""Why a deployment that runs takes no new mail, for programs."""
BARRED = "barred"
"""Why no run begins, or goes on with a new process, though that is there, for programs."""
LATCH = "crash-looping"
"""Why a latched deployment is down, for programs."""


def describe(setup: Setup, state: st.State) -> Description:
    """The state in words for people."""
    word, code, reason = _words(state, setup.spec.name)
    why, also = sentence(setup, state), drained(state)
    return Description(
        name=setup.spec.name,
        address=setup.spec.address,
        state=word,
        reason="; ".join(filter(None, (reason, also))),
        generation=state.books.generation,
        pid=state.pid if isinstance(state, st.Running | st.Draining | st.Retiring) else None,
        until=_until(state),
        line=state.books.line,
        live=state.live if isinstance(state, Dormant) else (),
        judged=state.judged if isinstance(state, Dormant) else None,
        isolation=setup.spec.isolation,
        code=code,
        since=why.since,
        why=why,
        exited=state.books.exited,
        executing=(state.executing or ()) if isinstance(state, st.Draining | st.Retiring) else (),
        more=state.more if isinstance(state, st.Draining | st.Retiring) else 0,
        renewed=state.books.renewed,
        budget=Budget(state.books.crashes.ages, state.books.launched if Role.CHILD in st.crew_of(state) else None),
    )


def phrase(setup: Setup, state: st.State) -> str:
    """The state as a reason why something can't be done now."""
    now = describe(setup, state)
    return f"it is {now.state}: {now.reason}" if now.reason else f"it is {now.state}"


def alike(before: st.State, after: st.State) -> bool:
    """Whether two states are described alike, as far as that is seen at once: most messages only pass through.

    Whatever differs but in what is never said makes them unlike, so that nothing new is ever left out by this.
    """
    if type(before) is not type(after) or _SAID(before.books) != _SAID(after.books):
        return False
    return all(getattr(before, name) == getattr(after, name) for name in type(after).__slots__ if name not in _INNER)


_INNER = frozenset({"books", "look"})
"""Of a state: its books, of which more is seen; and when it looks whether there is anything to do."""
_UNSAID = frozenset({"last", "asked"})
"""Of the books: who waits for which answer."""
_SAID = attrgetter(*(each.name for each in fields(Books) if each.name not in _UNSAID))


def _until(state: st.State) -> int | None:
    match state:
        case st.BackingOff() | st.Preparing():
            return state.until
        case Dormant():
            return state.deadline
        case _:
            return None


def _words(state: st.State, name: str) -> tuple[str, str, str]:  # noqa: C901, PLR0911, PLR0912 - one return per word
    """The state, the code of its reason where it is down, and the reason for people."""
    match state:
        case st.Stopped(reason=reason) if reason:
            off = "" if state.books.drain is None else ", and calls its drain off, with which the next host goes on"
            return "stopped", FAILED, f"{reason}; `waypost resume {name}` starts it again{off}"
        case st.Idle() | st.Stopped():
            return type(state).__name__.lower(), "", ""
        case st.Opening() | st.Raising() | st.Starting():
            return "starting", "", state.reason if isinstance(state, st.Opening) else ""
        case st.Running():
            return ("running", *_hindered(state))
        case (
            st.Draining()
            | st.Retiring()
            | st.Shelving()
            | st.Superseding()
            | st.Bereft()
            | st.Replacing()
            | st.Succeeding()
        ):
            return _planned(state)
        case st.Evicting() | st.Counting() | st.BackingOff() | st.Preparing():
            return "backing-off", "", state.reason
        case st.Latching():
            return "down", LATCH, f"{LATCH}: {state.detail}"
        case st.CrashLooping() | st.Resetting():
            return "down", LATCH, f"{LATCH}: {state.latch.detail}; `waypost reset {name}` lets it have a child again"
        case st.Dismissing() | st.Unmanned() | st.Down():
            return "down", state.reason, f"{state.reason}: {state.message}"
        case Dozing() | LettingGo() | Auditing():
            return "dozing", "", ""
        case Dormant():
            return "dormant", "", ""
        case st.Held() | st.Lifting():
            return "held", "", f"after {state.why}; `waypost resume {name}` lists what would go out and lets it go on"
        case st.Ending():
            return _afterwards(state.then)
        case _:
            assert_never(state)


def _hindered(state: st.Running) -> tuple[str, str]:
    """What keeps it from what it is there for, where it runs: first what its sentence says first."""
    if state.broken:
        return BROKEN, state.broken
    if state.books.scarce:
        return FULL, state.books.scarce
    barred = state.books.barred
    if barred is not None and barred.generation == state.books.generation:
        return BARRED, barred.why
    return "", ""


def _planned(state: st.Planned) -> tuple[str, str, str]:
    match state:
        case st.Draining():
            return "draining", "", _draining(state)
        case st.Retiring():
            return "draining", BROKEN if state.broken else "", _retiring(state)
        case st.Shelving():
            return "draining", "", "nothing executes any more"
        case st.Superseding() | st.Bereft() | st.Replacing() | st.Succeeding():
            return "recycling", "", f"{state.goal.origin}: {state.goal.reason}"
        case _:
            assert_never(state)


def _retiring(state: st.Retiring) -> str:
    words = [f"to be taken out of service, as {_who(state)} wants it, when every run has ended"]
    if state.broken:
        words.append(f"its code can't be loaded: {state.broken}")
    if state.executing:
        words.append(f"waits for {_named(state.executing, state.more)}")
    if state.resting:
        words.append(f"{state.resting} of its runs rest" if state.resting > 1 else "one of its runs rests")
    return "; ".join(words)


def _draining(state: st.Draining) -> str:
    """What it is for, and what is waited for: the longest at work first."""
    match state.goal:
        case Renewing(origin, reason):
            purpose = f"for a fresh process ({origin}: {reason})"
        case Resting():
            purpose = f"to be held, as {_who(state)} wants it"
        case Leaving():
            purpose = "to be stopped"
        case _:
            assert_never(state.goal)
    if not state.executing:
        return purpose
    return f"{purpose}; waits for {_named(state.executing, state.more)}"


def _who(state: st.State) -> str:
    return "somebody" if state.books.drain is None else state.books.drain.by


def _named(executing: tuple[Executing, ...], more: int) -> str:
    named = [f"{each.run} ({each.step}{f', since {each.since}' if each.since else ''})" for each in executing[:2]]
    others = len(executing) - len(named) + more
    return ", ".join(named) + (f" and {others} more" if others else "")


def _afterwards(then: st.Then) -> tuple[str, str, str]:
    match then:
        case Audit() | Asleep():
            return "dozing", "", ""
        case st.Again():
            return then.word, "", then.reason
        case st.Over():
            return "stopping", "", then.reason
        case st.Lost():
            return "down", then.reason, f"{then.reason}: {then.message}"
        case _:
            assert_never(then)
