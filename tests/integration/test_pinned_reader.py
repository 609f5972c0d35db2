"""A reader stands at one commit, whatever the writer does: appends, seals, merges, packs that go, runs that fold.

The writer here is the real one, on a disk; the reader is asked after each of its steps, for things that it has not
read before.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from substrate import layout, runlog
from substrate.errors import NotInHistory
from substrate.reader import Reader
from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.model import events as ev
from waypost.model.ids import RunId
from waypost.model.limits import Limits
from waypost.testing.clock import START
from waypost.testing.desk import REPOSITORY, Desk, call, first_files, message
from waypost.testing.stores import git

KEY = SigningKey.generate()
LIMITS = Limits(seal_bytes=64 * 1024)
DONE = ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"null")))
ROUNDS = 12


@pytest.fixture(name="desk")
def _desk(tmp_path: Path) -> Iterator[Desk]:
    path = tmp_path / "r.git"
    Store.create(path, repository_id=REPOSITORY, key=KEY, first=first_files(), at=START, limits=LIMITS).close()
    store = Store.open(path, key=KEY, limits=LIMITS)
    desk = Desk(store)
    desk.begin()
    for number in range(ROUNDS):
        run = desk.start(message(f"m{number}@x"))
        desk.append(run, ev.StepStarted(call=call(1), step="s", arguments="a" * 64))
        if number % 2:
            store.seal()
    store.flush()  # the last ones lie in the journal
    yield desk
    store.abandon()


def store_of(desk: Desk) -> Store:
    assert isinstance(desk.tree, Store)
    return desk.tree


def answers(desk: Desk) -> list[Callable[[Reader], Any]]:
    """What a reader may be asked, a list of questions that need different objects."""
    runs = runlog.run_ids(desk.index)

    def log(run: RunId) -> Callable[[Reader], Any]:
        return lambda reader: [*reader.log(run), reader.run(run), reader.page(run, limit=100)]

    return [
        *map(log, runs),
        lambda reader: reader.runs(),
        lambda reader: list(reader.queue(consumed=True)),
        lambda reader: reader.facts(),
        lambda reader: [reader.mail(arrival) for arrival in range(1, ROUNDS)],
    ]


def moves(desk: Desk, path: Path) -> list[Callable[[], object]]:
    """What happens in the repository."""
    store, runs = store_of(desk), runlog.run_ids(desk.index)

    def merge() -> None:
        while store.merging:
            store.merge()

    def end(run: RunId) -> Callable[[], object]:
        def act() -> None:
            desk.append(run, DONE)
            desk.fold_away()
            store.seal()

        return act

    return [
        store.seal,
        merge,
        *map(end, runs[:6]),
        merge,
        lambda: (desk.start(message("late@x")), store.flush()),
        lambda: git(path, "gc", "--prune=now", "--quiet"),
        desk.settle,
        *map(end, runs[6:]),
        merge,
    ]


def test_a_reader_that_was_opened_before_it_all_shows_none_of_it(desk: Desk, tmp_path: Path) -> None:
    """Each question is asked for the first time after another thing has happened; runs and packs have gone by then."""
    path = tmp_path / "r.git"
    asked, packs = answers(desk), {file.name for file in (path / "objects" / "pack").glob("*.pack")}
    reader = Reader.open(path, KEY.public)
    before = Reader.open(path, KEY.public)
    expected = [question(before) for question in asked]
    for at, move in enumerate(moves(desk, path)):
        move()
        if at < len(asked):
            assert asked[at](reader) == expected[at], f"question {at}"
    assert [question(reader) for question in asked] == expected
    assert not packs & {file.name for file in (path / "objects" / "pack").glob("*.pack")}, "every pack has gone"
    now = Reader.open(path, KEY.public)
    assert asked[0](now) != expected[0]
    assert runlog.run_ids(desk.index, layout.SEALED)


def test_a_reader_may_be_opened_at_an_older_commit_at_any_time(desk: Desk, tmp_path: Path) -> None:
    """The same answers as then, long after it: from the packs alone."""
    path = tmp_path / "r.git"
    asked = answers(desk)
    then = Reader.open(path, KEY.public)
    expected = [question(then) for question in asked[:-2]]
    head, flush = then.facts().head, then.facts().flush
    for move in moves(desk, path):
        move()
    store_of(desk).close()
    pinned = Reader.open(path, KEY.public, at=head)
    assert [question(pinned) for question in asked[:-2]] == expected
    assert (pinned.facts().head, pinned.facts().flush, pinned.facts().flush_hash) == (
        head,
        flush,
        then.facts().flush_hash,
    )


@pytest.mark.parametrize("commit", ["", "0" * 40, "HEAD", "../x"])
def test_a_commit_that_is_not_in_the_history_is_refused(desk: Desk, tmp_path: Path, commit: str) -> None:
    """Also one that git would know by another name; and what lies beside the history isn't shown as part of it."""
    store_of(desk).seal()
    with pytest.raises(NotInHistory, match="is not in its history"):
        Reader.open(tmp_path / "r.git", KEY.public, at=commit)


def test_a_commit_beside_the_history_is_refused(desk: Desk, tmp_path: Path) -> None:
    """It is there, as an object; nobody has signed for it."""
    path = tmp_path / "r.git"
    store_of(desk).seal()
    tree = git(path, "rev-parse", "refs/heads/log^{tree}").strip()
    author = ["-c", "user.name=x", "-c", "user.email=x@x"]
    beside = git(path, *author, "commit-tree", tree, "-p", "refs/heads/log", "-m", "beside").strip()
    with pytest.raises(NotInHistory):
        Reader.open(path, KEY.public, at=beside)
