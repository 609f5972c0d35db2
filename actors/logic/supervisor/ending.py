"""How a crew ends: asked to, or because one of them failed; always in order, youngest first, each with a deadline.

One for all: if one fails, the others end, too, and all are made anew from the log; only the broadcaster, which nobody
depends on, is replaced alone. Failures that come too fast leave the deployment down. Pure.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from actors.logic.supervisor import states as st
from actors.logic.supervisor.books import Asker, Books, Early, Setup, Told, Unheard
from actors.logic.supervisor.effects import (
    AttendAll,
    Dismiss,
    Effect,
    Enlist,
    Hire,
    Introduce,
    OpenRepository,
    Pass,
    TellChild,
    TellDispatch,
)
from actors.logic.supervisor.sleep import Asleep, Audit, Auditing, Dormant, Dozing
from actors.messages import GenerationDown, Role, Terminate, Woken
from substrate.errors import TOO_MANY_FILES
from substrate.messages import Outcome, ReadRest, Result, Withheld
from waypost.acting import ActorEnded, Next, Reply, Tell, WakeAt
from waypost.model.times import Now

_DISK_FAULTS = 2
"""So often may the disk fail the repository's writer: the first time, what is good is copied and read back."""


def opening(books: Books, early: tuple[Early, ...]) -> Next[st.State]:
    """Begin, or begin anew: a substrate, which opens its repository."""
    books = replace(books.numbered(), incarnation=books.incarnation + 1, scarce="", barred=None)
    return Next(
        st.Opening(books, books.last, early), (Hire(Role.SUBSTRATE, books.incarnation), OpenRepository(books.last))
    )


def stop(setup: Setup, state: st.State, askers: tuple[int, ...], now: Now) -> Next[st.State]:
    """End because somebody wants it; ``askers`` are answered when all have ended."""
    stopped = "the deployment is stopped"
    match state:
        case st.Idle():
            withheld = withhold(forwards(state.early), stopped)
            return Next(st.Stopped(state.books), (*withheld, *_answers(askers)))
        case st.Stopped() | st.Down() | Dormant():
            return Next(st.Stopped(state.books), _answers(askers))
        case st.Ending(then=st.Over(others, reason)):
            return Next(replace(state, then=st.Over((*others, *askers), reason)))
        case st.Ending(then=st.Again(early=early) | Audit(early=early) | Asleep(early=early)):
            return Next(replace(state, then=st.Over(askers)), withhold(forwards(early), stopped))
        case st.Ending():
            return Next(replace(state, then=st.Over(askers)))
        case st.Opening() | Auditing():
            before: tuple[Effect, ...] = withhold(forwards(state.early), stopped)
        case st.Running() | st.Draining() | st.Retiring() | Dozing():
            before = (TellDispatch(GenerationDown(state.books.generation, unexpected=False)),)
        case _:
            before = ()
    return wind(setup, state.books, _youngest_first(state), st.Over(askers), now, before=before)


def ended(setup: Setup, state: st.State, end: ActorEnded, now: Now) -> Next[st.State]:
    """An actor has ended: as asked, long ago, or out of turn."""
    role = _role(setup, state, end)
    if role is None or role not in st.crew_of(state):
        return Next(state)  # of an earlier crew, or a child whose exit was told before
    match state:
        case st.Ending():
            left = tuple(other for other in state.left if other is not role)
            if role is not state.left[0]:
                return Next(replace(state, left=left))  # it failed while it waited for its turn
            return wind(setup, state.books, left, state.then, now)
        case _:
            return _fault(setup, state, role, end, now)


def wind(
    setup: Setup,
    books: Books,
    left: tuple[Role, ...],
    then: st.Then,
    now: Now,
    *,
    before: tuple[Effect, ...] = (),
) -> Next[st.State]:
    """Have the first of ``left`` end; when none is left, go where ``then`` says."""
    if left == (Role.SUBSTRATE,) and isinstance(then, Audit):
        books = books.numbered()
        auditing = Auditing(books, then.position, books.last, then.early)
        return Next(auditing, (*before, Pass(books.last, ReadRest())))
    if not left:
        following = _afterwards(books, then)
        return Next(following.state, (*before, *following.effects))
    books = books.numbered()
    wake = WakeAt(Woken(books.last), mono=now.mono + setup.limits.stop_deadline)
    ask = TellChild(Terminate(_farewell(then))) if left[0] is Role.CHILD else Dismiss(left[0])
    return Next(st.Ending(books, left, then, books.last), (*before, ask, wake))


