"""What may be asked of a repository: who asks, every write as a typed operation, every question.

Part of ``substrate.messages``, by whose name it is imported. The value of each operation is in its docstring.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from substrate.beginning import Start
from substrate.generations import BeginGeneration, Interrupt, ResumeRuns
from substrate.granting import ChangeGrants, ReadGrants
from substrate.held_mail import ReadHold, ReadRejected, RejectHeld, ReleaseHeld
from substrate.indexing.census import ReadCensus
from substrate.rest import ReadRest
from substrate.service import (
    DrainDeployment,
    HoldDeployment,
    LatchDeployment,
    NoteDrain,
    ResetDeployment,
    ResumeDeployment,
)
from substrate.steering import Answer, Cancel, Pause, ReadApprovals, ReadLive, Signal, Unpause
from substrate.ticking import ReadSchedules, Tick
from waypost.model.code import Deployed, Files
from waypost.model.deadlines import Deadline
from waypost.model.events import AnyEvent, Decision, Fault
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.waiting import Waiting

if TYPE_CHECKING:
    from typing_extensions import TypeIs

# --- principals (storage §4) ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Supervisor:
    """The host itself, for this deployment."""


@dataclass(frozen=True, slots=True)
class WorkflowProcess:
    """A child; it may write to runs that this generation was given, and only while it is the newest."""

    generation: Generation


@dataclass(frozen=True, slots=True)
class Hub:
    """An administrator, through the host; ``user`` is who the operating system says it is."""

    user: str


Principal: TypeAlias = Supervisor | WorkflowProcess | Hub


# --- operations ----------------------------------------------------------------------------------------------------


class Append(msgspec.Struct, frozen=True, kw_only=True):
    """Add events to a run's log: all of them or none. Value: the run's new last seq."""

    by: Principal
    run: RunId
    events: tuple[AnyEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PutBlob:
    """Hold a value until an event names it; it enters the tree with that event. Value: None."""

    by: Principal
    run: RunId
    sha256: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Enqueue:
    """Accept a mail: its run is assigned now, the raw message is stored once. Value: ``Accepted``."""

    raw: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Accepted:
    """Where a mail stands: ``enqueued``, or ``already-present`` in ``inbox``, ``processing``, ``consumed`` or ``hold``.

    ``on-hold``: another mail has its Message-ID; it waits for an operator (``run`` is that other mail's). ``released``:
    the operator has let it in.
    """

    outcome: str
    run: RunId
    arrival: int
    place: str = "inbox"


@dataclass(frozen=True, slots=True)
class Claim:
    """Inbox to processing, the attempt raised and in the name. Value: the attempt."""

    arrival: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeUp:
    """Processing to consumed, and the event that this causes, in one commit. Value: the run's id.

    With ``start``: RunStarted and grants.json. With ``wait``: SignalReceived naming that wait (and ``decision`` when it
    answers an approval). ``reroute``: the mail's run has ended meanwhile; a new run is started that names the old one.
    ``barred``: why it may not run, for good; then, or where what it asks for isn't granted, it is RunFailed at once.
    """

    arrival: int
    start: Start | None = None
    wait: CallId | None = None
    decision: Decision | None = None
    reroute: bool = False
    barred: Fault | None = None


@dataclass(frozen=True, slots=True)
class Reject:
    """Processing to consumed, marked as rejected; it causes no event and stays readable. Value: None."""

    arrival: int
    code: str


@dataclass(frozen=True, slots=True)
class Release:
    """Processing back to inbox, under its old name. Value: None."""

    arrival: int


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """A queued mail is no answer to the open approval that it speaks to: one notice goes back. Value: None."""

    arrival: int
    call: CallId


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that goes with an outgoing mail."""

    name: str
    content_type: str
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMail:
    """A run asks for a mail: grant check, then MailQueued and the outbox entry in one commit, or MailFailed.

    Value: None; the event tells. The message is composed here, under a Message-ID that only this host can make and
    that is the same for the same call; a call that has its mail already is answered again and queued once.
    """

    by: WorkflowProcess
    run: RunId
    call: CallId
    to: tuple[str, ...]
    subject: str
    text: str
    reply_to_mail: str | None = None
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SpawnChild:
    """A run asks for a child run: ChildSpawned and the mail that starts it in one commit, or ChildRefused.

    Value: None; the event tells. ``workflow``: name of the child function; ``input``: its JSON; ``seen`` as in
    TimerSet. A call that has its child already is answered again and starts one.
    """

    by: WorkflowProcess
    run: RunId
    call: CallId
    workflow: str
    input: bytes = field(repr=False)
    seen: int


@dataclass(frozen=True, slots=True)
class MailDelivered:
    """MailSent and the removal of the outbox entry in one commit; a second time is no error. Value: None."""

    ordinal: int


@dataclass(frozen=True, slots=True)
class MailUndeliverable:
    """MailFailed and the removal of the outbox entry in one commit. Value: None."""

    ordinal: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deploy:
    """From now on this code runs: the tree, if it isn't there yet, and the record of it, in one commit. Value: None.

    ``files``: the whole tree's. Refused with code ``code`` where it isn't the tree that ``record`` names, or too big.
    """

    record: Deployed
    files: Files = field(repr=False)


Operation: TypeAlias = (
    Append
    | PutBlob
    | Enqueue
    | Claim
    | TakeUp
    | Reject
    | Release
    | NoAnswer
    | ReleaseHeld
    | RejectHeld
    | BeginGeneration
    | Interrupt
    | ResumeRuns
    | QueueMail
    | SpawnChild
    | MailDelivered
    | MailUndeliverable
    | Answer
    | Pause
    | Unpause
    | Cancel
    | Signal
    | ResumeDeployment
    | DrainDeployment
    | HoldDeployment
    | NoteDrain
    | LatchDeployment
    | ResetDeployment
    | Deploy
    | ChangeGrants
    | Tick
)


# --- questions (answered from what is visible, in the order of the mailbox) ---------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLog:
    """Stored events after a seq: as many as fit ``limit`` bytes, at least one. Value: ``LogPage``.

    ``mails``: bytes of a page that may be filled up with the mails that its events bring to the run's code.
    """

    run: RunId
    after: int = 0
    limit: int
    mails: int = 0


@dataclass(frozen=True, slots=True)
class LogPage:
    """Stored events in seq order; ``last`` is the run's newest seq at this moment."""

    run: RunId
    events: tuple[bytes, ...]
    last: int
    grants: bytes = b""
    mails: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBlob:
    """A blob, or a mail that the run was given, by its hash. Value: bytes, or Refused."""

    run: RunId
    sha256: str
    by: Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRuns:
    """Runs, newest first, from the one after ``before`` on. Value: tuple of ``RunLine``."""

    limit: int = 1000
    before: RunId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLine:
    """One run in a list. Times are ISO 8601 UTC."""

    run: RunId
    state: str
    """``queued``, ``running``, ``parked``, ``paused``, ``cancelling``, ``completed``, ``failed`` or ``cancelled``."""
    started: str
    changed: str
    seq: int
    subject: str = ""
    waiting: tuple[Waiting, ...] = ()
    """What it waits on, oldest first; nothing for a run that has ended."""
    parent: str = ""
    """The run whose child it is; empty where it is nobody's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadDeadlines:
    """The open deadlines of all runs behind ``after``, in the order of firing. Value: ``Deadlines``."""

    after: Deadline | None = None
    limit: int


@dataclass(frozen=True, slots=True)
class Deadlines:
    """In the order of firing; ``more``: others follow the last of them."""

    found: tuple[Deadline, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class ReadSealed:
    """Asked before stock git reads: all that is durable is brought onto the branch first. Value: None."""


Question: TypeAlias = (
    ReadGrants
    | ReadSchedules
    | ReadLog
    | ReadBlob
    | ReadRest
    | ReadRuns
    | ReadDeadlines
    | ReadHold
    | ReadRejected
    | ReadSealed
    | ReadApprovals
    | ReadLive
    | ReadCensus
)
READING = (
    ReadGrants,
    ReadSchedules,
    ReadLog,
    ReadBlob,
    ReadRuns,
    ReadDeadlines,
    ReadHold,
    ReadRejected,
    ReadApprovals,
    ReadLive,
    ReadCensus,
)
"""Questions that are answered at once, from what is visible."""
_QUESTIONS = frozenset({*READING, ReadRest, ReadSealed})


def is_question(what: Operation | Question) -> "TypeIs[Question]":
    """By type: to ask an operation for one of these after the other takes as long as to encode its event."""
    return type(what) in _QUESTIONS
