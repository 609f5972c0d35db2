"""The data directory: private, checked before use, and never guessed at."""

import errno
import json
import os
from pathlib import Path

import pytest

from waypost.host.datadir.directory import DataDir, find, lay_out, mail_key, prepare
from waypost.host.datadir.mounts import Mount, mount_of
from waypost.host.errors import BadMailKey, DamagedFormat, NewerData, NoDataDirectory, NotWritable, UnsafeFileSystem

MOUNTS = """\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
35 21 0:30 / /home rw - nfs4 server:/home rw
36 21 0:31 / /mnt/my\\040disk rw - fuse.sshfs me@there:/ rw
37 36 254:1 / /mnt/my\\040disk/local rw shared:1 - ext4 /dev/vdb rw
38 21 0:40 / /opt rw - ext4 /dev/vdc rw
39 21 0:41 / /opt rw - fuseblk /dev/vdd rw
not a line of this table
"""


def made(path: Path) -> DataDir:
    """A data directory as a first start leaves it."""
    data = prepare(path, mountinfo="")
    lay_out(data)
    return data


@pytest.mark.parametrize(
    ("path", "mount", "unsafe"),
    [
        ("/var/x", Mount("/", "ext4"), False),
        ("/home/me/.waypost", Mount("/home", "nfs4"), True),
        ("/homely/.waypost", Mount("/", "ext4"), False),
        ("/mnt/my disk/x", Mount("/mnt/my disk", "fuse.sshfs"), True),
        ("/mnt/my disk/local/x", Mount("/mnt/my disk/local", "ext4"), False),
        ("/opt/x", Mount("/opt", "fuseblk"), True),
    ],
)
def test_a_path_lies_on_its_nearest_and_newest_mount(path: str, mount: Mount, *, unsafe: bool) -> None:
    """Deeper mounts win, later ones hide earlier ones, and a name that only begins alike is another folder."""
    found = mount_of(path, MOUNTS)
    assert found == mount
    assert found.unsafe is unsafe


def test_a_network_file_system_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """Locks and syncs may not hold there; the message names the type and the way to insist."""
    table = f"1 1 0:1 / / rw - ext4 x rw\n2 1 0:2 / {tmp_path} rw - cifs //server/x rw\n"
    with pytest.raises(UnsafeFileSystem, match="cifs") as refused:
        prepare(tmp_path / "data", mountinfo=table)
    assert "--allow-network-fs" in refused.value.hint
    assert not (tmp_path / "data").exists()
    prepare(tmp_path / "data", mountinfo=table, allow_network=True)


def test_a_first_start_makes_everything_private(tmp_path: Path) -> None:
    """Mail and keys are nobody else's business, whatever the umask is."""
    before = os.umask(0)
    try:
        data = made(tmp_path / "data")
        mail_key(data)
    finally:
        os.umask(before)
    assert data.path.stat().st_mode & 0o777 == 0o700
    assert data.mail_key.stat().st_mode & 0o777 == 0o600
    assert (data.path / ".gitignore").read_text() == "*\n"
    assert json.loads(data.format_file.read_text()) == {"format": 1}
    assert sorted(p.name for p in data.out.iterdir()) == ["cur", "new", "tmp"]
    assert not [p for p in data.path.rglob(".*") if p.name != ".gitignore"]


