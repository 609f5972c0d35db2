"""Receipts, epochs and the row of signers, as ``verify`` meets them: what is followed, and what never is."""

import shutil
from pathlib import Path

import msgspec
import pytest

from substrate import SigningKey, layout, verify
from substrate.checking.verify import Report, by_note, by_receipt
from substrate.errors import BadReceipt
from substrate.files.disk import Disk
from substrate.signing.receipt import Claim, Receipt, decode, encode, issue
from substrate.signing.signers import Either, Signer
from substrate.signing.signers import encode as encode_signer
from substrate.storage.heads import Heads, read_note
from substrate.storage.store import Store
from substrate.upkeep.rollback import accept, begin_epoch
from waypost.testing.stores import AT, fresh_store, git, put

KEY, NEW, OTHER = SigningKey.generate(), SigningKey.generate(), SigningKey.generate()
ANY = Either(KEY.public, NEW.public, OTHER.public)
HUB = "hub <hub@deployment.waypost>"


def flushes(store: Store, *names: str) -> None:
    for name in names:
        put(store, {f"grants/{name}.json": b"{}"})
        store.flush()


def receipt_of(store: Store, key: SigningKey = KEY) -> Receipt:
    at = store.reached
    claim = Claim(deployment="test", repository=at.repository, epoch=at.epoch, flush=at.flush, hash=at.hash, at="now")
    return issue(claim, key)


def faults(report: Report) -> str:
    return "\n".join(map(str, report.faults))


def checked(path: Path, *receipts: Receipt, key: SigningKey | None = KEY) -> Report:
    return verify(path, None if key is None else key.public, [by_receipt(each) for each in receipts])


def test_a_receipt_says_how_far_the_history_reached(tmp_path: Path) -> None:
    """With the newest the proof is complete; with an older one as far as that."""
    store = fresh_store(tmp_path / "r.git", KEY)
    flushes(store, "a", "b")
    old = decode(encode(receipt_of(store)), "it")
    flushes(store, "c")
    new = receipt_of(store)
    store.close()
    assert checked(tmp_path / "r.git", new).reach == "complete up to flush 4, as the receipt says"
    report = checked(tmp_path / "r.git", old)
    assert report.sound
    assert report.reach == (
        "complete up to flush 4; the receipt proves flush 3, a longer history may have existed since"
    )
    assert checked(tmp_path / "r.git").reach == "complete up to flush 4; a longer history may have existed"
    assert checked(tmp_path / "r.git", new, key=None).reach.startswith("consistent, signer not pinned; complete up to")


def test_a_history_that_was_cut_is_no_match_for_a_receipt(tmp_path: Path) -> None:
    """Every signature in it is good: this is what receipts are for."""
    store = fresh_store(tmp_path / "r.git", KEY)
    flushes(store, "a", "b")
    store.close()
    cut = Path(shutil.copytree(tmp_path / "r.git", tmp_path / "cut"))
    git(cut, "update-ref", "refs/heads/log", git(cut, "rev-parse", "log~1").strip())
    assert checked(cut).sound
    store = Store.open(tmp_path / "r.git", key=KEY)
    receipt = receipt_of(store)
    store.close()
    report = checked(cut, receipt)
    assert "history went back from flush 3 to flush 2: the receipt is for flush 3 of epoch 1" in faults(report)
    assert report.reach == "nothing is proved; by itself the row of flushes is whole up to flush 2"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"hash": "0" * 64}, "no good signature"),
        ({"flush": 2}, "no good signature"),
        ({"signature": "nonsense"}, "no good signature"),
        ({"repository": "another"}, "no good signature"),
    ],
)
def test_a_receipt_that_was_changed_proves_nothing(tmp_path: Path, change: dict[str, object], words: str) -> None:
    """It is signed as a whole: no field can be exchanged."""
    store = fresh_store(tmp_path / "r.git", KEY)
    receipt = msgspec.structs.replace(receipt_of(store), **change)
    store.close()
    assert words in faults(checked(tmp_path / "r.git", receipt))


def test_a_receipt_of_somebody_else_or_something_else_proves_nothing(tmp_path: Path) -> None:
    """Well signed, by a key that signed nothing here, or for a repository or a line of history that isn't this."""
    store = fresh_store(tmp_path / "r.git", KEY)
    stranger, right = receipt_of(store, OTHER), receipt_of(store)
    store.close()
    assert "which signed nothing here" in faults(checked(tmp_path / "r.git", stranger))
    elsewhere = issue(msgspec.structs.replace(right.claim, repository="another"), KEY)
    assert "is for another repository" in faults(checked(tmp_path / "r.git", elsewhere))
    replaced = issue(msgspec.structs.replace(right.claim, hash="0" * 64), KEY)
    assert "history was replaced" in faults(checked(tmp_path / "r.git", replaced))


@pytest.mark.parametrize("raw", [b"", b"{}", b"[" * 9000, b'{"receipt":2}', b"\xff\xfe"])
def test_what_is_no_receipt_is_refused_in_words(raw: bytes) -> None:
    """A file from outside."""
    with pytest.raises(BadReceipt, match="not a receipt"):
        decode(raw, "r")


def test_what_was_given_up_is_told_to_who_has_a_receipt_for_it(tmp_path: Path) -> None:
    """The new epoch has flushes of the same numbers; a receipt names its epoch, so they aren't mixed up."""
    path, note = tmp_path / "r.git", tmp_path / "heads" / "r.json"
    fresh_store(path, KEY).close()
    old = shutil.copytree(path, tmp_path / "old")
    store = Store.open(path, key=KEY, heads=Heads(note, Disk()))
    flushes(store, "a", "b")
    lost = receipt_of(store)
    store.close()
    shutil.rmtree(path)
    old.rename(path)
    noted = read_note(note)
    assert noted is not None
    assert "history went back from flush 3 to flush 1: what was noted here" in faults(
        verify(path, KEY.public, [by_note(noted)])
    )
    accept(path, KEY, note, at=AT)
    report = checked(path, lost)
    assert "the receipt is for flush 3 of epoch 1, and that epoch was ended after flush 1" in faults(report)
    assert report.epoch == 2
    assert checked(path).sound
    noted = read_note(note)
    assert noted is not None
    assert verify(path, KEY.public, [by_note(noted)]).sound


