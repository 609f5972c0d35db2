"""Backup and restore between data directories: what is refused, and what a kill leaves."""

import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest

from substrate import PublicKey, SigningKey, layout, verify
from substrate.errors import BadKey, RolledBack
from substrate.files.disk import Disk
from substrate.signing.epoch import decode_epoch
from substrate.state import decode_state
from substrate.storage.heads import Heads, read_note
from substrate.storage.store import Store
from waypost.host.alone import accept_rollback, alone, rotate_key
from waypost.host.code.deploying import keys
from waypost.host.datadir.directory import DataDir, lay_out, mail_key, prepare
from waypost.host.errors import HostRuns, NoHost, NotNow
from waypost.host.keeping.backup import Made, backup
from waypost.host.keeping.restore import restore
from waypost.host.keeping_errors import (
    AlreadyThere,
    BadBackup,
    GitFailed,
    InTheWayOfBackup,
    KeyGone,
    NoGit,
    NoSuchDeployment,
    NotSound,
)
from waypost.host.mail import spool
from waypost.host.reading.deployment_why import sentence_of
from waypost.host.reading.offline import Offline, receipt_for
from waypost.testing.disks import Died, DyingDisk, HookedDisk
from waypost.testing.stores import fresh_store, fsck, git, put

NAME = "test"


def no_host(_name: str) -> bool:
    raise NoHost("nowhere")


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    """A data directory whose host was killed: two flushes are in a journal alone, and a mail is in the spool."""
    made = prepare(tmp_path / "data", allow_network=True)
    lay_out(made)
    mail_key(made)
    key = SigningKey.load_or_create(made.signing_key)
    fresh_store(made.repo(NAME), key).close()
    store = Store.open(made.repo(NAME), key=key, heads=Heads(made.head(NAME), Disk()))
    for name in ("a", "b"):
        put(store, {f"grants/{name}.json": b"{}"})
        store.flush()
    store.abandon()
    spool.leave(made.spool(NAME), b"From: a@x\r\n\r\nhello\r\n")
    return made


def backed_up(data: DataDir, file: Path, *, with_keys: bool = False) -> Made:
    return backup(data, NAME, file, with_keys=with_keys, sealed=no_host)


def opened(data: DataDir) -> Store:
    """What the host there would do first."""
    return Store.open(data.repo(NAME), key=SigningKey.load(data.signing_key), heads=Heads(data.head(NAME), Disk()))


def test_all_that_was_acknowledged_arrives_held_under_the_new_hosts_key(data: DataDir, tmp_path: Path) -> None:
    """A machine died; the backup is what there is. Its history is the old host's, what follows is the new one's."""
    made = backed_up(data, tmp_path / "b.waypost")
    assert (made.manifest.flush, made.mails, made.manifest.keys) == (3, 1, False)
    assert made.path.stat().st_mode & 0o777 == 0o600
    secrets = [data.signing_key.read_bytes().splitlines()[2], data.mail_key.read_bytes().strip()]
    assert not any(secret in made.path.read_bytes() for secret in secrets)
    old = SigningKey.load(data.signing_key).public
    shutil.rmtree(data.path)

    there = tmp_path / "there"
    restored = restore(there, file=made.path, key=old)
    new = DataDir(there)
    key = SigningKey.load(new.signing_key).public
    assert (restored.upto, restored.now.flush, restored.now.epoch, restored.pinned) == (3, 4, 2, True)
    assert (restored.signer, restored.signs) == (old.fingerprint, key.fingerprint)
    store = opened(new)
    record = decode_epoch(store.read(layout.EPOCH) or b"")
    assert (record.why, record.after.flush, record.lost) == ("restore", 3, None)
    assert decode_state(store.read(layout.STATE) or b"").held == "restore"
    assert store.read("grants/b.json") == b"{}"
    store.close()
    assert verify(new.repo(NAME), key).sound
    assert not verify(new.repo(NAME), old).sound
    assert fsck(new.repo(NAME)) == ""
    (mail,) = spool.waiting(new.spool(NAME), NAME)
    assert spool.read(mail, 100) == b"From: a@x\r\n\r\nhello\r\n"
    assert read_note(new.head(NAME)) == restored.now
    assert not (there / "restoring").exists()


def test_with_its_keys_it_is_the_same_host_that_goes_on(data: DataDir, tmp_path: Path) -> None:
    """Then whoever trusted the old key needs nothing new; the keys lie there as private as they were."""
    made = backed_up(data, tmp_path / "b.waypost", with_keys=True)
    keys = {path.name: path.read_bytes() for path in (data.signing_key, data.mail_key)}
    restored = restore(tmp_path / "there", file=made.path)
    new = DataDir(tmp_path / "there")
    assert restored.signer == restored.signs
    for path in (new.signing_key, new.mail_key):
        assert path.read_bytes() == keys[path.name]
        assert path.stat().st_mode & 0o777 == 0o600
    assert verify(new.repo(NAME), SigningKey.load(data.signing_key).public).sound


