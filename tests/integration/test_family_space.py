"""A full disk under a run with children: what doesn't fit waits, whole, and the writer goes on beside it."""

import errno
import itertools
import json
import os
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from substrate import Settings, SigningKey, layout, message_ids, runlog, verify
from substrate.effects import Again, To
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Done,
    Enqueue,
    FoldAway,
    Idle,
    ReadRuns,
    RunLine,
    SpawnChild,
    Submit,
    TakeUp,
    Withheld,
    WorkflowProcess,
)
from substrate.packs.objects import EMPTY_TREE
from substrate.packs.trees import Trees
from substrate.storage.difference import applied, difference, weight
from substrate.storage.journal import Journal
from substrate.storage.readview import open_readonly
from substrate.writer import Writer
from waypost.acting import Reply
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId, run_ordinal
from waypost.model.limits import Limits
from waypost.model.times import Now
from waypost.testing.clock import START
from waypost.testing.desk import ADDRESS, STARTED, call, message

KEY = SigningKey.generate()
SETTINGS = Settings(deployment="expenses", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
BY = WorkflowProcess(Generation(1))
FAILED = ev.RunFailed(error=ev.Fault(type="ValueError", message="no"))
LIMITS = Limits(seal_bytes=64 * 1024, reserve=8 * 1024)
CHILDREN, BEGUN = 40, 3


class Scarce(Disk):
    """Has no space to give while it is ``full``."""

    full = False

    def reserve(self, descriptor: int, path: str, size: int) -> None:
        """Refuse."""
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        super().reserve(descriptor, path, size)


@dataclass
class Host:
    """A writer with its mailbox, in one thread."""

    path: Path
    disk: Scarce = field(default_factory=Scarce)

    def __post_init__(self) -> None:
        self.now = Now(START, 0.0)
        self.writer = Writer.open(self.path, SETTINGS, key=KEY, disk=self.disk, limits=LIMITS, now=self.now)
        self.tokens = itertools.count(1)

    def submit(self, what: Any) -> Any:
        """An operation or a question, durably, and all that the writer then does of itself."""
        token = next(self.tokens)
        return self.carry_out(self.writer.submit(Submit(what=what), To(token=token), self.now)).get(token)

    def must(self, what: Any) -> Any:
        """One that has to succeed."""
        answer = self.submit(what)
        assert isinstance(answer, Done), answer
        return answer.value

    def seal(self) -> None:
        """The time for it has come."""
        self.carry_out(self.writer.seal(self.now))

    def carry_out(self, effects: Iterator[Any]) -> dict[int, Any]:
        """The answers; the mailbox comes to rest within some turns, or there is a loop."""
        answers, mailbox, turns = dict[int, Any](), deque(effects), 0
        while mailbox:
            turns += 1
            assert turns < 200, "it comes to no end"
            match mailbox.popleft():
                case Reply(token, value):
                    answers[token] = value
                case Again(FoldAway()):
                    mailbox.extend(self.writer.fold_away(self.now))
                case Again(Idle()):
                    pass  # no seal but by ``seal``
                case Again():
                    mailbox.extend(self.writer.flush(self.now))
                case _:
                    pass
        return answers

    def begin(self) -> RunId:
        """A run that its mail has begun."""
        arrival = self.must(Enqueue(message("m1@x"))).arrival
        self.must(Claim(arrival))
        run: RunId = self.must(TakeUp(arrival=arrival, start=STARTED))
        return run


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path / "r.git")
    made.must(BeginGeneration())
    yield made
    list(made.writer.close(made.now))
    assert verify(made.path, KEY.public).faults == ()


def fill(host: Host) -> None:
    """Mail comes until no more is taken."""
    host.disk.full = True
    number = 0
    for size in (2**power for power in range(19, 9, -1)):
        taken: Any = Done(0)
        while isinstance(taken, Done):
            number += 1
            taken = host.submit(Enqueue(message(f"fill{number}@x", text="x" * size)))
        assert isinstance(taken, Withheld), taken


def states(host: Host, root: RunId) -> dict[RunId, str]:
    """Of a run and its children."""
    lines: tuple[RunLine, ...] = host.must(ReadRuns())
    return {line.run: line.state for line in lines if root in {line.run, line.parent}}


