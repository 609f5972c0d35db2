"""Reloading: ``credentials.toml`` anew, what is in use anew, and all of it to whoever has it. Pure."""

from dataclasses import replace
from typing import assert_never

from actors.credentials import AskAgain
from ipc.deliveries import handles_of
from substrate.messages import Done, Outcome, Refused, Withheld
from waypost.acting import Reply
from waypost.host.answers.credentials import Delivered
from waypost.host.credentials.errors import BadCredentials
from waypost.host.credentials.file import Configured
from waypost.host.credentials.messages import Reloaded
from waypost.host.credentials.serving import serve
from waypost.host.credentials.states import (
    Client,
    Delivering,
    Entry,
    Kept,
    Loading,
    Rereading,
    Settled,
    Stale,
    Trial,
    Unread,
)
from waypost.host.credentials.turn import Turn
from waypost.host.credentials.words import shown
from waypost.host.errors import NotNow
from waypost.model.ids import Deployment

SHORT = 5.0
"""Seconds that supervisors have to answer after the readings were late."""


def loaded(turn: Turn, found: Configured | BadCredentials) -> None:
    """The file was read: what it says holds, and what is in use is read anew. Or it can't be used: nothing changes."""
    loading = turn.state.reloading
    if not isinstance(loading, Loading):
        return
    if isinstance(found, BadCredentials):
        turn.set(reloading=Settled())
        turn.effects.append(Reply(loading.token, found))
        return
    known = turn.state.configured.credentials
    wanted = {handle for client in turn.state.clients.values() for handle in handles_of(client.bindings)}
    wanted &= set(found.credentials)
    moved = {handle for handle, credential in found.credentials.items() if known.get(handle) != credential}
    turn.set(
        configured=found,
        # What nobody may have now isn't read now, so that nothing of it is left for who may have it later.
        entries={
            handle: _moved(entry, turn.now.wall) if handle in moved else entry
            for handle, entry in turn.state.entries.items()
            if handle in wanted
        },
        # What was being read may be of the place where it no longer is.
        reading={key: each for key, each in turn.state.reading.items() if isinstance(each, Trial)},
        abandoned={key: handle for key, handle in turn.state.abandoned.items() if handle not in moved},
        queued=tuple(each for each in turn.state.queued if isinstance(each, Trial)),
        refreshes={},
    )
    for handle in sorted(wanted):
        turn.want(handle)
    serve(turn)
    turn.set(reloading=Rereading(loading.token, loading.supervisors, frozenset(wanted)))
    if not wanted:
        deliver(turn)


def deliver(turn: Turn) -> None:
    """Give everybody what holds now; whoever reloads waits for those that they named."""
    rereading = turn.state.reloading
    assert isinstance(rereading, Rereading)
    for text, supervisor in rereading.supervisors.items():
        client = turn.state.clients.get(Deployment(text), Client({}, supervisor))
        turn.client(Deployment(text), replace(client, supervisor=supervisor))
    left: dict[int, str] = {}
    for name, client in turn.state.clients.items():
        if client.dispatch is not None:
            turn.tell(client.dispatch, AskAgain())
        number = turn.supply(name, client)
        if name in rereading.supervisors:
            left[number] = name
    turn.set(reloading=Delivering(rereading.token, left))
    _finish(turn)


def answered(turn: Turn, outcome: Outcome) -> None:
    """A supervisor has delivered, or said why not."""
    delivering = turn.state.reloading
    if not isinstance(delivering, Delivering) or outcome.correlation not in delivering.left:
        return
    name = delivering.left[outcome.correlation]
    left = {key: each for key, each in delivering.left.items() if key != outcome.correlation}
    delivered = (*delivering.delivered, _became(name, outcome))
    turn.set(reloading=replace(delivering, left=left, delivered=delivered))
    _finish(turn)


def _finish(turn: Turn, *, late: bool = False) -> None:
    delivering = turn.state.reloading
    if not isinstance(delivering, Delivering) or (delivering.left and not late):
        return
    why = "it hasn't answered yet"
    unheard = (Delivered(deployment=name, state="refused", why=why) for name in delivering.left.values())
    turn.set(reloading=Settled())
    done = Reloaded(shown(turn.state), (*delivering.delivered, *unheard))
    turn.effects.append(Reply(delivering.token, done))


def too_late(turn: Turn) -> None:
    """Whoever reloads has waited long enough."""
    match turn.state.reloading:
        case Loading(token):
            turn.set(reloading=Settled())
            turn.effects.append(Reply(token, NotNow("credentials.toml couldn't be read in time")))
        case Rereading(token):
            deliver(turn)  # with what there is; the rest follows when it has been read
            turn.patience(token, SHORT)
        case Delivering():
            _finish(turn, late=True)
        case Settled():
            pass
        case _:
            assert_never(turn.state.reloading)


def _moved(entry: Entry, wall: int) -> Entry:
    """Listed at another place than before: until that was read, what there is stays in use, and is said to be old."""
    if isinstance(entry, Kept | Stale):
        return Stale(entry.value, wall, "it is to be read from another place than before, and hasn't been")
    return Unread()


def _became(name: str, outcome: Outcome) -> Delivered:
    match outcome.result:
        case Done(value=now):
            return Delivered(deployment=name, state="delivered" if now else "kept")
        case Refused(why=why) | Withheld(reason=why):
            return Delivered(deployment=name, state="refused", why=why)
        case _:
            assert_never(outcome.result)
