"""Between the log's events and what the code sees of them: outcomes one way, ends and large values the other.

Pure: a mail or blob that an event names is handed in as bytes.
"""

import hashlib
from typing import TYPE_CHECKING, assert_never

import msgspec
from msgspec import UNSET

from waypost.authoring.calls import Verdict
from waypost.authoring.errors import ChildFailed, ChildRefused, DeadlinePassed, SendRefused
from waypost.authoring.requests import AwaitDecision, AwaitSignal, CallChild, CallStep, Quit, Request, Send, Sleep
from waypost.child import faults
from waypost.child.calls import Reached
from waypost.child.errors import HostBroke, Mismatch
from waypost.child.program import Finished, Gave, Outcome, Raised, Rest
from waypost.child.replay import shown
from waypost.model import events as ev
from waypost.model.ids import CallId
from waypost.model.limits import Limits
from waypost.model.schedule import tick_of
from waypost.model.values import Codec, ValueNotStorable

if TYPE_CHECKING:
    from waypost.model.mail_record import Mail


def blob_of(event: ev.AnyEvent) -> str | None:  # noqa: PLR0911 - one arm per kind of event
    """SHA-256 of the blob or mail without which the event can't be taken."""
    match event:
        case ev.RunStarted():
            return event.mail.sha256
        case ev.SignalReceived() if event.decision is UNSET and event.mail is not UNSET:
            return event.mail.sha256
        case ev.SignalReceived(payload=ev.Value(blob=str() as blob)):
            return blob
        case ev.StepCompleted() if event.output.blob is not UNSET:
            return event.output.blob
        case ev.RunCompleted() if event.result.blob is not UNSET:
            return event.result.blob
        case ev.ChildCompleted(result=ev.Value(blob=str() as blob)):
            return blob
        case _:
            return None


def mail_of(raw: bytes, known: ev.Mailed) -> "Mail":
    """A mail as the code gets it; ``known``: as its event names it, by an id that the host has given it."""
    from waypost.model.mail_parse import parse  # a child that only waits has no use for it

    mail, tick = parse(raw), tick_of(known.id)
    return mail if tick is None else msgspec.structs.replace(mail, tick=tick)


def of(reached: Reached, blob: bytes) -> Outcome:  # noqa: C901, PLR0911 - one arm per kind of event
    """What the code is given for an event. Raises Mismatch for a recorded value that its annotation doesn't fit."""
    request, event = reached.request, reached.event
    match event:
        case ev.StepCompleted() if isinstance(request, CallStep):
            return _gave(reached.call, f"step {request.spec.name}", request.spec.codec, _raw(event.output, blob))
        case ev.StepFailed() if isinstance(request, CallStep):
            return Raised(faults.rebuilt(event.error, request.spec))
        case ev.TimerFired():
            return _timed(request)
        case ev.SignalReceived() if event.decision is not UNSET:
            made = event.decision
            return Gave(Verdict(made.approved, made.by, made.text, made.via))
        case ev.SignalReceived(payload=ev.Value() as payload):
            return Gave(_raw(payload, blob))
        case ev.SignalReceived(mail=ev.Mailed() as mail):
            return Gave(mail_of(blob, mail))
        case ev.MailQueued():
            return Gave(event.message_id)
        case ev.MailFailed():
            return Raised(SendRefused(event.reason))
        case ev.ChildCompleted(result=ev.Value() as value) if isinstance(request, CallChild):
            return _gave(reached.call, f"child {request.spec.name}", request.spec.codec, _raw(value, blob))
        case ev.ChildCompleted(error=ev.Fault() as error) if isinstance(request, CallChild):
            return Raised(_child_failed(reached, request, event.outcome, error))
        case ev.ChildRefused():
            return Raised(ChildRefused(event.workflow, event.reason))
        case _:
            raise HostBroke(f"{shown(event)} at {reached.call} is no outcome")


def _gave(call: CallId, what: str, codec: Codec, raw: bytes) -> Gave:
    try:
        return Gave(codec.load(raw))
    except ValueNotStorable as changed:
        now = f"{what} with another return annotation ({changed.why})"
        raise Mismatch(call, f"a result of {what}", now) from None


def _child_failed(reached: Reached, request: CallChild, outcome: str, error: ev.Fault) -> ChildFailed:
    return ChildFailed(
        run=reached.child, workflow=request.spec.name, outcome=outcome, type=error.type, reason=error.message
    )


