"""Credentials and model sources on their way to a child: delivered, kept for the next one, or refused.

What is delivered holds until it is replaced: each child is given it before dispatch hears that it is ready, so that no
run of it can come first. Where no child may follow, whoever delivers is told so; nothing is lost by that, as the
barrier of the next child asks for what holds then. Pure.
"""

from dataclasses import replace
from typing import Literal, TypeAlias, assert_never

from actors.credentials import Deliver, DeliverCredentials, DeliverSources
from actors.logic.supervisor import states as st
from actors.logic.supervisor.books import Asker, Books, Setup, Told, Unheard
from actors.logic.supervisor.effects import Effect, TellChild, Up
from actors.logic.supervisor.ending import answer
from actors.logic.supervisor.sleep import Auditing, Dormant, Dozing, LettingGo
from actors.logic.supervisor.words import phrase
from actors.messages import Role, Send
from ipc.deliveries import CredentialsUpdated, SourcesUpdated
from substrate.messages import Done, Refused
from waypost.acting import Next

Reach: TypeAlias = Literal["now", "later", "never"]


def delivered(setup: Setup, state: st.State, what: Deliver, token: int | None = None) -> Next[st.State]:
    """Give it to the child that is there, keep it for the next one, or say why there will be none.

    ``token``: of who asked; without one whoever ``what`` names is told.
    """
    told: Asker = Unheard() if what.reply_to is None else Told(what.reply_to, what.correlation)
    asker = told if token is None else token
    reach = _reach(state)
    if reach == "never":
        refused = Refused("no-child", phrase(setup, state), "what holds then is delivered when it has a process again")
        # What was kept may have been taken back by then: nothing of it is for the child that comes after all.
        forgotten = replace(state, books=replace(state.books, credentials=None, sources=None))
        return Next(forgotten, answer(asker, refused))
    after, payload = _kept(state.books, what)
    effects: tuple[Effect, ...] = (TellChild(Send(payload)),) if reach == "now" else ()
    done = Done(0, value=reach == "now")
    return Next(replace(state, books=after), (*effects, *answer(asker, done)))


def provided(following: Next[st.State]) -> Next[st.State]:
    """What follows, with all that was delivered given to a child that has just come up, before anything else is."""
    books = following.state.books
    kept = tuple(TellChild(Send(each)) for each in (books.sources, books.credentials) if each is not None)
    if not kept or not any(isinstance(effect, Up) for effect in following.effects):
        return following
    first = next(n for n, effect in enumerate(following.effects) if isinstance(effect, Up))
    return Next(following.state, (*following.effects[:first], *kept, *following.effects[first:]))


def _kept(books: Books, what: Deliver) -> tuple[Books, CredentialsUpdated | SourcesUpdated]:
    match what:
        case DeliverCredentials(credentials):
            newer = books.credentials is None or credentials.serial > books.credentials.serial
            return (replace(books, credentials=credentials) if newer else books), credentials
        case DeliverSources(sources):
            newer = books.sources is None or sources.serial > books.sources.serial
            return (replace(books, sources=sources) if newer else books), sources
        case _:
            assert_never(what)


def _reach(state: st.State) -> Reach:
    """Whether there is a child that listens, or may be one later by itself, or none without somebody's doing."""
    match state:
        case st.Running() | st.Draining() | st.Retiring() | st.Superseding() | Dozing():
            return "now"
        case st.Shelving():
            return "now" if Role.CHILD in st.crew_of(state) else "later"
        case st.Latching() | st.CrashLooping() | st.Dismissing() | st.Unmanned() | st.Held() | st.Stopped() | st.Down():
            return "never"
        case st.Ending():
            return "never" if isinstance(state.then, st.Over | st.Lost) else "later"
        case (
            st.Idle()
            | st.Opening()
            | st.Raising()
            | st.Starting()
            | st.Evicting()
            | st.Counting()
            | st.BackingOff()
            | st.Preparing()
            | st.Bereft()
            | st.Replacing()
            | st.Succeeding()
            | LettingGo()
            | Auditing()
            | Dormant()
            | st.Resetting()
            | st.Lifting()
        ):
            return "later"
        case _:
            assert_never(state)
