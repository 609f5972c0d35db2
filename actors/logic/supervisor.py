"""The lifecycle of a deployment: open the repository, bring up a child, bring it up again, end in order.

Never two children at once, and none before its generation is durable. Everybody outside talks to the repository
through here, so mail is accepted in every state from which it can go on, kept in order while the repository is
opening, and withheld with the reason where nothing runs. Its child is ``supervisor_child``, how a crew ends is
``supervisor_ending``. Pure.
"""

from dataclasses import replace
from typing import assert_never

from actors.errors import ActorsError
from actors.logic.supervisor_child import (
    Internal,
    counting,
    latching,
    leaving,
    raise_child,
    raising,
    running,
    settled,
    starting,
)
from actors.logic.supervisor_crashes import NONE
from actors.logic.supervisor_effects import (
    Announce,
    Attend,
    AttendAll,
    Effect,
    Enlist,
    EnlistOutsiders,
    Hire,
    OpenRepository,
    Pass,
)
from actors.logic.supervisor_ending import ended, forwards, opening, stop, wind, withhold
from actors.logic.supervisor_states import (
    HELD,
    UNSUPERVISED,
    Again,
    Asker,
    BackingOff,
    Books,
    Counting,
    CrashLooping,
    Dismissing,
    Down,
    Early,
    Ending,
    Evicting,
    Held,
    Idle,
    Latching,
    Lifting,
    Lost,
    Opening,
    Raising,
    Resetting,
    Running,
    Setup,
    Starting,
    State,
    Stopped,
    Told,
    Unheard,
    Unmanned,
)
from actors.logic.supervisor_words import describe
from actors.messages import (
    ChannelViolated,
    ChildExited,
    ChildReady,
    Describe,
    ExitCounted,
    Forward,
    Role,
    Start,
    Stop,
    SupervisorMessage,
    WakeAt,
    WatchRun,
    Woken,
)
from substrate.messages import (
    Done,
    Outcome,
    Refused,
    ResetDeployment,
    ResumeDeployment,
    Snapshot,
    Withheld,
)
from waypost.acting import ActorEnded, Asked, Next, Reply, Tell
from waypost.model.times import Now

EARLY = 256
"""Forwards that are kept while the repository is opening; what comes after them is withheld."""

_DOWN = {"disk": "storage-failed", "full": "storage-failed", "foreign": "damaged"}
"""The substrate's codes for a refused opening that have another name here."""


def advance(setup: Setup, state: State, message: SupervisorMessage, now: Now) -> Next[State]:
    """Decide what a message leads to; whenever the state's description has changed, the host's sink is told."""
    following = _decide(setup, settled(setup, state, now), message, now)
    description = describe(setup, following.state)
    if description == describe(setup, state):
        return following
    return Next(following.state, (*following.effects, Announce(description)))


def _decide(  # noqa: PLR0911 - one return per kind of message
    setup: Setup, state: State, message: SupervisorMessage, now: Now
) -> Next[State]:
    match message:
        case Asked():
            return _asked(setup, state, message, now)
        case Forward():
            asker: Asker = Unheard() if message.reply_to is None else Told(message.reply_to, message.correlation)
            return _forward(state, Early(asker, message.what))
        case Stop():
            return stop(setup, state, (), now)
        case WatchRun():
            return Next(state, (Attend(message),))
        case ActorEnded():
            return ended(setup, state, message, now)
        case Outcome() if message.correlation in state.books.asked:
            return _answered(setup, state, message, now)
        case Start() | ChildReady() | ChildExited() | ChannelViolated() | ExitCounted() | Woken() | Outcome():
            return _by_state(setup, state, message, now)
        case _:
            assert_never(message)


