"""The vocabulary of a run's log: one frozen record per kind of event, and its one encoding.

An event is JSON on disk, on the wire and in the reader's hands, byte for byte the same. ``seq``, ``at`` and ``prev``
belong to the substrate: whoever proposes an event leaves them empty, ``stored`` fills them in, and from then on the
bytes never change. Every record names a call where a call wrote it (design §2), so that results are found by identity
and not by position.
"""

import hashlib
from collections.abc import Iterable
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from waypost.model.errors import Invalid
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.imported import Imported

Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Call = Annotated[CallId, msgspec.Meta(max_length=512)]
Text = Annotated[str, msgspec.Meta(max_length=262_144)]
Line = Annotated[str, msgspec.Meta(max_length=1000)]
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=4_102_444_800_000)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A JSON value: in the event itself, or by name when it is over the inline limit. Exactly one of the two is set."""

    inline: msgspec.Raw | UnsetType = UNSET
    blob: Sha256 | UnsetType = UNSET


class Mailed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The mail behind an event: its place, its id, its author's address and the SHA-256 of its raw bytes."""

    arrival: int
    id: str
    sha256: Sha256
    sender: str = ""
    base64: bool = False
    """Whether ``id`` is base64 of bytes that are no UTF-8."""


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What was raised: the type's name, its message, the traceback as text; ``args`` where the type is rebuilt."""

    type: Line
    message: Text
    traceback: Text = ""
    args: msgspec.Raw | UnsetType = UNSET
    step: Line = ""
    call: str = ""


class Event(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    tag_field="type",
    tag=True,
):
    """What every event has. ``at`` is ISO 8601 UTC with milliseconds, ``prev`` the SHA-256 of the event before."""

    seq: int = 0
    at: str = ""
    prev: str = ""
    original: Sha256 | UnsetType = UNSET
    """Of an imported event: SHA-256 of its bytes where it came from. Nothing else sets it."""


# --- the run -------------------------------------------------------------------------------------------------------


class RunStarted(Event, frozen=True, kw_only=True):
    """A mail was taken up and a run begins; in the commit that consumed the mail."""

    mail: Mailed
    definition: Sha256
    """Hash of what the workflow file declares: name, address, steps in order, settings."""
    code: Sha256
    python: Line
    waypost: Line
    generation: Generation
    grants: Sha256
    """Of grants.json, which lies in the same commit."""
    origin: Sha256
    """Key of the mail; every idempotency key of the run is derived from it."""
    after: RunId | UnsetType = UNSET
    """The finished run of the same thread that this one follows."""
    imported: Imported | UnsetType = UNSET
    """Where the run was, if it wasn't here; no code can go on with it."""


class Foreign(Event, frozen=True, kw_only=True):
    """Of an imported run only, and it changes nothing: what this vocabulary has no word for, or a file that is kept."""

    was: Line
    """Its kind where it came from; ``log`` for a part of the log as it was, ``file`` for another file of the run."""
    about: Line = ""
    """What it was about, in a few words; the path of a file."""
    blob: Sha256 | UnsetType = UNSET


class RunResumed(Event, frozen=True, kw_only=True):
    """A child of a new generation was given the run; open tries are adopted, with the same attempt and key."""

    generation: Generation
    attempt: int = 0
    """Unexpected exits counted against the run since its last progress."""


class RunPaused(Event, frozen=True, kw_only=True):
    """The run waits for an operator; the code says why, the detail is for people."""

    code: Literal["code-changed", "code-missing", "poison", "operator"]
    detail: Text = ""


class RunUnpaused(Event, frozen=True, kw_only=True):
    """An operator let the run go on."""

    by: Line


class RunCompleted(Event, frozen=True, kw_only=True):
    """The workflow returned. ``unread``: waits that were answered and never read (storage §5)."""

    result: Value
    unread: tuple[Call, ...] = ()


