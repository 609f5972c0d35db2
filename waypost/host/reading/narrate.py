"""A run's events in words, one line each: for the live timeline, ``waypost show`` and the API.

Pure over the events in their order. Text that came from outside is shortened and made printable: nothing in a mail can
write into somebody's terminal.
"""

import json
import re
from typing import assert_never

from msgspec import UNSET

from actors.messages import Kin
from waypost.model import events as ev
from waypost.model.schedule import tick_of
from waypost.model.shown import harmless
from waypost.model.times import plainly, stamp

_SHORT = 100
_LONG = 300
_DEPLOYED = re.compile(r'File "[^"\n]*/code/[0-9a-f]{64}/tree/([^"\n]+)", line ([0-9]{1,9})\b')
"""Where a traceback passes through deployed code."""


def printable(text: str, limit: int = _LONG) -> str:
    """One line without control characters, at most ``limit`` characters long."""
    flat = " ".join(harmless(text).split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


class Narrator:
    """Tells the events of one run; to be told all of them, in order, so that it knows each call's name."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._mails: dict[int, str] = {}
        self._signals: dict[str, int] = {}

    @property
    def needed(self) -> bool:
        """Whether it knows what the line of a later event needs; the fate of a mail may follow the run's end."""
        return bool(self._mails) or bool(self._names)

    def tell(self, event: ev.AnyEvent, child: Kin | None = None) -> str:  # noqa: C901, PLR0911 - a table
        """The event in words; ``child``: whom it is about, where that isn't one of the events that were told."""
        match event:
            case ev.RunCompleted() | ev.RunFailed() | ev.RunCancelled():
                unread = "".join(map(_never_read, self._signals.items()))
                self._names.clear()
                self._signals.clear()
                return f"{_end(event)}{unread}"
            case (
                ev.StepStarted() | ev.StepCompleted() | ev.StepFailed() | ev.AttemptScheduled() | ev.CancelPropagated()
            ):
                return self._step(event)
            case ev.TimerSet() | ev.TimerFired() | ev.TimerCancelled():
                return self._timer(event)
            case ev.SignalAwaited() | ev.SignalReceived() | ev.SignalAwaitAbandoned():
                return self._wait(event)
            case ev.MailQueued() | ev.MailSent() | ev.MailFailed():
                return self._mail(event)
            case ev.ChildSpawned() | ev.ChildRefused() | ev.ChildCompleted() | ev.ChildCancelRequested():
                return self._child(event, child)
            case ev.Foreign():
                return _foreign(event)
            case ev.RunInterrupted():
                return (
                    f"its process ended unexpectedly, time {event.attempt} without progress: {printable(event.reason)}"
                )
            case ev.CodeRested():
                return "its code still waits for something else"
            case ev.RunStarted() | ev.RunResumed() | ev.RunPaused() | ev.RunUnpaused() | ev.CancelRequested():
                return _run(event)
            case _:
                assert_never(event)

    def _step(
        self,
        event: ev.StepStarted | ev.StepCompleted | ev.StepFailed | ev.AttemptScheduled | ev.CancelPropagated,
    ) -> str:
        if isinstance(event, ev.StepStarted):
            self._names[event.call] = f"step {printable(event.step, _SHORT)}"
        name = self._names.get(event.call, f"step at {event.call}")
        match event:
            case ev.StepStarted():
                return f"{name} begins" + (f", attempt {event.attempt}" if event.attempt > 1 else "")
            case ev.StepCompleted():
                return f"{name} is done{_value(event.output)}"
            case ev.StepFailed():
                end = "" if event.final else "; it will be tried again"
                return f"{name} failed: {_fault(event.error, of=name)}{end}"
            case ev.AttemptScheduled():
                return f"{name}: attempt {event.attempt} follows"
            case ev.CancelPropagated():
                return f"{name} was stopped: the run is being cancelled"

    def _timer(self, event: ev.TimerSet | ev.TimerFired | ev.TimerCancelled) -> str:
        retry = event.timer != event.call
        name = self._names.get(event.call, f"the wait at {event.call}")
        match event:
            case ev.TimerSet():
                until = plainly(stamp(event.fire_at))
                if not retry:
                    self._names.setdefault(event.call, f"the timer until {until}")
                return f"{name} is tried again at {until}" if retry else f"a timer is set until {until}"
            case ev.TimerFired() if retry:
                return f"{name}: it is time for the next attempt"
            case ev.TimerFired():
                return f"the time is up for {name}"
            case ev.TimerCancelled():
                return f"{name} is no longer needed"

    def _wait(  # noqa: PLR0911 - a table
        self, event: ev.SignalAwaited | ev.SignalReceived | ev.SignalAwaitAbandoned
    ) -> str:
        match event:
            case ev.SignalAwaited():
                title = printable(event.title, _SHORT) or "a decision"
                until = "" if event.timeout_at is UNSET else f", until {plainly(stamp(event.timeout_at))}"
                if event.park == "signal":
                    return self._signal(event, until)
                approval = event.park == "approval"
                self._names[event.call] = title if approval else "the next mail"
                if approval:
                    return f"waits for {printable(', '.join(event.who))} to decide: {title}{until}"
                return f"waits for the next mail for it{until}"
            case ev.SignalReceived() if event.name:
                name = printable(event.name, _SHORT)
                value = "" if event.payload is UNSET else _value(event.payload)
                if event.call is not UNSET:
                    return f"signal {name} came{value}"
                self._signals[name] = self._signals.get(name, 0) + 1
                return f"signal {name} came, and is kept for whoever waits for it{value}"
            case ev.SignalReceived() if event.decision is not UNSET:
                word = "approved" if event.decision.approved else "rejected"
                text = printable(event.decision.text, _SHORT)
                by = printable(event.decision.by, _SHORT)
                return f"{word} by {by} ({event.decision.via})" + (f": {text}" if text else "")
            case ev.SignalReceived():
                return "mail came" if event.mail is UNSET else f"{_mailed(event.mail)} came"
            case ev.SignalAwaitAbandoned():
                return f"no longer waits for {self._names.get(event.call, event.call)}"

    def _signal(self, event: ev.SignalAwaited, until: str) -> str:
        name = printable(event.name, _SHORT)
        self._names[event.call] = f"signal {name}"
        kept = self._signals.get(name, 0)
        if not kept:
            return f"waits for signal {name}{until}"
        self._signals = {**self._signals, name: kept - 1}
        if kept == 1:
            del self._signals[name]
        return f"takes signal {name}, which was kept for it"

    def _mail(self, event: ev.MailQueued | ev.MailSent | ev.MailFailed) -> str:
        match event:
            case ev.MailQueued():
                to = printable(", ".join(event.to), _SHORT)
                self._mails[event.ordinal] = to
                return f"mail to {to} is on its way"
            case ev.MailSent():
                return f"mail to {self._mails.pop(event.ordinal, event.call)} was sent"
            case ev.MailFailed():
                known = None if event.ordinal is UNSET else self._mails.pop(event.ordinal, None)
                return f"mail {f'to {known} ' if known else ''}was not sent: {printable(event.reason)}"

    def _child(
        self,
        event: ev.ChildSpawned | ev.ChildRefused | ev.ChildCompleted | ev.ChildCancelRequested,
        child: Kin | None,
    ) -> str:
        known = event if isinstance(event, ev.ChildSpawned) else child
        if known is not None:
            self._names[event.call] = f"child {printable(known.workflow, _SHORT)}, {known.child},"
        name = self._names.get(event.call, f"the child at {event.call}")
        match event:
            case ev.ChildSpawned():
                return f"{name} is started"
            case ev.ChildRefused():
                return f"child {printable(event.workflow, _SHORT)} may not be started: {printable(event.reason)}"
            case ev.ChildCompleted() if event.result is not UNSET:
                return f"{name} has completed{_value(event.result)}"
            case ev.ChildCompleted():
                cancelled = event.outcome == "cancelled"
                told = "" if event.error is UNSET else _fault(event.error)
                why = printable(event.error.message) if cancelled and event.error is not UNSET else told
                return f"{name} {'was' if cancelled else 'has'} {event.outcome}: {why}"
            case ev.ChildCancelRequested():
                return f"{name} is no longer awaited, and told to end"


def _never_read(kept: tuple[str, int]) -> str:
    name, count = kept
    return f"; signal {name} was never read" if count == 1 else f"; {count} signals {name} were never read"


def _run(event: ev.RunStarted | ev.RunResumed | ev.RunPaused | ev.RunUnpaused | ev.CancelRequested) -> str:
    match event:
        case ev.RunStarted():
            after = "" if event.after is UNSET else f", after {event.after}"
            if event.imported is not UNSET:
                after += f"; imported from {printable(event.imported.system, _SHORT)}, where it was "
                after += printable(event.imported.run, _SHORT)
            if event.parent is not UNSET:
                parent = f"{event.parent.run}, by its call {event.parent.call}"
                return f"started as child {printable(event.parent.workflow, _SHORT)} of {parent}"
            return f"started by {_mailed(event.mail)}{after}"
        case ev.RunResumed():
            exits = "exit" if event.attempt == 1 else "exits"
            counted = f", after {event.attempt} unexpected {exits}" if event.attempt else ""
            return f"resumed in generation {event.generation}{counted}"
        case ev.RunPaused():
            detail = printable(event.detail)
            return f"paused ({event.code})" + (f": {detail}" if detail else "")
        case ev.RunUnpaused():
            return f"let go on by {printable(event.by, _SHORT)}"
        case ev.CancelRequested():
            by = f" by {printable(event.by, _SHORT)}" if event.by else ""
            return f"cancel was asked for{by} ({event.origin}): {printable(event.reason)}"


def _end(event: ev.RunCompleted | ev.RunFailed | ev.RunCancelled) -> str:
    match event:
        case ev.RunCompleted():
            return f"completed{_value(event.result)}{_unread(event.unread)}"
        case ev.RunFailed():
            return f"failed: {_fault(event.error)}{_unread(event.unread)}"
        case ev.RunCancelled():
            raised = "" if event.error is UNSET else f"; its clean-up raised {_fault(event.error)}"
            detail = f": {printable(event.detail)}" if event.detail else ""
            return f"cancelled{detail}{raised}{_unread(event.unread)}"


def _foreign(event: ev.Foreign) -> str:
    about = printable(event.about, _SHORT)
    if event.blob is not UNSET:
        return f"kept as it was: {about}"
    return f"{printable(event.was, _SHORT)}, as it was recorded there" + (f": {about}" if about else "")


def _mailed(mail: ev.Mailed) -> str:
    if (tick := tick_of(mail.id)) is not None:
        return f"mail {mail.arrival}, of schedule {tick.schedule}"
    return f"mail {mail.arrival}" + (f" from {printable(mail.sender, _SHORT)}" if mail.sender else "")


def _value(value: ev.Value) -> str:
    if value.inline is UNSET:
        return f": a value of its own file, {value.blob[:12]}…" if value.blob is not UNSET else ""
    raw = bytes(value.inline)
    if raw == b"null":
        return ""
    try:
        # Escaped or not is the encoder's choice; people read the characters.
        text = json.dumps(json.loads(raw), ensure_ascii=False)
    except RecursionError:  # an older host took what is nested deeper than this one would
        text = raw[:_LONG].decode("utf-8", "replace")
    return f": {printable(text, _SHORT)}"


def _fault(fault: ev.Fault, of: str = "") -> str:
    """An error, and the step that it comes from, where that isn't what it is said ``of``."""
    step = f"step {printable(fault.step, _SHORT)}" if fault.step else of
    where = "" if step == of else f"{step}: "
    said = f": {printable(fault.message)}" if fault.message else ""  # a MemoryError has nothing to say
    return f"{where}{printable(fault.type, _SHORT)}{said}{_line(fault)}"


def _line(fault: ev.Fault) -> str:
    """The last line of the deployed code that it came by, as its author knows it."""
    places = _DEPLOYED.findall(fault.traceback)
    return f" ({printable(places[-1][0], _SHORT)} line {places[-1][1]})" if places else ""


def _unread(calls: tuple[str, ...]) -> str:
    return f" (answered and never read: {', '.join(calls)})" if calls else ""
