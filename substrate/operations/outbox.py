"""Mail that leaves: asked for by a run, kept until it is handed over, each move in one commit with its event.

The grant check is here, against what is granted at this very commit. A mail that may not go, or can't be written,
leaves MailFailed, so that the workflow sees it; only a request that breaks the protocol is Refused and leaves nothing.
"""

import hashlib

import msgspec
from msgspec import UNSET

from substrate import layout
from substrate.messages import (
    MailDelivered,
    MailUndeliverable,
    OutboxAdded,
    OutboxRemoved,
    QueueMail,
    Refused,
)
from substrate.operations.answering import answering
from substrate.operations.append import at_call, extend
from substrate.operations.buckets import state_file
from substrate.operations.change import Change, Context, Decided, Settled, View, changed
from substrate.operations.grants import may_mail_now, no_grant
from substrate.runlog import Known
from waypost.model import events as ev
from waypost.model import mail
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.ids import idempotency_key
from waypost.model.queue import Outgoing, encode

_REASON = 2000
"""Characters of a reason that are kept: what servers say may be long, and an event that is refused helps nobody."""


def queue_mail(view: View, operation: QueueMail, context: Context) -> Decided:
    """Put a run's mail into the outbox, or record why it may not go. Value: None; the event tells."""
    found = at_call(view, operation.by, operation.run, operation.call)
    if isinstance(found, Refused):
        return found
    before, ledger = found
    try:
        return _queue_mail(view, operation, before, ledger, context)
    except Invalid as bad:
        return _failed(view, operation, bad.message, context)


def _queue_mail(view: View, operation: QueueMail, before: Known, ledger: fold.Ledger, context: Context) -> Decided:
    name = context.message_id(idempotency_key(context.repository, ledger.started.origin, operation.call))
    if name in ledger.sent:
        return Settled()
    parent = ledger.started.mail.arrival
    if operation.reply_to_mail is not None:
        given = _given(view, ledger, operation.reply_to_mail)
        if given is None:
            return Refused("mail", f"{operation.run} was given no mail {operation.reply_to_mail}")
        parent = given
    strangers = (each for each in operation.to if not may_mail_now(view, operation.run, before.run, each))
    stranger = next(strangers, None)
    if stranger is not None:
        return _failed(view, operation, no_grant(stranger, context.deployment), context)
    message = _composed(view, operation, name, parent, context)
    if len(message) > context.limits.mail:
        return _failed(view, operation, f"the mail has {len(message)} bytes, over {context.limits.mail}", context)
    ordinal, sha256 = view.state.outbox, hashlib.sha256(message).hexdigest()
    event = ev.MailQueued(call=operation.call, message_id=name, to=operation.to, ordinal=ordinal, sha256=sha256)
    made = extend(view, operation.run, before, (event,), context)
    if isinstance(made, Refused):
        return made
    outgoing = Outgoing(
        ordinal=ordinal, run=operation.run, call=operation.call, message_id=name, to=operation.to, sha256=sha256
    )
    state = msgspec.structs.replace(view.state, outbox=ordinal + 1)
    return Change(
        author="supervisor",
        subject=f"queue outgoing mail {ordinal} for {operation.call} of {operation.run}",
        puts={
            **made.puts,
            layout.blob_path(operation.run, sha256): message,
            layout.outbox_path(ordinal, outgoing.key): encode(outgoing),
            **state_file(state),
        },
        deletes=made.deletes,
        facts=(made.fact, OutboxAdded(outgoing, message)),
        state=state,
        known={operation.run: made.known},
    )


def _given(view: View, ledger: fold.Ledger, sha256: str) -> int | None:
    """The arrival of a mail that the run was given, or that one was whose child it is: it may have handed it on."""
    found: fold.Ledger | None = ledger
    while found is not None and sha256 not in found.mails:
        parent = found.started.parent
        found = fold.ledger(view.known(parent.run).run) if parent else None
    return None if found is None else found.mails[sha256]


def mail_delivered(view: View, operation: MailDelivered, context: Context) -> Decided:
    """MailSent, and the outbox entry goes; a second time is no error. Value: None."""
    entry = view.outbox.get(operation.ordinal)
    if entry is None:
        return _gone(view, operation.ordinal)
    event = ev.MailSent(call=entry.outgoing.call, ordinal=operation.ordinal)
    return _settled(view, entry.outgoing, event, f"mark outgoing mail {operation.ordinal} as sent", context)


def mail_undeliverable(view: View, operation: MailUndeliverable, context: Context) -> Decided:
    """MailFailed, and the outbox entry goes; a second time is no error. Value: None."""
    entry = view.outbox.get(operation.ordinal)
    if entry is None:
        return _gone(view, operation.ordinal)
    event = ev.MailFailed(call=entry.outgoing.call, reason=operation.reason[:_REASON], ordinal=operation.ordinal)
    return _settled(view, entry.outgoing, event, f"give up outgoing mail {operation.ordinal}", context)


def _gone(view: View, ordinal: int) -> Decided:
    return Settled() if 0 < ordinal < view.state.outbox else Refused("unknown", f"there was no outgoing mail {ordinal}")


def _settled(
    view: View, outgoing: Outgoing, event: ev.MailSent | ev.MailFailed, subject: str, context: Context
) -> Decided:
    gone = layout.outbox_path(outgoing.ordinal, outgoing.key)
    if outgoing.about:
        return Change(
            author="supervisor",
            subject=f"{subject}, a notice about mail {outgoing.about}",
            puts={},
            deletes=(gone,),
            facts=(OutboxRemoved(outgoing.ordinal),),
        )
    before = view.known(outgoing.run)
    made = extend(view, outgoing.run, before, (event,), context)
    if isinstance(made, Refused):
        return made
    return Change(
        author="supervisor",
        subject=f"{subject}, for {outgoing.call} of {outgoing.run}",
        puts=made.puts,
        deletes=(gone, *made.deletes),
        facts=(made.fact, OutboxRemoved(outgoing.ordinal)),
        known={outgoing.run: made.known},
    )


def _failed(view: View, operation: QueueMail, reason: str, context: Context) -> Decided:
    event = ev.MailFailed(call=operation.call, reason=reason[:_REASON], ordinal=UNSET)
    made = extend(view, operation.run, view.known(operation.run), (event,), context)
    if isinstance(made, Refused):
        return made
    return changed((made,), f"refuse outgoing mail for {operation.call} of {operation.run}")


def _composed(view: View, operation: QueueMail, name: str, parent: int, context: Context) -> bytes:
    """The message; it answers the mail with arrival ``parent``, so that it lands in the reader's thread."""
    gist = mail.scan(view.read(layout.mail_path(parent)) or b"")
    answered, thread = answering(gist)
    return mail.compose(
        sender=context.address,
        to=operation.to,
        subject=operation.subject,
        text=operation.text,
        message_id=name,
        date_ms=context.now.wall,
        in_reply_to=answered,
        references=thread,
        attachments=[
            mail.Attachment(name=each.name, content_type=each.content_type, content=each.content)
            for each in operation.attachments
        ],
    )
