"""A tree of runs without processes: a drive for each run, a desk with the substrate's own operations under all of them.

What host and child process do between them, in one thread, one thing at a time, chance saying which: so a test can kill
the process after any of them, or cancel any run, and every commit of it is held against the rule book.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from substrate import layout
from substrate.generations import BeginGeneration, ResumeRuns
from substrate.messages import Append, Appended, Cancel, Claim, Refused, SpawnChild, Supervisor, TakeUp
from substrate.operations.change import Decided
from waypost.authoring.requests import CallChild, Quit
from waypost.authoring.workflow import Workflow
from waypost.child import effects as fx
from waypost.child import faults
from waypost.child.drive import Drive
from waypost.child.entry import Entry
from waypost.child.loop import WorkflowLoop
from waypost.child.phase import Phase
from waypost.child.program import Program, Turn
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import Generation, RunId
from waypost.model.limits import DEFAULT
from waypost.testing.desk import REPOSITORY
from waypost.testing.families import START, Family

Act = Callable[[], None]


class TreeRun:
    """A deployment of one workflow, begun by one mail; the workflow's children are deployed."""

    def __init__(self, workflow: Workflow, *children: str, chance: random.Random) -> None:
        self.family = Family()
        self.family.deploy(*children)
        self.desk = self.family.desk
        self.pauses: list[str] = []
        self._workflow, self._chance = workflow, chance
        self._drives: dict[RunId, Drive] = {}
        self._given: dict[RunId, int] = {}
        """Seq of the newest event that a drive was given with its log."""
        self._heard = 0
        """Of the desk's changes, how many were told."""
        self._effects: deque[tuple[RunId, fx.Effect]] = deque()
        self._bodies: list[tuple[RunId, fx.Body]] = []
        self.root = self.family.root()

    # --- what a test does --------------------------------------------------------------------------------------------

    def go_on(self, steps: int | None = None) -> bool:
        """Do so many things (None: all that there are to do); whether nothing is left to do."""
        while steps is None or steps > 0:
            steps = None if steps is None else steps - 1
            self._listen()
            acts = self._acts()
            if not acts:
                return True
            self._chance.choice(acts)()
        return False

    def kill(self) -> None:
        """The process dies; the next one is given whatever is driven."""
        for drive in self._drives.values():
            drive.drop()
        self._drives.clear()
        self._effects.clear()
        self._bodies.clear()
        self.desk.must(BeginGeneration())

    def cancel(self, run: RunId) -> bool:
        """An operator cancels a run; whether it hadn't ended."""
        return not isinstance(self.desk.do(self.family.cancel(run)), Refused)

    def runs(self) -> dict[RunId, tuple[ev.AnyEvent, ...]]:
        """Every log."""
        return {run: tuple(self.desk.events(run)) for run in self._names()}

    def replayed(self, run: RunId) -> list[str]:
        """Why the code doesn't go the way of a finished log; empty where it does."""
        drive = self._drive(run)
        drive.page(self.desk.events(run), self._mails(run))
        drive.live()
        return [each.detail for each in drive.effects() if isinstance(each, fx.Pause)]

    # --- what may happen next ----------------------------------------------------------------------------------------

    def _acts(self) -> list[Act]:
        acts: list[Act] = [self._take_up] if any(not item.claimed for item in self.desk.index.queue.values()) else []
        if self._effects:
            acts += [self._perform] * 3  # what is under way is mostly quicker than what comes from outside
        acts += [lambda at=at: self._body_ends(at) for at in range(len(self._bodies))]  # type: ignore[misc]  # a default binds it
        if not acts or self._chance.random() < 0.1:  # noqa: PLR2004 - a timer is quicker now and then
            acts += [self._fire] if self._due() else []
        return acts

    def _listen(self) -> None:
        """Tell what was committed; give what is driven to the process, and take what the drives want done."""
        while self._heard < len(self.desk.changes):
            change = self.desk.changes[self._heard]
            self._heard += 1
            for fact in change.facts:
                if isinstance(fact, Appended):
                    self._tell(fact)
        for run in self.desk.index.runs.driven():
            if run.ledger.run not in self._drives:
                self._give(run.ledger.run, run.ledger.generation)
        for name, drive in self._drives.items():
            self._effects.extend((name, each) for each in drive.effects())

    def _tell(self, fact: Appended) -> None:
        drive = self._drives.get(fact.run)
        if drive is not None and drive.phase is not Phase.LEFT:
            drive.committed(each.event for each in fact.events if each.event.seq > self._given[fact.run])

    def _give(self, run: RunId, generation: Generation) -> None:
        now = self.family.by.generation
        if generation < now:
            self.desk.must(ResumeRuns(generation=now, runs=(run,)))
        log = self.desk.events(run)
        drive = self._drives[run] = self._drive(run)
        self._given[run] = len(log)
        drive.page(log, self._mails(run))
        drive.live()

    def _drive(self, run: RunId) -> Drive:
        return Drive(
            run,
            last_seq=len(self.desk.events(run)),
            repository=REPOSITORY,
            workflow=self._workflow,
            limits=DEFAULT,
            program=_program,
        )

    def _mails(self, run: RunId) -> tuple[bytes, ...]:
        started = self.desk.events(run)[0]
        assert isinstance(started, ev.RunStarted)
        return (self.desk.tree.read(layout.mail_path(started.mail.arrival)) or b"",)

    def _names(self) -> list[RunId]:
        begun = (fact for change in self.desk.changes for fact in change.facts if isinstance(fact, Appended))
        return list(dict.fromkeys(fact.run for fact in begun))

    # --- acts --------------------------------------------------------------------------------------------------------

    def _take_up(self) -> None:
        arrival = next(arrival for arrival, item in self.desk.index.queue.items() if not item.claimed)
        self.desk.must(Claim(arrival))
        self.desk.must(TakeUp(arrival=arrival, start=START))

    def _due(self) -> list[tuple[int, RunId, ev.TimerFired]]:
        ledgers = ((run, fold.ledger(known.run)) for run, known in self.desk.live().items())
        return [
            (timer.fire_at, run, ev.TimerFired(call=timer.call, timer=name))
            for run, ledger in ledgers
            if ledger is not None
            for name, timer in ledger.timers.items()
        ]

    def _fire(self) -> None:
        at, run, event = min(self._due(), key=lambda each: each[:2])
        self.desk.wall = max(self.desk.wall, at)
        self.desk.must(Append(by=Supervisor(), run=run, events=(event,)))

    def _perform(self) -> None:
        run, effect = self._effects.popleft()
        drive = self._drives[run]
        match effect:
            case fx.Append(events):
                answer = self.desk.do(Append(by=self.family.by, run=run, events=events))
                self._listen()
                refused = answer if isinstance(answer, Refused) else None
                drive.appended(events, refused.why if refused else None, refused.code if refused else "")
            case fx.Ask(call, request):
                answer = self._ask(run, effect)
                drive.answered(call, request, answer.why if isinstance(answer, Refused) else None)
            case fx.Body():
                self._bodies.append((run, effect))
            case fx.CallOff(call):
                gone = [each for each in self._bodies if each[0] == run and each[1].step.call == call]
                self._bodies = [each for each in self._bodies if each not in gone]
                for _, body in gone:
                    error = faults.of_step(asyncio.CancelledError(), body.step.request.spec)
                    drive.body_ended(body.step, fx.Errored(error, answer=False))
            case fx.Pause(detail):
                self.pauses.append(detail)
            case fx.Credit() | fx.Leave() | fx.Starve():
                pass
            case fx.Keep() | fx.Fetch():
                raise AssertionError(f"no value here is so large: {effect}")

    def _ask(self, run: RunId, ask: fx.Ask) -> Decided:
        match ask.request:
            case CallChild(spec, raw):
                return self.desk.do(
                    SpawnChild(by=self.family.by, run=run, call=ask.call, workflow=spec.name, input=raw, seen=ask.seen)
                )
            case Quit(reason):
                now = self.family.by.generation
                return self.desk.do(Cancel(run=run, reason=reason, origin="self", call=ask.call, generation=now))
            case other:
                raise AssertionError(f"nobody here sends mail: {other}")

    def _body_ends(self, at: int) -> None:
        run, body = self._bodies.pop(at)
        request = body.step.request
        try:
            value: Any = request.spec.function(*request.args, **request.kwargs)
            end: fx.BodyEnd = fx.Completed(request.spec.codec.store(value).raw)
        except Exception as error:  # noqa: BLE001 - as the runtime does
            end = fx.Errored(faults.of_step(error, request.spec), answer=False)
        self._drives[run].body_ended(body.step, end)


def _program(entry: Entry, on_turn: Callable[[Turn], None]) -> Program:
    return WorkflowLoop.create(entry, on_turn)