class RunFailed(Event, frozen=True, kw_only=True):
    """The workflow raised."""

    error: Fault
    unread: tuple[Call, ...] = ()


# --- steps ---------------------------------------------------------------------------------------------------------


class StepStarted(Event, frozen=True, kw_only=True):
    """One try of a step begins; its body runs only after this is durable. One per try; a crash adds none."""

    call: Call
    step: Line
    attempt: Annotated[int, msgspec.Meta(ge=1)] = 1
    arguments: Sha256
    """Digest of the arguments; a replay that comes with others is a mismatch."""


class StepCompleted(Event, frozen=True, kw_only=True):
    """The step returned."""

    call: Call
    attempt: Annotated[int, msgspec.Meta(ge=1)] = 1
    output: Value


class StepFailed(Event, frozen=True, kw_only=True):
    """The try raised. ``final``: no further try follows, the workflow sees the error."""

    call: Call
    attempt: Annotated[int, msgspec.Meta(ge=1)] = 1
    error: Fault
    final: bool
    code: Literal["raised", "child-crashed"] = "raised"


class AttemptScheduled(Event, frozen=True, kw_only=True):
    """After a failed try: the next one starts when the timer has fired."""

    call: Call
    attempt: Annotated[int, msgspec.Meta(ge=2)]
    timer: str


# --- time ----------------------------------------------------------------------------------------------------------


class TimerSet(Event, frozen=True, kw_only=True):
    """A durable timer. The child says ``delay`` (seconds); ``fire_at`` (Unix ms) is the substrate's to set.

    ``timer`` is the call's identity for sleeps and timeouts, ``<call>/<attempt>`` for a retry. ``seen`` is the newest
    event that the run's loop had been given when it asked: whether a run is parked must follow from the log alone.
    """

    call: Call
    timer: Annotated[str, msgspec.Meta(max_length=530)]
    delay: Seconds
    seen: int
    fire_at: Milliseconds = 0


class TimerFired(Event, frozen=True, kw_only=True):
    """The time has come. A ``timer`` that names a wait closes that wait: its deadline has passed."""

    call: Call
    timer: Annotated[str, msgspec.Meta(max_length=530)]


class TimerCancelled(Event, frozen=True, kw_only=True):
    """The code no longer waits for this timer (a timeout's block was left in time)."""

    call: Call
    timer: Annotated[str, msgspec.Meta(max_length=530)]


# --- waits ---------------------------------------------------------------------------------------------------------


class SignalAwaited(Event, frozen=True, kw_only=True):
    """The run parks at this call: for its next mail, or for a person's decision.

    The child says ``timeout`` (seconds); ``timeout_at`` (Unix ms) is the substrate's to set. ``seen`` as in TimerSet.
    """

    call: Call
    park: Literal["input", "approval"]
    seen: int
    title: Text = ""
    who: tuple[Line, ...] = ()
    request: str = ""
    """Message-ID of the mail that asks."""
    timeout: Seconds | UnsetType = UNSET
    timeout_at: Milliseconds | UnsetType = UNSET


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A person's answer to an approval. ``by`` is an address (not authenticated) or the operator's user name."""

    approved: bool
    by: Line
    text: Text = ""
    via: Literal["mail", "cli"]


class SignalReceived(Event, frozen=True, kw_only=True):
    """What the wait at ``call`` was waiting for. A mail's event is in the commit that consumed the mail."""

    call: Call
    signal: str
    """Identity of the answer: the same one twice is one."""
    mail: Mailed | UnsetType = UNSET
    decision: Decision | UnsetType = UNSET


class SignalAwaitAbandoned(Event, frozen=True, kw_only=True):
    """The code no longer waits at this call: its task was cancelled."""

    call: Call


# --- mail out ------------------------------------------------------------------------------------------------------


class MailQueued(Event, frozen=True, kw_only=True):
    """The call's mail is in the outbox; in one commit with its entry."""

    call: Call
    message_id: Line
    to: tuple[Line, ...]
    ordinal: int
    """Of the outbox entry."""
    sha256: Sha256
    """Of the message's bytes."""


