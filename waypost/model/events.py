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

from waypost.model import child_events, event_parts, mail_events
from waypost.model.errors import Invalid
from waypost.model.event_parts import Call, Line, Milliseconds, Origin, Seconds, Sha256, Text
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.imported import Imported

Value = event_parts.Value
Mailed = event_parts.Mailed
Fault = event_parts.Fault
Decision = event_parts.Decision
Event = event_parts.Event
MailQueued = mail_events.MailQueued
MailSent = mail_events.MailSent
MailFailed = mail_events.MailFailed
Parent = child_events.Parent
ChildSpawned = child_events.ChildSpawned
ChildRefused = child_events.ChildRefused
ChildCompleted = child_events.ChildCompleted
ChildCancelRequested = child_events.ChildCancelRequested
CodeRested = child_events.CodeRested


# --- the run -------------------------------------------------------------------------------------------------------


class RunStarted(Event, frozen=True, kw_only=True):
    """A mail was taken up and a run begins; in the commit that consumed the mail."""

    mail: Mailed
    definition: Sha256
    """Hash of what the workflow file declares: name, address, steps in order, settings."""
    code: Sha256
    """Hash of the deployed tree of code; in histories before there were trees, of the workflow's file."""
    python: Line
    waypost: Line
    distributions: Sha256 | UnsetType = UNSET
    """Digest of the distributions that were installed, each as ``name==version``."""
    generation: Generation
    grants: Sha256
    """Of grants.json, which lies in the same commit."""
    origin: Sha256
    """Key of the mail, of a child run of the parent's call; every idempotency key of the run is derived from it."""
    after: RunId | UnsetType = UNSET
    """The finished run of the same thread that this one follows."""
    parent: Parent | UnsetType = UNSET
    """Of a child run: who started and awaits it."""
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


class RunInterrupted(Event, frozen=True, kw_only=True):
    """The child that drove the run ended, and nobody wanted that; what the run was doing is done again.

    Recorded before the next child comes, so that the count outlives a host: an end of the host itself leaves none.
    """

    generation: Generation
    attempt: Annotated[int, msgspec.Meta(ge=1)]
    """How many such exits there were since the run's last progress, with this one."""
    reason: Line
    """How the child ended, such as ``ended by SIGSEGV``."""


class RunPaused(Event, frozen=True, kw_only=True):
    """The run waits for an operator; the code says why, the detail is for people."""

    code: Literal["code-changed", "code-missing", "poison", "operator"]
    detail: Text = ""


class RunUnpaused(Event, frozen=True, kw_only=True):
    """An operator let the run go on."""

    by: Line


class CancelRequested(Event, frozen=True, kw_only=True):
    """Somebody asked for the run's end; whatever its code does now, it ends with RunCancelled.

    The log's order decides: a run whose end was recorded before this is not cancelled any more.
    """

    origin: Origin
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=16_384)]
    by: Line = ""
    """Of an operator or administrator: the operating system's name for them."""
    call: Call | UnsetType = UNSET
    """Where the run's own code asked for it."""


class RunCancelled(Event, frozen=True, kw_only=True):
    """The run was cancelled, and nothing of it goes on.

    ``code``: its code ``ended``; it had not when its time was up (``past-grace``); or it was ``not-run`` at all,
    because the run was paused, or hadn't begun. ``error``: what the code raised instead of the cancellation.
    """

    code: Literal["ended", "past-grace", "not-run"] = "ended"
    detail: Text = ""
    error: Fault | UnsetType = UNSET
    unread: tuple[Call, ...] = ()


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


class CancelPropagated(Event, frozen=True, kw_only=True):
    """The run's cancellation ended this try: its body was stopped, or raised when it was told, and has no outcome."""

    call: Call
    attempt: Annotated[int, msgspec.Meta(ge=1)] = 1


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
    """The run parks at this call: for its next mail, for a person's decision, or for the signal called ``name``.

    The child says ``timeout`` (seconds); ``timeout_at`` (Unix ms) is the substrate's to set. ``seen`` as in TimerSet.
    """

    call: Call
    park: Literal["input", "approval", "signal"]
    seen: int
    name: Line = ""
    title: Text = ""
    who: tuple[Line, ...] = ()
    request: str = ""
    """Message-ID of the mail that asks."""
    snapshot: msgspec.Raw | UnsetType = UNSET
    """JSON that whoever decides should see, at most 128 KiB; for programs that announce approvals."""
    timeout: Seconds | UnsetType = UNSET
    timeout_at: Milliseconds | UnsetType = UNSET


class SignalReceived(Event, frozen=True, kw_only=True):
    """What the wait at ``call`` was waiting for. A mail's event is in the commit that consumed the mail.

    Without a ``call``: a signal that came before anybody waited for one of its ``name``; the next wait takes it.
    """

    call: Call | UnsetType = UNSET
    signal: str
    """Identity of the answer: the same one twice is one."""
    name: Line = ""
    """Of a named signal, which has a ``payload``."""
    payload: Value | UnsetType = UNSET
    mail: Mailed | UnsetType = UNSET
    decision: Decision | UnsetType = UNSET


class SignalAwaitAbandoned(Event, frozen=True, kw_only=True):
    """The code no longer waits at this call: its task was cancelled."""

    call: Call


Ongoing = (
    RunStarted
    | Foreign
    | RunResumed
    | RunInterrupted
    | RunPaused
    | RunUnpaused
    | CancelRequested
    | StepStarted
    | StepCompleted
    | StepFailed
    | AttemptScheduled
    | CancelPropagated
    | TimerSet
    | TimerFired
    | TimerCancelled
    | SignalAwaited
    | SignalReceived
    | SignalAwaitAbandoned
    | MailQueued
    | MailSent
    | MailFailed
    | ChildSpawned
    | ChildRefused
    | ChildCompleted
    | ChildCancelRequested
    | CodeRested
)
"""Every event but the end of a run."""

AnyEvent = Ongoing | RunCompleted | RunFailed | RunCancelled
TERMINAL = (RunCompleted, RunFailed, RunCancelled)
_VALUE: dict[type[Event], str] = {
    StepCompleted: "output",
    RunCompleted: "result",
    SignalReceived: "payload",
    ChildCompleted: "result",
}
"""The field that has the value, for each kind with one."""

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
    head = f'{{"seq":{seq},"type":"{type(event).__name__}"'.encode()
    return numbered, head + raw[len(head) :]  # the encoder has the same two fields, the other way round


def decode(raw: bytes) -> AnyEvent:
    """Read one event, strictly: unknown kinds, unknown keys, wrong types and more than one line raise Invalid."""
    if b"\n" in raw:
        raise Invalid("not an event: it must be one line")
    try:
        raw.decode()
        event = _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise Invalid(f"not an event: {bad}") from None
    value = _value(event)
    if value is not UNSET and (value.inline is UNSET) == (value.blob is UNSET):
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
    named = [getattr(event if type(event) is Foreign else _value(event), "blob", UNSET) for event in events]
    return tuple([name for name in named if name is not UNSET])


def kind(event: AnyEvent) -> str:
    """The event's name in the log, such as ``StepCompleted``."""
    return type(event).__name__


def call_of(event: AnyEvent) -> CallId | None:
    """The call that the event belongs to; None for events of the run itself."""
    call: CallId | UnsetType | None = getattr(event, "call", None)
    return None if call is UNSET else call


def _value(event: AnyEvent) -> Value | UnsetType:
    # By type, as nearly every event is asked: isinstance takes as long for each class that it isn't of.
    field = _VALUE.get(type(event))
    found: Value | UnsetType = UNSET if field is None else getattr(event, field)
    return found
