"""What is readable of a damaged repository, copied out of it (storage §3); the repository itself stays as it is.

Into a new folder go ``files/``, the newest tree that can be read, by path; ``logs/``, each run's log in one file as far
as it can be read; ``journals/``, as they are, those that can't be read to their end; and ``salvaged.json``, which says
what was lost. A directory that can't be read is taken from the newest older commit in which it can.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from substrate import layout, runlog
from substrate.checking.history import Objects
from substrate.checking.looking import folder_at, seen, signer_of
from substrate.errors import BadObject, BadPath, Damaged, NothingToSalvage, SubstrateError
from substrate.files import plain
from substrate.files.folder import Folder
from substrate.packs.objects import EMPTY_TREE, Kind, check_path, parse_commit, parse_tree
from substrate.packs.sealed import SealedObjects
from substrate.signing.keys import PublicKey
from substrate.storage.scan import Scan, Stop, scan
from waypost.model.ids import RunId


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """What couldn't be copied, or comes from an older commit: which path, and why."""

    path: str
    why: str


class Salvaged(msgspec.Struct, frozen=True, kw_only=True):
    """What was copied. ``flush`` is 0 where the newest readable commit isn't the head of one."""

    head: str
    flush: int
    files: int
    bytes: int
    runs: int
    journals: tuple[str, ...]
    lost: tuple[Lost, ...]


def salvage(path: str | Path, into: str | Path, key: PublicKey | None = None) -> Salvaged:
    """Copy out what is readable; ``into`` must not exist. ``key``: the host's, else the one that history names.

    Raises NotARepository, NothingToSalvage where there is no commit whose tree can be read, FileExistsError, OSError.
    """
    folder, out = folder_at(Path(path)), Path(into)
    objects, scans = _objects(folder, key)
    head, number, tree = _newest(folder, objects, scans)
    out.mkdir(mode=0o700)
    copy = _Copy(objects, out / "files", _Older(objects, head))
    copy.directory(tree, "")
    runs = _logs(objects, tree, out / "logs", copy.lost)
    unread = tuple(Path(each.file).name for each in scans if each.stop is not Stop.END)
    for name in unread:
        _write(out / "journals" / name, (Path(folder.journals) / name).read_bytes())
    made = Salvaged(
        head=head.hex(),
        flush=number,
        files=copy.files,
        bytes=copy.bytes,
        runs=runs,
        journals=unread,
        lost=tuple(copy.lost),
    )
    _write(out / "salvaged.json", msgspec.json.encode(made) + b"\n")
    return made


class _Both:
    """The packs, and whatever the journals hold in whole entries, behind one door."""

    def __init__(self, packs: SealedObjects) -> None:
        self._packs = packs
        self.loose: dict[bytes, tuple[Kind, bytes]] = {}

    def object(self, kind: Kind, oid: bytes) -> bytes:
        """Raises Damaged."""
        found = self.loose.get(oid)
        return found[1] if found is not None and found[0] is kind else self._packs.read(kind, oid)


def _objects(folder: Folder, key: PublicKey | None) -> tuple[_Both, list[Scan]]:
    objects = _Both(SealedObjects(folder.objects))
    ref = _ref(folder)
    signer = key or (None if ref is None else signer_of(objects, ref))
    # Whoever has no key at all salvages what is there, whoever has signed it.
    verifies: Callable[[bytes, bytes], bool] = (
        (lambda _payload, _signature: True) if signer is None else signer.verifies
    )
    scans: list[Scan] = []
    with suppress(FileNotFoundError, Damaged):
        for number in folder.journal_numbers():
            file = folder.journal(number)
            scans.append(scan(file, plain.read(file), verifies, keep=True))
            objects.loose.update(scans[-1].objects)
    return objects, scans


def _ref(folder: Folder) -> bytes | None:
    try:
        ref = folder.read_ref()
    except SubstrateError:
        return None
    return None if ref is None else bytes.fromhex(ref)


