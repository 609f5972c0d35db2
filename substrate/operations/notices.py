"""A notice to the sender of a mail that came to nothing: through the outbox, in the commit that says so (storage §5).

One for a mail and what it is told. None goes to a mail that is itself automatic or has an empty return path, to one
that doesn't name one sender, or to this deployment itself; a notice is marked as automatic. So none answers another.
"""

import hashlib

import msgspec

from substrate import layout
from substrate.messages import NoAnswer, OutboxAdded, Queued, Refused
from substrate.operations.answering import answering
from substrate.operations.buckets import state_file
from substrate.operations.change import Change, Context, Decided, View
from substrate.state import State
from waypost.model import mail
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.mail import Gist
from waypost.model.queue import Entry, Outgoing, encode

_BRIEF = 100
_REASONS = {
    "id-clash": "another mail has the same Message-ID",
    "poison": "it could not be processed",
}


class Notice(msgspec.Struct, frozen=True):
    """What a notice adds to a commit; nothing where none is due."""

    state: State
    puts: dict[str, bytes] = msgspec.field(default_factory=dict)
    facts: tuple[OutboxAdded, ...] = ()


def rejection(view: View, state: State, entry: Entry, code: str, context: Context) -> Notice:
    """For a mail that is rejected; ``state`` is the commit's so far."""
    gist = mail.scan(view.read(layout.mail_path(entry.arrival)) or b"")
    text = (
        f"Your mail {_quoted(gist.subject)} to {context.address} was not processed:\n{_REASONS.get(code, code)}.\n\n"
        "It is kept, and whoever looks after this address can see it.\n"
    )
    return _notice("rejection", state, entry, gist, f"Not processed: {_plain(gist.subject)}", text, context)


def no_answer(view: View, operation: NoAnswer, context: Context) -> Decided:
    """Tell who was asked that their mail is no answer; it stays queued. Value: None.

    Refused with code ``not-queued``, ``wait-closed``, ``told`` (it, or another mail about this approval, has its
    notice) or ``automatic``.
    """
    item = view.queue.get(operation.arrival)
    if item is None or item.claimed:
        return Refused("not-queued", f"mail {operation.arrival} is not in the inbox")
    entry = item.queued.entry
    ledger = fold.ledger(view.known(entry.run).run)
    wait = None if ledger is None else ledger.waits.get(operation.call)
    if wait is None or wait.park != "approval":
        return Refused("wait-closed", f"no approval is open at {operation.call} of {entry.run}")
    waiting = (view.queue[arrival].queued.entry for arrival in view.queued_for(entry.run))
    if entry.told or any(each.told == operation.call for each in waiting):
        return Refused("told", f"a notice about {operation.call} of {entry.run} went out")
    title = _plain(wait.title or "")
    text = (
        f'Your mail is no answer to "{title}": its first word must be yes or no\n(also: ok, approve, reject).\n\n'
        "Please answer the question's mail once more. What you wrote is kept for the workflow.\n"
    )
    made = _notice("no answer", view.state, entry, item.queued.gist, f"No answer yet: {title}", text, context)
    if not made.facts:
        return Refused("automatic", f"mail {entry.arrival} takes no notice")
    told = msgspec.structs.replace(entry, told=operation.call)
    return Change(
        author="supervisor",
        subject=f"queue a notice that mail {entry.arrival} is no answer at {operation.call} of {entry.run}",
        puts={
            layout.inbox_path(context.address, entry.arrival, entry.key): encode(told),
            **made.puts,
            **state_file(made.state),
        },
        facts=(Queued(told, item.queued.gist, item.queued.attempt), *made.facts),
        state=made.state,
    )


def _notice(kind: str, state: State, entry: Entry, gist: Gist, subject: str, text: str, context: Context) -> Notice:
    to = gist.sole_sender
    if gist.automatic or not to or to.casefold() == context.address.casefold():
        return Notice(state)
    # Named by what it is about, as a call's mail is: only this host can make the id, and one repeat is like the other.
    seed = f"notice\0{kind}\0{context.repository}\0{entry.arrival}"
    name = context.message_id(hashlib.sha256(seed.encode()).hexdigest())
    answered, thread = answering(gist)
    try:
        message = mail.compose(
            sender=context.address,
            to=to,
            subject=subject,
            text=text,
            message_id=name,
            date_ms=context.now.wall,
            in_reply_to=answered,
            references=thread,
            automatic=True,
        )
    except Invalid:  # an address that can't be written to
        return Notice(state)
    outgoing = Outgoing(
        ordinal=state.outbox,
        message_id=name,
        to=(to,),
        sha256=hashlib.sha256(message).hexdigest(),
        about=entry.arrival,
        message=message.decode(),
    )
    return Notice(
        msgspec.structs.replace(state, outbox=state.outbox + 1),
        {layout.outbox_path(outgoing.ordinal, outgoing.key): encode(outgoing)},
        (OutboxAdded(outgoing, message),),
    )


def _quoted(subject: str) -> str:
    return f'"{_plain(subject)}"' if subject else "without a subject"


def _plain(text: str) -> str:
    """What somebody else wrote, as it may stand in a header field."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    return (shown if len(shown) <= _BRIEF else shown[:_BRIEF] + "…").strip() or "mail"
