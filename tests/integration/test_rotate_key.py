"""``waypost rotate-key`` on a whole data directory: every deployment, and no start while it is half done."""

import contextlib
import shutil
from pathlib import Path

import pytest

from substrate import SigningKey, verify
from substrate.errors import SubstrateError
from waypost.host import alone
from waypost.host.alone import rotate_key
from waypost.host.datadir.directory import DataDir, lay_out, prepare, refuse_unfinished
from waypost.host.errors import HostRuns, UnfinishedExchange
from waypost.host.reading import offline
from waypost.testing.disks import Died, DyingDisk
from waypost.testing.stores import fresh_store, git
from waypost.testing.verbs import verb


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    """A data directory with two deployments, at rest."""
    made = prepare(tmp_path / "data", allow_network=True)
    lay_out(made)
    key = SigningKey.load_or_create(made.signing_key)
    for name in ("one", "two"):
        fresh_store(made.repo(name), key).close()
    return made


def old_public(data: DataDir, folder: Path) -> Path:
    return Path(shutil.copy(data.public_key, folder / "old.pub"))


def test_every_deployment_is_signed_by_the_new_key_and_followed_from_the_old_one(data: DataDir, tmp_path: Path) -> None:
    """As its user meets it: one command, and whoever has the old public key can go on verifying."""
    trusted = old_public(data, tmp_path)
    before = data.signing_key.read_bytes()
    done = verb("rotate-key", data=data.path)
    assert done.status == 0, done.err
    new = SigningKey.load(data.signing_key)
    assert new.fingerprint in done.out
    assert offline.public_key(data).raw == new.public.raw
    assert not data.next_key.exists()
    assert before not in {file.read_bytes() for file in data.keys.rglob("*") if file.is_file()}
    for key in ((), ("--key", str(trusted))):
        checked = verb("verify", *key, data=data.path)
        assert checked.status == 0, checked.out
        assert checked.out.count("signed by") == 2
    (retired,) = (data.keys / "retired").iterdir()
    assert retired.read_text().split()[1] == trusted.read_text().split()[1]
    assert {file.stat().st_mode & 0o077 for file in data.keys.iterdir() if file.suffix != ".pub"} <= {0}


def test_nothing_is_begun_while_one_of_them_can_t_be_opened(data: DataDir) -> None:
    """Else the others could not start either until that one is repaired."""
    rotate_key(data)
    tip = git(data.repo("two"), "rev-parse", "log~1").strip()
    git(data.repo("two"), "update-ref", "refs/heads/log", tip)
    key = data.signing_key.read_bytes()
    with pytest.raises(SubstrateError):
        rotate_key(data)
    assert not data.next_key.exists()
    assert data.signing_key.read_bytes() == key


def test_it_waits_for_the_host_to_end(data: DataDir) -> None:
    """Two writers of one repository are what the lock is for."""
    with alone.alone(data), pytest.raises(HostRuns):
        rotate_key(data)


@pytest.mark.parametrize("stride", [23, pytest.param(1, marks=[pytest.mark.torture, pytest.mark.timeout(900)])])
def test_a_death_at_any_point_leaves_it_unfinished_or_done(data: DataDir, tmp_path: Path, stride: int) -> None:
    """Unfinished, no host and no reader goes on with the wrong key; and the same command ends it."""
    trusted = SigningKey.load(data.signing_key).public
    at, died = 1, True
    while died:
        copy = DataDir(Path(shutil.copytree(data.path, tmp_path / str(at))))
        died = False
        try:
            rotate_key(copy, DyingDisk(at))
        except Died:
            died = True
        if died:
            if copy.next_key.exists():
                with pytest.raises(UnfinishedExchange):
                    refuse_unfinished(copy)
                with pytest.raises(UnfinishedExchange):
                    offline.public_key(copy)
                with contextlib.suppress(Died):
                    rotate_key(copy, DyingDisk(at % 17 + 1))
            if copy.next_key.exists():
                rotate_key(copy)
        refuse_unfinished(copy)
        key = SigningKey.load(copy.signing_key)
        assert offline.public_key(copy).raw == key.public.raw
        for name in ("one", "two"):
            report = verify(copy.repo(name), trusted)
            assert report.sound, report.faults
            assert report.signers[-1] == key.fingerprint
        shutil.rmtree(copy.path)
        at += stride
    assert at > 90