def _by_state(  # noqa: C901, PLR0911 - one case per state
    setup: Setup, state: State, message: Internal, now: Now
) -> Next[State]:
    match state:
        case Idle():
            return opening(state.books, state.early) if isinstance(message, Start) else Next(state)
        case Opening():
            return _opening(setup, state, message, now)
        case Raising():
            return raising(setup, state, message, now)
        case Starting():
            return starting(setup, state, message, now)
        case Running():
            return running(setup, state, message, now)
        case Evicting() | Dismissing():
            return leaving(setup, state, message, now)
        case Counting():
            return counting(setup, state, message, now)
        case BackingOff():
            return raise_child(state.books) if message == Woken(state.wake) else Next(state)
        case Latching():
            return latching(setup, state, message, now)
        case Ending():
            return _ending(setup, state, message, now)
        case CrashLooping() | Resetting() | Unmanned() | Held() | Lifting() | Stopped() | Down():
            return Next(state)  # late news
        case _:
            assert_never(state)


# --- up ------------------------------------------------------------------------------------------------------------


def _opening(setup: Setup, state: Opening, message: Internal, now: Now) -> Next[State]:
    match message:
        case Outcome(state.opened, Done(value=Snapshot() as snapshot)):
            return _opened(state, snapshot)
        case Outcome(state.opened, Refused("full", why)) if state.books.incarnation > 1:
            return _no_space(setup, state, why, now)
        case Woken(state.opened):
            return Next(state, (OpenRepository(state.opened),))
        case Outcome(state.opened, Refused(code, why, hint)):
            lost = Lost(_DOWN.get(code, code), f"{why}; {hint}" if hint else why)
        case Outcome(state.opened, Withheld(reason)):
            lost = Lost("storage-failed", f"{reason}; free or repair the disk, then start the host again")
        case _:
            return Next(state)
    withheld = withhold(forwards(state.early), f"{lost.reason}: {lost.message}")
    return wind(setup, state.books, (Role.SUBSTRATE,), lost, now, before=withheld)


def _no_space(setup: Setup, state: Opening, why: str, now: Now) -> Next[State]:
    """A repository that was open before opens again by itself once there is space (storage §2, disk full)."""
    books = replace(state.books, last=state.books.last + 1)
    withheld = withhold(forwards(state.early), why)
    wake = WakeAt(Woken(books.last), mono=now.mono + setup.limits.backoff_first)
    return Next(Opening(books, books.last, reason=why), (*withheld, wake))


def _opened(state: Opening, snapshot: Snapshot) -> Next[State]:
    books = replace(state.books, broadcaster=state.books.broadcaster + 1, generation=snapshot.generation)
    rest = tuple(role for role in (HELD if snapshot.held else UNSUPERVISED) if role is not Role.SUBSTRATE)
    hired = (Hire(role, books.broadcaster if role is Role.BROADCASTER else books.incarnation) for role in rest)
    # Whom the host named delivers what is in the outbox: of a held deployment they hear nothing.
    outsiders = () if snapshot.held else (EnlistOutsiders(),)
    effects: list[Effect] = [*hired, *(Enlist(role) for role in rest), *outsiders, AttendAll()]
    lifted = reset = None
    for early in state.early:
        books = replace(books, last=books.last + 1, asked={**books.asked, books.last + 1: early.asker})
        effects.append(Pass(books.last, early.what))
        lifted = books.last if isinstance(early.what, ResumeDeployment) else lifted
        reset = books.last if isinstance(early.what, ResetDeployment) else reset
    if snapshot.held:
        held = Held(books, snapshot.held) if lifted is None else Lifting(books, snapshot.held, lifted)
        return Next(held, tuple(effects))
    if snapshot.latch is not None:
        latch = snapshot.latch
        latched = CrashLooping(books, latch) if reset is None else Resetting(books, latch, reset)
        return Next(latched, tuple(effects))
    following = raise_child(books)
    return Next(following.state, (*effects, *following.effects))


def _ending(setup: Setup, state: Ending, message: Internal, now: Now) -> Next[State]:
    if message != Woken(state.deadline):
        return Next(state)
    head, *left = state.left
    match state.then:
        case Again():
            # What hasn't ended may still write, or be a child that runs: nothing new may be started beside it.
            why = f"{head} failed to end within {setup.limits.stop_deadline:g} s; start the host again"
            then, withheld = Lost("host-fault", why), withhold(forwards(state.then.early), why)
            return wind(setup, state.books, tuple(left), then, now, before=withheld)
        case then:
            return wind(setup, state.books, tuple(left), then, now)


