"""The queue's own moves: enqueue, claim, release, reject, and putting claims back when a generation begins.

A mail is in one place at any commit: inbox, processing or consumed. Its raw bytes are stored once, under its arrival
ordinal, and its run is decided here, in arrival order. What consumes a mail with an effect is in ``take_up``.
"""

import msgspec
from msgspec import UNSET

from substrate import layout
from substrate.messages import (
    Accepted,
    BeginGeneration,
    Claim,
    Claimed,
    Consumed,
    Enqueue,
    Fact,
    GenerationBegun,
    Queued,
    Refused,
    Reject,
    Release,
)
from substrate.operations.buckets import files_after, rejecting, state_file
from substrate.operations.change import Change, Context, Decided, Item, Settled, View
from substrate.operations.hold import hold_clash, hold_poison, own_id
from substrate.operations.known_ids import present
from substrate.operations.notices import rejection
from substrate.operations.placing import Placed, placed
from substrate.state import State
from waypost.model.ids import Generation
from waypost.model.mail import Gist, malformed, scan
from waypost.model.queue import Entry, encode, id_text


def enqueue(view: View, operation: Enqueue, context: Context) -> Decided:
    """Accept a mail, once per message id. Value: ``Accepted``.

    Another mail under an id that is taken is accepted and put on hold: taking it for the first would lose it without a
    word, to whoever writes an id that isn't theirs into a header. Refused with code ``malformed``.
    """
    why = malformed(operation.raw, limit=context.limits.mail)
    if why is not None:
        return Refused("malformed", why)
    gist = scan(operation.raw)
    first = present(view, gist.id, context)
    own = present(view, own_id(gist), context)
    for found in filter(None, (first, own)):
        if found.bare == gist.bare_sha256:
            return Settled(found.accepted)
    if first is not None:
        return hold_clash(view, operation.raw, gist, first.accepted, context)
    place, state = placed(view, gist, context)
    return entered(operation.raw, gist, place, state, context)


def numbered(gist: Gist, place: Placed, state: State, context: Context) -> Entry:
    """A mail under the next arrival ordinal, with its place decided."""
    identity, base64 = id_text(gist.id)
    return Entry(
        arrival=state.arrival,
        id=identity,
        base64=base64,
        address=context.address,
        run=place.run,
        starts=place.starts,
        old=UNSET if place.old is None else place.old,
        received=context.at,
        sender=gist.sender,
        sha256=gist.sha256,
        bare=gist.bare_sha256,
    )


def entered(raw: bytes, gist: Gist, place: Placed, state: State, context: Context) -> Change:
    """Into the inbox, under the next arrival ordinal, with its place decided. Value: ``Accepted``."""
    return into_inbox(numbered(gist, place, state, context), raw, gist, state, context)


def into_inbox(entry: Entry, raw: bytes, gist: Gist, state: State, context: Context) -> Change:
    """A new entry, its bytes, and the count that it takes. Value: ``Accepted``."""
    state = msgspec.structs.replace(state, arrival=entry.arrival + 1)
    return Change(
        author="supervisor",
        subject=f"enqueue mail {entry.arrival} for {entry.run}",
        puts={
            layout.inbox_path(context.address, entry.arrival, entry.key): encode(entry),
            layout.mail_path(entry.arrival): raw,
            **state_file(state),
        },
        facts=(Queued(entry, gist),),
        state=state,
        value=Accepted("enqueued", entry.run, entry.arrival),
    )


def claim(view: View, operation: Claim, context: Context) -> Decided:
    """Inbox to processing; the attempt is raised and stands in the name. Value: the attempt."""
    item = view.queue.get(operation.arrival)
    if item is None or item.claimed:
        return Refused("not-queued", f"mail {operation.arrival} is not in the inbox")
    entry, attempt = item.queued.entry, item.queued.attempt + 1
    return Change(
        author="supervisor",
        subject=f"claim mail {entry.arrival} for {entry.run}, attempt {attempt}",
        puts={layout.processing_path(context.address, entry.arrival, entry.key, attempt): encode(entry)},
        deletes=(layout.inbox_path(context.address, entry.arrival, entry.key),),
        facts=(Claimed(entry.arrival, attempt),),
        value=attempt,
    )


