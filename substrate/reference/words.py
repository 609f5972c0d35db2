"""One event of the reference system in the words of our vocabulary.

A table, by kind. What it yields is a proposal: whether it may follow is for our own fold to say, and what may not, or
has no word here at all, is recorded as ``Foreign``. Differences that the table bridges:

- a step's retry has no StepStarted of its own there: one is put before the outcome of the later try;
- a wait belongs to its step there and is a call of its own here; only ``input`` parks are waits here, because an
  approval is asked by mail, which there it isn't;
- a cancelled run failed here, with the reason of its CancelRequested.
"""

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec
from msgspec import UNSET

from substrate.reference.records import LATEST, Json, Told, clean
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, is_sha256
from waypost.model.limits import Limits
from waypost.model.nesting import too_deep
from waypost.model.values import DEPTH

LINE, TEXT = 1000, 131_072
"""Characters of a name that an event of ours may have; bytes of a message, so that it fits even if all is escaped."""
_INLINE, _BLOB = "inline:", "blob:"


@dataclass(slots=True)
class Names:
    """What its steps, waits and timers are called here. A name is given when it is asked for, and kept."""

    calls: int = 0
    steps: dict[str, CallId] = field(default_factory=dict)
    waits: dict[str, CallId] = field(default_factory=dict)
    timers: dict[str, tuple[CallId, str]] = field(default_factory=dict)
    cancelled: str = ""
    """The reason of the last CancelRequested."""

    def new(self) -> CallId:
        """The next call: all lie in the first lane, in the order in which they began."""
        self.calls += 1
        return CallId(f"r1#{self.calls}")


@dataclass(frozen=True, slots=True)
class Said:
    """Events to be recorded for one of theirs, the last of them its own; values that are too long to lie in it."""

    events: tuple[ev.AnyEvent, ...] = ()
    values: dict[str, bytes] = field(default_factory=dict, repr=False)


NOTHING = Said()
"""There is no word for it."""


def awaited(told: Told, ledger: fold.Ledger, names: Names) -> bool:
    """Whether the event answers a wait that is open here, and so takes a mail in."""
    return told.type == "SignalReceived" and names.waits.get(told.text("signalName")) in ledger.waits


def said(  # noqa: C901, PLR0911, PLR0912 - a table
    told: Told,
    ledger: fold.Ledger,
    names: Names,
    at: int,
    mail: ev.Mailed | None,
    stored: Collection[str],
    limits: Limits,
) -> Said:
    """The event in our words; ``NOTHING`` where there are none. RunStarted is the caller's: it has more to say.

    ``at``: its time, Unix ms. ``mail``: what it takes in. ``stored``: hashes of the values that lie beside the log.
    """
    step = told.text("stepId")
    match told.type:
        case "StepStarted":
            names.steps[step] = call = names.new()
            digest = hashlib.sha256(_reference(told, "input").encode()).hexdigest()
            return _one(
                ev.StepStarted(call=call, step=line(step), arguments=digest, attempt=max(1, told.number("attempt")))
            )
        case "StepCompleted":
            value = value_of(_reference(told, "output"), stored, limits)
            done, values = (None, {}) if value is None else value
            return NOTHING if done is None else _outcome(told, ledger, names, done, values)
        case "StepFailed":
            return _outcome(told, ledger, names, None, {})
        case "AttemptScheduled":
            timer = names.timers.get(told.text("timerId"))
            attempt = max(2, told.number("nextAttempt"))
            return (
                NOTHING if timer is None else _one(ev.AttemptScheduled(call=timer[0], attempt=attempt, timer=timer[1]))
            )
        case "TimerSet":
            return _timer(told, ledger, names, at)
        case "TimerFired":
            timer = names.timers.get(told.text("timerId"))
            return NOTHING if timer is None else _one(ev.TimerFired(call=timer[0], timer=timer[1]))
        case "SignalAwaited" if told.text("parkKind") == "input":
            return _wait(told, ledger, names, at)
        case "SignalReceived" if mail is not None:
            call = names.waits[told.text("signalName")]
            return _one(ev.SignalReceived(call=call, signal=f"imported:{line(told.text('signalId'))}", mail=mail))
        case "SignalAwaitAbandoned":
            wait = names.waits.get(told.text("signalName"))
            return NOTHING if wait is None else _one(ev.SignalAwaitAbandoned(call=wait))
        case "CancelRequested":
            names.cancelled = told.text("reason")
            return NOTHING
        case "RunCompleted":
            return _one(ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"null"))))
        case "RunFailed":
            return _one(ev.RunFailed(error=ev.Fault(type="Error", message=text(clean(told.inner("error", "message"))))))
        case "RunCancelled":
            return _one(ev.RunFailed(error=ev.Fault(type="Cancelled", message=text(names.cancelled))))
        case _:
            return NOTHING