# --- questions -----------------------------------------------------------------------------------------------------


def _asked(setup: Setup, state: State, asked: Asked, now: Now) -> Next[State]:
    match asked.body:
        case Describe():
            return Next(state, (Reply(asked.token, describe(setup, state)),))
        case Forward(what):
            return _forward(state, Early(asked.token, what))
        case Stop():
            return stop(setup, state, (asked.token,), now)
        case other:
            error = ActorsError(
                f"a supervisor can't be asked {type(other).__name__}", hint="ask Describe, Forward or Stop"
            )
            return Next(state, (Reply(asked.token, error),))


def _forward(state: State, forward: Early) -> Next[State]:  # noqa: PLR0911 - one return per kind of state
    match state:
        case Idle() | Opening():
            if len(state.early) >= EARLY:
                return Next(state, withhold((forward.asker,), "the repository is still opening; try again"))
            return Next(replace(state, early=(*state.early, forward)))
        case Ending(then=Again() as again):
            if len(again.early) >= EARLY:
                return Next(state, withhold((forward.asker,), "the repository is being opened anew; try again"))
            return Next(replace(state, then=replace(again, early=(*again.early, forward))))
        case Ending() | Stopped() | Down():
            return Next(state, withhold((forward.asker,), _why_not(state)))
        case Held(why=why) if isinstance(forward.what, ResumeDeployment):
            books = _asked_by(state.books, forward.asker)
            return Next(Lifting(books, why, books.last), (Pass(books.last, forward.what),))
        case CrashLooping(latch=latch) if isinstance(forward.what, ResetDeployment):
            books = _asked_by(state.books, forward.asker)
            return Next(Resetting(books, latch, books.last), (Pass(books.last, forward.what),))
        case Latching() if isinstance(forward.what, ResetDeployment):
            return Next(state, withhold((forward.asker,), "it is being latched at this very moment; try again"))
        case (
            Raising()
            | Starting()
            | Running()
            | Evicting()
            | Dismissing()
            | Counting()
            | BackingOff()
            | Latching()
            | CrashLooping()
            | Resetting()
            | Unmanned()
            | Held()
            | Lifting()
        ):
            books = _asked_by(state.books, forward.asker)
            return Next(replace(state, books=books), (Pass(books.last, forward.what),))
        case _:
            assert_never(state)


def _asked_by(books: Books, asker: Asker) -> Books:
    return replace(books, last=books.last + 1, asked={**books.asked, books.last + 1: asker})


def _why_not(state: Ending | Stopped | Down) -> str:
    match state:
        case Ending(then=Lost(reason, message)) | Down(reason=reason, message=message):
            return f"the deployment is down ({reason}): {message}"
        case _:
            return "the deployment is stopped"


def _answered(setup: Setup, state: State, outcome: Outcome, now: Now) -> Next[State]:
    asker = state.books.asked[outcome.correlation]
    asked = {key: other for key, other in state.books.asked.items() if key != outcome.correlation}
    after = replace(state, books=replace(state.books, asked=asked))
    answer: tuple[Effect, ...] = ()
    match asker:
        case int():
            answer = (Reply(asker, outcome.result),)
        case Told():
            answer = (Tell(asker.reply_to, Outcome(asker.correlation, outcome.result)),)
        case Unheard():
            pass
        case _:
            assert_never(asker)
    if isinstance(after, Lifting) and after.lifted == outcome.correlation:
        if isinstance(outcome.result, Done):
            # Everything is built anew, from a log that now says that nothing is held.
            return wind(setup, after.books, tuple(reversed(HELD)), Again("an operator resumed it"), now, before=answer)
        return Next(Held(after.books, after.why), answer)
    if isinstance(after, Resetting) and after.reset == outcome.correlation:
        if isinstance(outcome.result, Done):
            following = raise_child(replace(after.books, crashes=NONE))
            return Next(following.state, (*answer, *following.effects))
        return Next(CrashLooping(after.books, after.latch), answer)
    return Next(after, answer)
