"""Checking a whole history offline: signer, numbers, hashes, one line without a gap (storage §2, §3).

Everything is recomputed from the trees: of each flush that it is signed, that its number follows, and that its hash is
the hash of what its commits really changed. What this can't know is whether a longer history existed; that takes a
receipt. Cost: each commit and each changed directory is read once.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from substrate import sshsig
from substrate.errors import BadObject, BrokenChain
from substrate.flush import FlushHash, parse_trailer
from substrate.keys import PublicKey
from substrate.objects import EMPTY_TREE, Commit, Kind, parse_commit, parse_tree
from substrate.readview import ReadView


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proven: flushes ``first`` to ``last``, all signed by ``signer`` (a fingerprint), ``commits`` commits.

    ``pinned``: whether the signer is the key that was asked for; otherwise it is whoever signed all of them.
    """

    repository_id: str
    first: int
    last: int
    commits: int
    head: str
    hash: str
    signer: str
    pinned: bool


def verify_chain(view: ReadView, key: PublicKey | None = None) -> Proof:
    """Check every flush of a repository up to the one that the view shows. Raises BrokenChain, Damaged."""
    commits = _history(view)
    signer = key or _signer(commits[-1][1])
    number, previous, begun = 0, view.repository_id, FlushHash(view.repository_id)
    above = EMPTY_TREE
    for oid, commit in commits:
        begun.commit(dict(changed_files(view, above, commit.tree)))
        above = commit.tree
        if commit.signature is None:
            continue
        trailer = parse_trailer(commit.message)
        if not signer.verifies(commit.payload, commit.signature):
            raise BrokenChain(oid.hex(), number + 1, f"its signature isn't one of {signer.fingerprint}")
        if trailer is None or trailer.number != number + 1:
            raise BrokenChain(oid.hex(), number + 1, "its number doesn't follow that of the flush before it")
        if trailer.hash != begun.hexdigest():
            raise BrokenChain(oid.hex(), trailer.number, "its hash isn't that of what its commits changed")
        number, previous, begun = trailer.number, trailer.hash, FlushHash(trailer.hash)
    if commits[-1][1].signature is None:
        raise BrokenChain(commits[-1][0].hex(), number + 1, "the newest commit isn't signed")
    return Proof(
        repository_id=view.repository_id,
        first=1,
        last=number,
        commits=len(commits),
        head=view.head,
        hash=previous,
        signer=signer.fingerprint,
        pinned=key is not None,
    )


def changed_files(view: ReadView, old: bytes, new: bytes, above: str = "") -> Iterator[tuple[str, bytes | None]]:
    """What differs between two trees, file by file: the new bytes, or None for a file that went."""
    if old == new:
        return
    before = _entries(view, old)
    after = _entries(view, new)
    for key in before.keys() | after.keys():
        was, now = before.get(key), after.get(key)
        path = above + key.decode()
        if was == now:
            continue
        if key.endswith(b"/"):
            yield from changed_files(view, was or EMPTY_TREE, now or EMPTY_TREE, path)
        else:
            yield path, None if now is None else view.object(Kind.BLOB, now)


def _entries(view: ReadView, tree: bytes) -> dict[bytes, bytes]:
    data = b"" if tree == EMPTY_TREE else view.object(Kind.TREE, tree)
    return {entry.key: entry.oid for entry in parse_tree(data)}


def _history(view: ReadView) -> list[tuple[bytes, Commit]]:
    """Every commit, oldest first."""
    found: list[tuple[bytes, Commit]] = []
    oid: bytes | None = bytes.fromhex(view.head)
    while oid is not None:
        commit = parse_commit(view.object(Kind.COMMIT, oid))
        found.append((oid, commit))
        oid = commit.parent
    found.reverse()
    return found


def _signer(head: Commit) -> PublicKey:
    try:
        return PublicKey(sshsig.parse(head.signature or b"").public)
    except (BadObject, ValueError) as bad:
        raise BrokenChain("the newest commit", 0, f"it carries no signature of ours: {bad}") from None
