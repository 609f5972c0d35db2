"""Verifying a history offline: what is proven, and every way of breaking it."""

from pathlib import Path

import pytest

from substrate.errors import BrokenChain
from substrate.flush import Trailer, head_message
from substrate.keys import SigningKey
from substrate.readview import ReadView, open_readonly
from substrate.store import Store
from substrate.verify_chain import verify_chain
from waypost.testing.stores import REPOSITORY_ID, fresh_store, git, put

KEY = SigningKey.generate()


@pytest.fixture(name="repository")
def _repository(tmp_path: Path) -> Path:
    store = fresh_store(tmp_path / "r.git", KEY)
    put(store, {"d/a": b"1", "d/b": b"2", "e": b"3"})
    put(store, {"e": b"3"}, deletes=("d/",))
    store.flush()
    put(store, {"f": b"4"})
    store.flush()
    store.close()
    return tmp_path / "r.git"


def rewritten(repository: Path, message: bytes, *, signer: SigningKey, parent: str = "log~1") -> str:
    """Replace the newest commit by a forged one, as somebody with write access to the files could."""
    tree, below = (git(repository, "rev-parse", name).strip() for name in ("log^{tree}", parent))
    who = b"x <x@x> 1800000000 +0000"
    headers = b"tree %s\nparent %s\nauthor %s\ncommitter %s\n" % (tree.encode(), below.encode(), who, who)
    signature = signer.sign(headers + b"\n" + message).replace(b"\n", b"\n ")
    file = repository.parent / "forged"
    file.write_bytes(b"%sgpgsig %s\n\n%s" % (headers, signature, message))
    return git(repository, "hash-object", "-w", "-t", "commit", str(file)).strip()


def view_of(repository: Path, commit: str, key: SigningKey) -> ReadView:
    """Look at a commit that the branch was moved to."""
    git(repository, "update-ref", "refs/heads/log", commit)
    return open_readonly(repository, key.public)


def test_a_sound_history_is_proven_to_its_end(repository: Path) -> None:
    """Signer, numbers and hashes, from flush 1 to the newest; unsealed flushes, too."""
    store = Store.open(repository, key=KEY)
    put(store, {"g": b"unsealed"})
    store.flush()
    store.abandon()
    view = open_readonly(repository, KEY.public)
    proof = verify_chain(view, KEY.public)
    assert (proof.repository_id, proof.first, proof.last, proof.commits) == (REPOSITORY_ID, 1, 4, 5)
    assert (proof.head, proof.hash, proof.signer, proof.pinned) == (view.head, view.flush_hash, KEY.fingerprint, True)


def test_without_a_key_the_signer_is_named_and_not_pinned(repository: Path) -> None:
    """Consistent, but it could be anybody's."""
    proof = verify_chain(open_readonly(repository, KEY.public))
    assert (proof.signer, proof.pinned) == (KEY.fingerprint, False)


def test_another_key_is_noticed(repository: Path) -> None:
    """Pinned to a key that signed nothing here."""
    with pytest.raises(BrokenChain, match="flush 1"):
        verify_chain(open_readonly(repository, KEY.public), SigningKey.generate().public)


def test_a_changed_hash_is_noticed(repository: Path) -> None:
    """Even the host's own signature doesn't make a wrong hash right."""
    forged = rewritten(repository, head_message(b"x", Trailer(3, "0" * 64)), signer=KEY)
    with pytest.raises(BrokenChain, match="hash"):
        verify_chain(view_of(repository, forged, KEY), KEY.public)


def test_a_missing_flush_is_noticed(repository: Path) -> None:
    """A flush taken out of the middle: the numbers don't follow."""
    message = git(repository, "log", "-1", "--format=%B", "log").strip().encode() + b"\n"
    forged = rewritten(repository, message, signer=KEY, parent="log~3")
    with pytest.raises(BrokenChain, match="number"):
        verify_chain(view_of(repository, forged, KEY), KEY.public)


def test_a_head_signed_by_somebody_else_is_noticed(repository: Path) -> None:
    """The chain before it is the host's, the newest flush isn't."""
    other = SigningKey.generate()
    message = git(repository, "log", "-1", "--format=%B", "log").strip().encode() + b"\n"
    forged = rewritten(repository, message, signer=other)
    with pytest.raises(BrokenChain, match="flush 3"):
        verify_chain(view_of(repository, forged, other), KEY.public)
