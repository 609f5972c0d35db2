"""One run in this child: its log comes in, its code is driven, what it wants goes out as effects.

The one path for live and replay: events are taken one at a time, in seq order, the code rests between two of them,
and nothing reaches the code but what an event brought. A body starts only when the append that holds its StepStarted
was answered, or, for a try that an earlier child left open, when the run goes live.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import assert_never

import msgspec
from msgspec import UNSET, Raw

from waypost.authoring.errors import NotReplayable
from waypost.authoring.requests import CallChild, Quit, Send
from waypost.authoring.workflow import Workflow
from waypost.child import effects as fx
from waypost.child import faults, outcomes
from waypost.child.blobs import Blobs
from waypost.child.calls import Asking, Calls, Reached, Try
from waypost.child.entry import Entry, entry
from waypost.child.errors import CodeMissing, HostBroke, Mismatch, NoThread
from waypost.child.phase import Phase
from waypost.child.program import Finished, Program, Rest, Stuck, Turn, Waiting
from waypost.child.replay import Orphan
from waypost.child.resting import Resting
from waypost.model import events as ev
from waypost.model.ids import CallId, RunId, idempotency_key
from waypost.model.limits import Limits
from waypost.model.times import unstamp
from waypost.model.values import ValueNotStorable

MakeProgram = Callable[[Entry, Callable[[Turn], None]], Program]
"""Make a run's program of its function and of the callback for its turns."""


class _EndOfLog:
    """Its place in the inbox is where the run goes live."""