def answer(asker: Asker, result: Result) -> tuple[Effect, ...]:
    """The answer to whoever wants one."""
    match asker:
        case int():
            return (Reply(asker, result),)
        case Told():
            return (Tell(asker.reply_to, Outcome(asker.correlation, result)),)
        case Unheard():
            return ()
        case _:
            assert_never(asker)


def withhold(askers: Iterable[Asker], reason: str) -> tuple[Effect, ...]:
    """Answers to operations that nobody can carry out now; whoever asked tries again later."""
    return tuple(effect for asker in askers for effect in answer(asker, Withheld(reason)))


def forwards(early: Iterable[Early]) -> tuple[Asker, ...]:
    """Who sent what was kept."""
    return tuple(forward.asker for forward in early)


def _afterwards(books: Books, then: st.Then) -> Next[st.State]:
    lost = withhold(books.asked.values(), "the repository was closed before it could answer")
    books = replace(books, asked={})
    match then:
        case Asleep(deadline, (), live, judged):
            return Next(Dormant(replace(books, pressed=False), deadline, live, judged), lost)
        case st.Again() | Audit() | Asleep():
            following = opening(books, then.early)
            return Next(following.state, (*lost, *following.effects))
        case st.Over():
            return Next(st.Stopped(books, then.reason), (*lost, *_answers(then.askers)))
        case st.Lost():
            return Next(st.Down(books, then.reason, then.message), lost)
        case _:
            assert_never(then)


def _fault(setup: Setup, state: st.State, role: Role, end: ActorEnded, now: Now) -> Next[st.State]:
    limits, failure = setup.limits, end.failure or "it ended unasked"
    recent = tuple(at for at in state.books.faults if now.mono - at < limits.actor_window)
    if end.fault not in {"full", TOO_MANY_FILES}:  # what ends by itself is waited for: it is nobody's fault
        recent = (*recent, now.mono)
    by_disk = role is Role.SUBSTRATE and end.fault == "disk"
    disk_faults = state.books.disk_faults + by_disk
    books = replace(state.books, faults=recent, disk_faults=disk_faults)
    early = state.early if isinstance(state, st.Opening | Auditing) else ()
    before: tuple[Effect, ...] = ()
    then: st.Again | st.Lost = st.Again(f"the {role} failed: {failure}", early)
    if by_disk and disk_faults >= _DISK_FAULTS:
        # Once, what is good was saved by copying it; a disk that fails again is an operator's to judge (storage §2).
        then = st.Lost("storage-failed", f"the disk failed again: {failure}; check it, then start the host again")
        before = withhold(forwards(early), then.message)
    elif len(recent) >= limits.actor_failures:
        often = f"{len(recent)} actors failed within {limits.actor_window:g} s, the last one was the {role}: {failure}"
        then = st.Lost("host-fault", f"{often}; see the host's log, then start it again")
        before = withhold(forwards(early), then.message)
    elif role is Role.BROADCASTER:
        return _another_broadcaster(state, books)
    if role is Role.SUBSTRATE:  # what it was asked and hasn't answered is not known to be written
        lost = withhold(books.asked.values(), f"the repository's writer failed: {failure}")
        before, books = (*before, *lost), replace(books, asked={})
    left = tuple(other for other in _youngest_first(state) if other is not role)
    return wind(setup, books, left, then, now, before=before)


def _another_broadcaster(state: st.State, books: Books) -> Next[st.State]:
    books = replace(books, broadcaster=books.broadcaster + 1)
    effects: tuple[Effect, ...] = (
        Hire(Role.BROADCASTER, books.broadcaster),
        Enlist(Role.BROADCASTER),
        AttendAll(),
    )
    if Role.CHILD in st.crew_of(state):
        effects = (*effects, Introduce())
    return Next(replace(state, books=books), effects)


def _role(setup: Setup, state: st.State, end: ActorEnded) -> Role | None:
    """Which of the present crew this was; None for anybody else."""
    deployment, _, name = end.name.rpartition("/")
    role = next((role for role in st.WHOLE if role == name), None)
    books = state.books
    match role:
        case None:
            return None
        case Role.CHILD:
            present: int = books.generation
        case Role.BROADCASTER:
            present = books.broadcaster
        case _:
            present = books.incarnation
    return role if deployment == setup.spec.name and end.incarnation == present else None


def _youngest_first(state: st.State) -> tuple[Role, ...]:
    return tuple(reversed(st.crew_of(state)))


def _farewell(then: st.Then) -> str:
    return "the deployment is stopped" if isinstance(then, st.Over) else "the deployment is being ended after a failure"


def _answers(askers: tuple[int, ...]) -> tuple[Reply, ...]:
    return tuple(Reply(token, None) for token in askers)
