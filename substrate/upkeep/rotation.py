"""Exchanging the key that a repository is signed with, so that whoever trusts the old one can follow (``signers``).

Two flushes: the last one of the old key names the new one, the first one of the new key takes over; then all of it is
sealed, so that nothing that the old key signed lies in a journal any more, where a start would have to trust it. Under
the host's lock; may be killed anywhere and be run again, as long as both keys are there.
"""

from collections.abc import Mapping
from pathlib import Path

from substrate import layout
from substrate.errors import BranchLocked
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.packs.objects import Kind, parse_commit
from substrate.signing.epoch import Noted
from substrate.signing.keys import SigningKey
from substrate.signing.signers import Either, Signer, decode, encode, signature_of
from substrate.storage.heads import Heads
from substrate.storage.readview import open_readonly
from substrate.storage.store import Store
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import stamp

_AUTHOR = "hub <hub@deployment.waypost>"


def rotate(
    path: Path,
    old: SigningKey,
    new: SigningKey,
    note: Path,
    *,
    at: int,
    disk: Disk | None = None,
    limits: Limits = DEFAULT,
) -> Noted:
    """Have ``new`` sign from now on; how far the repository then is. ``note`` is the file of ``heads``.

    Raises BranchLocked, and as ``Store.open``.
    """
    writer = disk or Disk()
    both = Either(old.public, new.public)
    view = open_readonly(path, both)
    head = parse_commit(view.object(Kind.COMMIT, bytes.fromhex(view.head)))
    signed = signature_of(head.payload, head.signature)
    raw = view.read(layout.SIGNER)

    def sign(key: SigningKey, subject: str = "", puts: Mapping[str, bytes] | None = None) -> Noted:
        store = Store.open(path, key=key, disk=writer, limits=limits, heads=Heads(note, writer), trusted=both)
        try:
            if subject:
                store.commit(author=_AUTHOR, subject=subject, puts=puts or {}, at=at)
                store.flush()
            reached = store.reached
            store.close()
        finally:
            store.abandon()
        return reached

    if raw is None or decode(raw).key != new.public.line():
        record = Signer(key=new.public.line(), before=old.public.line(), at=stamp(at))
        sign(old, f"name the next key, {new.fingerprint}", {layout.SIGNER: encode(record)})
    if signed is None or signed.public != new.public.raw:
        sign(new, f"sign with {new.fingerprint} from now on")
    reached = sign(new)
    folder = Folder(str(path))
    if folder.journal_numbers():
        raise BranchLocked(f"{folder.ref}.lock")
    return reached