def refusal(request: Send | CallChild | Quit, why: str) -> Exception:
    """What a run fails with whose request broke a rule: no event tells of that, so its code can't be told."""
    match request:
        case Send():
            return SendRefused(why)
        case CallChild(spec):
            return ChildRefused(spec.name, why)
        case Quit():
            return RuntimeError(f"the host refused to cancel it: {why}")
        case _:
            assert_never(request)


def end(outcome: Outcome, unread: tuple[CallId, ...], result: Codec, limits: Limits) -> ev.RunCompleted | ev.RunFailed:
    """The terminal event of a function that returned or raised; ``result``: the codec of what it returns."""
    match outcome:
        case Gave(value):
            try:
                stored = result.store(value, limit=limits.value)
            except ValueNotStorable as refused:
                return ev.RunFailed(error=faults.of_run(refused), unread=unread)
            return ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(stored.raw)), unread=unread)
        case Raised(error):
            return ev.RunFailed(error=faults.of_run(error), unread=unread)


def cancelled(event: ev.RunCompleted | ev.RunFailed) -> ev.RunCancelled:
    """The end of a cancelled run whose code ended so. What it returned is nobody's; what else it raised is recorded."""
    match event:
        case ev.RunCompleted():
            return ev.RunCancelled(unread=event.unread)
        case ev.RunFailed():
            plain = event.error.type in {"CancelledError", "RunCancelled"} and not event.error.step
            return ev.RunCancelled(error=UNSET if plain else event.error, unread=event.unread)


def check_end(event: ev.RunCompleted | ev.RunFailed, blob: bytes, rest: Rest | None, result: Codec) -> None:
    """Compare a recorded end with the code's own. Raises Mismatch."""
    if not isinstance(rest, Finished):
        raise Mismatch("the end", shown(event), "more: the function has not returned")
    own = end(rest.outcome, rest.unread, result, Limits())
    match event, own:
        case ev.RunCompleted(), ev.RunCompleted():
            same = _raw(event.result, blob) == _raw(own.result, b"")
        case ev.RunFailed(), ev.RunFailed():
            same = (event.error.type, event.error.message) == (own.error.type, own.error.message)
        case _:
            same = False
    if not same:
        raise Mismatch("the end", _end_in_words(event, blob), _end_in_words(own, b""))


def explained(difference: Mismatch, rest: Rest | None) -> Mismatch:
    """The same; where the code makes no call at all because it has raised, what it raises, as that is to be mended."""
    match rest:
        case Finished(Raised(error)) if not difference.now:
            fault = faults.of_run(error)
            now = f"nothing there, as it raises {fault.type}: {fault.message[:200]}"
            return Mismatch(difference.call, difference.recorded, now)
        case _:
            return difference


def slimmed(
    event: ev.StepCompleted | ev.RunCompleted | ev.RunFailed | ev.RunCancelled, inline: int
) -> tuple[ev.AnyEvent, bytes | None]:
    """The event with its value named by hash where that is over ``inline`` bytes, and the value's JSON then."""
    match event:
        case ev.StepCompleted():
            raw = _raw(event.output, b"")
            if len(raw) > inline:
                return msgspec.structs.replace(event, output=_named(raw)), raw
        case ev.RunCompleted():
            raw = _raw(event.result, b"")
            if len(raw) > inline:
                return msgspec.structs.replace(event, result=_named(raw)), raw
        case ev.RunFailed() | ev.RunCancelled():
            pass
    return event, None


def _timed(request: Request) -> Outcome:
    match request:
        case AwaitDecision(title):
            return Raised(DeadlinePassed(title))
        case Sleep():
            return Gave(None)
        case AwaitSignal(name):
            return Raised(DeadlinePassed(f"signal {name}"))
        case _:
            return Raised(DeadlinePassed("the run's next mail"))


def _raw(value: ev.Value, blob: bytes) -> bytes:
    return bytes(value.inline) if value.inline is not UNSET else blob


def _named(raw: bytes) -> ev.Value:
    return ev.Value(blob=hashlib.sha256(raw).hexdigest())


def _end_in_words(event: ev.RunCompleted | ev.RunFailed, blob: bytes) -> str:
    match event:
        case ev.RunCompleted():
            return f"the result {_raw(event.result, blob)[:200].decode(errors='replace')}"
        case ev.RunFailed():
            return f"the error {event.error.type}: {event.error.message[:200]}"
