"""What the host's API answers, as records: the server encodes them, the command line decodes them.

Times are ISO 8601 UTC with milliseconds; every error is a ``Problem``.
"""

import msgspec
from msgspec import UNSET, UnsetType


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all answers. A client ignores fields that it doesn't know: a later host may say more."""


class Problem(Answer, frozen=True, kw_only=True):
    """Why a request failed; ``code`` is for programs, ``hint`` says what to do next."""

    code: str
    message: str
    hint: str = ""


class ChildExit(Answer, frozen=True, kw_only=True):
    """How a child ended that nobody had asked to: ``why`` in words, and the last lines that it wrote to stderr."""

    generation: int
    at: str
    why: str
    stderr: tuple[str, ...] = ()


class AtWork(Answer, frozen=True, kw_only=True):
    """A run that executes while its deployment drains; ``since`` is empty where its code is between two steps."""

    run: str
    step: str
    since: str = ""


class FreshProcess(Answer, frozen=True, kw_only=True):
    """How the present process came to follow that of generation ``after``.

    ``origin``: ``operator``, ``policy``, ``self`` or ``crash``.
    """

    origin: str
    reason: str
    at: str
    after: int


class DeploymentStatus(Answer, frozen=True, kw_only=True):
    """How a deployment is; ``until`` is when it goes on by itself, ``exited`` the last child that ended unasked.

    ``code``: why it is down, for programs: ``crash-looping``, ``host-fault``, ``storage-failed``, ``damaged``, …; or
    what hinders one that runs: ``disk-full``, ``barred`` (grants or credentials are missing), ``broken-code``.
    """

    name: str
    address: str
    state: str
    reason: str = ""
    generation: int = 0
    pid: int | None = None
    until: str | None = None
    code: str = ""
    exited: ChildExit | None = None
    executing: tuple[AtWork, ...] = ()
    """While it drains: what it waits for, the longest at work first; ``more`` are not named."""
    more: int = 0
    renewed: FreshProcess | None = None


class DeploymentFollowed(Answer, frozen=True, kw_only=True):
    """How a deployment is; whoever asks again with the ``mark`` is answered when something has changed."""

    status: DeploymentStatus
    mark: str


class Status(Answer, frozen=True, kw_only=True):
    """How the host is."""

    waypost: str
    pid: int
    since: str
    data: str
    isolation: str
    signer: str
    deployments: tuple[DeploymentStatus, ...]


class RunRow(Answer, frozen=True, kw_only=True):
    """One run in a list."""

    run: str
    deployment: str
    state: str
    started: str
    changed: str
    seq: int
    subject: str = ""
    waiting: str = ""
    parent: str = ""
    """The run whose child it is; empty where it is nobody's."""


class ApprovalShown(Answer, frozen=True, kw_only=True):
    """An open approval. Its correlation is its ``call``; ``request`` is the Message-ID of the mail that asks."""

    deployment: str
    address: str
    run: str
    call: str
    at: str
    title: str
    who: tuple[str, ...]
    request: str
    deadline: str | None = None
    snapshot: msgspec.Raw | UnsetType = UNSET
    """As the workflow gave it; not there where it gave none."""


class Unread(Answer, frozen=True, kw_only=True):
    """A deployment that a list says nothing of, and why."""

    deployment: str
    why: str


class Runs(Answer, frozen=True, kw_only=True):
    """Runs, newest first; ``more`` tells that older ones were left out."""

    runs: tuple[RunRow, ...]
    more: bool = False
    unread: tuple[Unread, ...] = ()


class OpenApprovals(Answer, frozen=True, kw_only=True):
    """What runs ask of people, by deployment, oldest run first."""

    approvals: tuple[ApprovalShown, ...]
    unread: tuple[Unread, ...] = ()


class Line(Answer, frozen=True, kw_only=True):
    """An event in words."""

    seq: int
    at: str
    text: str


class Reason(Answer, frozen=True, kw_only=True):
    """Why something isn't further, as ``waypost.model.why.Sentence`` says it.

    ``until`` None is an explicit "no deadline"; ``since`` is empty where it isn't known; ``needed``: it doesn't go on
    by itself. ``command`` and ``alternative`` can be pasted, and are empty where nothing needs to be done.
    """

    waits_for: str
    since: str = ""
    until: str | None = None
    then: str
    command: str = ""
    alternative: str = ""
    needed: bool = False


class WaitingOn(Reason, frozen=True, kw_only=True):
    """One thing that a run waits on; ``detail`` says it in a few words, for a list."""

    kind: str
    detail: str
    call: str | None = None


class RunShown(Answer, frozen=True, kw_only=True):
    """One run with its whole timeline; of a child run ``parent`` awaits it, and ``child`` names its function.

    ``traceback``: of what it failed by, as it was recorded; else empty.
    """

    run: str
    deployment: str
    state: str
    started: str
    sender: str
    seq: int
    lines: tuple[Line, ...]
    parent: str = ""
    child: str = ""
    waiting: tuple[WaitingOn, ...] = ()
    traceback: str = ""