def test_keys_that_are_there_are_never_replaced(data: DataDir, tmp_path: Path) -> None:
    """Another deployment lives there, and is signed by them."""
    made = backed_up(data, tmp_path / "b.waypost", with_keys=True)
    there = prepare(tmp_path / "there", allow_network=True)
    lay_out(there)
    key = SigningKey.load_or_create(there.signing_key)
    restored = restore(there.path, file=made.path)
    assert SigningKey.load(there.signing_key).fingerprint == key.fingerprint == restored.signs
    opened(there).close()


def test_a_git_clone_is_a_source_too(data: DataDir, tmp_path: Path) -> None:
    """Somebody has only a mirror: all that is sealed is in it."""
    opened(data).close()
    git(tmp_path, "clone", "-q", "--mirror", str(data.repo(NAME)), str(tmp_path / "mirror"))
    restored = restore(
        tmp_path / "there", source=str(tmp_path / "mirror"), key=SigningKey.load(data.signing_key).public
    )
    assert (restored.upto, restored.now.flush, restored.mails) == (3, 4, 0)
    opened(DataDir(tmp_path / "there")).close()


def test_nothing_that_is_there_is_written_over(data: DataDir, tmp_path: Path) -> None:
    """Not a deployment, not an address, not a file, and not while a host runs."""
    file = tmp_path / "b.waypost"
    made = backed_up(data, file)
    with pytest.raises(InTheWayOfBackup):
        backed_up(data, file)
    tip = git(data.repo(NAME), "rev-parse", "log")
    with pytest.raises(AlreadyThere, match="deployment 'test'"):
        restore(data.path, file=made.path)
    assert git(data.repo(NAME), "rev-parse", "log") == tip
    data.repo(NAME).rename(data.repo("other"))
    with pytest.raises(AlreadyThere, match="address"):
        restore(data.path, file=made.path)
    with alone(data), pytest.raises(HostRuns):
        restore(data.path, file=made.path)
    with pytest.raises(NoSuchDeployment):
        backup(data, "nobody", tmp_path / "n", with_keys=False, sealed=no_host)
    assert not (tmp_path / "n").exists()


def test_an_older_backup_over_a_repository_that_was_lost_says_what_is_missing(data: DataDir, tmp_path: Path) -> None:
    """The disk failed after the backup: what is known here of the repository is recorded, not held against it."""
    made = backed_up(data, tmp_path / "b.waypost")
    store = opened(data)
    put(store, {"grants/c.json": b"{}"})
    store.close()
    lost = read_note(data.head(NAME))
    assert lost is not None
    shutil.rmtree(data.repo(NAME))
    restored = restore(data.path, file=made.path)
    assert (lost.flush, restored.upto, restored.now.epoch) == (4, 3, 2)
    store = opened(data)
    assert decode_epoch(store.read(layout.EPOCH) or b"").lost == lost
    store.close()
    assert verify(data.repo(NAME), SigningKey.load(data.signing_key).public).sound


def test_a_death_on_the_way_to_the_new_note_is_no_rollback(data: DataDir, tmp_path: Path) -> None:
    """The name is given, and the note still speaks of what was lost: the epoch's record answers for it."""
    made = backed_up(data, tmp_path / "b.waypost")
    store = opened(data)
    put(store, {"grants/c.json": b"{}"})
    store.close()
    shutil.rmtree(data.repo(NAME))
    counted = HookedDisk()
    restore(Path(shutil.copytree(data.path, tmp_path / "counted")), file=made.path, disk=counted)
    named = 0
    for at in range(counted.points - 8, counted.points + 1):
        copy = DataDir(Path(shutil.copytree(data.path, tmp_path / str(at))))
        with pytest.raises(Died):
            restore(copy.path, file=made.path, disk=DyingDisk(at))
        named += copy.repo(NAME).exists()
        if not copy.repo(NAME).exists():
            restore(copy.path, file=made.path)
        opened(copy).close()
    assert 2 < named < 9


