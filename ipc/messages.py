"""What host and child say to each other: one frozen record per message, decoded strictly at either end.

Payloads are CBOR maps tagged by ``t``. Events travel as the JSON bytes that are (or will be) committed, so that the
child sees exactly what the log holds. Requests carry an ``id`` that the answer repeats; ids are the asker's to choose
and rise by one. Only messages that are in use are here.
"""

from typing import Annotated, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from ipc.deliveries import CredentialsUpdated as CredentialsUpdated  # noqa: PLC0414 - the same as below
from ipc.deliveries import SourcesUpdated as SourcesUpdated  # noqa: PLC0414 - the same
from ipc.ready import Count, Hex64, Text
from ipc.ready import Message as Message  # noqa: PLC0414 - whoever wants messages finds all of them here
from ipc.ready import Ready as Ready  # noqa: PLC0414 - the same

RunName = Annotated[str, msgspec.Meta(max_length=64)]
CallName = Annotated[str, msgspec.Meta(max_length=512)]
Line = Annotated[str, msgspec.Meta(max_length=1000)]
INPUT = 1024 * 1024
"""Bytes of a child run's arguments."""
BUNDLE = 256
"""Messages to a child in one frame, at most."""


# --- child to host, control channel -------------------------------------------------------------------------------


class AppendRequest(Message, frozen=True, kw_only=True, tag="append.request"):
    """The events of one turn of a run's loop, as proposed JSON; accepted or refused together."""

    id: Count
    run: RunName
    events: Annotated[tuple[bytes, ...], msgspec.Meta(min_length=1, max_length=4096)]


class BlobPut(Message, frozen=True, kw_only=True, tag="blob.put"):
    """A part of a value over the inline limit; parts come in order, the last one completes it."""

    id: Count
    run: RunName
    sha256: Hex64
    offset: Count
    data: bytes
    last: bool


class BlobGet(Message, frozen=True, kw_only=True, tag="blob.get"):
    """Ask for a blob, or a mail, that an event of this run names; it comes as ``blob.chunk`` parts."""

    id: Count
    run: RunName
    sha256: Hex64


class Attached(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An attachment of an outgoing mail."""

    name: Line
    content_type: Line
    content: bytes


class OutboundMessage(Message, frozen=True, kw_only=True, omit_defaults=True, tag="outbound.message"):
    """Ask for a mail to be sent. The outcome is an event of the run: MailQueued, or MailFailed when it was refused.

    ``reply_to_mail``: answer in the thread of this mail (SHA-256 of a mail that the run was given).
    """

    id: Count
    run: RunName
    call: CallName
    to: Annotated[tuple[Line, ...], msgspec.Meta(min_length=1, max_length=100)]
    subject: Line
    text: Text
    reply_to_mail: Hex64 | UnsetType = UNSET
    attachments: tuple[Attached, ...] = ()


class PauseRequest(Message, frozen=True, kw_only=True, tag="pause.request"):
    """The code doesn't do what the log says it did; the detail shows both. Only the host may write RunPaused."""

    id: Count
    run: RunName
    code: Line
    detail: Text


class CancelRequest(Message, frozen=True, kw_only=True, tag="cancel.request"):
    """The run's own code asks for its end, at this call. CancelRequested is how the child learns that it is so."""

    id: Count
    run: RunName
    call: CallName
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]


class SpawnRequest(Message, frozen=True, kw_only=True, tag="spawn.request"):
    """Ask for a child run of this call. The outcome is an event: ChildSpawned, or ChildRefused when it may not be.

    ``workflow``: name of the child function; ``input``: its arguments, a JSON object; ``seen``: the newest event that
    the code was given, 0 where it asks for more beside this.
    """

    id: Count
    run: RunName
    call: CallName
    workflow: Line
    input: Annotated[bytes, msgspec.Meta(max_length=INPUT)]
    seen: Count


class RecycleRequest(Message, frozen=True, kw_only=True, tag="recycle.request"):
    """The child asks for a fresh process in its place: what executes comes to rest first. There is no answer."""

    reason: Line


class RunLogCredit(Message, frozen=True, kw_only=True, tag="run.log.credit"):
    """One page of the run's log was taken in; another may be sent."""

    run: RunName


# --- child to host, events channel --------------------------------------------------------------------------------


class Progress(Message, frozen=True, kw_only=True, tag="progress"):
    """What a step says of itself while it runs; for watchers, never recorded.

    ``seq``: the newest event of the run that the child has seen; held back until that one is durable.
    """

    run: RunName
    call: CallName
    seq: Count
    text: Line


# --- host to child, control channel -------------------------------------------------------------------------------


