"""The row of flushes, walked from the first one on: numbers, hashes, signers, epochs, and what may never change.

Each fault is a sentence with a commit and a path; one fault doesn't hide the next.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from substrate import layout, runlog
from substrate.checking.history import Changed, Differ, Objects, Step
from substrate.checking.looking import seen
from substrate.packs.objects import Kind
from substrate.signing.epoch import Noted, decode_epoch
from substrate.signing.signers import Row
from substrate.signing.sshsig import fingerprint
from substrate.state import decode_format
from substrate.storage.flush import FlushHash, Trailer
from waypost.model.errors import Invalid
from waypost.model.ids import RunId

_KEPT = ("runs/", "sealed/", "mail/")
"""What is below these is written once: a commit may add it or take it away, never change it."""
_HOST = b"waypost host <%s>"


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong, where: a commit (40 hex digits) and a path, either of them empty where it doesn't apply."""

    what: str
    commit: str = ""
    path: str = ""

    def __str__(self) -> str:
        """One line for people."""
        where = ", ".join(filter(None, (f"commit {self.commit[:12]}" if self.commit else "", self.path)))
        return f"{where}: {self.what}" if where else self.what


class Proof:
    """What was proved so far. ``wanted`` are flushes (epoch, number) whose hashes are asked for: see ``found``."""

    def __init__(self, objects: Objects, repository: str, wanted: frozenset[tuple[int, int]] = frozenset()) -> None:
        self.flushes = self.first = self.last = self.epoch = 0
        self.proved = self._faults = 0
        """``proved``: the last flush before anything is wrong."""
        self.hash, self.head = "", ""
        self.row = Row()
        self.found: dict[tuple[int, int], str] = {}
        self.ended: dict[int, int] = {}
        """The last flush of each epoch that has ended."""
        self._objects, self._repository, self._wanted = objects, repository, wanted
        self._named: bytes | None = None
        self._restored = False
        self._open: list[Step] = []

    def faults_of(self, steps: list[Step]) -> Iterator[Fault]:
        """Walk all of it, the first commit first."""
        for fault in self._walk(steps):
            self._faults += 1
            yield fault

    def _walk(self, steps: list[Step]) -> Iterator[Fault]:
        differ, objects = Differ(self._objects), self._objects
        running = FlushHash(self._repository)
        before: bytes | None = None
        for step in steps:
            commit = step.oid.hex()
            yield from (Fault(what, commit) for what in step.faults)
            changes = list(differ.changes(before, step.tree))
            yield from (Fault(what, commit, path) for what, path in _rewritten(changes))
            yield from (Fault(what, commit, path) for what, path in _sealings(objects, before, changes))
            files = {each.path: None if each.new is None else objects.object(Kind.BLOB, each.new) for each in changes}
            yield from (Fault(what, commit, path) for what, path in self._special(files, changes))
            running.commit(files)
            before = step.tree
            self._open.append(step)
            if step.trailer is not None:
                yield from self._head(step, step.trailer, running.hexdigest())
                running = FlushHash(step.trailer.hash)
        if steps[-1].trailer is None:
            yield Fault("the newest commit is the head of no flush: nobody has signed for it", steps[-1].oid.hex())
            yield from self._strangers(self.row.last)

    def _head(self, step: Step, trailer: Trailer, found: str) -> Iterator[Fault]:
        commit = step.oid.hex()
        if trailer.number != self.last + 1:
            yield Fault(f"flush {trailer.number} stands where flush {self.last + 1} belongs", commit)
        if trailer.hash != found:
            yield Fault(f"flush {trailer.number} holds something else than was signed: its hash is {found}", commit)
        for what in self.row.head(trailer.number, step.signed, self._named, restored=self._restored):
            yield Fault(what, commit)
        yield from self._strangers(None if step.signed is None else step.signed.public)
        self.first = self.first or trailer.number
        self.last, self.hash, self.head = trailer.number, trailer.hash, commit
        self.flushes += 1
        self.proved = self.proved if self._faults else self.last
        if (self.epoch, self.last) in self._wanted:
            self.found[self.epoch, self.last] = trailer.hash
        self._named, self._restored, self._open = None, False, []

    def _strangers(self, signer: bytes | None) -> Iterator[Fault]:
        """Commits of the present flush that somebody else made than who signs it."""
        host = b"" if signer is None else _HOST % fingerprint(signer).encode()
        for each in self._open:
            if each.committer != host:
                yield Fault("its committer is not this signer", each.oid.hex())

    def _special(self, files: Mapping[str, bytes | None], changes: list[Changed]) -> Iterator[tuple[str, str]]:
        """The files that say who signs and which epoch it is."""
        signer = files.get(layout.SIGNER)
        self._named = self._named if signer is None else signer
        raw = files.get(layout.FORMAT)
        if raw is None:
            if layout.FORMAT in files:
                yield "a record was taken away", layout.FORMAT
            if layout.EPOCH in files:
                yield "an epoch's record was changed without an epoch", layout.EPOCH
            return
        known = decode_format(raw)
        old = next(each.old for each in changes if each.path == layout.FORMAT)
        if old is not None:
            before = decode_format(self._objects.object(Kind.BLOB, old))
            if known.epoch <= before.epoch or msgspec.structs.replace(known, epoch=before.epoch) != before:
                yield "a file that is written once was changed", layout.FORMAT
            yield from self._begun(known.epoch, files.get(layout.EPOCH))
            self.ended[before.epoch] = self.last
        self.epoch = known.epoch

    def _begun(self, epoch: int, raw: bytes | None) -> Iterator[tuple[str, str]]:
        try:
            record = None if raw is None else decode_epoch(raw)
        except Invalid as bad:
            yield bad.message, layout.EPOCH
            return
        after = Noted(repository=self._repository, epoch=self.epoch, flush=self.last, hash=self.hash, head=self.head)
        if record is None or (record.epoch, record.after) != (epoch, after):
            yield f"epoch {epoch} begins without a record of what it goes on from", layout.EPOCH
            return
        self._restored = record.why == "restore"


