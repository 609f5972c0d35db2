"""What a child asks for: its requests become operations on the substrate, in the order in which they came.

A request that is over a limit is refused alone; one that no honest runtime would make raises RuleBroken, which ends
the channel. The child's word is never taken for who it is or which generation it has: both are the host's. Pure.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from msgspec import UNSET

from actors.effects import Ask
from actors.errors import RuleBroken
from actors.logic.child.outbox import Blob, Item
from ipc.messages import (
    AppendRequest,
    AppendResponse,
    BlobGet,
    BlobPut,
    BlobStored,
    CancelRequest,
    CancelResult,
    OutboundMessage,
    OutboundResult,
    PauseRequest,
    PauseResult,
    SpawnRequest,
    SpawnResult,
)
from substrate.messages import (
    Append,
    Attachment,
    Cancel,
    Done,
    Operation,
    Pause,
    PutBlob,
    QueueMail,
    ReadBlob,
    Refused,
    SpawnChild,
    Stage,
    WorkflowProcess,
)
from substrate.messages import Question as Reading
from waypost.model import events as ev
from waypost.model.errors import Invalid
from waypost.model.ids import CallId, Generation, RunId, call_id, parse_run_id
from waypost.model.limits import Limits
from waypost.model.nesting import too_deep

Request: TypeAlias = AppendRequest | BlobPut | BlobGet | OutboundMessage | PauseRequest | CancelRequest | SpawnRequest

_WORDS = 2000  # of a refusal, for the child: enough for people, small enough for a frame


# --- what is under way ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Appending:
    """An append; ``blobs`` are the values that its events name, ``ends`` says whether one of them is the run's last."""

    id: int
    run: RunId
    blobs: tuple[str, ...]
    ends: bool


@dataclass(frozen=True, slots=True)
class Storing:
    """A value, whole, on its way into the substrate."""

    id: int
    run: RunId
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Fetching:
    """A blob that was asked for."""

    id: int


@dataclass(frozen=True, slots=True)
class Mailing:
    """A mail."""

    id: int


@dataclass(frozen=True, slots=True)
class Pausing:
    """A pause."""

    id: int


@dataclass(frozen=True, slots=True)
class Cancelling:
    """A run's own wish to end."""

    id: int


@dataclass(frozen=True, slots=True)
class Spawning:
    """A child run."""

    id: int


UnderWay: TypeAlias = Appending | Storing | Fetching | Mailing | Pausing | Cancelling | Spawning


