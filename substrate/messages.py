"""What a SubstrateActor is told, what it answers, and the one ordered stream that it publishes.

Writes are typed operations (``requests``), wrapped in ``Submit``; each is a pure decision over (view, operation) that
yields a change or ``Refused``. Answers are sent at the stage that was asked for: COMMITTED is visible inside the
deployment, DURABLE has returned from the disk (storage §2). What changed is published as facts (``stream``).
"""

import enum
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import pykka

from substrate.beginning import Start
from substrate.generations import BeginGeneration, Interrupt, Interrupted, ResumeRuns
from substrate.granting import ChangeGrants, GrantsChanged, InForce, ReadGrants
from substrate.held_mail import Kept, ReadHold, ReadRejected, RejectedPage, RejectHeld, ReleaseHeld
from substrate.indexing.census import Census, ReadCensus
from substrate.requests import (
    Accepted,
    Append,
    Attachment,
    Claim,
    Deadlines,
    Deploy,
    Enqueue,
    Hub,
    LogPage,
    MailDelivered,
    MailUndeliverable,
    NoAnswer,
    Operation,
    Principal,
    PutBlob,
    Question,
    QueueMail,
    ReadBlob,
    ReadDeadlines,
    ReadLog,
    ReadRuns,
    ReadSealed,
    Reject,
    Release,
    RunLine,
    SpawnChild,
    Supervisor,
    TakeUp,
    WorkflowProcess,
)
from substrate.rest import ReadRest, Rest
from substrate.service import (
    DrainDeployment,
    GoesOn,
    HoldDeployment,
    LatchDeployment,
    NoteDrain,
    ResetDeployment,
    ResumeDeployment,
    Unlatched,
)
from substrate.state import Drain, Latch
from substrate.steering import (
    Answer,
    Approval,
    Approvals,
    Cancel,
    CancelTaken,
    LiveRuns,
    Pause,
    ReadApprovals,
    ReadLive,
    Signal,
    SignalTaken,
    Unpause,
)
from substrate.stream import (
    Appended,
    Claimed,
    Committed,
    Consumed,
    Durable,
    Fact,
    GenerationBegun,
    Held,
    OutboxAdded,
    OutboxRemoved,
    Queued,
    Recorded,
    Snapshot,
    Stream,
)
from substrate.ticking import Planned, ReadSchedules, ScheduleMoved, Tick, Ticked

__all__ = [
    "Accepted",
    "Answer",
    "Append",
    "Appended",
    "Approval",
    "Approvals",
    "Attachment",
    "BeginGeneration",
    "Cancel",
    "CancelTaken",
    "Census",
    "ChangeGrants",
    "Claim",
    "Claimed",
    "Committed",
    "Consumed",
    "Deadlines",
    "Deploy",
    "Done",
    "Drain",
    "DrainDeployment",
    "Durable",
    "Enqueue",
    "Fact",
    "Flush",
    "FoldAway",
    "GenerationBegun",
    "GoesOn",
    "GrantsChanged",
    "Held",
    "HoldDeployment",
    "Hub",
    "Idle",
    "InForce",
    "Interrupt",
    "Interrupted",
    "Kept",
    "Latch",
    "LatchDeployment",
    "LiveRuns",
    "LogPage",
    "MailDelivered",
    "MailUndeliverable",
    "NoAnswer",
    "NoteDrain",
    "Open",
    "Operation",
    "OutboxAdded",
    "OutboxRemoved",
    "Outcome",
    "Pause",
    "Planned",
    "Principal",
    "PutBlob",
    "Question",
    "QueueMail",
    "Queued",
    "ReadApprovals",
    "ReadBlob",
    "ReadCensus",
    "ReadDeadlines",
    "ReadGrants",
    "ReadHold",
    "ReadLive",
    "ReadLog",
    "ReadRejected",
    "ReadRest",
    "ReadRuns",
    "ReadSchedules",
    "ReadSealed",
    "Recorded",
    "Ref",
    "Refused",
    "Reject",
    "RejectHeld",
    "RejectedPage",
    "Release",
    "ReleaseHeld",
    "ResetDeployment",
    "Rest",
    "Result",
    "ResumeDeployment",
    "ResumeRuns",
    "RunLine",
    "ScheduleMoved",
    "Seal",
    "Settle",
    "Signal",
    "SignalTaken",
    "Snapshot",
    "SpawnChild",
    "Stage",
    "Start",
    "Stream",
    "Submit",
    "Subscribe",
    "SubstrateMessage",
    "Supervisor",
    "TakeUp",
    "Tick",
    "Ticked",
    "Unlatched",
    "Unpause",
    "Withheld",
    "WorkflowProcess",
]

Ref: TypeAlias = pykka.ActorRef[Any]


class Stage(enum.Enum):
    """When an answer is sent."""

    COMMITTED = "committed"
    DURABLE = "durable"


# --- the envelope --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Recover the repository and begin; first message of every SubstrateActor. Value: ``Snapshot``.

    Refused with codes ``damaged``, ``foreign``, ``newer-format``, ``unreadable``, ``disk`` when it can't be opened.
    """

    reply_to: Ref | None = None
    correlation: int = 0


class Submit(msgspec.Struct, frozen=True, kw_only=True):
    """One operation or question; the answer goes to ``reply_to`` as ``Outcome`` (or to the asker of ``request``)."""

    what: Operation | Question
    stage: Stage = Stage.DURABLE
    reply_to: Ref | None = None
    correlation: int = 0


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Send ``Snapshot`` now and every later ``Committed`` and ``Durable``, in order, to this actor."""

    subscriber: Ref


@dataclass(frozen=True, slots=True)
class Seal:
    """Seal what is flushed, so that stock git sees it. Value: flush number of the tip. To be asked."""


@dataclass(frozen=True, slots=True)
class Flush:
    """The actor's own reminder: the batch ends here."""


@dataclass(frozen=True, slots=True)
class FoldAway:
    """The actor's own reminder: a finished run may be sealed, in a turn of its own."""


@dataclass(frozen=True, slots=True)
class Idle:
    """The actor's own timer: perhaps a seal is due."""


@dataclass(frozen=True, slots=True)
class Settle:
    """The actor's own reminder: the next portion of what is durable goes into the derived index."""


@dataclass(frozen=True, slots=True)
class Merge:
    """The actor's own timer: the next step of merging packs is due."""


class Done(msgspec.Struct, frozen=True):
    """The operation is committed (or durable) at ``position``; ``value`` as its docstring says."""

    position: int
    value: Any = None


@dataclass(frozen=True, slots=True)
class Refused:
    """The operation broke a rule and changed nothing. ``code`` names the rule, ``why`` and ``hint`` are for people."""

    code: str
    why: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Withheld:
    """It could not be written (disk full, disk failed): nothing is known to be durable; try again later."""

    reason: str


Result: TypeAlias = Done | Refused | Withheld


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a Submit or Open with this correlation."""

    correlation: int
    result: Result


SubstrateMessage: TypeAlias = Open | Submit | Subscribe | Seal | Flush | FoldAway | Settle | Idle | Merge
