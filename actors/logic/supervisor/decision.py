"""The lifecycle of a deployment: open the repository, bring up a child, bring it up again, end in order.

Never two children at once, and none before its generation is durable. Everybody outside talks to the repository
through here, so mail is accepted in every state from which it can go on, kept in order while the repository is
opening, and withheld with the reason where nothing runs (``supervisor_forwards``). Its child is ``supervisor_child``,
what is wanted of one that runs is ``supervisor_planned``, how a crew ends is ``supervisor_ending``. Pure.
"""

from dataclasses import replace
from typing import assert_never

from actors.credentials import Barred, DeliverCredentials, DeliverSources
from actors.describing import Changed
from actors.draining import (
    ChildWeighed,
    Depart,
    GiveWay,
    GoAhead,
    Recycle,
    RecycleRequested,
    Rested,
    StillExecuting,
    TookUp,
)
from actors.errors import ActorsError
from actors.logic.supervisor import states as st
from actors.logic.supervisor.books import Asker, Early, Setup, Told, Unheard
from actors.logic.supervisor.child import (
    backing_off,
    counting,
    latching,
    leaving,
    preparing,
    raise_child,
    raising,
    settled,
    starting,
)
from actors.logic.supervisor.delivering import delivered, provided
from actors.logic.supervisor.dozing import auditing, dozing, drowsy, gives_way, letting_go
from actors.logic.supervisor.draining import answerable, bereaved, leave, shelve
from actors.logic.supervisor.effects import (
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
from actors.logic.supervisor.ending import ended, forwards, opening, wind, withhold
from actors.logic.supervisor.forwards import answered, forwarded
from actors.logic.supervisor.heeding import heeded
from actors.logic.supervisor.line import lined_up, told, took_up
from actors.logic.supervisor.planned import News, manned, planned, wanted
from actors.logic.supervisor.recycling import policed
from actors.logic.supervisor.sleep import Asleep, Audit, Auditing, Dormant, Dozing, LettingGo
from actors.logic.supervisor.words import alike, describe
from actors.messages import Describe, Forward, Role, Start, Stop, SupervisorMessage, WatchRun, Woken
from substrate.effects import SpaceShort
from substrate.messages import Done, Outcome, Refused, ResetDeployment, ResumeDeployment, Snapshot, Withheld
from waypost.acting import ActorEnded, Asked, Halt, Next, Reply, WakeAt
from waypost.model.times import Now

WATCHING = 64
"""Who wait for the next change; whoever comes after them is answered at once."""
_DOWN = {"disk": "storage-failed", "full": "storage-failed", "foreign": "damaged"}
"""The substrate's codes for a refused opening that have another name here."""


def advance(setup: Setup, state: st.State, message: SupervisorMessage, now: Now) -> Next[st.State]:
    """Decide what a message leads to; whenever the state's description has changed, the host's sink is told."""
    present = settled(setup, state, now)
    decided = heeded(setup, answerable(setup, present, _decide(setup, present, message, now), now), now)
    decided = lined_up(decided)
    following = _timed(state, drowsy(setup, provided(decided), now), now)
    if alike(state, following.state):
        return following
    description = describe(setup, following.state)
    if description == describe(setup, state):
        return following
    watching = following.state.books.watching
    told = (*(Reply(token, description) for token in watching), Announce(description))
    after = following.state if not watching else _with(following.state, watching=())
    return Next(after, (*following.effects, *told))


def _decide(  # noqa: C901, PLR0911, PLR0912 - one return per kind of message
    setup: Setup, state: st.State, message: SupervisorMessage, now: Now
) -> Next[st.State]:
    match message:
        case Asked():
            return _asked(setup, state, message, now)
        case Forward():
            asker: Asker = Unheard() if message.reply_to is None else Told(message.reply_to, message.correlation)
            return forwarded(state, Early(asker, message.what))
        case Stop():
            return leave(setup, state, (), message.patience, now)
        case WatchRun():
            return Next(state, (Attend(message),))
        case DeliverCredentials() | DeliverSources():
            return delivered(setup, state, message)
        case GiveWay():
            return gives_way(setup, state)
        case GoAhead():
            return told(state)
        case TookUp(generation):
            return took_up(state, generation)
        case Depart():
            return Next(state, (Halt(),) if isinstance(state, Dormant) else ())
        case ActorEnded():
            return ended(setup, state, message, now)
        case Outcome() if message.correlation in state.books.asked:
            return answered(setup, state, message, now)
        case SpaceShort(why, incarnation):
            current = incarnation == state.books.incarnation
            return Next(replace(state, books=replace(state.books, scarce=why))) if current else Next(state)
        case Barred():
            news = message if message.why else None
            current = message.generation == state.books.generation
            return Next(replace(state, books=replace(state.books, barred=news))) if current else Next(state)
        case _ if isinstance(message, News):
            return _by_state(setup, state, message, now)
        case _:
            assert_never(message)


def _timed(before: st.State, following: Next[st.State], now: Now) -> Next[st.State]:
    """The same, with when it came into the state that it is in; a pause is one, also with the next child on the way."""
    state = following.state
    if type(state) is type(before) or (isinstance(before, st.BackingOff) and isinstance(state, st.Preparing)):
        return following
    return Next(replace(state, books=replace(state.books, entered=now.wall)), following.effects)


def _with(state: st.State, *, watching: tuple[int, ...]) -> st.State:
    return replace(state, books=replace(state.books, watching=watching))


def _by_state(  # noqa: C901, PLR0911, PLR0912 - one case per state
    setup: Setup, state: st.State, message: News, now: Now
) -> Next[st.State]:
    match state:
        case st.Running():
            return manned(setup, state, message, now)
        case st.Succeeding():
            return policed(setup, planned(setup, state, message, now), now)
        case st.Draining() | st.Retiring() | st.Shelving() | st.Superseding() | st.Bereft() | st.Replacing():
            return planned(setup, state, message, now)
        case Dozing():
            return policed(setup, dozing(setup, state, message, now), now)
        case _ if isinstance(message, StillExecuting | RecycleRequested | ChildWeighed | Rested):
            return Next(state)  # late news
        case st.Idle():
            if not isinstance(message, Start):
                return Next(state)
            # It may have been its turn before it was there.
            line = state.books.line or message.line
            return opening(replace(state.books, line=line, again=message.again), state.early)
        case st.Opening():
            return _opening(setup, state, message, now)
        case st.Raising():
            return raising(setup, state, message, now)
        case st.Starting():
            return policed(setup, starting(setup, state, message, now), now)
        case st.Evicting(goal=goal) | st.Counting(goal=goal) if goal is not None:
            return bereaved(setup, state, goal, message, now)
        case st.Evicting() | st.Dismissing():
            return leaving(setup, state, message, now)
        case st.Counting():
            return counting(setup, state, message, now)
        case st.BackingOff():
            return backing_off(setup, state, message, now)
        case st.Preparing():
            return policed(setup, preparing(setup, state, message, now), now)
        case st.Latching():
            return latching(setup, state, message, now)
        case LettingGo():
            return letting_go(setup, state, message, now)
        case Auditing():
            return auditing(setup, state, message, now)
        case st.Ending():
            return _ending(setup, state, message, now)
        case (
            st.CrashLooping()
            | st.Resetting()
            | st.Unmanned()
            | st.Held()
            | st.Lifting()
            | Dormant()
            | st.Stopped()
            | st.Down()
        ):
            return Next(state)  # late news
        case _:
            assert_never(state)


# --- up ------------------------------------------------------------------------------------------------------------


def _opening(setup: Setup, state: st.Opening, message: News, now: Now) -> Next[st.State]:
    match message:
        case Outcome(state.opened, Done(value=Snapshot() as snapshot)):
            return _opened(state, snapshot)
        case Outcome(state.opened, Refused("full", why)) if state.books.again or state.books.incarnation > 1:
            return _short(setup, state, why, "full", now)
        case Outcome(state.opened, Refused("too-many-files", why)):
            return _short(setup, state, why, "too-many-files", now)
        case Woken(state.opened):
            return Next(state, (OpenRepository(state.opened),))
        case Outcome(state.opened, Refused(code, why, hint)):
            lost = st.Lost(_DOWN.get(code, code), f"{why}; {hint}" if hint else why)
        case Outcome(state.opened, Withheld(reason)):
            lost = st.Lost("storage-failed", f"{reason}; free or repair the disk, then start the host again")
        case _:
            return Next(state)
    withheld = withhold(forwards(state.early), f"{lost.reason}: {lost.message}")
    return wind(setup, state.books, (Role.SUBSTRATE,), lost, now, before=withheld)


def _short(setup: Setup, state: st.Opening, why: str, lacks: st.Lack, now: Now) -> Next[st.State]:
    """It opens by itself once there is what it lacks: space (storage §2) as well, where it was open before."""
    books = state.books.numbered()
    withheld = withhold(forwards(state.early), why)
    wake = WakeAt(Woken(books.last), mono=now.mono + setup.limits.backoff_first)
    return Next(st.Opening(books, books.last, reason=why, lacks=lacks), (*withheld, wake))


def _opened(state: st.Opening, snapshot: Snapshot) -> Next[st.State]:
    books = replace(state.books, broadcaster=state.books.broadcaster + 1, generation=snapshot.generation)
    books = replace(books, drain=snapshot.drain)
    rests = snapshot.latch is None and snapshot.drain is not None and snapshot.drain.to == "rest"
    crew = st.HELD if snapshot.held or rests else st.UNSUPERVISED
    rest = tuple(role for role in crew if role is not Role.SUBSTRATE)
    hired = (Hire(role, books.broadcaster if role is Role.BROADCASTER else books.incarnation) for role in rest)
    # Whom the host named delivers what is in the outbox: of a held deployment they hear nothing.
    outsiders = () if crew == st.HELD else (EnlistOutsiders(),)
    effects: list[Effect] = [*hired, *(Enlist(role) for role in rest), *outsiders, AttendAll()]
    lifted = reset = None
    for early in state.early:
        books = books.asked_by(early.asker)
        effects.append(Pass(books.last, early.what))
        lifted = books.last if isinstance(early.what, ResumeDeployment) else lifted
        reset = books.last if isinstance(early.what, ResetDeployment) else reset
    if snapshot.held:
        books = replace(books, held=snapshot.held_at)
        held = st.Held(books, snapshot.held) if lifted is None else st.Lifting(books, snapshot.held, lifted)
        return Next(held, tuple(effects))
    if snapshot.latch is not None:
        latch = snapshot.latch
        latched = st.CrashLooping(books, latch) if reset is None else st.Resetting(books, latch, reset)
        return Next(latched, tuple(effects))
    following = shelve(books, st.HELD) if rests else raise_child(books)
    return Next(following.state, (*effects, *following.effects))


def _ending(setup: Setup, state: st.Ending, message: News, now: Now) -> Next[st.State]:
    if message != Woken(state.deadline):
        return Next(state)
    head, *left = state.left
    match state.then:
        case st.Again() | Audit() | Asleep():
            # What hasn't ended may still write, or be a child that runs: nothing new may be started beside it.
            why = f"{head} failed to end within {setup.limits.stop_deadline:g} s; start the host again"
            then, withheld = st.Lost("host-fault", why), withhold(forwards(state.then.early), why)
            return wind(setup, state.books, tuple(left), then, now, before=withheld)
        case then:
            return wind(setup, state.books, tuple(left), then, now)


# --- questions -----------------------------------------------------------------------------------------------------


def _asked(  # noqa: PLR0911 - one return per question
    setup: Setup, state: st.State, asked: Asked, now: Now
) -> Next[st.State]:
    match asked.body:
        case Describe():
            return Next(state, (Reply(asked.token, describe(setup, state)),))
        case Changed(known):
            description, watching = describe(setup, state), state.books.watching
            if description != known or len(watching) >= WATCHING:
                return Next(state, (Reply(asked.token, description),))
            return Next(_with(state, watching=(*watching, asked.token)))
        case Forward(what):
            return forwarded(state, Early(asked.token, what))
        case Recycle():
            return wanted(setup, state, asked.body, asked.token, now)
        case Stop(patience):
            return leave(setup, state, (asked.token,), patience, now)
        case DeliverCredentials() | DeliverSources():
            return delivered(setup, state, asked.body, asked.token)
        case other:
            error = ActorsError(
                f"a supervisor can't be asked {type(other).__name__}",
                hint="ask Describe, Changed, Forward, Recycle, Stop, DeliverCredentials or DeliverSources",
            )
            return Next(state, (Reply(asked.token, error),))