def with_children(host: Host) -> RunId:
    """A run with many children, some of which have begun."""
    root = host.begin()
    for number in range(1, CHILDREN + 1):
        host.must(SpawnChild(by=BY, run=root, call=call(number), workflow="pay", input=b"[1]", seen=0))
    for arrival in range(2, 2 + BEGUN):
        host.must(Claim(arrival))
        host.must(TakeUp(arrival=arrival, start=STARTED))
    host.seal()
    return root


def test_an_end_that_does_not_fit_waits_whole_and_the_writer_goes_on(host: Host) -> None:
    """It asks for the end of all children in one commit: none of it is written before all of it can be.

    A run with fewer children ends meanwhile in what is left, and nobody has to be restarted for it.
    """
    root = with_children(host)
    fill(host)
    before = states(host, root)
    first = min(before.keys() - {root}, key=run_ordinal)
    end = Append(by=BY, run=root, events=(FAILED,))
    for _ in range(3):
        withheld = host.submit(end)
        assert isinstance(withheld, Withheld)
        assert "no space for 'append RunFailed" in withheld.reason
    assert states(host, root) == before
    host.must(Append(by=BY, run=first, events=(FAILED,)))
    assert isinstance(host.submit(end), Withheld)
    host.disk.full = False
    host.must(end)
    after = states(host, root)
    assert after.pop(root) == "failed"
    ends = {"failed": 1, "cancelling": BEGUN - 1, "cancelled": CHILDREN - BEGUN}
    assert Counter(after.values()) == ends, "one had ended, two are told to, and none of the others begins"


def test_a_mail_larger_than_the_disk_is_withheld_and_ends_nothing(host: Host) -> None:
    """Its sender comes again; what runs here goes on, and smaller mail is taken."""
    root = host.begin()
    host.disk.full = True
    for _ in range(2):
        withheld = host.submit(Enqueue(message("large@x", text="x" * 3_000_000)))
        assert isinstance(withheld, Withheld)
        assert withheld.reason.startswith("the disk is full")
    host.must(Enqueue(message("small@x")))
    host.must(Append(by=BY, run=root, events=(FAILED,)))
    host.disk.full = False
    host.must(Enqueue(message("large@x", text="x" * 3_000_000)))


def test_a_commit_takes_no_more_than_it_was_said_to(tmp_path: Path) -> None:
    """Whatever its files are, and however deep they lie: else the disk is full in the midst of a flush."""
    disk, folder = Disk(), Folder(str(tmp_path / "r.git"))
    folder.make(disk)
    journal = Journal.allocate(disk, folder, 1, 2**24)
    trees = Trees(lambda _: b"", EMPTY_TREE)
    names = [f"runs/{number % 7:02d}/run_{number}/events/{'x' * (number % 40)}{number:012d}" for number in range(600)]
    for first in range(0, 500, 25):
        puts = {name: os.urandom(11 * (number % 50)) for number, name in enumerate(names[first : first + 100])}
        puts[f"log/{first}.jsonl"] = os.urandom(70_000)
        deletes = names[first - 10 : first] if first else []
        said, room = weight(trees, puts, deletes, 0), journal.room
        applied(trees, journal, puts, deletes, difference(trees, puts, deletes))
        assert said / 2 < room - journal.room < said - 4000
    assert weight(trees, {"a": b"1"}, (), journal.room) == 0, "plainly enough"
    journal.close()


def test_the_log_of_a_run_that_has_ended_waits_for_space_and_then_goes_into_one_file(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    """That comes of itself, and nobody has asked for it: it must cost nobody the writer, nor be tried without end.

    And a log, which may lie on the same disk, isn't filled with one line for each try.
    """
    run = host.begin()
    for number in range(1, 51):
        result = ev.Value(inline=msgspec.Raw(json.dumps(os.urandom(25_000).hex()).encode()))
        started = ev.StepStarted(call=call(number), step="extract", arguments="0" * 64)
        host.must(Append(by=BY, run=run, events=(started,)))
        host.must(Append(by=BY, run=run, events=(ev.StepCompleted(call=call(number), output=result),)))
        host.seal()
    host.disk.full = True
    host.must(Append(by=BY, run=run, events=(FAILED,)))
    for number in range(3):
        host.must(Enqueue(message(f"beside{number}@x")))
        host.seal()
    assert caplog.text.count("no space for the next journal") == 1
    assert not runlog.run_ids(open_readonly(host.path, KEY.public), layout.SEALED)
    host.disk.full = False
    host.seal()
    assert tuple(runlog.run_ids(open_readonly(host.path, KEY.public), layout.SEALED)) == (run,)