class EventsPage(Answer, frozen=True, kw_only=True):
    """Stored events after a seq, as they were committed; ``last`` is the run's newest seq."""

    run: str
    deployment: str
    events: tuple[msgspec.Raw, ...]
    last: int


class MailTaken(Answer, frozen=True, kw_only=True):
    """A mail is durable here. ``outcome`` as of ``substrate.messages.Accepted``."""

    deployment: str
    outcome: str
    run: str
    arrival: int
    place: str


class KeptMail(Answer, frozen=True, kw_only=True):
    """A mail that no run has. ``mail`` is its name for ``waypost queue``; ``clash`` names the mail that has its id.

    ``why``: ``id-clash``, ``poison`` or ``stale`` on hold, the reason of its rejection among the rejected; ``since``
    when.
    """

    mail: str
    deployment: str
    arrival: int
    why: str
    since: str
    received: str
    sender: str
    subject: str
    message_id: str
    clash: str | None = None


class KeptRun(Answer, frozen=True, kw_only=True):
    """A run that is paused as ``poison``: it ended its child again and again. ``waypost resume RUN`` lets it go on."""

    run: str
    deployment: str
    why: str
    since: str
    subject: str
    detail: str


class KeptMails(Answer, frozen=True, kw_only=True):
    """Mails that no run has; ``more`` tells that some were left out, ``counted`` how many were ever rejected.

    ``runs``: on hold, also the runs that are poison, among the newest thousand of each deployment.
    """

    mails: tuple[KeptMail, ...]
    runs: tuple[KeptRun, ...] = ()
    more: bool = False
    counted: int = 0
    unread: tuple[Unread, ...] = ()


class Released(Answer, frozen=True, kw_only=True):
    """A mail was let in from hold, durably."""

    mail: str
    run: str


class Rejected(Answer, frozen=True, kw_only=True):
    """A mail on hold was rejected, durably."""

    mail: str


class Answered(Answer, frozen=True, kw_only=True):
    """An approval was answered, durably."""

    run: str
    call: str
    approved: bool
    by: str


class Resumed(Answer, frozen=True, kw_only=True):
    """A paused run goes on."""

    run: str
    by: str


class CancelAsked(Answer, frozen=True, kw_only=True):
    """A run's end was asked for, durably: by this request (``fresh``), or before it, by whom and when."""

    run: str
    fresh: bool
    at: str
    origin: str
    by: str


class Signalled(Answer, frozen=True, kw_only=True):
    """A signal is recorded, durably. ``outcome`` as of ``substrate.messages.SignalTaken``."""

    run: str
    name: str
    id: str
    outcome: str
    call: str | None = None


class DeploymentResumed(Answer, frozen=True, kw_only=True):
    """A held deployment goes on, as far as it isn't crash-looping (``latched``)."""

    deployment: str
    by: str
    latched: bool = False


class DeploymentReset(Answer, frozen=True, kw_only=True):
    """A deployment isn't crash-looping any more: it has a child again, as far as it isn't ``held``.

    ``ending``: it is taken out of service, so no run begins.
    """

    deployment: str
    by: str
    held: bool = False
    ending: bool = False


class DeploymentDraining(Answer, frozen=True, kw_only=True):
    """A deployment has begun to drain."""

    deployment: str
    by: str


class DeploymentRecycling(Answer, frozen=True, kw_only=True):
    """A deployment's process of this generation is being replaced."""

    deployment: str
    generation: int


class CodeDeployed(Answer, frozen=True, kw_only=True):
    """What a deployment runs from now on; ``new``: it didn't before. ``size`` in bytes.

    ``later``: only from the next start of a host on, as the one that runs here left it out. ``again``: the same code is
    started anew, as its process couldn't load it.
    """

    deployment: str
    tree: str
    new: bool
    later: bool = False
    again: bool = False
    files: tuple[str, ...]
    size: int


class SealedNow(Answer, frozen=True, kw_only=True):
    """All that is durable of a deployment is on its branch, for stock git to read."""

    deployment: str


class Finding(Answer, frozen=True, kw_only=True):
    """Something that isn't as it must be."""

    commit: str
    path: str
    fault: str


class DeploymentVerified(Answer, frozen=True, kw_only=True):
    """What the check of one repository found."""

    deployment: str
    sound: bool
    signer: str
    pinned: bool
    repository: str
    flushes: int
    commits: int
    runs: int
    events: int
    reach: str
    epoch: int = 1
    signers: tuple[str, ...] = ()
    """Fingerprints of all keys that signed, where there was more than one: each named by the one before."""
    earlier: tuple[str, ...] = ()
    """Of keys that signed before a restore elsewhere, which named nobody."""
    faults: tuple[Finding, ...] = ()


class Verified(Answer, frozen=True, kw_only=True):
    """What the check of every repository found. ``isolation``: empty without a host, None for a clone."""

    isolation: str | None
    deployments: tuple[DeploymentVerified, ...]