@dataclass(frozen=True, slots=True)
class Gathering:
    """A value whose parts are coming."""

    run: RunId
    sha256: str
    size: int = 0
    parts: tuple[bytes, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Spoiled:
    """A value that is refused once its last part has come; until then its parts are dropped."""

    run: RunId
    sha256: str
    size: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """What one child has asked for and isn't answered yet, and what it keeps room for; nothing else of it."""

    correlation: int = 0
    """The last one that was given out."""
    last: int = -1
    """The highest id that the child has used."""
    open: Mapping[int, UnderWay] = field(default_factory=dict)
    """By correlation."""
    parts: Mapping[int, Gathering | Spoiled] = field(default_factory=dict)
    """By id."""
    held: Mapping[tuple[RunId, str], int] = field(default_factory=dict)
    """Sizes of values that are stored and that no event of their run names yet, by run and hash."""
    queued: tuple[BlobGet, ...] = ()
    """Blobs are fetched one at a time: each may weigh 64 MiB."""


@dataclass(frozen=True, slots=True)
class Given:
    """What a request, or its answer, leads to: the new requests, operations, and what the child is told."""

    requests: Requests
    submit: tuple[Ask, ...] = ()
    say: tuple[Item, ...] = ()


# --- in ------------------------------------------------------------------------------------------------------------


def take(  # noqa: C901, PLR0911 - one arm per kind of request
    requests: Requests, request: Request, *, generation: Generation, limits: Limits, late: int = 0
) -> Given:
    """Take a request in; ``late`` others are done, and their answers are held back. Raises RuleBroken."""
    continued = isinstance(request, BlobPut) and request.id in requests.parts
    if not continued:
        if request.id <= requests.last:
            raise RuleBroken(f"request {request.id} follows request {requests.last}; ids only rise")
        if len(requests.open) + len(requests.parts) + len(requests.queued) + late >= limits.requests:
            raise RuleBroken(f"more than {limits.requests} requests are under way")
        requests = replace(requests, last=request.id)
    run = _run(request.run)
    by = WorkflowProcess(generation)
    match request:
        case AppendRequest():
            return _append(requests, request, run, by)
        case BlobPut():
            return _gather(requests, request, run, by, limits)
        case BlobGet():
            return Given(replace(requests, queued=(*requests.queued, request)))
        case OutboundMessage():
            return _submit(requests, Mailing(request.id), _mail(request, run, by), Stage.COMMITTED)
        case PauseRequest():
            pause = Pause(run=run, code=request.code, detail=request.detail, generation=generation)
            return _submit(requests, Pausing(request.id), pause, Stage.COMMITTED)
        case CancelRequest():
            return _submit(requests, Cancelling(request.id), _cancel(request, run, generation), Stage.COMMITTED)
        case SpawnRequest():
            return _submit(requests, Spawning(request.id), _spawn(request, run, by), Stage.COMMITTED)
        case _:
            assert_never(request)


def fetch(requests: Requests, *, generation: Generation) -> Given:
    """Ask for the next blob, if one is wanted and none is being fetched."""
    if not requests.queued or any(isinstance(request, Fetching) for request in requests.open.values()):
        return Given(requests)
    first, *rest = requests.queued
    question = ReadBlob(run=_run(first.run), sha256=first.sha256, by=WorkflowProcess(generation))
    return _submit(replace(requests, queued=tuple(rest)), Fetching(first.id), question, Stage.COMMITTED)


def _append(requests: Requests, request: AppendRequest, run: RunId, by: WorkflowProcess) -> Given:
    if any(map(too_deep, request.events)):
        raise RuleBroken(f"append.request {request.id}: an event is nested deeper than any is read")
    try:
        events = tuple(map(ev.decode, request.events))
    except Invalid as bad:
        raise RuleBroken(f"append.request {request.id}: {bad.message}") from None
    ends = any(isinstance(event, ev.TERMINAL) for event in events)
    leaves = ends or any(isinstance(event, ev.StepStarted) for event in events)
    # A step's body touches the world, and a run's end is told to it: both wait for the disk (storage §2).
    stage = Stage.DURABLE if leaves else Stage.COMMITTED
    appending = Appending(request.id, run, ev.blobs(events), ends)
    return _submit(requests, appending, Append(by=by, run=run, events=events), stage)


def _mail(request: OutboundMessage, run: RunId, by: WorkflowProcess) -> QueueMail:
    return QueueMail(
        by=by,
        run=run,
        call=_call(request.call),
        to=request.to,
        subject=request.subject,
        text=request.text,
        reply_to_mail=None if request.reply_to_mail is UNSET else request.reply_to_mail,
        attachments=tuple(
            Attachment(name=file.name, content_type=file.content_type, content=file.content)
            for file in request.attachments
        ),
    )


def _cancel(request: CancelRequest, run: RunId, generation: Generation) -> Cancel:
    return Cancel(run=run, reason=request.reason, origin="self", call=_call(request.call), generation=generation)


def _spawn(request: SpawnRequest, run: RunId, by: WorkflowProcess) -> SpawnChild:
    return SpawnChild(
        by=by, run=run, call=_call(request.call), workflow=request.workflow, input=request.input, seen=request.seen
    )


def _gather(requests: Requests, part: BlobPut, run: RunId, by: WorkflowProcess, limits: Limits) -> Given:
    so_far = requests.parts.get(part.id, Gathering(run, part.sha256))
    if (so_far.run, so_far.sha256, so_far.size) != (run, part.sha256, part.offset):
        raise RuleBroken(f"blob.put {part.id}: a part at {part.offset} doesn't follow {so_far.size} bytes")
    size = so_far.size + len(part.data)
    match so_far:
        case Gathering() if why := _too_much(requests, part, size, limits):
            grown: Gathering | Spoiled = Spoiled(run, part.sha256, size, why)
        case Gathering():
            grown = replace(so_far, size=size, parts=(*so_far.parts, part.data) if part.data else so_far.parts)
        case Spoiled():
            grown = replace(so_far, size=size)
        case _:
            assert_never(so_far)
    if not part.last:
        return Given(replace(requests, parts={**requests.parts, part.id: grown}))
    done = replace(requests, parts={id_: parts for id_, parts in requests.parts.items() if id_ != part.id})
    if isinstance(grown, Spoiled):
        return Given(done, say=(BlobStored(id=part.id, refused=grown.why),))
    data = b"".join(grown.parts)
    if hashlib.sha256(data).hexdigest() != part.sha256:
        return Given(done, say=(BlobStored(id=part.id, refused="the value doesn't have the hash that names it"),))
    operation = PutBlob(by=by, run=run, sha256=part.sha256, data=data)
    return _submit(done, Storing(part.id, run, part.sha256, size), operation, Stage.COMMITTED)


def _too_much(requests: Requests, part: BlobPut, size: int, limits: Limits) -> str:
    if size > limits.value:
        return f"a value of more than {limits.value} bytes can't be stored"
    gathering = sum(
        other.size for id_, other in requests.parts.items() if id_ != part.id and isinstance(other, Gathering)
    )
    storing = sum(request.size for request in requests.open.values() if isinstance(request, Storing))
    if size + gathering + storing + sum(requests.held.values()) > limits.unreferenced_blobs:
        return f"more than {limits.unreferenced_blobs} bytes of values are stored that no event names yet"
    return ""


def _submit(requests: Requests, request: UnderWay, what: Operation | Reading, stage: Stage) -> Given:
    correlation = requests.correlation + 1
    after = replace(requests, correlation=correlation, open={**requests.open, correlation: request})
    return Given(after, submit=(Ask(correlation, what, stage),))


def _run(text: str) -> RunId:
    try:
        return parse_run_id(text)
    except Invalid as bad:
        raise RuleBroken(bad.message) from None


def _call(text: str) -> CallId:
    try:
        return call_id(text)
    except Invalid as bad:
        raise RuleBroken(bad.message) from None


# --- out -----------------------------------------------------------------------------------------------------------


def commits(requests: Requests, correlation: int, result: Done | Refused) -> bool:
    """Whether this outcome of a request is a commit; a value is none until an event names it."""
    return isinstance(result, Done) and isinstance(
        requests.open.get(correlation), Appending | Mailing | Pausing | Cancelling | Spawning
    )


def answer(requests: Requests, correlation: int, result: Done | Refused) -> Given:
    """What the child is told of a request's outcome; nothing for a correlation that isn't open."""
    request = requests.open.get(correlation)
    if request is None:
        return Given(requests)
    refused = UNSET if isinstance(result, Done) else result.why[:_WORDS]
    said: Item
    match request:
        case Appending():
            code = UNSET if isinstance(result, Done) else result.code
            said = AppendResponse(id=request.id, refused=refused, code=code)
        case Storing():
            said = BlobStored(id=request.id, refused=refused)
        case Fetching() if isinstance(result, Done):
            said = Blob(request.id, result.value)
        case Fetching():
            said = BlobStored(id=request.id, refused=refused)
        case Mailing():
            said = OutboundResult(id=request.id, refused=refused)
        case Pausing():
            said = PauseResult(id=request.id, refused=refused)
        case Cancelling():
            said = CancelResult(id=request.id, refused=refused)
        case Spawning():
            said = SpawnResult(id=request.id, refused=refused)
        case _:
            assert_never(request)
    left = {key: other for key, other in requests.open.items() if key != correlation}
    held = _held(requests.held, request) if isinstance(result, Done) else requests.held
    return Given(replace(requests, open=left, held=held), say=(said,))


def _held(held: Mapping[tuple[RunId, str], int], done: UnderWay) -> Mapping[tuple[RunId, str], int]:
    match done:
        case Storing():
            return {**held, (done.run, done.sha256): done.size}
        case Appending():
            # What a run that has ended left behind can't be named any more.
            return {
                (run, name): size
                for (run, name), size in held.items()
                if run != done.run or not (done.ends or name in done.blobs)
            }
        case _:
            return held
