"""Runs and their child runs on a desk: spawned, taken up, ended, each in one line.

``Family`` is a desk whose deployed code has child workflows; what it does is decided by the substrate's own operations,
held against the rule book, and compared with a fresh fold by ``check``.
"""

import dataclasses
import itertools
from typing import Any

import msgspec
from msgspec import UNSET

from substrate.messages import Cancel, Claim, Deploy, Operation, SpawnChild, TakeUp, WorkflowProcess
from substrate.routing import Runs
from substrate.rules import Broken
from substrate.rules.whole import whole
from substrate.rules.whole_runs import Counts
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.child_mail import child_id
from waypost.model.code import deployed, tree_hash
from waypost.model.declaration import ChildDeclared, Declared
from waypost.model.ids import CallId, Generation, RunId, message_key
from waypost.model.limits import DEFAULT, Limits
from waypost.model.schedule import Schedule
from waypost.testing.desk import ADDRESS, STARTED, Desk, Files, first_files, message

CODE = {"flow.py": b"x = 1\n"}
CHILDREN = ("pay", "ask")
START = dataclasses.replace(STARTED, code=tree_hash(CODE))
ONE = ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"1")))
FAILED = ev.RunFailed(error=ev.Fault(type="ValueError", message="no", traceback="in flow.py"))


class Family:
    """A deployment with child workflows ``pay`` and ``ask``, at work."""

    def __init__(self, *, runs: Runs = "thread", limits: Limits = DEFAULT, coded: bool = True) -> None:
        """``coded``: whether its code is deployed; without, any child may be started, as in a history of before."""
        self.files = Files(first_files())
        self.desk = Desk(self.files, runs=runs, limits=limits)
        self.desk.begin()
        if coded:
            self.deploy(*CHILDREN)
        self._mails = itertools.count(1)

    def deploy(self, *children: str, schedules: tuple[Schedule, ...] = ()) -> None:
        """Code that has these child workflows, and schedules, is what runs from now on."""
        known = tuple(ChildDeclared(name=name, asynchronous=True) for name in children)
        declared = Declared(name="expenses", address=ADDRESS, children=known or UNSET, schedules=schedules or UNSET)
        self.desk.must(Deploy(record=deployed(CODE, root="", module="flow", declared=declared), files=CODE))

    @property
    def by(self) -> WorkflowProcess:
        """The child process at work."""
        return WorkflowProcess(Generation(self.desk.index.state.generation))

    def root(self) -> RunId:
        """A run that is nobody's child, begun by a mail."""
        arrival = self.desk.enqueue(message(f"root{next(self._mails)}@x"))
        self.desk.must(Claim(arrival))
        run: RunId = self.desk.must(TakeUp(arrival=arrival, start=START))
        return run

    def spawning(self, run: RunId, call: CallId, **other: Any) -> SpawnChild:
        """What asks for a child; ``other``: what isn't as usual."""
        known = {"workflow": "pay", "input": b"[1]", "seen": 0, **other}
        return SpawnChild(by=self.by, run=run, call=call, **known)

    def spawn(self, run: RunId, call: CallId, **other: Any) -> RunId:
        """A child, whose mail is queued; raises Refusal, KeyError where it was refused."""
        self.desk.must(self.spawning(run, call, **other))
        return self.ledger(run).children[call].child

    def mail_of(self, run: RunId, call: CallId) -> int:
        """The arrival of a child's mail that isn't consumed."""
        arrival = self.desk.index.arrival_of(message_key(child_id(run, call).encode()))
        assert arrival is not None
        return arrival

    def claim(self, run: RunId, call: CallId) -> int:
        """A child's mail is claimed."""
        arrival = self.mail_of(run, call)
        self.desk.must(Claim(arrival))
        return arrival

    def take_up(self, run: RunId, call: CallId) -> RunId:
        """A child that was spawned begins."""
        found: RunId = self.desk.must(TakeUp(arrival=self.claim(run, call), start=START))
        return found

    def child(self, run: RunId, call: CallId, **other: Any) -> RunId:
        """A child that has begun."""
        self.spawn(run, call, **other)
        return self.take_up(run, call)

    def cancel(self, run: RunId) -> Operation:
        """An operator asks for a run's end, begun or not."""
        return Cancel(run=run, reason="enough", origin="supervisor-operator", by="ann", start=START)

    def ledger(self, run: RunId) -> fold.Ledger:
        """Of a live run."""
        found = fold.ledger(self.desk.index.known(run).run)
        assert found is not None
        return found

    def state(self, run: RunId) -> fold.Run:
        """A run's state."""
        return self.desk.index.known(run).run

    def outcomes(self, run: RunId) -> list[ev.ChildCompleted]:
        """What a run was told of its children, in order."""
        return [event for event in self.desk.events(run) if isinstance(event, ev.ChildCompleted)]

    def check(self) -> None:
        """Memory is what the tree says, and the tree keeps the rules. Raises AssertionError."""
        self.desk.check()
        assert not (found := self.broken()), found

    def broken(self) -> list[Broken]:
        """The rules that the whole tree breaks."""
        return list(whole(self.desk.tree, Counts(), self.desk.limits))
