"""The log of one run in memory, under the rules of the real one: every event passes the fold before it is kept.

For tests of the child side: seq, time, deadlines and the chain are set as a substrate sets them; the clock stands
still until it is moved.
"""

import hashlib
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import UNSET, UnsetType

from waypost.model import events as ev
from waypost.model.child_events import ChildOutcome, Parent
from waypost.model.grants import NONE_GRANTED, encode_snapshot
from waypost.model.ids import CallId, Generation, RunId, run_id
from waypost.model.ledger import waiting_for
from waypost.model.limits import DEFAULT
from waypost.model.mail import parse
from waypost.model.run import Absent, Ended, Ledger, Run, evolve, ledger
from waypost.model.times import stamp

RUN = RunId("run_1_00112233445566aa")
REPOSITORY = "repository-of-tests"
GRANTS = b'{"mail":[],"secrets":[]}'
GRANTED = encode_snapshot(NONE_GRANTED)
"""What a child is told that its steps may do: nothing."""
BEGAN = 1_790_000_000_000


class MemoryLog:
    """A run's events as stored, the state they fold to, and the mails and blobs that they name."""

    def __init__(self, *, run: RunId = RUN, repository: str = REPOSITORY) -> None:
        self.run = run
        self.repository = repository
        self.grants = hashlib.sha256(GRANTS).hexdigest()
        self.now = BEGAN
        self.stored: list[tuple[ev.AnyEvent, bytes]] = []
        self.blobs: dict[str, bytes] = {}
        self.inputs: dict[CallId, bytes] = {}
        """The arguments of child runs that were started, as JSON."""
        self.state: Run = Absent()
        self._prev = ev.genesis(repository, run, GRANTS)

    @property
    def events(self) -> tuple[ev.AnyEvent, ...]:
        """The events, in order."""
        return tuple(event for event, _ in self.stored)

    @property
    def raw(self) -> tuple[bytes, ...]:
        """Their stored bytes."""
        return tuple(raw for _, raw in self.stored)

    @property
    def ended(self) -> bool:
        """Whether the run has a terminal event."""
        return isinstance(self.state, Ended)

    @property
    def ledger(self) -> Ledger:
        """What is open; the run must be live."""
        found = ledger(self.state)
        assert found is not None
        return found

    def append(self, proposed: Iterable[ev.AnyEvent]) -> tuple[bytes, ...]:
        """Keep events, all or none; gives their stored bytes. Raises Illegal."""
        state, prev, kept = self.state, self._prev, list[tuple[ev.AnyEvent, bytes]]()
        for event in proposed:
            numbered, raw = ev.stored(
                self._timed(event), seq=len(self.stored) + len(kept) + 1, at=stamp(self.now), prev=prev
            )
            state = evolve(state, numbered, run_id=self.run)
            kept.append((numbered, raw))
            prev = ev.digest(raw)
        self.state, self._prev = state, prev
        self.stored.extend(kept)
        return tuple(raw for _, raw in kept)

    def _timed(self, event: ev.AnyEvent) -> ev.AnyEvent:
        match event:
            case ev.TimerSet():
                return msgspec.structs.replace(event, fire_at=self.now + round(event.delay * 1000))
            case ev.SignalAwaited() if event.timeout is not UNSET:
                return msgspec.structs.replace(event, timeout_at=self.now + round(event.timeout * 1000))
            case _:
                return event

    # --- what a host writes ----------------------------------------------------------------------------------------

    def start(
        self, mail: bytes, *, definition: str = "0" * 64, code: str = "0" * 64, parent: Parent | None = None
    ) -> tuple[bytes, ...]:
        """A mail is taken up and the run begins; ``parent``: as a child of that run."""
        return self.append(
            [
                ev.RunStarted(
                    mail=self._mailed(mail),
                    definition=definition,
                    code=code,
                    python="3.11",
                    waypost="0.1.0",
                    generation=Generation(1),
                    grants=self.grants,
                    origin=hashlib.sha256(b"origin").hexdigest(),
                    parent=UNSET if parent is None else parent,
                )
            ]
        )

    def resume(self) -> tuple[bytes, ...]:
        """A new child is given the run."""
        return self.append([ev.RunResumed(generation=Generation(self.ledger.generation + 1), attempt=1)])

    def answer(self, mail: bytes) -> tuple[bytes, ...]:
        """A mail is taken up by the oldest open receive()."""
        call = next(call for call, wait in self.ledger.waits.items() if wait.park == "input")
        mailed = self._mailed(mail)
        return self.append([ev.SignalReceived(call=call, signal=mailed.sha256, mail=mailed)])

    def decide(self, *, approved: bool, by: str = "boss@example.com", text: str = "") -> tuple[bytes, ...]:
        """A person answers the oldest open approval."""
        call = next(call for call, wait in self.ledger.waits.items() if wait.park == "approval")
        decision = ev.Decision(approved=approved, by=by, text=text, via="mail")
        return self.append([ev.SignalReceived(call=call, signal=f"decision of {call}", decision=decision)])

    def cancel(self, reason: str = "enough") -> tuple[bytes, ...]:
        """An operator asks for the run's end."""
        return self.append([ev.CancelRequested(origin="supervisor-operator", reason=reason, by="ann")])

    def signal(self, name: str, value: bytes, identity: str = "") -> tuple[bytes, ...]:
        """A named signal comes; whoever waits for it longest has it."""
        call = waiting_for(self.ledger, name)
        return self.append(
            [
                ev.SignalReceived(
                    call=UNSET if call is None else call,
                    signal=identity or f"signal {len(self.stored)}",
                    name=name,
                    payload=ev.Value(inline=msgspec.Raw(value)),
                )
            ]
        )

    def queue_mail(self, call: CallId, to: Sequence[str]) -> tuple[bytes, ...]:
        """A mail is put into the outbox."""
        ordinal = sum(isinstance(event, ev.MailQueued) for event in self.events) + 1
        message_id = f"<{hashlib.sha256(call.encode()).hexdigest()[:32]}@example.com>"
        return self.append(
            [
                ev.MailQueued(
                    call=call,
                    message_id=message_id,
                    to=tuple(to),
                    ordinal=ordinal,
                    sha256=hashlib.sha256(message_id.encode()).hexdigest(),
                )
            ]
        )

    def spawn(self, call: CallId, workflow: str, raw: bytes, *, seen: int = 0) -> tuple[bytes, ...]:
        """A child run is started; what it does is the test's to say."""
        self.inputs[call] = raw
        ordinal = len(self.stored) + 100
        return self.append(
            [
                ev.ChildSpawned(
                    call=call,
                    child=run_id(ordinal, hashlib.sha256(call.encode()).digest()[:8]),
                    workflow=workflow,
                    arguments=hashlib.sha256(raw).hexdigest(),
                    seen=seen,
                )
            ]
        )

    def refuse_child(self, call: CallId, workflow: str, reason: str) -> tuple[bytes, ...]:
        """A child run may not be started."""
        return self.append([ev.ChildRefused(call=call, workflow=workflow, reason=reason)])

    def child_ended(
        self,
        call: CallId | None = None,
        *,
        result: bytes | None = None,
        error: ev.Fault | None = None,
        outcome: ChildOutcome | None = None,
    ) -> tuple[bytes, ...]:
        """A child run has ended: the oldest, or that of a call; with this JSON, or without a result."""
        call = call or next(iter(self.ledger.children))
        made: ev.Value | UnsetType = UNSET
        if result is not None:
            sha256 = hashlib.sha256(result).hexdigest()
            large = len(result) > DEFAULT.inline
            if large:
                self.blobs[sha256] = result
            made = ev.Value(blob=sha256) if large else ev.Value(inline=msgspec.Raw(result))
        return self.append(
            [
                ev.ChildCompleted(
                    call=call,
                    outcome=outcome or ("completed" if result is not None else "failed"),
                    result=made,
                    error=UNSET if error is None else error,
                )
            ]
        )

    def fire(self) -> tuple[bytes, ...]:
        """The clock goes to the next deadline, of a timer or a wait, and it passes."""
        due = [(timer.fire_at, timer.call, name) for name, timer in self.ledger.timers.items()]
        due += [
            (wait.timeout_at, call, str(call))
            for call, wait in self.ledger.waits.items()
            if wait.timeout_at is not None
        ]
        self.now, call, timer = min(due)
        return self.append([ev.TimerFired(call=call, timer=timer)])

    def _mailed(self, raw: bytes) -> ev.Mailed:
        sha256 = hashlib.sha256(raw).hexdigest()
        self.blobs[sha256] = raw
        arrival = sum(isinstance(event, ev.RunStarted | ev.SignalReceived) for event in self.events)
        return ev.Mailed(arrival=arrival, id=parse(raw).message_id, sha256=sha256, sender=parse(raw).sender)
