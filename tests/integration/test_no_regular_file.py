"""A pipe in place of a file of the data directory: whoever opened it would wait for ever, so it is refused by name."""

import os
from pathlib import Path

import pytest

from substrate.checking.looking import look
from substrate.errors import BadKey, BadNote, Damaged, DerivedFailed, SubstrateError
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.indexing.derived import CardsOfAFile, DerivedFile
from substrate.signing.keys import PublicKey, SigningKey
from substrate.storage.heads import read_note
from substrate.storage.opening import recover
from substrate.storage.readview import open_readonly
from substrate.storage.store import Store
from waypost.host.datadir.directory import check_format, lay_out, mail_key, prepare
from waypost.host.errors import BadMailKey, DamagedFormat
from waypost.host.processes.users import known_users
from waypost.host.reading.offline import load_key
from waypost.model.ids import run_id
from waypost.testing.clock import START
from waypost.testing.desk import REPOSITORY, Desk, first_files

KEY = SigningKey.generate()


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Folder:
    path = tmp_path / "r.git"
    Store.create(path, repository_id=REPOSITORY, key=KEY, first=first_files(), at=START).close()
    store = Store.open(path, key=KEY)
    Desk(store).begin()
    store.flush()
    store.abandon()  # so that there is a journal
    return Folder(str(path))


def files(folder: Folder) -> dict[str, str]:
    """One of each kind of file that is read at a start."""
    (pack,) = Path(folder.packs).glob("*.pack")
    return {
        "branch": folder.ref,
        "journal": folder.journal(folder.journal_numbers()[-1]),
        "pack": str(pack),
        "index": str(pack.with_suffix(".idx")),
        "added index": str(pack.with_name(f"pack-{'0' * 40}.idx")),
        "alternates": f"{folder.objects}/info/alternates",
        "single object": f"{folder.objects}/00/{'7' * 38}",
    }


def looked_at(folder: Folder) -> str:
    """What ``fsck`` and ``verify`` are told of a repository that can't be read whole."""
    try:
        return str(look(folder.path, KEY.public).unread)
    except SubstrateError as refused:
        return str(refused)


@pytest.mark.parametrize("which", ["branch", "journal", "pack", "index", "added index", "alternates", "single object"])
def test_a_pipe_in_a_repository_is_named_and_not_waited_for(folder: Folder, which: str) -> None:
    """A command that hangs says nothing; one that names the file can be helped."""
    file = files(folder)[which]
    Path(file).unlink(missing_ok=True)
    Path(file).parent.mkdir(exist_ok=True)
    os.mkfifo(file)
    for opening in (
        lambda: recover(folder, KEY.public, Disk()),
        lambda: open_readonly(folder.path, KEY.public),
    ):
        with pytest.raises(Damaged, match="not a regular file") as refused:
            opening()
        assert refused.value.file == file
    assert "not a regular file" in looked_at(folder)


def test_a_pipe_among_the_packed_branches_is_named(folder: Folder) -> None:
    """Where ``git pack-refs`` keeps branches, too."""
    Path(folder.ref).unlink()
    os.mkfifo(Path(folder.path) / "packed-refs")
    with pytest.raises(Damaged, match=r"packed-refs.*not a regular file"):
        folder.read_ref()


def test_a_pipe_in_place_of_the_note_is_named(tmp_path: Path) -> None:
    """How far a repository had got is read before anything else of it counts."""
    os.mkfifo(tmp_path / "note.json")
    with pytest.raises(BadNote, match="not a regular file"):
        read_note(tmp_path / "note.json")


def test_a_pipe_in_place_of_the_index_of_runs_is_done_without(tmp_path: Path) -> None:
    """A reader has the logs themselves; the writer builds the file again in its place."""
    pipe = tmp_path / "runs.sqlite"
    os.mkfifo(pipe)
    assert CardsOfAFile(pipe).card(run_id(1, b"12345678")) is None
    with pytest.raises(DerivedFailed, match="not a regular file"):
        DerivedFile(pipe)


def test_a_link_to_a_file_is_as_good_as_the_file(folder: Folder, tmp_path: Path) -> None:
    """Packs may lie on another disk, with links to them."""
    for file in map(Path, (files(folder)["pack"], files(folder)["index"])):
        file.rename(tmp_path / file.name)
        file.symlink_to(tmp_path / file.name)
    assert open_readonly(folder.path, KEY.public).read("format.json")


def test_a_pipe_in_place_of_a_key_is_named(tmp_path: Path) -> None:
    """A host that starts would wait for it deaf to whoever ends it."""
    data = prepare(tmp_path / "data", allow_network=True)
    lay_out(data)
    os.mkfifo(data.signing_key, 0o600)
    os.mkfifo(data.mail_key, 0o600)
    with pytest.raises(BadKey, match="not a regular file"):
        SigningKey.load_or_create(data.signing_key)
    with pytest.raises(BadMailKey, match="not a regular file"):
        mail_key(data)
    data.signing_key.unlink()
    SigningKey.load_or_create(data.signing_key)
    data.public_key.unlink()
    os.mkfifo(data.public_key)
    for load in (PublicKey.load, lambda _public: SigningKey.load_or_create(data.signing_key)):
        with pytest.raises(BadKey, match="not a regular file"):
            load(data.public_key)


def test_a_pipe_in_place_of_what_a_start_reads_first_is_named_or_done_without(tmp_path: Path) -> None:
    """The format is refused by its name; which user each deployment's process had may be lost."""
    data = prepare(tmp_path / "data", allow_network=True)
    lay_out(data)
    data.format_file.unlink()
    os.mkfifo(data.format_file)
    with pytest.raises(DamagedFormat, match="not a regular file"):
        check_format(data)
    os.mkfifo(tmp_path / "users.json")
    assert known_users(tmp_path / "users.json") == {}


def test_a_public_key_that_somebody_gives_may_come_from_a_pipe() -> None:
    """`--key <(ssh-keygen -y -f KEY)`."""
    readable, writable = os.pipe()
    with os.fdopen(readable, "rb"), os.fdopen(writable, "w") as told:
        told.write(KEY.public.line() + "\n")
        told.close()
        assert load_key(Path(f"/dev/fd/{readable}")).raw == KEY.public.raw