def test_a_damaged_repository_is_neither_backed_up_nor_restored(data: DataDir, tmp_path: Path) -> None:
    """A backup that can't be restored is worse than none: it is refused when there is still time."""
    opened(data).close()
    repository = data.repo(NAME)
    git(tmp_path, "clone", "-q", "--mirror", str(repository), str(tmp_path / "mirror"))
    tree = git(tmp_path / "mirror", "rev-parse", "log^{tree}").strip()
    who = ("-c", "user.name=m", "-c", "user.email=m@x")
    forged = git(tmp_path / "mirror", *who, "commit-tree", tree, "-p", "log", "-m", "hi").strip()
    git(tmp_path / "mirror", "update-ref", "refs/heads/log", forged)
    with pytest.raises(NotSound):
        restore(tmp_path / "there", source=str(tmp_path / "mirror"))
    assert DataDir(tmp_path / "there").deployments() == ()
    with pytest.raises(NotSound):
        restore(tmp_path / "there", source=str(repository), key=SigningKey.generate().public)

    pack = max((repository / "objects" / "pack").glob("*.pack"), key=lambda file: file.stat().st_size)
    raw = bytearray(pack.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    pack.chmod(0o644)
    pack.write_bytes(raw)
    with pytest.raises(Exception, match=r"damaged|isn't sound"):
        backed_up(data, tmp_path / "damaged.waypost")
    assert not (tmp_path / "damaged.waypost").exists()


def test_what_was_closed_in_order_is_only_read(data: DataDir, tmp_path: Path) -> None:
    """Whoever has a full or a dying disk wants a backup of it, on another one: then nothing there may be written."""
    opened(data).close()
    with alone(data):  # so nothing in there can take the lock
        assert backed_up(data, tmp_path / "b.waypost").manifest.flush == 3


def test_a_key_that_is_another_is_said_of_what_was_named(data: DataDir, tmp_path: Path) -> None:
    """The folder in which it was looked at has gone when the message is read."""
    made = backed_up(data, tmp_path / "b.waypost")
    with pytest.raises(NotSound) as refused:
        restore(tmp_path / "there", file=made.path, key=SigningKey.generate().public)
    assert refused.value.message.startswith(f"{made.path}: it isn't sound:\n    commit ")


def test_git_refuses_another_users_folder_with_words_that_help() -> None:
    """What git itself proposes has no effect here: nobody's configuration has a say."""
    words = (
        "fatal: detected dubious ownership in repository at 'x'\nTo add an exception for this directory, call:\n\n\tgit"
    )
    refused = GitFailed("fetch", words)
    assert refused.message == "git fetch failed: fatal: detected dubious ownership in repository at 'x'"
    assert refused.hint.startswith("copy the folder as a user of yours (cp -r)")


@pytest.mark.parametrize("source", ["--upload-pack=touch pwned", "ext::sh -c touch% pwned", "/nowhere", "file:///dev"])
def test_a_source_that_is_none_is_said_by_git_and_runs_nothing(tmp_path: Path, source: str) -> None:
    """It comes from a command line, or from somebody's note."""
    with contextlib.chdir(tmp_path), pytest.raises(GitFailed):
        restore(tmp_path / "there", source=source)
    assert not list(tmp_path.rglob("pwned"))
    assert DataDir(tmp_path / "there").deployments() == ()


def test_the_environment_and_anybodys_configuration_have_no_say(
    data: DataDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verb may be run from a hook, or where somebody's configuration runs programs."""
    (tmp_path / "config").write_text(f"[core]\n\tfsmonitor = touch {tmp_path}/pwned; false\n[fetch]\n\tprune = true\n")
    git(data.repo(NAME), "config", "core.fsmonitor", f"touch {tmp_path}/pwned; false")
    for name, value in {
        "GIT_DIR": "/nowhere",
        "GIT_WORK_TREE": "/",
        "GIT_CONFIG_GLOBAL": str(tmp_path / "config"),
    }.items():
        monkeypatch.setenv(name, value)
    made = backed_up(data, tmp_path / "b.waypost")
    assert restore(tmp_path / "there", file=made.path).upto == 3
    assert not (tmp_path / "pwned").exists()


def test_without_git_it_says_so(data: DataDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one program that is needed beside us."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoGit):
        backed_up(data, tmp_path / "b.waypost")


@pytest.mark.parametrize("stride", [17, pytest.param(1, marks=[pytest.mark.torture, pytest.mark.timeout(900)])])
def test_a_death_at_any_point_of_a_restore_leaves_nothing_that_starts_and_the_next_one_ends_it(
    data: DataDir, tmp_path: Path, stride: int
) -> None:
    """A restore is a barrier: before its end there is no deployment, after it there is all of it."""
    made = backed_up(data, tmp_path / "b.waypost", with_keys=True)
    at, died = 1, True
    while died:
        there = DataDir(tmp_path / f"there{at}")
        died = False
        try:
            restore(there.path, file=made.path, disk=DyingDisk(at))
        except Died:
            died = True
        if not there.deployments():
            with contextlib.suppress(Died, AlreadyThere):
                restore(there.path, file=made.path, disk=DyingDisk(at % 19 + 5))
        if not there.deployments():
            restore(there.path, file=made.path)
        store = opened(there)
        assert decode_state(store.read(layout.STATE) or b"").held == "restore"
        assert store.reached.epoch == 2
        store.close()
        assert verify(there.repo(NAME), SigningKey.load(there.signing_key).public).sound
        assert spool.waiting(there.spool(NAME), NAME)
        shutil.rmtree(there.path)
        at += stride
    assert at > 40


def test_a_deployment_that_the_running_host_doesn_t_run_is_backed_up_if_it_was_ended_in_order(
    data: DataDir, tmp_path: Path
) -> None:
    """Nobody may seal it beside a host: what lies in its journals would be missing, so that is said."""
    with alone(data):
        with pytest.raises(NotNow, match="stop the host first"):
            backup(data, NAME, tmp_path / "b", with_keys=False, sealed=lambda _name: False)
        opened(data).close()
        made = backup(data, NAME, tmp_path / "b", with_keys=False, sealed=lambda _name: False)
    assert made.manifest.flush == 3


def test_an_object_that_no_memory_holds_is_refused_before_it_is_read(
    data: DataDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few kilobytes of pack may unpack to gigabytes; git says so without unpacking them."""
    opened(data).close()
    blob = tmp_path / "blob"
    blob.write_bytes(b"\0" * 3_000_000)
    git(tmp_path, "clone", "-q", "--mirror", str(data.repo(NAME)), str(tmp_path / "mirror"))
    oid = git(tmp_path / "mirror", "hash-object", "-w", str(blob)).strip()
    (tmp_path / "tree").write_text(f"100644 blob {oid}\tx\n")
    with (tmp_path / "tree").open() as lines:
        tree = subprocess.run(
            ["git", "-C", str(tmp_path / "mirror"), "mktree"], stdin=lines, capture_output=True, text=True, check=True
        ).stdout.strip()
    who = ("-c", "user.name=m", "-c", "user.email=m@x")
    forged = git(tmp_path / "mirror", *who, "commit-tree", tree, "-p", "log", "-m", "hi").strip()
    git(tmp_path / "mirror", "update-ref", "refs/heads/log", forged)
    monkeypatch.setattr("waypost.host.keeping.restore._LARGEST", 1_000_000)
    with pytest.raises(BadBackup, match="an object of 3000000 bytes"):
        restore(tmp_path / "there", source=str(tmp_path / "mirror"))


def test_of_a_repository_that_was_set_back_there_is_no_receipt(data: DataDir, tmp_path: Path) -> None:
    """A signed word that it reaches no further would let what is missing pass for what never was."""
    opened(data).close()
    older = shutil.copytree(data.repo(NAME), tmp_path / "older")
    store = opened(data)
    put(store, {"grants/c.json": b"{}"})
    store.flush()
    store.close()
    assert receipt_for(data, NAME, "2026-11-30T00:00:00.000Z").claim.flush == 4
    shutil.rmtree(data.repo(NAME))
    older.rename(data.repo(NAME))
    with pytest.raises(RolledBack, match="history went back from flush 4 to flush 3"):
        receipt_for(data, NAME, "2026-11-30T00:00:00.000Z")
    accept_rollback(data, NAME)
    assert receipt_for(data, NAME, "2026-11-30T00:00:00.000Z").claim.epoch == 2


def test_a_signing_key_that_is_gone_is_never_made_anew(data: DataDir, tmp_path: Path) -> None:
    """Every repository here would be one that somebody else has signed; and what still can be done is said."""
    opened(data).close()
    data.signing_key.unlink()
    with pytest.raises(KeyGone, match="the signing key is gone, and it has signed a repository here") as refused:
        keys(data)
    for verb in (rotate_key, lambda data: accept_rollback(data, NAME), lambda data: receipt_for(data, NAME, "")):
        with pytest.raises(KeyGone):
            verb(data)
    assert Offline(data).situations()[0].state == ""  # for reading the public half is enough
    assert not data.signing_key.exists()
    command = refused.value.hint.split("`")[1].replace("waypost restore --from ", "").split()
    assert restore(tmp_path / "there", source=command[0]).upto == 3


def test_halves_of_two_keys_are_refused(data: DataDir) -> None:
    """What is signed by the one isn't verified by the other, and nobody would know why."""
    SigningKey.load_or_create(data.keys / "other")
    shutil.copy(data.keys / "other.pub", data.public_key)
    with pytest.raises(BadKey, match="it is not the public half of"):
        keys(data)
    (data.keys / "other").unlink()
    with pytest.raises(BadKey, match="it is gone, and its public half is there"):
        SigningKey.load_or_create(data.keys / "other")
    data.public_key.unlink()  # as the first message says
    keys(data)
    assert PublicKey.load(data.public_key).raw == SigningKey.load(data.signing_key).public.raw


def test_where_nothing_was_deployed_a_host_must_be_given_a_file(data: DataDir) -> None:
    """After an import, for one: without a file a host says that nothing is deployed here."""
    assert sentence_of(Offline(data).situations()[0]).command == "waypost run FILE"
