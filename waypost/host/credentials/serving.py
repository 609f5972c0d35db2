"""Who asks for credentials is answered, once nothing of what they want is being read any more. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from actors.credentials import AssembleCredentials, Assembled, NotAssembled
from ipc.deliveries import DELIVERY, handles_of
from waypost.host.credentials.states import Client, Kept, Missing, Stale, Unread
from waypost.host.credentials.turn import Turn, size_of
from waypost.model.ids import Deployment


def assemble(turn: Turn, wanted: AssembleCredentials) -> None:
    """A deployment asks, and from now on is told what changes."""
    before = turn.state.clients.get(wanted.deployment)
    client = Client(wanted.bindings, wanted.supervisor) if before is None else before
    supervisor = wanted.supervisor or client.supervisor
    client = replace(client, bindings=wanted.bindings, supervisor=supervisor, dispatch=wanted.reply_to)
    turn.client(wanted.deployment, client)
    if before is not None and before.credentials is not None and before.bindings != wanted.bindings:
        # At once, whatever else is still to be read: what was taken back isn't given to the next child either.
        turn.supply(wanted.deployment, client)
    turn.set(waiting=(*turn.state.waiting, wanted))
    for handle in handles_of(wanted.bindings):
        if isinstance(turn.entry(handle), Unread | Missing):
            turn.want(handle)
    serve(turn)


def forget(turn: Turn, name: Deployment) -> None:
    """A deployment has gone, and with it whoever asked for it."""
    turn.set(
        clients={each: client for each, client in turn.state.clients.items() if each != name},
        waiting=tuple(wanted for wanted in turn.state.waiting if wanted.deployment != name),
    )


def serve(turn: Turn) -> None:
    """Answer whoever waits for nothing any more."""
    left: list[AssembleCredentials] = []
    for wanted in turn.state.waiting:
        handles = handles_of(wanted.bindings)
        never = next(filter(None, (turn.never(wanted.deployment, handle) for handle in handles)), "")
        if not never and any(map(turn.awaited, handles)):
            left.append(wanted)
            continue
        turn.tell(wanted.reply_to, _outcome(turn, wanted, handles, never))
    turn.set(waiting=tuple(left))


def _outcome(turn: Turn, wanted: AssembleCredentials, handles: Iterable[str], never: str) -> Assembled | NotAssembled:
    if never:
        return NotAssembled(wanted.correlation, passing=False, why=never)
    for handle in handles:
        entry = turn.entry(handle)
        if not isinstance(entry, Kept | Stale):
            why = entry.why if isinstance(entry, Missing) else "it wasn't read"
            return NotAssembled(wanted.correlation, passing=True, why=f"the secret {handle} can't be had: {why}")
    size = size_of(turn.values(wanted.deployment, wanted.bindings))
    if size > DELIVERY:
        why = f"its secrets have {size:,} bytes together, {DELIVERY:,} are delivered at most"
        return NotAssembled(wanted.correlation, passing=False, why=why)
    credentials, sources = turn.delivery(wanted.deployment, wanted.bindings)
    return Assembled(wanted.correlation, credentials, sources)
