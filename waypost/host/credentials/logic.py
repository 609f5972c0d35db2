"""The keeper of credentials: reads what somebody may have and wants, keeps it in memory, and hands it to who wants it.

A value is read when it is wanted first and then kept, until its time (``refresh``) or a reload; one that can't be read
again stays in use as it was. What changes goes at once to every deployment that was given the old value, by its
supervisor. Readings are done by threads, at most ``AT_ONCE``, so nobody waits for a command but who wants what it says.

Promise: a deployment is given what its steps were granted and `credentials.toml` lets it have, and nothing else; who
asks is answered, with the values or with the handle that isn't to be had and why. Pure.
"""

from dataclasses import replace
from typing import assert_never

from actors.credentials import AssembleCredentials
from actors.messages import Woken
from ipc.deliveries import handles_of
from substrate.messages import Outcome
from waypost.acting import Asked, Next, Reply, WakeAt
from waypost.host.credentials.file import Credential
from waypost.host.credentials.messages import (
    FileRead,
    Forget,
    KeeperMessage,
    ListCredentials,
    LoadFile,
    Read,
    Reload,
    TryCredentials,
    Warn,
    WasRead,
)
from waypost.host.credentials.providers import Failed, Had, Reading
from waypost.host.credentials.reloading import answered, deliver, loaded, too_late
from waypost.host.credentials.serving import assemble, forget, serve
from waypost.host.credentials.states import (
    Earnest,
    Entry,
    Keeper,
    Kept,
    Loading,
    Missing,
    Purpose,
    Rereading,
    Settled,
    Stale,
    Trial,
    Trying,
)
from waypost.host.credentials.turn import Turn
from waypost.host.credentials.words import everything, tried
from waypost.host.errors import NotNow
from waypost.model.times import Now

AT_ONCE = 8
"""Readings under way."""
LONGEST = 30.0
"""Seconds until a reading is given up: a command has ended long before that, a disk may never answer."""
PATIENCE = 20.0
"""Seconds until who tries or reloads is answered with what there is."""


def advance(state: Keeper, message: KeeperMessage, now: Now) -> Next[Keeper]:
    """Decide what a message leads to."""
    turn = Turn(state, now)
    match message:
        case AssembleCredentials():
            assemble(turn, message)
        case Forget():
            forget(turn, message.deployment)
        case WasRead():
            _read(turn, message)
        case FileRead():
            loaded(turn, message.found)
        case Woken():
            _woken(turn, message.token)
        case Outcome():
            answered(turn, message)
        case Asked():
            _asked(turn, message)
        case _:
            assert_never(message)
    _begin(turn)
    return Next(turn.state, tuple(turn.effects))


def _begin(turn: Turn) -> None:
    """As many readings as there is room for."""
    while turn.state.queued and len(turn.state.reading) < AT_ONCE:
        purpose, *rest = turn.state.queued
        turn.set(queued=tuple(rest))
        credential = turn.state.configured.credentials.get(purpose.handle)
        if purpose.handle in turn.state.abandoned.values():
            _ended(turn, purpose, Failed("an earlier try to read it still hangs"))
        elif credential is not None:
            number = turn.number()
            turn.set(reading={**turn.state.reading, number: purpose})
            turn.effects += [Read(number, credential), WakeAt(Woken(number), mono=turn.now.mono + LONGEST)]


# --- readings -----------------------------------------------------------------------------------------------------


def _read(turn: Turn, message: WasRead) -> None:
    purpose = turn.state.reading.get(message.correlation)
    if purpose is None:  # of what was listed before a reload, or much too late
        left = {key: handle for key, handle in turn.state.abandoned.items() if key != message.correlation}
        turn.set(abandoned=left)
        return
    turn.set(reading={key: each for key, each in turn.state.reading.items() if key != message.correlation})
    _ended(turn, purpose, message.reading)


def _again(turn: Turn, handle: str) -> None:
    """Its time has come: it is read anew for who has it; of what nobody has nothing is kept, and no command runs."""
    if any(handle in handles_of(client.bindings) for client in turn.state.clients.values()):
        turn.want(handle)
    else:
        turn.set(entries={name: entry for name, entry in turn.state.entries.items() if name != handle})


def _abandon(turn: Turn, number: int) -> None:
    """A disk that hangs: its thread can't be ended, and whoever waits must be answered."""
    purpose = turn.state.reading[number]
    turn.set(abandoned={**turn.state.abandoned, number: purpose.handle})
    turn.set(reading={key: each for key, each in turn.state.reading.items() if key != number})
    _ended(turn, purpose, Failed(f"nothing came within {LONGEST:g} s"))


def _ended(turn: Turn, purpose: Purpose, reading: Reading) -> None:
    match purpose:
        case Trial(handle, token):
            _tried(turn, handle, token, reading)
        case Earnest(handle):
            _keep(turn, handle, reading)
        case _:
            assert_never(purpose)


