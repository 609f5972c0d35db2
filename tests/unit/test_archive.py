"""The file that knows the threads of sealed runs: taken as it is, built again, done without."""

import sqlite3
from pathlib import Path

import msgspec
import pytest

from substrate import layout, runlog
from substrate.archive import ArchiveFile
from substrate.errors import ArchiveFailed
from substrate.operations import Change
from waypost.model import events as ev
from waypost.model.ids import RunId, message_key
from waypost.testing.desk import Desk, message


@pytest.fixture(name="sealed")
def _sealed(tmp_path: Path) -> tuple[Desk, Path]:
    """Three runs of one thread, sealed; and a place for an archive."""
    desk = Desk()
    desk.begin()
    for number in (1, 2, 3):
        run = desk.start(message(f"m{number}@x", answers=f"m{number - 1}@x"))
        desk.append(run, ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"null"))))
        desk.fold_away()
    return desk, tmp_path / "derived" / "sealed.sqlite"


def told(archive: ArchiveFile) -> list[RunId | None]:
    """What an archive says of the three runs."""
    first = archive.run_of(message_key(b"<m1@x>"))
    assert first is not None
    last = archive.run_of(message_key(b"<m3@x>"))
    assert last is not None
    return [first, last, archive.root_of(last), archive.newest_of(first), archive.run_of("0" * 64)]


def expected(desk: Desk) -> list[RunId | None]:
    runs = runlog.run_ids(desk.index, layout.SEALED)
    return [runs[0], runs[2], runs[0], runs[2], None]


def test_an_archive_is_taken_as_it_is_while_its_stamp_fits(sealed: tuple[Desk, Path]) -> None:
    """Then opening reads nothing of what is sealed."""
    desk, path = sealed
    ArchiveFile.open(path, desk.index, "now").close()

    class Nothing:
        def read(self, path: str) -> bytes | None:
            raise AssertionError(path)

        def entries(self, path: str) -> tuple[str, ...]:
            raise AssertionError(path)

    archive = ArchiveFile.open(path, Nothing(), "now")
    assert told(archive) == expected(desk)
    archive.close()


@pytest.mark.parametrize("damage", ["none", "gone", "text", "cut", "other format", "behind", "other history"])
def test_an_archive_that_does_not_fit_is_built_again(sealed: tuple[Desk, Path], damage: str) -> None:
    """It is derived: whatever happened to the file, the repository tells."""
    desk, path = sealed
    ArchiveFile.open(path, desk.index, "before").close()
    match damage:
        case "none":
            pass
        case "gone":
            path.unlink()
        case "text":
            path.write_text("no database", encoding="utf-8")
        case "cut":
            path.write_bytes(path.read_bytes()[:5000])
        case "other format" | "behind" | "other history":
            base = sqlite3.connect(path)
            with base:
                match damage:
                    case "other format":
                        base.execute("update stamp set format = '0'")
                        base.execute("delete from mail")
                    case "behind":
                        base.execute("delete from mail where run > 1")
                        base.execute("delete from run where ordinal > 1")
                    case _:
                        base.execute("update run set id = replace(id, 'run_3_0', 'run_3_f')")
                        base.execute("update mail set run = 3")
            base.close()
        case _:
            raise AssertionError(damage)
    archive = ArchiveFile.open(path, desk.index, "now")
    assert told(archive) == expected(desk)
    archive.close()


def test_where_the_disk_allows_no_archive_it_is_kept_in_memory(sealed: tuple[Desk, Path]) -> None:
    """A start doesn't fail for want of what can be derived."""
    desk, path = sealed
    path.parent.write_text("in the way", encoding="utf-8")
    archive = ArchiveFile.open(path, desk.index, "now")
    assert told(archive) == expected(desk)
    archive.close()


def test_an_archive_that_fails_at_work_says_so_and_is_removed(sealed: tuple[Desk, Path]) -> None:
    """A thread that can't be looked up is never taken for none; the next start builds the file again."""
    desk, path = sealed
    archive = ArchiveFile.open(path, desk.index, "now")
    change = desk.changes[-1]
    assert isinstance(change, Change)
    assert change.sealed is not None
    archive.close()
    with pytest.raises(ArchiveFailed, match="the index of sealed runs failed"):
        archive.run_of("0" * 64)
    with pytest.raises(ArchiveFailed):
        archive.add(change.sealed, change.sealed.run)
    assert not path.exists()