def _newest(folder: Folder, objects: Objects, scans: list[Scan]) -> tuple[bytes, int, bytes]:
    """The newest commit whose tree can be read: its id, its flush, its tree. Raises NothingToSalvage."""
    heads = sorted(((flush.head.number, flush.head.oid) for each in scans for flush in each.flushes), reverse=True)
    ref = _ref(folder)
    for number, oid in (*heads, *((0, each) for each in _back(objects, ref))):
        with suppress(Damaged, BadObject):
            tree = parse_commit(objects.object(Kind.COMMIT, oid)).tree
            list(parse_tree(objects.object(Kind.TREE, tree)))
            return oid, number, tree
    raise NothingToSalvage(folder.path)


def _back(objects: Objects, tip: bytes | None) -> Iterator[bytes]:
    """A commit and its ancestors, as far as they can be read."""
    while tip is not None:
        yield tip
        try:
            tip = parse_commit(objects.object(Kind.COMMIT, tip)).parent
        except (Damaged, BadObject):
            return


class _Older:
    """Directories as they were in the ancestors of a commit."""

    def __init__(self, objects: Objects, head: bytes) -> None:
        self._objects, self._head = objects, head

    def find(self, path: str, not_this: bytes) -> tuple[str, bytes] | None:
        """The newest ancestor in which this directory is another one that can be read: (commit, tree)."""
        for oid in _back(self._objects, self._head):
            with suppress(Damaged, BadObject):
                tree = parse_commit(self._objects.object(Kind.COMMIT, oid)).tree
                for part in path.split("/"):
                    entries = parse_tree(self._objects.object(Kind.TREE, tree))
                    tree = next((each.oid for each in entries if each.is_directory and each.name == part), EMPTY_TREE)
                if tree not in {not_this, EMPTY_TREE}:
                    list(parse_tree(self._objects.object(Kind.TREE, tree)))
                    return oid.hex(), tree
        return None


class _Copy:
    """Writes files and counts them; what can't be read is noted."""

    def __init__(self, objects: Objects, root: Path, older: _Older) -> None:
        self._objects, self._root, self._older = objects, root, older
        self.files = self.bytes = 0
        self.lost: list[Lost] = []

    def directory(self, tree: bytes, path: str) -> None:
        """Copy a directory with all that is below it."""
        try:
            entries = list(parse_tree(self._objects.object(Kind.TREE, tree)))
        except (Damaged, BadObject) as damage:
            found = self._older.find(path, tree)
            if found is None:
                self._lose(path, damage)
                return
            self.lost.append(Lost(path=path, why=f"the directory can't be read; this is it as of commit {found[0]}"))
            entries = list(parse_tree(self._objects.object(Kind.TREE, found[1])))
        for entry in entries:
            below = f"{path}/{entry.name}" if path else entry.name
            try:
                check_path(below)
                if not entry.is_directory:
                    self._file(below, entry.oid)
            except (Damaged, BadPath) as damage:
                self._lose(below, damage)
                continue
            if entry.is_directory:
                self.directory(entry.oid, below)

    def _file(self, path: str, oid: bytes) -> None:
        data = self._objects.object(Kind.BLOB, oid)
        _write(self._root / path, data)
        self.files += 1
        self.bytes += len(data)

    def _lose(self, path: str, damage: SubstrateError) -> None:
        self.lost.append(Lost(path=path, why=damage.why if isinstance(damage, Damaged | BadPath) else damage.message))


def _logs(objects: Objects, tree: bytes, out: Path, lost: list[Lost]) -> int:
    """Every run's log, as far as it goes; how many begin."""
    view = seen(objects, tree)
    runs: list[RunId] = []
    for root in (layout.RUNS, layout.SEALED):
        with suppress(Damaged, BadObject):
            runs += [run for run in runlog.run_ids(view, root) if root == layout.RUNS or runlog.is_sealed(view, run)]
    for run in runs:
        lines: list[bytes] = []
        try:
            for raw in runlog.events(view, run):
                lines.append(raw)  # noqa: PERF402 - what came before the damage counts
        except (Damaged, BadObject, BadPath) as damage:
            lost.append(Lost(path=layout.run_dir(run), why=f"the log ends here: {damage.message}"))
        _write(out / f"{run}.jsonl", b"".join(raw + b"\n" for raw in lines))
    return len(runs)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
