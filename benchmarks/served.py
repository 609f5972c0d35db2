"""A repository behind its SubstrateActor, whose only client keeps its timers, too: no third thread takes part.

Each wake-up that is due is sent before the next question, so steps of merges and seals stand in the mailbox before it,
as in a host, and the question waits for them: nothing is done in a pause that nobody measures.
"""

import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import TypeAlias

import msgspec

from ipc import cores
from substrate.actor import SubstrateActor
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Done,
    Enqueue,
    Merge,
    Open,
    Operation,
    Question,
    ReadRuns,
    Stage,
    Start,
    Submit,
    TakeUp,
    WorkflowProcess,
)
from substrate.settings import Settings, message_ids
from substrate.signing.keys import SigningKey
from waypost.host.app import SWITCH
from waypost.host.heap import give_back
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.times import Now
from waypost.shell import Ref, request

ADDRESS = "bench@example.com"
SETTINGS = Settings(deployment="bench", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
START = Start(definition="d" * 64, code="c" * 64, python="3.11", waypost="0.1.0", mail_to=())
STEP = "read_claim"
OUTPUT = ev.Value(inline=msgspec.Raw(b'{"amount":"12.50","purpose":"' + b"x" * 137 + b'"}'))
PATIENCE = 600.0

Operations: TypeAlias = Generator[Operation, Done, None]
"""Operations in their order; each is sent the answer to it."""


class Wakes:
    """The machine's clocks, and the wake-ups that were asked for."""

    def __init__(self) -> None:
        self._asked: list[tuple[float, object]] = []

    def now(self) -> Now:
        """The time at this moment."""
        return Now(time.time_ns() // 1_000_000, time.monotonic())

    def wake(self, ref: Ref, message: object, *, mono: float | None = None, wall: int | None = None) -> None:
        """Keep it until its time; the storage asks by the monotonic clock alone."""
        assert mono is not None, (ref, wall)
        self._asked.append((mono, message))

    @property
    def merging(self) -> bool:
        """Whether a step of a merge was asked for that isn't due yet."""
        return any(isinstance(message, Merge) for _, message in self._asked)

    def due(self) -> list[object]:
        """What is due now; each once."""
        if not self._asked:
            return []
        asked, now = self._asked, time.monotonic()
        late = [each for each in asked if each[0] <= now]
        for each in late:
            asked.remove(each)
        return [message for _, message in late]


class Served:
    """An open repository; ``ask`` from one thread."""

    def __init__(self, path: Path, key: SigningKey) -> None:
        self._clock = Wakes()
        self.ref = SubstrateActor.start(path, SETTINGS, key, clock=self._clock)
        opened = request(self.ref, Open(), timeout=PATIENCE)
        assert isinstance(opened, Done), opened
        done = self.ask(BeginGeneration())
        self.by = WorkflowProcess(Generation(done.value))

    def ask(self, what: Operation | Question, stage: Stage = Stage.DURABLE) -> Done:
        """One round trip, answered at this stage; it must succeed."""
        for message in self._clock.due():
            self.ref.tell(message)
        answer = request(self.ref, Submit(what=what, stage=stage), timeout=PATIENCE)
        assert isinstance(answer, Done), answer
        return answer

    def tell(self, what: Operation) -> None:
        """Send it and wait for nothing: whoever asks next waits for it, too."""
        self.ref.tell(Submit(what=what, stage=Stage.COMMITTED))

    def rest(self) -> None:
        """Let the merges come to their end that were left behind, because writes came faster than there is time."""
        while self._clock.merging:
            self.ask(ReadRuns(limit=1))

    def start(self, name: str) -> RunId:
        """A run of its own, by a mail with this name."""
        accepted = self.ask(Enqueue(mail(name))).value
        self.ask(Claim(accepted.arrival))
        self.ask(TakeUp(arrival=accepted.arrival, start=START))
        run: RunId = accepted.run
        return run

    def stop(self) -> None:
        """Seal, and end the thread: a clean close."""
        self.ref.stop()


def as_in_a_host() -> None:
    """Let this thread, and those that it starts, run as a host's do: often switched, and on one core."""
    sys.setswitchinterval(SWITCH)
    give_back()
    cores.keep(threading.get_native_id())


class Steps:
    """The events of one run, endlessly: a step begins, and returns; some 300 bytes each as they are stored."""

    def __init__(self, by: WorkflowProcess, run: RunId) -> None:
        self._by, self._run, self._number, self._begun = by, run, 0, False

    def event(self) -> ev.AnyEvent:
        """The next one."""
        self._begun = not self._begun
        if not self._begun:
            return ev.StepCompleted(call=CallId(f"r1#{self._number}"), output=OUTPUT)
        self._number += 1
        return ev.StepStarted(call=CallId(f"r1#{self._number}"), step=STEP, arguments="0" * 64)

    def append(self, events: int = 1) -> Append:
        """So many of them, in one append and so in one commit."""
        return Append(by=self._by, run=self._run, events=tuple(self.event() for _ in range(events)))


def mail(name: str) -> bytes:
    """A mail with an id of this name."""
    return f"From: a@example.com\nTo: {ADDRESS}\nSubject: s\nMessage-ID: <{name}@bench>\n\ntext\n".encode()
