"""The derived index of runs: taken as it is, brought up, built again, done without; the same answers each time."""

import shutil
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from substrate import runlog
from substrate.errors import DerivedFailed
from substrate.indexing import cards
from substrate.indexing.covering import open_derived, stamp_of
from substrate.indexing.derived import DRIVEN, FORMAT, OVER, CardsOfAFile, DerivedFile, Row, Stamp
from substrate.indexing.index import Index
from substrate.indexing.settling import Settling
from substrate.storage.store import Store
from waypost.model import events as ev
from waypost.model.ids import message_key
from waypost.model.limits import DEFAULT
from waypost.testing.desk import ADDRESS, REPOSITORY, call
from waypost.testing.indexed import KEY, World, alter, told


def copied(file: Path, *torn: str) -> None:
    """The file is a copy that was made page by page while its host wrote: what a page holds is whole."""
    copy = shutil.copy(file, file.with_suffix(".copy"))
    alter(Path(copy), *torn)
    file.unlink()
    Path(copy).rename(file)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "none": lambda file: file,
    "gone": Path.unlink,
    "the whole folder gone": lambda file: shutil.rmtree(file.parent),
    "empty": lambda file: file.write_bytes(b""),
    "text": lambda file: file.write_text("no database", encoding="utf-8"),
    "cut in the first page": lambda file: file.write_bytes(file.read_bytes()[:100]),
    "cut in the middle": lambda file: file.write_bytes(file.read_bytes()[: file.stat().st_size // 2]),
    "a page of zeros": lambda file: file.write_bytes(file.read_bytes()[:4096] + bytes(file.stat().st_size - 4096)),
    "another format": lambda file: alter(file, "update stamp set format = '0'", "delete from mail"),
    "a column less": lambda file: alter(
        file, "update stamp set format = '4'", "drop index nobodys", "alter table run drop column parent"
    ),
    "another repository": lambda file: alter(file, "update stamp set repository = 'x'", "delete from mail"),
    "never finished": lambda file: alter(file, "delete from stamp", "delete from run where ordinal > 2"),
    "a byte too many in each card": lambda file: alter(file, "update run set card = cast(card || x'00' as blob)"),
    "text for each card": lambda file: alter(file, "update run set card = card || x'00'"),
    "a copy, torn": lambda file: copied(file, "delete from deadline", "delete from mail", "delete from run"),
    "cards of other runs": lambda file: alter(file, "update run set card = (select card from run limit 1)"),
}


@pytest.mark.parametrize(("damage", "later"), [*((damage, True) for damage in DAMAGES), ("none", False)])
def test_whatever_happens_to_the_file_the_answers_are_those_of_the_repository(
    world: World, damage: str, *, later: bool
) -> None:
    """It is derived: deleted, cut, written over, of another repository, in each case also left behind."""
    if later:
        world.go_on()
    DAMAGES[damage](world.file)
    world.check()


def test_an_index_that_was_left_behind_is_brought_up_by_what_has_changed(world: World) -> None:
    """A start after a kill reads the runs that moved since the last seal, and no others."""
    world.go_on()
    found = world.open(world.file)
    found.close()
    read: list[str] = []

    class Watched:
        entries, directory_id, directory = world.store.entries, world.store.directory_id, world.store.directory

        def read(self, path: str) -> bytes | None:
            read.append(path)
            return world.store.read(path)

        def several(self, directory: str, names: Sequence[str]) -> list[bytes | None]:
            return [self.read(f"{directory}/{name}") for name in names]

    world.run(9)
    world.store.seal()
    found = open_derived(world.file, Watched(), REPOSITORY)
    found.close()
    assert {path.split("/")[3] for path in read if path.startswith("runs/")} == {runlog.run_ids(world.store)[-1]}
    assert not [path for path in read if path.startswith("sealed/")]


@pytest.mark.parametrize("portions", range(8))
def test_a_death_between_two_portions_leaves_an_index_that_is_brought_up(world: World, portions: int) -> None:
    """Cards of a newer state lie there beside a stamp of an older one; the file says so of itself."""
    index = Index(world.store, ADDRESS, DEFAULT, world.open(world.file))
    world.desk.index = index
    world.go_on()
    world.run(10)
    world.store.flush()
    index.runs.begin_to_settle(REPOSITORY)
    for _ in range(portions):
        if not index.runs.settle(1):
            break
    world.store.seal()
    world.check()
    index.close()


@pytest.mark.parametrize("finished", [False, True], ids=["half written", "whole"])
def test_an_index_from_the_future_is_not_believed(world: World, tmp_path: Path, *, finished: bool) -> None:
    """The repository was set back to an older copy, the index wasn't."""
    world.store.close()
    shutil.copytree(world.path, tmp_path / "older.git")
    world.desk.reopen(Store.open(world.path, key=KEY))
    index = Index(world.store, ADDRESS, DEFAULT, world.open(world.file))
    world.desk.index = index
    world.go_on()
    index.runs.begin_to_settle(REPOSITORY)
    while index.runs.settle(1) and finished:
        pass
    world.store.close()
    world.desk.reopen(Store.open(tmp_path / "older.git", key=KEY))
    world.check()
    index.close()


def test_a_history_that_was_set_back_while_its_objects_are_still_there_is_noticed(world: World) -> None:
    """The trees of the stamp can be read, and yet the log of a run doesn't go on from what the index knows of it."""
    derived = world.open(world.file)
    derived.put((), Stamp(FORMAT, REPOSITORY, stamp_of(world.store, REPOSITORY).at))
    before = derived.stamped()
    index = Index(world.store, ADDRESS, DEFAULT, derived)
    known = index.known(world.parked)
    other = msgspec.structs.replace(known, prev="f" * 64)
    card = cards.card_of(world.parked, "0" * 40, "s", other)
    derived.put([Row(card, world.parked, (message_key(b"<m9@x>"),))], before)
    derived.close()
    world.desk.append(world.parked, ev.SignalAwaitAbandoned(call=call(1)))
    world.store.seal()
    world.check()


def in_place_of_the_folder(file: Path) -> None:
    """Somebody made a file where the folder was."""
    shutil.rmtree(file.parent)
    file.parent.write_text("in the way", encoding="utf-8")


def in_place_of_the_file(file: Path) -> None:
    """A folder, for one: SQLite can't open it, and it can't be removed as a file."""
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("hinder", [in_place_of_the_folder, in_place_of_the_file])
def test_where_the_disk_allows_no_index_it_is_kept_in_memory(world: World, hinder: Callable[[Path], None]) -> None:
    """A start doesn't fail for want of what can be derived."""
    hinder(world.file)
    index = Index.open(world.file, world.store, ADDRESS, DEFAULT, REPOSITORY)
    assert told(world.store, index) == told(world.store, Index.open(None, world.store, ADDRESS, DEFAULT, REPOSITORY))


def test_an_index_that_fails_at_work_says_so_and_is_removed(world: World) -> None:
    """A thread that can't be looked up is never taken for none; the next start builds the file again."""
    derived = world.open(world.file)
    derived.close()
    with pytest.raises(DerivedFailed, match="the index of runs failed"):
        derived.run_of("0" * 64)
    assert not world.file.exists()
    world.check()


def test_a_reader_takes_only_cards_that_prove_themselves(world: World, tmp_path: Path) -> None:
    """It reads the file as it lies there, perhaps in the middle of a write; what it can't use it reads from the log."""
    index = Index.open(world.file, world.store, ADDRESS, DEFAULT, REPOSITORY)
    right = told(world.store, index)[0]
    index.close()
    used: set[str] = set()
    subjects = {number: f"about m{number}@x" for number in range(10)}
    for number, (name, damage) in enumerate(DAMAGES.items()):
        file = tmp_path / str(number) / "runs.sqlite"
        file.parent.mkdir()
        shutil.copy(world.file, file)
        damage(file)
        found = CardsOfAFile(file)
        for line in right:
            card = found.card(line.run)
            assert card is None or cards.line(card, subjects.__getitem__) == line
            used |= {name} if card is not None else set()
        found.close()
    assert "none" in used
    assert "a byte too many in each card" not in used


@pytest.mark.parametrize("kept", ["in the file", "in memory"])
def test_settling_changes_no_answer(world: World, kept: str) -> None:
    """What is in memory and what is in the index are one: asked before, between two portions and after."""
    index = Index(world.store, ADDRESS, DEFAULT, world.open(world.file if kept == "in the file" else None))
    world.desk.index = index
    world.go_on()
    world.desk.check()
    world.store.flush()
    assert index.runs.begin_to_settle(REPOSITORY)
    while index.runs.settle(1):
        world.desk.check()
    world.desk.append(world.parked, ev.TimerCancelled(call=call(2), timer="r1#2"))
    world.desk.check()
    world.store.flush()
    assert index.runs.begin_to_settle(REPOSITORY)
    assert not index.runs.settle()
    assert not index.runs.begin_to_settle(REPOSITORY)
    world.desk.check()
    index.close()


@pytest.mark.parametrize("begun", [False, True])
def test_a_lock_that_somebody_holds_puts_the_writing_off_and_fails_nothing(
    world: World, caplog: pytest.LogCaptureFixture, *, begun: bool
) -> None:
    """An index is there for convenience: an operator who looks into it with a transaction must not cost a mail."""
    index = Index.open(world.file, world.store, ADDRESS, DEFAULT, REPOSITORY)
    world.desk.index, settling = index, Settling(index, REPOSITORY)
    world.go_on()
    if begun:
        assert settling.begin()
    other = sqlite3.connect(world.file, isolation_level=None)
    other.execute("begin immediate")
    write = settling.step if begun else settling.begin
    assert [write(), write()] == [False, False]
    assert len([record for record in caplog.records if "database is locked" in record.message]) == 1
    world.desk.check()
    other.execute("rollback")
    settling.finish()
    index.close()
    other.close()
    assert world.file.exists()
    world.check()


@pytest.mark.parametrize("portions", range(6))
def test_what_goes_on_while_it_settles_may_be_lost_and_the_index_is_right(world: World, portions: int) -> None:
    """A run that moves on meanwhile is written as it was when the index began to be written: that much is durable."""
    index = Index.open(world.file, world.store, ADDRESS, DEFAULT, REPOSITORY)
    world.desk.index = index
    world.go_on()
    world.store.seal()
    index.runs.begin_to_settle(REPOSITORY)
    for at in range(portions):
        if at == 1:
            world.desk.append(world.parked, ev.TimerCancelled(call=call(2), timer="r1#2"))
            world.run(11, answers="m3@x")
        index.runs.settle(1)
    world.store.abandon()  # the power fails: what came after the seal is gone
    world.desk.reopen(Store.open(world.path, key=KEY))
    world.check()
    index.close()


def test_no_question_reads_the_whole_table(world: World) -> None:
    """A table of a hundred thousand runs has 150 MB: what a start asks must not depend on them."""
    file = DerivedFile(world.file)
    asked: list[str] = []
    file._base.set_trace_callback(asked.append)
    for ask in (file.run_of, file.unsealed):
        ask("0" * 64)
    for look in (file.card, file.root_of, file.newest_of):
        look(world.parked)
    for stage in (DRIVEN, OVER):
        file.all_in(stage)
    file.stamped()
    file.unended(7, 100)
    file._base.set_trace_callback(None)
    plans = [row[3] for query in asked for row in file._base.execute(f"explain query plan {query}")]
    file.close()
    assert len(asked) == 9
    assert not [plan for plan in plans if plan.startswith("SCAN run")]