def _rewritten(changes: list[Changed]) -> Iterator[tuple[str, str]]:
    came = {_came(each.path.split("/")) for each in changes if each.old is None}
    for each in changes:
        if each.old is not None and each.path.startswith(_KEPT):
            if each.new is not None:
                yield "a file that is written once was changed", each.path
            elif not _may_go(each.path, came):
                yield "a record was taken away", each.path


def _may_go(path: str, came: set[tuple[str, str]]) -> bool:
    """Whether the file moved in this commit: an event into a segment, a run into its sealed form."""
    parts = path.split("/")
    run = _run(parts)
    if parts[0] != layout.RUNS:
        return False
    if "events" in parts and (run, "segment") in came:
        return True
    of_log = "events" in parts or "segments" in parts
    return (run, "sealed log") in came or (not of_log and (run, "sealed") in came)


def _came(parts: list[str]) -> tuple[str, str]:
    """What a new file is to its run: (run, "segment", "sealed log", "sealed", or nothing of these)."""
    if parts[0] == layout.SEALED:
        return _run(parts), "sealed log" if parts[-1] == "events.jsonl" else "sealed"
    return _run(parts), "segment" if "segments" in parts else ""


def _run(parts: list[str]) -> str:
    return next((part for part in parts if part.startswith("run_")), "")


def _sealings(objects: Objects, before: bytes | None, changes: list[Changed]) -> Iterator[tuple[str, str]]:
    """A run that was sealed in this commit must read as it read before, byte for byte."""
    new = {each.path: each.new for each in changes if each.old is None}
    for each in changes:
        if each.path.startswith(f"{layout.RUNS}/") and each.new is None and "/events/" not in each.path:
            moved = new.get(f"{layout.SEALED}/{each.path.partition('/')[2]}")
            if "/segments/" not in each.path and moved != each.old:
                yield "it is not in the sealed run as it was", each.path
    for path, oid in new.items():
        if path.startswith(f"{layout.SEALED}/") and path.endswith("/events.jsonl") and oid is not None:
            run = RunId(path.split("/")[-2])
            old = () if before is None else runlog.events(seen(objects, before), run)
            if b"".join(raw + b"\n" for raw in old) != objects.object(Kind.BLOB, oid):
                yield "the sealed log isn't the log that the run had", path
