"""SSH signatures and the key that makes them."""

import base64
import pickle
import threading
from pathlib import Path

import pytest

from substrate.errors import BadKey, BadObject
from substrate.signing import sshsig
from substrate.signing.keys import PublicKey, SigningKey
from waypost.ed25519 import PrivateKey
from waypost.testing.disks import Died, DyingDisk

SEED = bytes(range(32))


@pytest.fixture(name="key")
def _key() -> SigningKey:
    return SigningKey(PrivateKey(SEED))


def test_a_signature_verifies_and_covers_every_byte(key: SigningKey) -> None:
    """A changed payload, a changed signature or another key: all refused."""
    armoured = key.sign(b"payload")
    assert key.public.verifies(b"payload", armoured)
    assert not key.public.verifies(b"Payload", armoured)
    assert not SigningKey.generate().public.verifies(b"payload", armoured)


def test_the_armour_reads_back(key: SigningKey) -> None:
    """Lines of 70, as ssh-keygen writes them."""
    armoured = key.sign(b"payload")
    parsed = sshsig.parse(armoured)
    assert parsed.public == key.public.raw
    assert sshsig.armour(parsed) == armoured
    assert max(map(len, armoured.split(b"\n"))) <= 70


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"-----BEGIN SSH SIGNATURE-----\n\n-----END SSH SIGNATURE-----",
        b"-----BEGIN SSH SIGNATURE-----\n!!!!\n-----END SSH SIGNATURE-----",
        b"-----BEGIN PGP SIGNATURE-----\nAAAA\n-----END PGP SIGNATURE-----",
        b"-----BEGIN SSH SIGNATURE-----\n"
        + base64.b64encode(b"SSHSIG" + b"\0" * 200)
        + b"\n-----END SSH SIGNATURE-----",
    ],
)
def test_anything_else_is_no_signature(text: bytes, key: SigningKey) -> None:
    """One format, one spelling."""
    with pytest.raises(BadObject):
        sshsig.parse(text)
    assert not key.public.verifies(b"", text)


def test_a_key_is_made_once_and_found_again(tmp_path: Path) -> None:
    """Every later start signs with the same key; the files are as OpenSSH writes them."""
    made = SigningKey.load_or_create(tmp_path / "host.ed25519")
    again = SigningKey.load_or_create(tmp_path / "host.ed25519")
    assert made.fingerprint == again.fingerprint
    assert (tmp_path / "host.ed25519").stat().st_mode & 0o777 == 0o600
    assert PublicKey.load(tmp_path / "host.ed25519.pub").raw == made.public.raw
    assert sorted(file.name for file in tmp_path.iterdir()) == ["host.ed25519", "host.ed25519.pub"]


def test_a_lost_public_half_is_written_again(tmp_path: Path) -> None:
    """It can be derived; only the private half can't."""
    made = SigningKey.load_or_create(tmp_path / "k")
    (tmp_path / "k.pub").unlink()
    SigningKey.load_or_create(tmp_path / "k")
    assert PublicKey.load(tmp_path / "k.pub").raw == made.public.raw


def test_two_that_make_a_key_at_once_end_up_with_one(tmp_path: Path) -> None:
    """The loser of the race takes the winner's."""
    found: list[str] = []
    barrier = threading.Barrier(4)

    def make() -> None:
        barrier.wait()
        found.append(SigningKey.load_or_create(tmp_path / "k").fingerprint)

    threads = [threading.Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1


def test_a_killed_creation_leaves_no_half_key(tmp_path: Path) -> None:
    """Whatever the moment, the next start makes or finds a whole one."""
    for at in range(1, 12):
        folder = tmp_path / str(at)
        folder.mkdir()
        try:
            SigningKey.load_or_create(folder / "k", DyingDisk(at))
        except Died:
            before = SigningKey.load(folder / "k").fingerprint if (folder / "k").exists() else None
            after = SigningKey.load_or_create(folder / "k").fingerprint
            assert before in (None, after)


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    """A copied key with loose permissions is noticed, not used."""
    SigningKey.load_or_create(tmp_path / "k")
    (tmp_path / "k").chmod(0o640)
    with pytest.raises(BadKey, match="0640") as refused:
        SigningKey.load(tmp_path / "k")
    assert f"`chmod 600 {tmp_path / 'k'}`" in refused.value.hint


def test_a_file_that_is_no_key_is_left_alone(tmp_path: Path) -> None:
    """Never replaced: it may be the only trace of the real one. And never quoted."""
    secret = b"not a key but perhaps a secret"
    (tmp_path / "k").write_bytes(secret)
    (tmp_path / "k").chmod(0o600)
    with pytest.raises(BadKey) as caught:
        SigningKey.load_or_create(tmp_path / "k")
    assert "secret" not in str(caught.value)
    assert (tmp_path / "k").read_bytes() == secret


def test_a_key_never_shows_itself(key: SigningKey) -> None:
    """Neither printed nor pickled: a log or a traceback holds the fingerprint at most."""
    shown = repr(key) + str(key) + repr(key.public)
    assert SEED.hex() not in shown
    assert base64.b64encode(SEED).decode() not in shown
    assert key.fingerprint in shown
    with pytest.raises(TypeError):
        pickle.dumps(key)


def test_a_public_line_reads_back_with_its_comment(key: SigningKey) -> None:
    """As an allowed-signers file or a `.pub` of somebody else has it."""
    assert sshsig.parse_public_line(key.public.line() + " a comment") == key.public.raw