class RunStart(Message, frozen=True, kw_only=True, tag="run.start"):
    """Take this run: its log follows in pages up to ``last_seq``, then ``run.live``. Sent once in a generation."""

    run: RunName
    definition: Hex64
    last_seq: Count
    grants: Hex64
    repository: Line
    """Repository id: idempotency keys are derived from it."""


class RunLog(Message, frozen=True, kw_only=True, omit_defaults=True, tag="run.log"):
    """A page of stored events, in seq order without a gap; at most 1 MiB, at least one event.

    ``mails``: raw, of those that the events bring to the run's code, as many as there was room for; no ``blob.get``
    asks for them.
    """

    run: RunName
    events: tuple[bytes, ...]
    mails: tuple[bytes, ...] = ()


class RunLive(Message, frozen=True, kw_only=True, tag="run.live"):
    """The log is complete; what is committed from here on comes as ``events.committed``."""

    run: RunName


class EventsCommitted(Message, frozen=True, kw_only=True, tag="events.committed"):
    """Stored events of a live run, in seq order without a gap, the child's own included."""

    run: RunName
    events: tuple[bytes, ...]


class AppendResponse(Message, frozen=True, kw_only=True, omit_defaults=True, tag="append.response"):
    """Accepted (``refused`` unset; durable if the batch held a StepStarted), or refused as a whole and why."""

    id: Count
    refused: Text | UnsetType = UNSET
    code: Line | UnsetType = UNSET


class BlobChunk(Message, frozen=True, kw_only=True, tag="blob.chunk"):
    """A part of what ``blob.get`` asked for; ``size`` is the whole."""

    id: Count
    offset: Count
    size: Count
    data: bytes


class BlobStored(Message, frozen=True, kw_only=True, omit_defaults=True, tag="blob.stored"):
    """The blob of ``blob.put`` is held for an event to name it; or refused (``blob.get`` is refused this way, too)."""

    id: Count
    refused: Text | UnsetType = UNSET


class OutboundResult(Message, frozen=True, kw_only=True, omit_defaults=True, tag="outbound.result"):
    """The request was taken; its event is on the way. ``refused``: it broke a rule and leaves no event."""

    id: Count
    refused: Text | UnsetType = UNSET


class PauseResult(Message, frozen=True, kw_only=True, omit_defaults=True, tag="pause.result"):
    """The run is paused, or was ended or paused before."""

    id: Count
    refused: Text | UnsetType = UNSET


class CancelResult(Message, frozen=True, kw_only=True, omit_defaults=True, tag="cancel.result"):
    """The run's end was asked for, now or before; its event is on the way. Or refused, and why."""

    id: Count
    refused: Text | UnsetType = UNSET


class SpawnResult(Message, frozen=True, kw_only=True, omit_defaults=True, tag="spawn.result"):
    """The request was taken; its event is on the way. ``refused``: it broke a rule and leaves no event."""

    id: Count
    refused: Text | UnsetType = UNSET


class GrantsUpdated(Message, frozen=True, kw_only=True, tag="grants-updated"):
    """What every step may do (``waypost.model.grants``), before ``run.start`` names its hash, and when it changes.

    The host enforces it; the child is told, and computes every hash in it again.
    """

    grants: bytes
    sha256: Hex64


class Shutdown(Message, frozen=True, kw_only=True, tag="shutdown"):
    """Leave now: nothing more will be accepted. SIGTERM follows."""

    reason: Line


FromChild: TypeAlias = (
    Ready
    | AppendRequest
    | BlobPut
    | BlobGet
    | OutboundMessage
    | PauseRequest
    | CancelRequest
    | SpawnRequest
    | RecycleRequest
    | RunLogCredit
)
FromChildEvents: TypeAlias = Progress
ToChild: TypeAlias = (
    RunStart
    | RunLog
    | RunLive
    | EventsCommitted
    | AppendResponse
    | BlobChunk
    | BlobStored
    | OutboundResult
    | PauseResult
    | CancelResult
    | SpawnResult
    | GrantsUpdated
    | CredentialsUpdated
    | SourcesUpdated
    | Shutdown
)


class Bundle(Message, frozen=True, kw_only=True, tag="bundle"):
    """What was ready to leave at one time, in one frame: the same as a frame for each, in this order."""

    messages: Annotated[tuple[ToChild, ...], msgspec.Meta(min_length=2, max_length=BUNDLE)]


FromHost: TypeAlias = ToChild | Bundle


def single(message: FromHost) -> tuple[ToChild, ...]:
    """The messages of a frame."""
    return message.messages if isinstance(message, Bundle) else (message,)
