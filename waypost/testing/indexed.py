"""A repository with runs in every state and the derived index beside it, for tests of what may happen to the index."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any, Self

import msgspec

from substrate import layout, runlog
from substrate.indexing.covering import open_derived, stamp_of
from substrate.indexing.derived import DerivedFile
from substrate.indexing.index import Index
from substrate.messages import Pause, ReadCensus, ReadRuns
from substrate.questions import answer
from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import RunId, message_key
from waypost.model.limits import DEFAULT
from waypost.testing.clock import START
from waypost.testing.desk import ADDRESS, REPOSITORY, Desk, call, first_files, message

KEY = SigningKey.generate()
_NULL = ev.Value(inline=msgspec.Raw(b"null"))


class World:
    """A repository with runs in every state, and an index beside it."""

    def __init__(self, folder: Path) -> None:
        self.path, self.file = folder / "r.git", folder / "derived" / "runs.sqlite"
        self.desk = Desk(Store.open(self.path, key=KEY))
        (self.parked,) = (run for run, known in self.desk.live().items() if isinstance(known.run, fold.Parked))

    @classmethod
    def make(cls, folder: Path) -> None:
        """The repository and its index, once for all tests."""
        self = cls.__new__(cls)
        self.path, self.file = folder / "r.git", folder / "derived" / "runs.sqlite"
        Store.create(self.path, repository_id=REPOSITORY, key=KEY, first=first_files(), at=START).close()
        self.desk = Desk(Store.open(self.path, key=KEY))
        self.desk.begin()
        for number in (1, 2, 3):
            self.desk.append(self.run(number, answers=f"m{number - 1}@x"), ev.RunCompleted(result=_NULL))
            self.desk.fold_away()
        self.run(4)
        self.parked = self.run(5)
        self.desk.append(self.parked, ev.SignalAwaited(call=call(1), park="input", seen=1, timeout=60.0))
        self.desk.append(self.run(6), ev.RunCompleted(result=_NULL))
        paused = self.run(7)
        self.desk.append(paused, ev.TimerSet(call=call(1), timer="r1#1", delay=5.0, seen=1))
        self.desk.must(Pause(run=paused, code="operator", detail=""))
        self.open(self.file).close()
        self.store.close()

    @classmethod
    def copied(cls, made: Path, folder: Path) -> Self:
        """One of its own, of what was made in another folder, as if it had been made here."""
        shutil.copytree(made, folder, dirs_exist_ok=True)
        self = cls(folder)
        alter(self.file, f"update stamp set place = {self.file.stat().st_ino}")  # noqa: S608 - a number
        return self

    @property
    def store(self) -> Store:
        """The repository, open."""
        assert isinstance(self.desk.tree, Store)
        return self.desk.tree

    def run(self, number: int, answers: str | None = None) -> RunId:
        """A run that was begun by the mail of this number."""
        return self.desk.start(message(f"m{number}@x", answers=answers))

    def go_on(self) -> None:
        """One run of each kind moves on: a new one, one that wakes, one that ends, one that is sealed."""
        self.run(8)
        self.desk.append(self.parked, ev.SignalAwaitAbandoned(call=call(1)))
        self.desk.append(self.parked, ev.TimerSet(call=call(2), timer="r1#2", delay=9.0, seen=3))
        self.desk.fold_away()
        self.store.seal()

    def open(self, path: Path | None) -> DerivedFile:
        """The index, brought up to the repository."""
        return open_derived(path, self.store, REPOSITORY)

    def check(self) -> None:
        """With the file as it lies there all is as without one, and after that it is right."""
        expected = told(self.store, Index.open(None, self.store, ADDRESS, DEFAULT, REPOSITORY))
        found = Index.open(self.file, self.store, ADDRESS, DEFAULT, REPOSITORY)
        assert told(self.store, found) == expected
        found.close()
        derived = DerivedFile(self.file)
        assert derived.stamped() == stamp_of(self.store, REPOSITORY)
        derived.close()


def told(tree: Store, index: Index) -> list[Any]:  # Any: answers of every kind, only to be compared
    """Everything that an index is asked."""
    runs = [*runlog.run_ids(tree), *runlog.run_ids(tree, layout.SEALED)]
    return [
        answer(index, ReadRuns(limit=100)),
        answer(index, ReadCensus(0)),
        [(run, index.known(run), index.standing(run), index.threads.root(run)) for run in runs],
        index.runs.driven(),
        list(index.runs.deadlines(None)),
        list(index.finished),
        index.threads.latest,
        [index.threads.find(f"<m{number}@x>".encode()) for number in range(10)],
        [index.threads.unsealed(message_key(f"<m{number}@x>".encode())) for number in range(10)],
    ]


def alter(file: Path, *statements: str) -> None:
    """Somebody is at work in the file."""
    base = sqlite3.connect(file)
    with base:
        for statement in statements:
            base.execute(statement)
    base.close()
