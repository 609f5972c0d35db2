"""The space that a journal is written into: reserved, zeroed ahead, never more than was reserved."""

import os
from pathlib import Path

import pytest

from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.packs.objects import Kind
from substrate.storage.journal import Journal

ROOM = 1024 * 1024


class Ranges(Disk):
    """Notes every write of a journal: from, to, whether it was zeros only. Nothing here is about what a sync does."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[tuple[int, int, bool]] = []

    def write_at(self, descriptor: int, path: str, data: bytes, offset: int) -> None:
        """Write it and note it."""
        self.writes.append((offset, offset + len(data), not any(data)))
        super().write_at(descriptor, path, data, offset)

    def sync_data(self, descriptor: int, path: str, size: int) -> None:
        """No."""


@pytest.fixture(name="disk")
def _disk() -> Ranges:
    return Ranges()


@pytest.fixture(name="journal")
def _journal(tmp_path: Path, disk: Ranges) -> Journal:
    folder = Folder(str(tmp_path / "one.git"))
    folder.make(disk)
    return Journal.allocate(disk, folder, 1, ROOM)


@pytest.mark.parametrize("size", [300, 40_000, 200_000])
def test_only_one_flush_in_64_kib_goes_where_nothing_was_written_yet(journal: Journal, disk: Ranges, size: int) -> None:
    """Else the file system has a transaction of its own at every other sync; and nothing lies beyond the reserve."""
    while journal.room > 2 * size:
        journal.add(Kind.BLOB, os.urandom(size))
        journal.write()
    reached = unwritten = 0
    for start, end, zeros in disk.writes:
        unwritten += start > 0 and end > reached and not zeros
        reached = max(reached, end)
    assert unwritten <= journal.end // (64 * 1024) + 1
    assert reached <= ROOM
    assert Path(journal.path).stat().st_size == ROOM
    journal.close()


def test_zeros_ahead_are_no_part_of_what_is_durable(journal: Journal, disk: Ranges) -> None:
    """What recovery reads is what it always read: entries, then zeros to the end of what was reserved."""
    oid = journal.add(Kind.BLOB, b"x" * 1000)
    journal.write()
    content = Path(journal.path).read_bytes()
    assert any(content[journal.end - 4 : journal.end])
    assert not any(content[journal.end :])
    assert journal.blob(oid) == b"x" * 1000
    assert disk.writes
    journal.close()


def test_blobs_read_the_same_when_memory_has_let_go_of_them(journal: Journal) -> None:
    """A segment is made of events of which some lie in memory and some no longer do."""
    blobs = [os.urandom(3000) for _ in range(200)]
    oids = []
    for blob in blobs:
        oids.append(journal.add(Kind.BLOB, blob))
        journal.write()
    assert [journal.blob(oid) for oid in oids] == blobs
    journal.close()