# --- epochs ----------------------------------------------------------------------------------------------------------


def test_an_epoch_without_its_record_is_a_change_of_what_is_written_once(tmp_path: Path) -> None:
    """format.json may say a new epoch only where it is said, signed, what that goes on from."""
    store = fresh_store(tmp_path / "r.git", KEY)
    raw = store.read(layout.FORMAT) or b""
    store.commit(author=HUB, subject="x", puts={layout.FORMAT: raw.replace(b'"epoch":1', b'"epoch":2')}, at=AT)
    store.close()
    assert "epoch 2 begins without a record" in faults(checked(tmp_path / "r.git"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"epoch":2', b'"epoch":1'),
        (b'"address":"test@', b'"address":"evil@'),
        (b'"repository":"0123', b'"repository":"4567'),
    ],
)
def test_an_epoch_changes_nothing_else_of_what_a_repository_is(tmp_path: Path, old: bytes, new: bytes) -> None:
    """The record is right, and in the commit after it something is written over."""
    store = fresh_store(tmp_path / "r.git", KEY)
    begin_epoch(store, "restore", lost=None, at=AT)
    raw = store.read(layout.FORMAT) or b""
    store.commit(author=HUB, subject="x", puts={layout.FORMAT: raw.replace(old, new)}, at=AT)
    store.close()
    assert "a file that is written once was changed" in faults(checked(tmp_path / "r.git"))


def test_a_forged_record_of_an_epoch_is_found(tmp_path: Path) -> None:
    """It must go on from the very head before it."""
    store = fresh_store(tmp_path / "r.git", KEY)
    begin_epoch(store, "restore", lost=None, at=AT)
    raw = store.read(layout.EPOCH) or b""
    flushes(store, "a")
    store.commit(author=HUB, subject="x", puts={layout.EPOCH: raw.replace(b'"flush":1', b'"flush":2')}, at=AT)
    store.close()
    assert "an epoch's record was changed without an epoch" in faults(checked(tmp_path / "r.git"))


# --- the row of signers ----------------------------------------------------------------------------------------------


def named(store: Store, by: SigningKey, to: SigningKey) -> None:
    """The flush in which one key names the next."""
    record = Signer(key=to.public.line(), before=by.public.line(), at="now")
    store.commit(author=HUB, subject="name the next key", puts={layout.SIGNER: encode_signer(record)}, at=AT)
    store.flush()


def grafted(path: Path, key: SigningKey, *names: str) -> None:
    """Go on under another key, as somebody can who has the disk and a key of his own."""
    store = Store.open(path, key=key, trusted=ANY)
    flushes(store, *names)
    store.close()


def test_a_key_that_the_old_one_named_is_followed_whichever_of_them_is_trusted(tmp_path: Path) -> None:
    """The old one vouches for the new one by its name, the new one for the old one's history by its hash."""
    path = tmp_path / "r.git"
    store = fresh_store(path, KEY)
    named(store, KEY, NEW)
    store.close()
    assert checked(path).sound
    grafted(path, NEW, "a", "b")
    for key in (KEY, NEW, None):
        report = checked(path, key=key)
        assert report.sound, faults(report)
        assert report.signers == (KEY.fingerprint, NEW.fingerprint)
    assert "is not signed by" in faults(checked(path, key=OTHER))


def test_a_key_that_nobody_named_is_not_followed(tmp_path: Path) -> None:
    """Somebody who has the disk and a key of his own."""
    path = tmp_path / "r.git"
    fresh_store(path, KEY).close()
    grafted(path, NEW, "a")
    assert f"not signed by {KEY.fingerprint}, but by {NEW.fingerprint}" in faults(checked(path))
    assert not checked(path, key=NEW).sound
    assert not checked(path, key=None).sound


def test_the_old_key_is_not_followed_after_it_has_named_another(tmp_path: Path) -> None:
    """It was stolen, perhaps: that is why it was exchanged."""
    path = tmp_path / "r.git"
    store = fresh_store(path, KEY)
    named(store, KEY, NEW)
    flushes(store, "a")
    store.close()
    assert f"not signed by {NEW.fingerprint}, but by {KEY.fingerprint}" in faults(checked(path))


def test_a_name_given_by_one_who_did_not_sign_it_counts_for_nothing(tmp_path: Path) -> None:
    """The record says whose word it is, and that one must have signed the flush."""
    path = tmp_path / "r.git"
    store = fresh_store(path, KEY)
    named(store, OTHER, NEW)
    store.close()
    assert "in the name of one that didn't sign it" in faults(checked(path))


def test_a_restore_under_another_hosts_key_is_followed_by_that_key_alone(tmp_path: Path) -> None:
    """Without the old key nobody could name the new one: who trusts the old host is told so."""
    path = tmp_path / "r.git"
    fresh_store(path, KEY).close()
    store = Store.open(path, key=NEW, trusted=ANY)
    begin_epoch(store, "restore", lost=None, at=AT)
    store.close()
    report = checked(path, key=NEW)
    assert report.sound
    assert (report.signers, report.earlier) == ((NEW.fingerprint,), (KEY.fingerprint,))
    assert "since then another host's key signs" in faults(checked(path))