def foreign(told: Told) -> ev.Foreign:
    """The event as one that only says what it was there."""
    about = (told.text(name) for name in ("stepId", "signalName", "timerId", "reason", "childRunId"))
    return ev.Foreign(was=line(told.type) or "?", about=line(", ".join(filter(None, about))))


def value_of(reference: str, stored: Collection[str], limits: Limits) -> tuple[ev.Value, dict[str, bytes]] | None:
    """A recorded output as a value, and its bytes where they are too long for an event; None where it can't be had."""
    if reference.startswith(_BLOB):
        name = reference.removeprefix(_BLOB)
        return (ev.Value(blob=name), {}) if is_sha256(name) and name in stored else None
    if not reference.startswith(_INLINE):
        return None
    raw = reference.removeprefix(_INLINE).encode("utf-8", "replace")
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if too_deep(raw, DEPTH):
        return None
    if len(raw) <= limits.inline and b"\n" not in raw:
        return ev.Value(inline=msgspec.Raw(raw)), {}
    name = hashlib.sha256(raw).hexdigest()
    return ev.Value(blob=name), {name: raw}


def line(name: str) -> str:
    """A name, cut to what an event's name may have."""
    return name[:LINE]


def text(words: str) -> str:
    """A message, cut so that it fits into an event."""
    return words.encode()[:TEXT].decode(errors="ignore")


def _one(event: ev.AnyEvent) -> Said:
    return Said((event,))


def _outcome(told: Told, ledger: fold.Ledger, names: Names, value: ev.Value | None, values: dict[str, bytes]) -> Said:
    call = names.steps.get(told.text("stepId"))
    if call is None:
        return NOTHING
    attempt = max(1, told.number("attempt"))
    retry = ledger.retries.get(call)
    before: tuple[ev.AnyEvent, ...] = ()
    if retry is not None and retry.attempt == attempt:
        before = (ev.StepStarted(call=call, step=retry.step, attempt=attempt, arguments=retry.arguments),)
    if value is not None:
        return Said((*before, ev.StepCompleted(call=call, attempt=attempt, output=value)), values)
    code = clean(told.inner("error", "code"))
    fault = ev.Fault(
        type=line(code) or "Error",
        message=text(clean(told.inner("error", "message"))),
        step=line(told.text("stepId")),
        call=call,
    )
    crashed = code == "crash-mid-invocation"
    final = told.fields.get("retriesExhausted") is not False
    failed = ev.StepFailed(
        call=call, attempt=attempt, error=fault, final=final, code="child-crashed" if crashed else "raised"
    )
    return Said((*before, failed))


def _timer(told: Told, ledger: fold.Ledger, names: Names, at: int) -> Said:
    fire_at = told.time("fireAt")
    if fire_at is None:
        return NOTHING
    call = names.steps.get(told.text("stepId"))
    retry = ledger.retries.get(call) if call is not None else None
    if call is not None and retry is not None:
        named = (call, f"{call}/{retry.attempt}")
    else:
        call = names.new()
        named = (call, call)
    names.timers[told.text("timerId")] = named
    delay = max(0, fire_at - at) / 1000
    return _one(ev.TimerSet(call=named[0], timer=named[1], delay=delay, seen=ledger.seq, fire_at=fire_at))


def _wait(told: Told, ledger: fold.Ledger, names: Names, at: int) -> Said:
    names.waits[told.text("signalName")] = call = names.new()
    deadline = told.time("timeoutAt")
    return _one(
        ev.SignalAwaited(
            call=call,
            park="input",
            seen=ledger.seq,
            timeout=UNSET if deadline is None else max(0, deadline - at) / 1000,
            timeout_at=UNSET if deadline is None else min(deadline, LATEST),
        )
    )


def _reference(told: Told, name: str) -> str:
    found: Json = told.inner(name, "ref")
    return found if isinstance(found, str) else ""
