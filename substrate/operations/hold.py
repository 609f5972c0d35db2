"""Mail on hold: kept for an operator to look at; it starts nothing and is never lost (storage §5).

Two kinds come here. ``id-clash``: a mail under a Message-ID that another one has; it is filed under an id of its own,
so that it may be let in beside the other. ``poison``: a mail whose claims ended three times with the child. An operator
lets it in, or rejects it.
"""

import msgspec
from msgspec import UNSET

from substrate import layout
from substrate.messages import Accepted, Consumed, Held, Queued, Refused, RejectHeld, ReleaseHeld
from substrate.operations.buckets import files_after, rejecting, state_file
from substrate.operations.change import Change, Context, Decided, Item, View
from substrate.operations.notices import rejection
from substrate.operations.placing import placed
from substrate.state import State
from waypost.model import mail
from waypost.model.mail import Gist
from waypost.model.queue import Entry, encode


def own_id(gist: Gist) -> bytes:
    """The id of a mail that can't have the one that it names: by its content, so that a redelivery is recognised.

    No header can carry it: it begins with a blank, and a header's value is trimmed. So nobody can take it before.
    """
    return b" sha256:" + gist.bare_sha256.encode()


def hold_clash(view: View, raw: bytes, gist: Gist, first: Accepted, context: Context) -> Change:
    """Accept a mail whose id ``first`` has, and put it on hold. Value: ``Accepted``."""
    arrival = view.state.arrival
    state = msgspec.structs.replace(view.state, arrival=arrival + 1)
    entry = Entry(
        arrival=arrival,
        id=own_id(gist).decode(),
        address=context.address,
        run=first.run,
        starts=False,
        received=context.at,
        sender=gist.sender,
        sha256=gist.sha256,
        bare=gist.bare_sha256,
        held=context.at,
        why="id-clash",
        clash=first.arrival,
    )
    return held(raw, entry, state, context, f"hold mail {arrival}: mail {first.arrival} has its id")


def held(raw: bytes, entry: Entry, state: State, context: Context, subject: str) -> Change:
    """A new mail that goes on hold; ``state`` counts it already. Value: ``Accepted``."""
    return Change(
        author="supervisor",
        subject=subject,
        puts={
            layout.hold_path(context.address, entry.arrival, entry.key): encode(entry),
            layout.mail_path(entry.arrival): raw,
            **state_file(state),
        },
        facts=(Held(entry),),
        state=state,
        value=Accepted("on-hold", entry.run, entry.arrival, "hold"),
    )


def hold_poison(item: Item, context: Context) -> tuple[dict[str, bytes], str, Held]:
    """A claim that ended with the child too often: (what to write, which file goes, the fact)."""
    queued = item.queued
    entry = msgspec.structs.replace(queued.entry, attempt=queued.attempt, held=context.at, why="poison")
    gone = layout.processing_path(context.address, entry.arrival, entry.key, queued.attempt)
    return {layout.hold_path(context.address, entry.arrival, entry.key): encode(entry)}, gone, Held(entry)


def release_held(view: View, operation: ReleaseHeld, context: Context) -> Decided:
    """Hold to inbox, at its old place in the order, its attempts forgotten. Value: ``Accepted``.

    One that was never routed (``id-clash``) gets its run now, as at the door. Refused with code ``not-held``.
    """
    entry = view.on_hold.get(operation.arrival)
    if entry is None:
        return _not_held(operation.arrival)
    gist = mail.scan(view.read(layout.mail_path(entry.arrival)) or b"")
    state = view.state
    if entry.clash is UNSET:
        starts = view.standing(entry.run) == "absent" and not view.queued_for(entry.run)
        freed = msgspec.structs.replace(entry, starts=starts)
    else:
        place, state = placed(view, gist, context)
        freed = msgspec.structs.replace(
            entry, run=place.run, starts=place.starts, old=UNSET if place.old is None else place.old
        )
    freed = msgspec.structs.replace(freed, attempt=0, held=UNSET, why=UNSET)
    return Change(
        author="supervisor",
        subject=f"release mail {entry.arrival} from hold for {freed.run}",
        puts={layout.inbox_path(context.address, entry.arrival, entry.key): encode(freed), **state_file(state)},
        deletes=(layout.hold_path(context.address, entry.arrival, entry.key),),
        facts=(Queued(freed, gist),),
        state=state,
        value=Accepted("released", freed.run, entry.arrival),
    )


def reject_held(view: View, operation: RejectHeld, context: Context) -> Decided:
    """Hold to consumed, marked as rejected: no event, but a notice to its sender; it stays readable. Value: None.

    Refused with code ``not-held``.
    """
    entry = view.on_hold.get(operation.arrival)
    if entry is None:
        return _not_held(operation.arrival)
    told = rejection(view, rejecting(view, entry.key, context), entry, entry.why or "", context)
    marked = msgspec.structs.replace(entry, consumed=context.at, rejected=entry.why)
    return Change(
        author="supervisor",
        subject=f"reject mail {entry.arrival} on hold",
        puts={
            layout.consumed_path(context.address, told.state.bucket, entry.key): encode(marked),
            **told.puts,
            **files_after(view, told.state, context),
        },
        deletes=(layout.hold_path(context.address, entry.arrival, entry.key),),
        facts=(Consumed(entry.arrival, None), *told.facts),
        state=told.state,
    )


def _not_held(arrival: int) -> Refused:
    return Refused("not-held", f"mail {arrival} is not on hold", "`waypost queue hold` lists what is")