class Drive:
    """The drive of one run; every method takes in one thing that happened and may add effects for ``effects()``."""

    def __init__(
        self, run: RunId, *, last_seq: int, repository: str, workflow: Workflow, limits: Limits, program: MakeProgram
    ) -> None:
        self.run = run
        self._last_seq = last_seq
        self._repository = repository
        self._workflow = workflow
        self._limits = limits
        self._make_program = program
        self._phase = Phase.REPLAYING
        self._seq = 0
        self._inbox: deque[ev.AnyEvent | _EndOfLog] = deque()
        self._blobs = Blobs(run, limits.inline)
        self._calls = Calls()
        self._resting = Resting()
        self._entry: Entry | None = None
        self._program: Program | None = None
        self._rest: Rest | None = None
        self._started: ev.RunStarted | None = None
        self._cancel: ev.CancelRequested | None = None
        self._signals: dict[str, deque[tuple[ev.SignalReceived, bytes]]] = {}
        """Those that came before the code waited for one of their name, oldest first."""
        self._bodies: dict[CallId, bool] = {}
        """Bodies under way, and whether they were told of the run's cancellation."""
        self._effects: list[fx.Effect] = []

    @property
    def seq(self) -> int:
        """Of the newest event that the code was given."""
        return self._seq

    @property
    def phase(self) -> Phase:
        """Where the run stands."""
        return self._phase

    @property
    def rest(self) -> Rest | None:
        """How the code stands; None while it is at work, or not begun."""
        return self._rest

    def effects(self) -> tuple[fx.Effect, ...]:
        """What is to be done now, in order; each is given out once."""
        if self._resting.unsaid() and self._rests():
            self._append((self._resting.say(self._seq),))
        found, self._effects = tuple(self._effects), []
        return found

    # --- what happened ---------------------------------------------------------------------------------------------

    def page(self, events: Iterable[ev.AnyEvent], mails: Iterable[bytes] = ()) -> None:
        """A page of the log arrived, with mails that its events bring."""
        first = not self._inbox and not self._seq
        self._inbox.extend(events)
        self._blobs.bring(mails)
        if not first or len(self._inbox) < self._last_seq:  # one that is all of the log is followed by none
            self._effects.append(fx.Credit())
        self._pump()

    def live(self) -> None:
        """The log is complete."""
        self._inbox.append(_EndOfLog())
        self._pump()

    def committed(self, events: Iterable[ev.AnyEvent]) -> None:
        """The run's log grew."""
        self._inbox.extend(events)
        self._pump()

    def fetched(self, sha256: str, raw: bytes) -> None:
        """A blob or mail arrived. Raises HostBroke when it isn't the one that was asked for."""
        self._blobs.fetched(sha256, raw)
        self._pump()

    def kept(self, sha256: str, refused: str | None) -> None:
        """A large value is stored, so the events that name it can be proposed; or it was refused."""
        for events in self._blobs.answered(sha256):
            if refused is None:
                self._append(events)
            else:
                self._fail(ValueNotStorable("$", f"the host refused to keep it: {refused}"))

    def begin(self) -> None:
        """Call the run's function; or say that this is to be tried again."""
        assert self._program is not None
        assert self._started is not None
        try:
            self._program.start(unstamp(self._started.at) / 1000)
        except NoThread:
            self._effects.append(fx.Starve())

    def turned(self, turn: Turn) -> None:
        """The code, in a thread of its own, has come to rest."""
        self._take_turn(turn)
        self._pump()

    def appended(self, events: tuple[ev.AnyEvent, ...], refused: str | None, code: str) -> None:
        """The host answered an Append."""
        if self._phase is Phase.LEFT:
            return
        if refused is None:
            for step in self._calls.tries(events) if self._phase is not Phase.ENDING else ():
                self._begin(step)
        elif code == "paused":
            for event in events:
                self._calls.refused(ev.call_of(event) or CallId(""))
            self._phase = Phase.HELD  # until RunUnpaused; then all of it is proposed again
        elif code == "cancelling" and self._phase is Phase.ENDING:
            self._phase = Phase.OVERTAKEN if self._cancel is None else Phase.LIVE
            self._pump()
        elif code == "terminal" or any(isinstance(event, ev.TERMINAL) for event in events):
            self._leave(f"the host refused: {refused}")
        else:
            self._fail(RuntimeError(f"the host refused what the workflow did: {refused}"))

    def answered(self, call: CallId, request: Send | CallChild | Quit, refused: str | None) -> None:
        """The host answered an Ask. Its outcome is an event; a refusal leaves none, so the run can't go on."""
        if refused is None or self._phase in (Phase.LEFT, Phase.ENDING):
            return
        self._calls.refused(call)
        if self._phase is Phase.LIVE:
            self._fail(outcomes.refusal(request, refused))

    def body_ended(self, step: Try, end: fx.BodyEnd) -> None:
        """A body returned or raised: this is recorded, and reaches the code only when that is committed."""
        self._bodies.pop(step.call, None)
        if self._phase in (Phase.LEFT, Phase.ENDING):
            return
        match end:
            case fx.Completed(raw):
                self._completed(step, raw)
            case fx.Errored(fault, answer):
                self._errored(step, fault, answer=answer)
            case _:
                assert_never(end)
        if self._cancel is not None:
            self._propose()  # the end of the run may have waited for this one

    # --- the log ---------------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        try:
            while self._inbox and self._phase is not Phase.LEFT and (self._rest is not None or self._program is None):
                head = self._inbox[0]
                if isinstance(head, _EndOfLog):
                    self._inbox.popleft()
                    self._go_live()
                    continue
                missing = self._blobs.missing(head)
                if missing is not None:
                    self._effects += missing
                    break
                self._inbox.popleft()
                self._take(head, self._blobs.take(head))
            self._propose()
        except Mismatch as difference:
            self._differs(outcomes.explained(difference, self._rest), "code-changed")
        except CodeMissing as difference:
            self._differs(difference, "code-missing")

    def _differs(self, difference: Mismatch | CodeMissing, code: str) -> None:
        self._effects.append(fx.Pause(f"{difference}", code))
        self._leave(f"paused: {difference}")

    def _take(self, event: ev.AnyEvent, blob: bytes) -> None:  # noqa: C901 - one arm per kind of event
        if event.seq != self._seq + 1:
            raise HostBroke(f"{self.run}: event {event.seq} came after {self._seq}")
        self._seq = event.seq
        self._resting.took(event)
        match event:
            case ev.RunStarted():
                self._start(event, blob)
            case ev.RunPaused() if self._phase is Phase.LIVE:
                self._phase = Phase.HELD
            case ev.RunUnpaused() if self._phase is Phase.HELD:
                self._phase = Phase.LIVE
            case ev.CancelRequested():
                self._cancelled(event)
            case ev.RunCancelled():
                self._call_off(self._bodies)
                self._leave("it was cancelled")
            case ev.SignalReceived() if event.call is UNSET:
                self._signals.setdefault(event.name, deque()).append((event, blob))
            case ev.RunCompleted() | ev.RunFailed():
                if self._phase is Phase.REPLAYING:
                    outcomes.check_end(event, blob, self._rest, self._began().result)
                self._leave("it has ended")
            case _:
                reached = self._calls.record(event)
                if reached is not None:
                    self._deliver(reached, blob)
                elif isinstance(event, ev.SignalAwaited) and self._signals.get(event.name):
                    self._take_kept(event)

    def _take_kept(self, wait: ev.SignalAwaited) -> None:
        """A signal came before this wait, which has it at once: as in the fold, the oldest of its name."""
        kept, blob = self._signals[wait.name].popleft()
        self._resting.woken(wait.seq)
        reached = self._calls.record(msgspec.structs.replace(kept, call=wait.call, at=wait.at))
        if reached is not None:
            self._deliver(reached, blob)

    def _cancelled(self, event: ev.CancelRequested) -> None:
        self._calls.record(event)  # where the code asked for it, that call is done
        self._cancel = event
        if self._phase is Phase.OVERTAKEN:
            self._phase = Phase.LIVE
        if self._program is not None and not isinstance(self._rest, Finished):
            self._rest = None
            self._program.cancel(unstamp(event.at) / 1000)

    def _call_off(self, calls: Iterable[CallId]) -> None:
        """Tell the bodies of these calls, each once."""
        for call in tuple(calls):
            if self._bodies.get(call) is False:
                self._bodies[call] = True
                self._effects.append(fx.CallOff(call))

    def _start(self, event: ev.RunStarted, mail: bytes) -> None:
        self._started = event
        self._entry = entry(self._workflow, event, mail)
        self._rest = None
        self._program = self._make_program(self._entry, self._take_turn)
        self.begin()

    def _began(self) -> Entry:
        assert self._entry is not None, "whatever has ended has begun"
        return self._entry

    def _deliver(self, reached: Reached, blob: bytes) -> None:
        assert self._program is not None
        outcome = outcomes.of(reached, blob)
        self._rest = None
        self._program.deliver(reached.call, outcome, unstamp(reached.event.at) / 1000)

    def _take_turn(self, turn: Turn) -> None:
        self._rest = turn.rest
        self._calls.take(turn.commands)
        if self._cancel is not None:  # of those that the code still waits for, it wants the outcome
            finished = isinstance(turn.rest, Finished)
            self._call_off(call for call in self._bodies if finished or isinstance(self._calls.state(call), Orphan))

    def _go_live(self) -> None:
        if self._seq < self._last_seq:  # it may have grown between two pages
            raise HostBroke(f"{self.run}: the log ends at {self._seq}, {self._last_seq} was announced")
        self._phase = Phase.LIVE
        over = isinstance(self._rest, Finished)
        for step in self._calls.adopt():
            if not (over and isinstance(self._calls.state(step.call), Orphan)):  # a run's end waits for none of those
                self._begin(step)
        for call, attempt in tuple(self._calls.without_back_off()):
            self._append(self._back_off(call, attempt))

    # --- what the code wants ---------------------------------------------------------------------------------------

    def _propose(self) -> None:
        if self._phase is not Phase.LIVE or self._rest is None:
            return
        asks, events = list[Asking](), list[ev.AnyEvent]()
        for proposal in self._calls.proposals(self._seq):
            if isinstance(proposal, Asking):
                asks.append(proposal)
            else:
                events.append(proposal)
        for ask in asks:
            # By what it has seen a run is parked: not before the last of all that it asks for is in the log.
            last = ask is asks[-1] and not events and isinstance(ask.request, CallChild)
            self._effects.append(fx.Ask(ask.call, ask.request, self._seq if last else 0))
        if events:
            self._append(tuple(events))
        match self._rest:
            case Finished() if self._cancel is not None and self._bodies:
                pass  # a cancelled run has ended when nothing of it works any more
            case Finished(outcome, unread):
                self._end(outcomes.end(outcome, unread, self._began().result, self._limits))
            case Stuck():
                self._fail(
                    NotReplayable(
                        "waiting for something that no step, timer or mail brings",
                        "await steps, sleep(), receive() or approve(), or tasks that do",
                    )
                )
            case Waiting():
                pass
            case _:
                assert_never(self._rest)

    def _rests(self) -> bool:
        """Whether the code waits, and all that it has asked for is in the log."""
        live = self._phase is Phase.LIVE and self._cancel is None and not self._bodies
        return live and isinstance(self._rest, Waiting) and self._calls.settled

    def _end(self, event: ev.RunCompleted | ev.RunFailed) -> None:
        self._phase = Phase.ENDING
        self._effects += self._blobs.propose(event if self._cancel is None else outcomes.cancelled(event))

    def _fail(self, error: BaseException) -> None:
        self._end(ev.RunFailed(error=faults.of_run(error)))

    def _completed(self, step: Try, raw: bytes) -> None:
        completed = ev.StepCompleted(call=step.call, attempt=step.attempt, output=ev.Value(inline=Raw(raw)))
        self._effects += self._blobs.propose(completed)

    def _errored(self, step: Try, fault: ev.Fault, *, answer: bool) -> None:
        wanted = not isinstance(self._calls.state(step.call), Orphan)
        if self._cancel is not None and (not wanted or isinstance(self._rest, Finished)):
            self._append((ev.CancelPropagated(call=step.call, attempt=step.attempt),))
            return
        final = answer or not wanted or step.attempt > step.request.spec.retries
        failed = ev.StepFailed(call=step.call, attempt=step.attempt, error=fault, final=final)
        self._append((failed,) if final else (failed, *self._back_off(step.call, step.attempt)))

    def _back_off(self, call: CallId, attempt: int) -> tuple[ev.AnyEvent, ...]:
        timer = f"{call}/{attempt + 1}"
        delay = min(self._limits.retry_first * 2.0 ** min(attempt - 1, 60), self._limits.retry_cap)
        return (
            ev.TimerSet(call=call, timer=timer, delay=delay, seen=self._seq),
            ev.AttemptScheduled(call=call, attempt=attempt + 1, timer=timer),
        )

    def _begin(self, step: Try) -> None:
        assert self._started is not None
        if self._cancel is not None and isinstance(self._calls.state(step.call), Orphan):
            # Its beginning was on its way to the disk when the cancellation came: it doesn't begin.
            self._append((ev.CancelPropagated(call=step.call, attempt=step.attempt),))
            return
        self._bodies[step.call] = False
        self._effects.append(fx.Body(step, idempotency_key(self._repository, self._started.origin, step.call)))

    def _append(self, events: tuple[ev.AnyEvent, ...]) -> None:
        self._effects.append(fx.Append(events))

    def drop(self) -> None:
        """Let go of the run's code; nothing is proposed any more."""
        self._phase = Phase.LEFT
        self._inbox.clear()
        if self._program is not None:
            self._program.drop()

    def _leave(self, reason: str) -> None:
        self.drop()
        self._effects.append(fx.Leave(reason))
