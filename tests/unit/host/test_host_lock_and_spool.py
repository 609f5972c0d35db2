"""One host for each data directory, and a spool that loses nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from waypost.host.datadir.lock import HostLock
from waypost.host.errors import HostRuns
from waypost.host.mail.maildir import deliver
from waypost.host.mail.spool import Spooled, leave, remove, set_aside, tidy, waiting


def take(path: Path) -> HostLock:
    """Take the lock as `waypost run x.py` would."""
    return HostLock.take(path, command=("waypost", "run", "x y.py"), since="2026-11-29T08:00:00.000Z")


def test_a_second_host_is_refused_with_the_first_ones_words(tmp_path: Path) -> None:
    """Whoever reads the message knows which process to look for."""
    with (
        take(tmp_path / "host.lock"),
        pytest.raises(HostRuns, match=rf"pid {os.getpid()}, since 2026-11-29.*`waypost run 'x y\.py'`"),
    ):
        take(tmp_path / "host.lock")
    take(tmp_path / "host.lock").release()


def test_a_holder_that_has_not_written_yet_is_refused_all_the_same(tmp_path: Path) -> None:
    """The lock counts, the words are a courtesy."""
    lock = take(tmp_path / "host.lock")
    (tmp_path / "host.lock").write_bytes(b'{"pid": 1')
    with pytest.raises(HostRuns, match="hasn't said"):
        take(tmp_path / "host.lock")
    lock.release()
    assert (tmp_path / "host.lock").exists()


def test_a_lock_file_that_is_deleted_lets_no_second_host_in(tmp_path: Path) -> None:
    """Two hosts would write over each other's journals; the file looks like a leftover to whoever tidies up."""
    with take(tmp_path / "host.lock") as first:
        (tmp_path / "host.lock").unlink()
        with pytest.raises(HostRuns, match="its lock file was deleted"):
            take(tmp_path / "host.lock")
        first.release()
        take(tmp_path / "host.lock").release()


def test_the_lock_ends_with_its_process_and_is_not_inherited(tmp_path: Path) -> None:
    """A kill -9 of the host must leave a data directory that can be started at once, though a child lives on."""
    code = (
        "import os,subprocess,sys,pathlib;from waypost.host.datadir.lock import HostLock\n"
        f"HostLock.take(pathlib.Path({str(tmp_path / 'host.lock')!r}), command=('x',), since='y')\n"
        "child=subprocess.Popen(['sleep','60'],close_fds=False,stdout=-3,stderr=-3)\n"
        "print(child.pid,flush=True);os.kill(os.getpid(),9)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    try:
        take(tmp_path / "host.lock").release()
    finally:
        os.kill(int(done.stdout), 9)
    assert json.loads((tmp_path / "host.lock").read_text())["pid"] == os.getpid()


def test_a_spooled_mail_is_whole_and_in_order(tmp_path: Path) -> None:
    """The host takes in what came first first, byte for byte."""
    spool = tmp_path / "spool" / "expenses"
    left = [leave(spool, f"mail {n}\r\n".encode()) for n in range(5)]
    found = waiting(spool, "expenses")
    assert [mail.path for mail in found] == left
    assert [mail.path.read_bytes() for mail in found] == [f"mail {n}\r\n".encode() for n in range(5)]
    assert list((spool / "tmp").iterdir()) == []
    remove(found[0])
    remove(found[0])
    assert waiting(spool, "expenses") == found[1:]


def watch_syncs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Each sync from now on: the folder's name that it was in or of, and how many files ``new/`` had at that moment."""
    seen: list[tuple[str, int]] = []
    real = os.fsync

    def watched(descriptor: int) -> None:
        real(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append(((path if path.is_dir() else path.parent).name, len(list((folder / "new").iterdir()))))

    monkeypatch.setattr(os, "fsync", watched)
    return seen


def test_a_mail_is_durable_under_its_name_before_it_counts_as_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Maildir's rules: its bytes first, elsewhere; then its name; and only then exit 0, or MailSent."""
    spool = tmp_path / "expenses"
    seen = watch_syncs(spool, monkeypatch)
    leave(spool, b"mail\r\n")
    assert seen[:2] == [("tmp", 0), ("new", 1)]
    assert [name for name, _ in seen[2:]] == [spool.name, tmp_path.name], "folders that may be new themselves"
    seen = watch_syncs(spool, monkeypatch)
    assert deliver(spool, "key", b"mail\r\n", again=False)
    assert seen == [("tmp", 1), ("new", 2)]


def test_a_maildir_that_was_taken_away_is_made_anew(tmp_path: Path) -> None:
    """Somebody moves it with all that is in it, or a mail program removes an empty folder: nothing left any more."""
    maildir = tmp_path / "out"
    assert deliver(maildir, "one", b"mail\r\n", again=False)
    (maildir / "cur").rmdir()
    assert deliver(maildir, "two", b"mail\r\n", again=True)
    maildir.rename(tmp_path / "taken")
    assert deliver(maildir, "three", b"mail\r\n", again=True)
    assert [file.name for file in (maildir / "new").iterdir()] == ["three"]
    assert {folder.stat().st_mode & 0o777 for folder in (maildir, *maildir.iterdir())} == {0o700}
    with pytest.raises(FileNotFoundError):
        deliver(tmp_path / "gone" / "out", "four", b"mail\r\n", again=False)


def test_a_mail_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    """The sender is told, and no half mail may be taken in later."""
    code = (
        "import pathlib,resource,sys;from waypost.host.mail.spool import leave\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE,(1000,1000))\n"
        f"leave(pathlib.Path({str(tmp_path / 'spool' / 'x')!r}), b'm'*5000)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "File too large" in done.stderr
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_a_mail_that_nobody_can_take_is_kept_with_the_reason(tmp_path: Path) -> None:
    """Nothing is lost, and nothing is tried again and again."""
    spool = tmp_path / "spool" / "x"
    leave(spool, b"?")
    (mail,) = waiting(spool, "x")
    kept = set_aside(mail, "not a mail")
    assert waiting(spool, "x") == ()
    assert kept.read_bytes() == b"?"
    assert kept.with_name(f"{kept.name}.reason").read_text() == "not a mail\n"


def test_only_old_leftovers_are_removed(tmp_path: Path) -> None:
    """A file in tmp/ may be a mail that is being written at this moment."""
    spool = tmp_path / "spool" / "x"
    leave(spool, b"?")
    for name, age in (("old", 40 * 3600), ("new", 10)):
        (spool / "tmp" / name).write_text("")
        os.utime(spool / "tmp" / name, (1_000_000 - age, 1_000_000 - age))
    tidy(spool, 1_000_000.0)
    assert [p.name for p in (spool / "tmp").iterdir()] == ["new"]
    assert waiting(tmp_path / "none", "x") == ()
    tidy(tmp_path / "none", 0.0)
    assert Spooled("x", spool / "new" / "y") != waiting(spool, "x")[0]