def _keep(turn: Turn, handle: str, reading: Reading) -> None:
    before = turn.entry(handle)
    after = _following(before, reading, turn.now.wall)
    if isinstance(after, Missing | Stale) and type(after) is not type(before):
        turn.effects.append(Warn(f"the secret {handle} can't be read: {after.why}"))
    if isinstance(after, Kept) and after.warning and not isinstance(before, Kept):
        turn.effects.append(Warn(f"the secret {handle}: {after.warning}"))
    turn.set(entries={**turn.state.entries, handle: after})
    credential = turn.state.configured.credentials[handle]
    if credential.refresh is not None:
        _refresh(turn, credential, credential.refresh)
    serve(turn)
    match turn.state.reloading:
        case Rereading(left=left) as rereading if handle in left:
            turn.set(reloading=replace(rereading, left=left - {handle}))
            if left == {handle}:
                deliver(turn)
        case _:
            _rotate(turn, handle)


def _refresh(turn: Turn, credential: Credential, seconds: float) -> None:
    others = {token: name for token, name in turn.state.refreshes.items() if name != credential.handle}
    token = turn.number()
    turn.set(refreshes={**others, token: credential.handle})
    turn.effects.append(WakeAt(Woken(token), mono=turn.now.mono + seconds))


def _rotate(turn: Turn, handle: str) -> None:
    """Everybody who was given another value before is given this one, at once."""
    entry = turn.entry(handle)
    value = bytes(entry.value.reveal()) if isinstance(entry, Kept | Stale) else None
    for name, client in turn.state.clients.items():
        given = None if client.credentials is None else client.credentials.materials.get(handle)
        if given is not None and value is not None and given != value:
            turn.supply(name, client)


def _following(before: Entry, reading: Reading, wall: int) -> Entry:
    match reading:
        case Had(value, warning):
            since = before.since if isinstance(before, Kept) and before.value == value else wall
            return Kept(value, since, warning)
        case Failed(why):
            if isinstance(before, Kept | Stale):
                return Stale(before.value, before.since if isinstance(before, Stale) else wall, why)
            return Missing(before.since if isinstance(before, Missing) else wall, why)
        case _:
            assert_never(reading)


# --- questions ----------------------------------------------------------------------------------------------------


def _asked(turn: Turn, asked: Asked) -> None:
    match asked.body:
        case ListCredentials():
            turn.effects.append(Reply(asked.token, everything(turn.state)))
        case TryCredentials():
            _try(turn, asked.token)
        case Reload() if not isinstance(turn.state.reloading, Settled):
            turn.effects.append(Reply(asked.token, NotNow("credentials are being reloaded at this moment")))
        case Reload(supervisors):
            turn.set(reloading=Loading(asked.token, supervisors))
            turn.effects.append(LoadFile())
            turn.patience(asked.token, PATIENCE)
        case other:
            raise TypeError(f"a keeper can't be asked {type(other).__name__}")


def _try(turn: Turn, token: int) -> None:
    handles = tuple(turn.state.configured.credentials)
    if not handles:
        turn.effects.append(Reply(token, everything(turn.state)))
        return
    turn.set(
        trying=(*turn.state.trying, Trying(token, frozenset(handles))),
        queued=(*turn.state.queued, *(Trial(handle, token) for handle in handles)),
    )
    turn.patience(token, PATIENCE)


def _tried(turn: Turn, handle: str, token: int, reading: Reading) -> None:
    trying = next((each for each in turn.state.trying if each.token == token), None)
    if trying is None:
        return
    others = tuple(each for each in turn.state.trying if each is not trying)
    found = {**trying.found, handle: reading if isinstance(reading, Failed) else reading.warning}
    trying = replace(trying, left=trying.left - {handle}, found=found)
    if trying.left:
        turn.set(trying=(*others, trying))
    else:
        turn.set(trying=others)
        turn.effects.append(Reply(token, tried(turn.state, trying, turn.now.wall)))


def _woken(turn: Turn, token: int) -> None:
    if token in turn.state.reading:
        _abandon(turn, token)
        return
    handle = turn.state.refreshes.get(token)
    if handle is not None:
        _again(turn, handle)
        return
    asker = turn.state.deadlines.get(token)
    if asker is None:
        return
    turn.set(deadlines={key: each for key, each in turn.state.deadlines.items() if key != token})
    trying = next((each for each in turn.state.trying if each.token == asker), None)
    if trying is not None:
        # What waits for room isn't tried any more; what is being read ends by itself.
        turn.set(
            trying=tuple(each for each in turn.state.trying if each is not trying),
            queued=tuple(e for e in turn.state.queued if not (isinstance(e, Trial) and e.token == asker)),
        )
        turn.effects.append(Reply(asker, tried(turn.state, trying, turn.now.wall)))
    elif not isinstance(turn.state.reloading, Settled) and turn.state.reloading.token == asker:
        too_late(turn)
