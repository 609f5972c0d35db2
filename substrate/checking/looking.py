"""A repository as whoever checks it finds it: live, at rest, or a clone; bare, or with a working tree.

Nothing is changed. Where the journals can't be read as recovery would read them, what is in packs is still there to be
looked at, and why is said beside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from substrate.checking.history import Objects
from substrate.errors import BadObject, Damaged, NotARepository, SubstrateError, Unreadable
from substrate.files.folder import Folder
from substrate.packs.objects import Kind, parse_commit
from substrate.packs.sealed import SealedObjects
from substrate.packs.trees import Trees
from substrate.signing import sshsig
from substrate.signing.keys import PublicKey
from substrate.storage.readview import open_readonly


@dataclass(frozen=True, slots=True)
class Found:
    """What is there to be checked, from ``tip`` down.

    ``signer``: the key that was given, else the one that the newest commit names; None where that isn't signed.
    ``unread``: why the journals take no part, where they don't.
    """

    objects: Objects
    tip: bytes
    signer: PublicKey | None
    unread: SubstrateError | None = None


def look(path: str | Path, key: PublicKey | None = None) -> Found:
    """Find the newest commit and its objects; ``key`` is the one that must have signed.

    Raises NotARepository; Unreadable where the disk lets nobody look.
    """
    folder = folder_at(Path(path))
    ref = folder.read_ref()
    if ref is None:
        raise NotARepository(folder.path, "it has no branch 'log'")
    tip, objects = bytes.fromhex(ref), _Packs(SealedObjects(folder.objects))
    signer = key or signer_of(objects, tip)
    if signer is None or not Path(folder.journals).is_dir():
        return Found(objects, tip, signer)
    try:
        view = open_readonly(folder.path, signer)
    except SubstrateError as failure:
        return Found(objects, tip, signer, failure)
    except OSError as failure:
        raise Unreadable.by(failure, folder.path) from failure
    return Found(view, bytes.fromhex(view.head), signer)


@dataclass(frozen=True, slots=True)
class Seen:
    """A tree of any commit, to be read by path."""

    objects: Objects
    trees: Trees

    def read(self, path: str) -> bytes | None:
        """A file's bytes; None where there is no file. Raises Damaged."""
        oid = self.trees.blob(path)
        return None if oid is None else self.objects.object(Kind.BLOB, oid)

    def entries(self, path: str) -> tuple[str, ...]:
        """The sorted names in a directory; empty where there is none."""
        return self.trees.names(path)

    def several(self, directory: str, names: Sequence[str]) -> list[bytes | None]:
        """Files of one directory."""
        return [self.read(f"{directory}/{name}") for name in names]


def seen(objects: Objects, tree: bytes) -> Seen:
    """The tree with this id."""
    return Seen(objects, Trees(lambda oid: objects.object(Kind.TREE, oid), tree))


@dataclass(frozen=True, slots=True)
class _Packs:
    """Packs alone: a clone, or a repository without its journals."""

    sealed: SealedObjects

    def object(self, kind: Kind, oid: bytes) -> bytes:
        return self.sealed.read(kind, oid)


def folder_at(path: Path) -> Folder:
    """The repository at this path: bare, or the ``.git`` of a clone."""
    for candidate in (path, path / ".git"):
        if (candidate / "objects").is_dir():
            return Folder(str(candidate))
    raise NotARepository(str(path), "no git repository lies there")


def refuse_partial(path: Path) -> None:
    """Refuse a clone that was made without some of the history. Raises NotARepository."""
    folder = folder_at(path)
    if (Path(folder.path) / "shallow").exists():
        raise NotARepository(
            folder.path, "this clone is shallow, it has only a part of the history: git fetch --unshallow"
        )
    if any(Path(folder.packs).glob("*.promisor")):
        raise NotARepository(
            folder.path, "this clone is partial, it has only some of the objects: clone without --filter"
        )


def signer_of(objects: Objects, tip: bytes) -> PublicKey | None:
    """The key that the newest commit says it was signed with."""
    try:
        signature = parse_commit(objects.object(Kind.COMMIT, tip)).signature
        return None if signature is None else PublicKey(sshsig.parse(signature).public)
    except (BadObject, Damaged, ValueError):
        return None
