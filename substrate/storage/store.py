"""The store: one bare repository, one writer, commits that are first visible and then durable (storage §2, §3).

Synchronous and single-threaded; whoever owns it owns the repository. What is promised: when ``flush`` has returned,
everything committed before it survives kill -9 and power loss, at a flush boundary; a write costs the same whatever the
history; and after a failed write nothing more is written: the store is broken, and the repository is opened again.

Memory: the directories and the object index of at most two journals (see ``trees``, ``journal``), the objects of the
present flush, and libgit2's cache of 4 MB for the whole process.
"""

import errno
import functools
import os
from binascii import hexlify
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from types import TracebackType

import msgspec

from substrate import layout
from substrate.errors import Broken, FlushFailed, NotARepository
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.packs.objects import EMPTY_TREE, Kind, check_identity, check_subject, commit_date, parse_commit
from substrate.packs.sealed import SealedObjects
from substrate.packs.trees import Trees
from substrate.signing.epoch import Noted
from substrate.signing.keys import SigningKey
from substrate.signing.signers import Verifier
from substrate.storage.difference import applied, difference, weight
from substrate.storage.flush import FlushHash, Trailer, head_message
from substrate.storage.heads import Heads
from substrate.storage.journals import Journals
from substrate.storage.merge import Merger
from substrate.storage.opening import Recovered, read_format, recover
from waypost.model.limits import DEFAULT, Limits

_COMMIT = Kind.COMMIT
"""Looked up once: on the class it costs as much as a checksum."""
_CREATOR = "supervisor <supervisor@deployment.waypost>"


class _Draft(msgspec.Struct, frozen=True):
    """The newest commit, not yet an object: whether it is a head, and signed, is known when the next one comes."""

    headers: bytes
    subject: bytes