def release(view: View, operation: Release, context: Context) -> Decided:
    """Processing back to inbox; the mail was not to blame, so the attempt doesn't count. Value: None."""
    item = view.queue.get(operation.arrival)
    if item is None or not item.claimed:
        return Refused("not-claimed", f"mail {operation.arrival} is not in processing")
    puts, gone, fact = put_back(item, item.queued.attempt - 1, context)
    return Change(
        author="supervisor",
        subject=f"put back mail {operation.arrival} for {item.queued.entry.run}",
        puts=puts,
        deletes=(gone,),
        facts=(fact,),
    )


def reject(view: View, operation: Reject, context: Context) -> Decided:
    """Processing to consumed, marked as rejected: no event, but a notice to its sender; stays readable. Value: None."""
    item = view.queue.get(operation.arrival)
    if item is None or not item.claimed:
        return Refused("not-claimed", f"mail {operation.arrival} is not in processing")
    entry = item.queued.entry
    told = rejection(view, rejecting(view, entry.key, context), entry, operation.code, context)
    marked = msgspec.structs.replace(entry, consumed=context.at, rejected=operation.code)
    return Change(
        author="supervisor",
        subject=f"reject mail {entry.arrival} for {entry.run}",
        puts={
            layout.consumed_path(context.address, told.state.bucket, entry.key): encode(marked),
            **told.puts,
            **files_after(view, told.state, context),
        },
        deletes=(layout.processing_path(context.address, entry.arrival, entry.key, item.queued.attempt),),
        facts=(Consumed(entry.arrival, None), *told.facts),
        state=told.state,
    )


def begin_generation(view: View, operation: BeginGeneration, context: Context) -> Decided:
    """Raise the generation; what was claimed and not taken up returns to the inbox. Value: the generation.

    A mail whose claims ended with their host ``limits.attempts`` times goes on hold instead: it may be what ended them.
    Refused with code ``latched``.
    """
    if view.state.latch:
        return Refused("latched", f"the deployment is {view.state.latch.reason}", "`waypost reset` lifts it")
    generation = Generation(view.state.generation + 1)
    state = msgspec.structs.replace(view.state, generation=generation)
    puts: dict[str, bytes] = {}
    deletes: list[str] = []
    facts: list[Fact] = [GenerationBegun(generation)]
    claims = [item for item in view.queue.values() if item.claimed]
    fact: Fact
    poison = 0
    for item in claims:
        if operation.blame and item.queued.attempt >= context.limits.attempts:
            put, gone, fact = hold_poison(item, context)
            poison += 1
        else:
            put, gone, fact = put_back(item, item.queued.attempt - (not operation.blame), context)
        puts |= put
        deletes.append(gone)
        facts.append(fact)
    return Change(
        author="supervisor",
        subject=f"begin generation {generation}{_mails('put back', len(claims) - poison)}{_mails('hold', poison)}",
        puts={**puts, **state_file(state)},
        deletes=tuple(deletes),
        facts=tuple(facts),
        state=state,
        value=generation,
    )


def _mails(what: str, count: int) -> str:
    return f", {what} {count} mail{'s' if count > 1 else ''}" if count else ""


def put_back(item: Item, attempt: int, context: Context) -> tuple[dict[str, bytes], str, Queued]:
    """A claim's way back: (what to write, which file goes, the fact). The count of attempts goes along in the entry."""
    queued = item.queued
    entry = msgspec.structs.replace(queued.entry, attempt=attempt)
    gone = layout.processing_path(context.address, entry.arrival, entry.key, queued.attempt)
    return (
        {layout.inbox_path(context.address, entry.arrival, entry.key): encode(entry)},
        gone,
        Queued(entry, queued.gist, attempt),
    )