def test_a_start_removes_what_a_kill_has_left_half_made(tmp_path: Path) -> None:
    """An old key that is said to be destroyed must not lie beside the new one; other files are their owner's."""
    data = made(tmp_path / "data")
    kept = ["host.ed25519", "host.ed25519.next", "host.ed25519.pub", "mail.key", "mail.key.old", "host.ed25519.bak.new"]
    gone = [
        ".mail.key.20656.cf83ce63",
        ".host.ed25519.7.cf83ce63",
        "host.ed25519.cf83ce63cf83ce63.new",
        "host.ed25519.next.cf83ce63cf83ce63.new",
        "host.ed25519.next.pub.cf83ce63cf83ce63.new",
    ]
    for name in kept + gone:
        (data.keys / name).write_bytes(b"key")
    for name in (".probe.7.cf83ce63", "..gitignore.7.cf83ce63", ".format.json.7.cf83ce63"):
        (data.path / name).write_bytes(b"")
    lay_out(data)
    assert sorted(file.name for file in data.keys.iterdir()) == sorted(kept)
    assert [file.name for file in data.path.glob(".*")] == [".gitignore"]


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    """Above all not the keys: old Message-IDs and signatures must stay recognisable."""
    data = made(tmp_path / "data")
    key = mail_key(data)
    before = {p: (p.read_bytes() if p.is_file() else b"") for p in data.path.rglob("*")}
    made(tmp_path / "data")
    assert mail_key(data) == key
    assert before == {p: (p.read_bytes() if p.is_file() else b"") for p in data.path.rglob("*")}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"format": 2}', NewerData),
        ('{"format": 0}', DamagedFormat),
        ('{"format": true}', DamagedFormat),
        ("[]", DamagedFormat),
        ("", DamagedFormat),
        ("\xff", DamagedFormat),
    ],
)
def test_another_format_is_refused_and_left_alone(tmp_path: Path, text: str, error: type[Exception]) -> None:
    """A later Waypost's data is its own to change; both the host and the reading verbs say so."""
    data = made(tmp_path / "data")
    data.format_file.write_bytes(text.encode("latin-1"))
    with pytest.raises(error):
        prepare(data.path, mountinfo="")
    with pytest.raises(error):
        find(tmp_path, str(data.path))
    assert data.format_file.read_bytes() == text.encode("latin-1")


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    """Not a directory: the message says where, and what to do."""
    (tmp_path / "data").write_text("mine")
    with pytest.raises(NotWritable, match="data: can't be written to") as refused:
        prepare(tmp_path / "data", mountinfo="")
    assert "--data" in refused.value.hint


def test_a_mail_key_that_is_gone_is_made_anew_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No history rests on it, so nobody has to wait for a backup; but nothing is replaced in silence."""
    data = made(tmp_path / "data")
    key = mail_key(data)
    assert not caplog.messages
    data.repo("expenses").mkdir()
    data.mail_key.unlink()
    assert mail_key(data) != key
    assert caplog.messages == [
        f"{data.mail_key} was gone, and is made anew: mail from now on has Message-IDs of another key"
    ]


@pytest.mark.parametrize("text", ["", "zz" * 32, "ab" * 31, "\xff"])
def test_a_broken_mail_key_is_refused_and_never_replaced(tmp_path: Path, text: str) -> None:
    """It may be the wrong file; what to do about it is said, and whether is its owner's to decide."""
    data = made(tmp_path / "data")
    data.mail_key.write_bytes(text.encode("latin-1"))
    data.mail_key.chmod(0o600)
    with pytest.raises(BadMailKey) as refused:
        mail_key(data)
    assert f"`rm {data.mail_key}`" in refused.value.hint
    assert data.mail_key.read_bytes() == text.encode("latin-1")


def test_a_mail_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """Whoever knows it can make Message-IDs that pass for ours."""
    data = made(tmp_path / "data")
    mail_key(data)
    data.mail_key.chmod(0o644)
    with pytest.raises(BadMailKey, match="0644") as refused:
        mail_key(data)
    assert refused.value.hint == f"`chmod 600 {data.mail_key}`"


def test_the_nearest_data_directory_upwards_is_meant(tmp_path: Path) -> None:
    """As with git: a verb works from anywhere below."""
    made(tmp_path / ".waypost")
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find(inner).path == tmp_path / ".waypost"
    made(tmp_path / "a" / ".waypost")
    assert find(inner).path == tmp_path / "a" / ".waypost"
    assert find(inner, str(tmp_path / ".waypost")).path == tmp_path / ".waypost"


def test_no_data_directory_is_said_with_the_next_command(tmp_path: Path) -> None:
    """A folder that happens to exist isn't one either."""
    for told in (None, str(tmp_path / "none"), str(tmp_path)):
        with pytest.raises(NoDataDirectory) as refused:
            find(tmp_path, told)
        assert "waypost run" in refused.value.hint


def test_a_file_system_without_hard_links_is_told_from_a_directory_of_somebody_elses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packs and mails get their names by link(2), which FAT refuses to everybody."""

    def refused(source: object, *_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(source))

    monkeypatch.setattr(os, "link", refused)
    data = prepare(tmp_path / "data", mountinfo="")
    with pytest.raises(NotWritable) as failed:
        lay_out(data)
    assert "hard links" in (failed.value.hint or "")