class Store:
    """One open repository. Every method may raise Broken once one has failed, or after ``close``."""

    def __init__(
        self,
        folder: Folder,
        *,
        key: SigningKey,
        disk: Disk,
        limits: Limits,
        found: Recovered | None,
        repository: str,
        heads: Heads | None = None,
    ) -> None:
        self.path = folder.path
        self.repository_id = repository
        self.flush_number = found.head.number if found else 0
        """Of the last durable flush."""
        self.pending = 0
        """Commits that are visible and not yet durable."""
        self._key, self._disk, self._limits = key, disk, limits
        self._broken: str | None = None
        self._writing = _Writing(self)
        self._position = 0
        self._hash = found.head.hash if found else repository
        self._head = found.head.oid if found else None
        self._parent = self._head
        self._draft: _Draft | None = None
        self._flush = FlushHash(self._hash)
        self._objects = found.objects if found else SealedObjects(folder.objects)
        self._committer = f"waypost host <{key.fingerprint}>".encode()
        self._identity = functools.lru_cache(maxsize=64)(check_identity)
        self._seen_flush, self._newest = self.flush_number, 0.0
        self._oldest: float | None = None
        root = EMPTY_TREE if self._head is None else parse_commit(self._objects.read(Kind.COMMIT, self._head)).tree
        self._trees = Trees(self._objects.tree, root)
        self._merger = Merger(disk, folder, limits, self._objects.reopen)
        self._journals = Journals(
            disk,
            folder,
            limits,
            ref=found.ref if found else None,
            held=found.held if found else (),
            note=None if heads is None else lambda: heads.note(self.reached),
        )
        with self._writing:
            self._journals.begin(found.next_journal if found else 1)
        self._merger.look()

    # --- opening and closing ---

    @staticmethod
    def create(
        path: str | Path,
        *,
        repository_id: str,
        key: SigningKey,
        first: Mapping[str, bytes],
        at: int,
        disk: Disk | None = None,
        limits: Limits = DEFAULT,
    ) -> "Store":
        """Make a repository at ``path``, with ``first`` (``format.json`` among it) as flush 1, and open it.

        It gets its name only when flush 1 is durable and sealed: a killed attempt leaves nothing under ``path``, and
        the next one clears its rest away. Raises NotARepository when ``path`` exists, FlushFailed.
        """
        writer, name = disk or Disk(), str(path)
        if Path(name).exists():
            raise NotARepository(name, "something of that name exists")
        if read_format(name, first.get(layout.FORMAT, b"")).repository != repository_id:
            raise NotARepository(name, f"{layout.FORMAT} names another repository id")
        folder = Folder(f"{name}.new")
        if Path(folder.path).exists():
            writer.point("clear", folder.path)
            rmtree(folder.path)
        with _disk_errors(name):
            folder.make(writer)
        made = Store(folder, key=key, disk=writer, limits=limits, found=None, repository=repository_id)
        try:
            made.commit(author=_CREATOR, subject="create the repository", puts=first, at=at)
            made.close()
        finally:
            made.abandon()
        if folder.read_ref() is None:
            # A seal waits for space as long as its host lives; this one's is over, and without it there is no branch.
            raise FlushFailed(name, os.strerror(errno.ENOSPC), errno.ENOSPC)
        with _disk_errors(name):
            writer.rename(folder.path, name)
            writer.sync_directory(str(Path(name).absolute().parent))
        return Store.open(path, key=key, disk=writer, limits=limits)

    @staticmethod
    def open(
        path: str | Path,
        *,
        key: SigningKey,
        disk: Disk | None = None,
        limits: Limits = DEFAULT,
        heads: Heads | None = None,
        trusted: Verifier | None = None,
    ) -> "Store":
        """Recover the repository and open it for writing; only under the host's lock.

        ``heads`` remembers outside how far it got; ``trusted`` tells who may have signed what is there, by default
        the key alone. Raises NotARepository, NewerFormat, Damaged, ForeignJournal,
        Unsigned, RolledBack, BadNote (nothing was changed), SecondWriter, FlushFailed.
        """
        folder, writer = Folder(str(path)), disk or Disk()
        whose = trusted or key.public
        with _disk_errors(folder.path):
            found = recover(folder, whose, writer, heads)
        return Store(
            folder, key=key, disk=writer, limits=limits, found=found, repository=found.format.repository, heads=heads
        )

    def close(self) -> None:
        """Flush, seal and let go. After a failure it only lets go. Raises FlushFailed, SecondWriter."""
        if self._broken is not None:
            self.abandon()
            return
        self.flush()
        with self._writing:
            self._merger.stop()
            self._journals.close(self.head)
        self.abandon()

    def abandon(self) -> None:
        """Let go of every file without writing anything: what a killed process would leave."""
        self._merger.let_go()
        self._journals.let_go()
        self._objects.let_go()
        self._broken = self._broken or "it was closed"

    # --- reading ---

    @property
    def head(self) -> str:
        """The head of the last durable flush, 40 hex digits."""
        return self._head.hex() if self._head is not None else "0" * 40

    @property
    def flush_hash(self) -> str:
        """The hash of the last durable flush, 64 hex digits; before flush 1 the repository id."""
        return self._hash

    @property
    def reached(self) -> Noted:
        """The last durable flush as it is noted outside; nothing may be pending."""
        epoch = read_format(self.path, self.read(layout.FORMAT) or b"").epoch
        return Noted(
            repository=self.repository_id, epoch=epoch, flush=self.flush_number, hash=self._hash, head=self.head
        )

    @property
    def room(self) -> int:
        """Bytes that may be written before the disk must be asked for more (storage §2, disk full)."""
        return self._journals.room

    def read(self, path: str) -> bytes | None:
        """A file's bytes as of the last commit, durable or not; None where there is no file. Raises Damaged."""
        self._check()
        oid = self._trees.blob(path)
        if oid is None:
            return None
        data = self._journals.blob(oid)
        return self._objects.file(path, oid) if data is None else data

    def several(self, directory: str, names: Sequence[str]) -> list[bytes | None]:
        """Files of one directory, each as ``read`` has it. Raises Damaged."""
        self._check()
        blob, file = self._journals.blob, self._objects.file
        return [
            None if oid is None else file(f"{directory}/{name}", oid) if (data := blob(oid)) is None else data
            for name, oid in zip(names, self._trees.blobs(directory, names), strict=True)
        ]

    def entries(self, path: str) -> tuple[str, ...]:
        """The sorted names in a directory (``""`` is the root) as of the last commit; empty where there is none."""
        self._check()
        return self._trees.names(path)

    def directory_id(self, path: str) -> str:
        """The id of a directory's tree as of the last commit, 40 hex digits; empty where there is none."""
        self._check()
        oid = self._trees.directory(path)
        return "" if oid is None else oid.hex()

    def directory(self, oid: bytes) -> bytes:
        """The bytes of a directory by its id, as far as it is sealed. Raises Damaged where it isn't there."""
        return self._objects.tree(oid)

    def let_go_of_packs(self) -> None:
        """Map none of the packs any more until they are read again: after something that has read much of them."""
        self._objects.reopen()

    # --- writing ---

    def fits(self, puts: Mapping[str, bytes], deletes: Collection[str], kept: int) -> bool:
        """Whether there is space for it and ``kept`` bytes; False where the disk is full. Raises FlushFailed."""
        size = weight(self._trees, puts, deletes, self._journals.current.room - kept)
        with self._writing:
            return size == 0 or self._journals.current.has(size + kept)

    def commit(
        self, *, author: str, subject: str, puts: Mapping[str, bytes], deletes: Collection[str] = (), at: int
    ) -> int:
        """Make one commit: visible at once, durable with the next flush. Its position since opening, from 1.

        ``author`` is ``name <email>``, ``at`` unix milliseconds. A delete that ends with ``/`` removes a directory
        with all below it. Raises BadPath or BadObject where something can't be committed; then nothing has changed.
        """
        self._check()
        who, line, changes = self._identity(author), check_subject(subject), difference(self._trees, puts, deletes)
        with self._writing:
            tree = applied(self._trees, self._journals.current, puts, deletes, changes)
            if self._draft is not None:
                # A commit is followed by this one, so it isn't the flush's last: no trailer, no signature.
                draft = self._draft
                self._parent = self._journals.current.add(_COMMIT, draft.headers + b"\n" + draft.subject + b"\n")
            date = commit_date(at)
            above = b"" if self._parent is None else b"\nparent " + hexlify(self._parent)
            headers = b"".join(
                (b"tree ", hexlify(tree), above, b"\nauthor ", who, date, b"\ncommitter ", self._committer, date, b"\n")
            )
            self._draft = _Draft(headers, line)
            self._flush.commit(changes)
        self.pending += 1
        self._position += 1
        return self._position

    def flush(self) -> int:
        """Sign the last commit as head and make all commits durable; the position up to which they now are.

        Raises FlushFailed: then nothing since the last flush counts, and the store is broken.
        """
        self._check()
        draft = self._draft
        if draft is None:
            return self._position
        with self._writing:
            trailer = Trailer(self.flush_number + 1, self._flush.hexdigest())
            message = head_message(draft.subject, trailer)
            signature = self._key.sign(draft.headers + b"\n" + message).replace(b"\n", b"\n ")
            head = self._journals.current.add(
                _COMMIT, b"".join((draft.headers, b"gpgsig ", signature, b"\n\n", message))
            )
            self._journals.current.write()
            self._draft, self._parent, self._head = None, head, head
            self.flush_number, self._hash, self._flush = trailer.number, trailer.hash, FlushHash(trailer.hash)
            self.pending = 0
            self._journals.reserve()
        return self._position

    # --- sealing ---

    @property
    def unsealed(self) -> bool:
        """Whether something that is durable isn't on the branch yet."""
        return self._journals.unsealed

    @property
    def quiet(self) -> float:
        """When the last flush was seen by ``wants_seal``, in monotonic seconds; 0 before the first."""
        return self._newest

    def wants_seal(self, now: float) -> bool:
        """Whether a seal is due at this monotonic time; to be asked after a flush and every half second or so.

        By size at once; by time 2 s after the last flush that was seen here, or 5 s after the first (storage §3).
        """
        self._check()
        if not self._journals.unsealed:
            self._oldest = None
            self._seen_flush = self.flush_number
            return False
        if self._oldest is None:
            self._oldest = self._newest = now
        if self._seen_flush != self.flush_number:
            self._seen_flush, self._newest = self.flush_number, now
        limits = self._limits
        return self._journals.full or now - self._newest >= limits.seal_idle or now - self._oldest >= limits.seal_age

    def seal(self) -> None:
        """Flush, then bring the journal into a pack and the branch to the last head, so that stock git sees all.

        While another program holds the branch's lock, or the disk is full, it goes as far as it can; ask again later.
        Raises FlushFailed, SecondWriter.
        """
        self.flush()
        with self._writing:
            published = self._journals.seal(self.head)
            if published is not None:
                self._trees.evict(published)
                self._merger.look()
        self._oldest = None

    @property
    def merging(self) -> bool:
        """Whether packs wait to be merged: ``merge`` until it no longer is so, with pauses in which others write."""
        return self._merger.under_way

    def merge(self) -> None:
        """Make one step of merging packs: a few milliseconds. What fails is given up; the store is none the worse."""
        self._check()
        self._merger.step()

    # --- inside ---

    def _check(self) -> None:
        if self._broken is not None:
            raise Broken(f"{self.path}: the store can't be used any more: {self._broken}", hint="open it again")

    def fail(self, reason: str) -> None:
        """Declare the store broken: nothing more is written or read through it."""
        self._broken = self._broken or reason


class _Writing:
    """What fails half-way in here leaves memory and disk apart: the store is broken, whatever it was.

    A class, because a generator's context manager would cost more than a tree on the hot path.
    """

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if failure is None:
            return
        self._store.fail(f"{type(failure).__name__}: {failure}")
        if isinstance(failure, OSError):
            raise FlushFailed(self._store.path, failure.strerror or str(failure), failure.errno) from failure


@contextmanager
def _disk_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as failure:
        raise FlushFailed(path, failure.strerror or str(failure), failure.errno) from failure
