"""Imported mail on its way through our queue: the same moves as any mail's, with the times that it had there.

Each decision is one commit, as the queue's own operations are: into the inbox, claimed, consumed. What is different: no
notice goes to anybody for a mail that was rejected there long ago, and a mail that came before the watermark there goes
on hold as ``stale`` (storage §5), because nobody can tell any more whether its id was consumed before.
"""

import msgspec

from substrate import layout
from substrate.messages import Consumed
from substrate.operations.buckets import filed, files_after, rejecting
from substrate.operations.change import Change, Context, View
from substrate.operations.hold import held, own_id
from substrate.operations.intake import entered, numbered
from substrate.operations.known_ids import present
from substrate.operations.placing import Placed, placed
from substrate.state import State
from waypost.model.ids import RunId, run_id
from waypost.model.mail import malformed, scan
from waypost.model.queue import Entry, encode
from waypost.model.times import Now, stamp

CODE = 100
"""Characters of a rejection's code."""


def at(context: Context, wall: int) -> Context:
    """The context as it was at this time, Unix ms."""
    return msgspec.structs.replace(context, now=Now(wall, 0.0))


def next_run(view: View, context: Context) -> tuple[RunId, State]:
    """The id of a run that is to be, and the state after it was given."""
    state = view.state
    return run_id(state.run, context.random()), msgspec.structs.replace(state, run=state.run + 1)


def enter(view: View, raw: bytes, run: RunId, state: State, context: Context, *, starts: bool) -> Change | None:
    """Into the inbox, for this run. None where the door wouldn't take it, or has a mail of this id. Value: Accepted."""
    if malformed(raw, limit=context.limits.mail) is not None:
        return None
    gist = scan(raw)
    if present(view, gist.id, context) is not None or present(view, own_id(gist), context) is not None:
        return None
    return entered(raw, gist, Placed(run, starts, None), state, context)


def consumption(view: View, entry: Entry, attempt: int, when: int, context: Context) -> Change:
    """A claimed mail is consumed, at ``when`` (Unix ms); its event comes into the same commit. Value: None."""
    state = filed(view, view.state, entry.key, context)
    marked = msgspec.structs.replace(entry, consumed=stamp(when))
    return Change(
        author="hub",
        subject=f"take up imported mail {entry.arrival}",
        puts={
            layout.consumed_path(context.address, state.bucket, entry.key): encode(marked),
            **files_after(view, state, context),
        },
        deletes=(layout.processing_path(context.address, entry.arrival, entry.key, attempt),),
        facts=(Consumed(entry.arrival, entry.run),),
        state=state,
    )


def rejection(view: View, entry: Entry, attempt: int, code: str, when: int, context: Context) -> Change:
    """A claimed mail that caused no event there: consumed, and readable among the rejected. Value: None."""
    state = rejecting(view, entry.key, context)
    marked = msgspec.structs.replace(entry, consumed=stamp(when), rejected=code[:CODE])
    return Change(
        author="hub",
        subject=f"file imported mail {entry.arrival}, which caused no event",
        puts={
            layout.consumed_path(context.address, state.bucket, entry.key): encode(marked),
            **files_after(view, state, context),
        },
        deletes=(layout.processing_path(context.address, entry.arrival, entry.key, attempt),),
        facts=(Consumed(entry.arrival, None),),
        state=state,
    )


def stale(view: View, raw: bytes, since: int, context: Context) -> Change | None:
    """On hold ``since`` (Unix ms), for an operator to let in or reject. None as ``enter``. Value: ``Accepted``."""
    if malformed(raw, limit=context.limits.mail) is not None:
        return None
    gist = scan(raw)
    if present(view, gist.id, context) is not None or present(view, own_id(gist), context) is not None:
        return None
    place, state = placed(view, gist, context)
    entry = msgspec.structs.replace(numbered(gist, place, state, context), held=stamp(since), why="stale")
    state = msgspec.structs.replace(state, arrival=entry.arrival + 1)
    words = f"hold mail {entry.arrival}: it came before the watermark of where it was imported from"
    return held(raw, entry, state, context, words)