class MailSent(Event, frozen=True, kw_only=True):
    """The mail was handed over; in one commit with the removal of its outbox entry."""

    call: Call
    ordinal: int


class MailFailed(Event, frozen=True, kw_only=True):
    """The call's mail was refused (no ``ordinal``: nothing was queued), or can't be delivered."""

    call: Call
    reason: Text
    ordinal: int | UnsetType = UNSET


Ongoing = (
    RunStarted
    | Foreign
    | RunResumed
    | RunPaused
    | RunUnpaused
    | StepStarted
    | StepCompleted
    | StepFailed
    | AttemptScheduled
    | TimerSet
    | TimerFired
    | TimerCancelled
    | SignalAwaited
    | SignalReceived
    | SignalAwaitAbandoned
    | MailQueued
    | MailSent
    | MailFailed
)
"""Every event but the end of a run."""

AnyEvent = Ongoing | RunCompleted | RunFailed
TERMINAL = (RunCompleted, RunFailed)
_VALUED = (StepCompleted, RunCompleted)
_NAMING = (*_VALUED, Foreign)

_decoder = msgspec.json.Decoder(AnyEvent)
_encoder = msgspec.json.Encoder()
E = TypeVar("E", bound=Event)


def proposed(event: AnyEvent) -> bytes:
    """Encode an event that the substrate hasn't numbered yet."""
    return _encoder.encode(event)


def stored(event: E, *, seq: int, at: str, prev: str) -> tuple[E, bytes]:
    """Number an event: the record with its three fields, and the bytes that are committed and hashed.

    The bytes begin ``{"seq":…,"type":…`` because people read them.
    """
    numbered = msgspec.structs.replace(event, seq=seq, at=at, prev=prev)
    raw = _encoder.encode(numbered)
    name = type(event).__name__.encode()
    rest = raw.removeprefix(b'{"type":"%s","seq":%d' % (name, seq))
    return numbered, b'{"seq":%d,"type":"%s"%s' % (seq, name, rest)


def decode(raw: bytes) -> AnyEvent:
    """Read one event, strictly: unknown kinds, unknown keys, wrong types and more than one line raise Invalid."""
    if b"\n" in raw:
        raise Invalid("not an event: it must be one line")
    try:
        raw.decode()
        event = _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise Invalid(f"not an event: {bad}") from None
    if isinstance(event, _VALUED):
        value = _value(event)
        if (value.inline is UNSET) == (value.blob is UNSET):
            raise Invalid(f"not an event: {type(event).__name__} needs either an inline value or a blob")
    return event


def digest(raw: bytes) -> str:
    """The chain's link: SHA-256 (hex) of an event's stored bytes."""
    return hashlib.sha256(raw).hexdigest()


def genesis(repository: str, run: RunId, grants: bytes) -> str:
    """``prev`` of seq 1: SHA-256 over repository id, run id and the bytes of grants.json, NUL between them."""
    return hashlib.sha256(b"\0".join((repository.encode(), run.encode(), grants))).hexdigest()


def blobs(events: Iterable[AnyEvent]) -> tuple[str, ...]:
    """Names of the blobs that these events refer to."""
    named = [
        event.blob if isinstance(event, Foreign) else _value(event).blob
        for event in events
        if isinstance(event, _NAMING)
    ]
    return tuple(name for name in named if name is not UNSET)


def kind(event: AnyEvent) -> str:
    """The event's name in the log, such as ``StepCompleted``."""
    return type(event).__name__


def call_of(event: AnyEvent) -> CallId | None:
    """The call that the event belongs to; None for events of the run itself."""
    return getattr(event, "call", None)


def _value(event: StepCompleted | RunCompleted) -> Value:
    return event.output if isinstance(event, StepCompleted) else event.result
