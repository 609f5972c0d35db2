"""A file appears whole or not at all, never in another's place, and a death leaves nothing of it."""

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from substrate.files.disk import Disk
from waypost.host.datadir.files import place, write_synced
from waypost.host.datadir.nameless import publish, scratch
from waypost.testing.lowered import lowered

DIES = """
import os, sys
from pathlib import Path
from waypost.host.datadir.nameless import publish, scratch

def write(into):
    into.write(b"a secret")
    into.flush()
    os.kill(os.getpid(), 9)

with scratch(Path(sys.argv[1])) as aside:
    aside.write(b"a secret")
    aside.flush()
    publish(Path(sys.argv[1]) / "made", write)
"""


def names(folder: Path) -> list[str]:
    """All that lies in it, hidden or not."""
    return [each.name for each in folder.iterdir()]


@pytest.fixture(params=["without a name", "by another name", "by a rename"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it is here; as it is on a file system that knows no nameless files; and on one without hard links (FAT)."""

    def refused(*_names: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if request.param != "without a name":
        monkeypatch.setattr(os, "O_TMPFILE", 0)
    if request.param == "by a rename":
        monkeypatch.setattr(os, "link", refused)


@pytest.mark.usefixtures("_way")
def test_it_appears_whole_private_and_alone(tmp_path: Path) -> None:
    """Whatever the umask is; nothing lies beside it."""

    def write(into: BinaryIO) -> None:
        into.write(b"all of it")

    before = os.umask(0)
    try:
        publish(tmp_path / "made", write)
    finally:
        os.umask(before)
    assert (tmp_path / "made").read_bytes() == b"all of it"
    assert (tmp_path / "made").stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == ["made"]


@pytest.mark.usefixtures("_way")
@pytest.mark.parametrize("there", ["a file", "a link to nothing"])
def test_it_never_takes_the_place_of_another(tmp_path: Path, there: str) -> None:
    """One that came while it was being written, too."""

    def write(_into: object) -> None:
        if there == "a file":
            (tmp_path / "made").write_bytes(b"theirs")
        else:
            (tmp_path / "made").symlink_to("nowhere")

    with pytest.raises(FileExistsError):
        publish(tmp_path / "made", write)
    assert names(tmp_path) == ["made"]


@pytest.mark.usefixtures("_way")
def test_of_one_that_fails_nothing_stays(tmp_path: Path) -> None:
    """A full disk, for one."""

    def write(_into: object) -> None:
        raise OSError(28, "full")

    with pytest.raises(OSError, match="full"):
        publish(tmp_path / "made", write)
    with pytest.raises(FileNotFoundError):
        publish(tmp_path / "no folder" / "made", write)
    with pytest.raises(FileNotFoundError) as refused:
        scratch(tmp_path / "no folder")
    assert refused.value.filename == str(tmp_path / "no folder")
    assert names(tmp_path) == []


def test_where_there_is_no_room_the_file_is_named(tmp_path: Path) -> None:
    """`No space left on device` helps nobody who has several."""
    for write in (
        lambda path: write_synced(path, b"x"),
        lambda path: Disk().write_file(str(path), b"x"),
        lambda path: place(path, b"x"),
    ):
        with lowered(resource.RLIMIT_FSIZE), pytest.raises(OSError, match="made") as refused:
            write(tmp_path / "made")
        assert str(tmp_path) in str(refused.value.filename)


def test_what_is_killed_leaves_nothing(tmp_path: Path) -> None:
    """There may be keys in it."""
    done = subprocess.run([sys.executable, "-c", DIES, str(tmp_path)], check=False)
    assert done.returncode == -9
    assert names(tmp_path) == []
    with scratch(tmp_path):
        assert names(tmp_path) == []
