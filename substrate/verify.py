"""Is this history whole, and whose is it? Checked from the objects up, by anyone who has a copy.

Signatures, flush numbers and flush hashes over the whole row of commits (``prove``), then what the last tree says of
every run (``verify_runs``). A fault is a sentence with a commit and a path; one fault doesn't hide the next. What
is proved has an end: a history that was cut back to an older head looks whole, which is why the report says its reach.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from substrate import layout, runlog
from substrate import state as files
from substrate.errors import SubstrateError
from substrate.flush import FlushHash, Trailer
from substrate.history import Changed, Differ, Objects, Step, back_to_the_start
from substrate.keys import PublicKey
from substrate.looking import look, seen
from substrate.objects import Commit, Kind
from substrate.verify_runs import Counted, count_runs
from waypost.model.errors import Invalid
from waypost.model.ids import RunId

_AUTHOR = re.compile(rb"(supervisor|workflow-process|hub) <\1@deployment\.waypost> [0-9]+ \+0000\Z")
_KEPT = ("runs/", "sealed/", "mail/", "format.json")
"""What is below these is written once: a commit may add it or take it away, never change it."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What ``verify`` found. ``signer`` is the fingerprint of the key that the signatures were checked with."""

    repository: str = ""
    deployment: str = ""
    address: str = ""
    epoch: int = 0
    signer: str = ""
    pinned: bool = False
    """Whether the key was given; otherwise it is the one that the history itself names."""
    flushes: int = 0
    first_flush: int = 0
    last_flush: int = 0
    last_hash: str = ""
    commits: int = 0
    events: int = 0
    runs: int = 0
    faults: tuple[Fault, ...] = field(default=())

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    @property
    def reach(self) -> str:
        """How far the proof goes, in words."""
        signed = "" if self.pinned else "consistent, signer not pinned; "
        return f"{signed}complete up to flush {self.last_flush}; a longer history may have existed"


def verify(path: str | Path, key: PublicKey | None = None) -> Report:
    """Check a repository, live or at rest, or a clone of one; ``key`` is the one that must have signed it.

    Raises NotARepository when there is nothing to check. Everything else that is wrong is in the report.
    """
    found = look(path, key)
    if found.signer is None:
        return Report(faults=(Fault("the newest commit is not signed", found.tip.hex()),))
    faults = [] if found.unread is None else [Fault(found.unread.message)]
    return _report(found.objects, found.tip, found.signer, faults, pinned=key is not None)


def _report(objects: Objects, tip: bytes, signer: PublicKey, faults: list[Fault], *, pinned: bool) -> Report:
    committer = re.compile(rb"waypost host <%s> [0-9]+ \+0000\Z" % re.escape(signer.fingerprint.encode()))

    def judge(commit: Commit, trailer: Trailer | None) -> tuple[str, ...]:
        found: list[str] = []
        if not _AUTHOR.match(commit.author):
            found.append("its author is no principal")
        if not committer.match(commit.committer):
            found.append("its committer is not this signer")
        if trailer is not None and (commit.signature is None or not signer.verifies(commit.payload, commit.signature)):
            found.append(f"the head of flush {trailer.number} is not signed by {signer.fingerprint}")
        return tuple(found)

    steps: list[Step] = []
    known: files.Format | None = None
    counted = Counted()
    proof = _Proof()
    try:
        steps = back_to_the_start(objects, tip, judge)
        newest = seen(objects, steps[-1].tree)
        known = files.decode_format(newest.read(layout.FORMAT) or b"")
        faults.extend(proof.faults_of(objects, steps, known.repository))
        counted = count_runs(newest, known.repository)
        faults.extend(Fault(what, path=path) for what, path in counted.faults)
    except (SubstrateError, Invalid) as failure:
        faults.append(Fault(f"the check ends here: {failure.message}"))
    return Report(
        repository=known.repository if known else "",
        deployment=known.deployment if known else "",
        address=known.address if known else "",
        epoch=known.epoch if known else 0,
        signer=signer.fingerprint,
        pinned=pinned,
        flushes=proof.flushes,
        first_flush=proof.first,
        last_flush=proof.last,
        last_hash=proof.hash,
        commits=len(steps),
        events=counted.events,
        runs=counted.runs,
        faults=tuple(faults),
    )


class _Proof:
    """The row of flushes: numbers without a gap, each hash as the trees' differences give it."""

    def __init__(self) -> None:
        self.flushes = self.first = self.last = 0
        self.hash = ""

    def faults_of(self, objects: Objects, steps: list[Step], repository: str) -> Iterator[Fault]:
        differ = Differ(objects)
        running = FlushHash(repository)
        before: bytes | None = None
        for step in steps:
            commit = step.oid.hex()
            yield from (Fault(what, commit) for what in step.faults)
            changes = list(differ.changes(before, step.tree))
            yield from (Fault(what, commit, path) for what, path in _rewritten(changes))
            yield from (Fault(what, commit, path) for what, path in _sealings(objects, before, changes))
            running.commit(
                {each.path: None if each.new is None else objects.object(Kind.BLOB, each.new) for each in changes}
            )
            before = step.tree
            if step.trailer is not None:
                yield from self._head(step.trailer, running.hexdigest(), commit)
                running = FlushHash(step.trailer.hash)
        if steps[-1].trailer is None:
            yield Fault("the newest commit is the head of no flush: nobody has signed for it", steps[-1].oid.hex())

    def _head(self, trailer: Trailer, found: str, commit: str) -> Iterator[Fault]:
        if trailer.number != self.last + 1:
            yield Fault(f"flush {trailer.number} stands where flush {self.last + 1} belongs", commit)
        if trailer.hash != found:
            yield Fault(f"flush {trailer.number} holds something else than was signed: its hash is {found}", commit)
        self.first = self.first or trailer.number
        self.last, self.hash = trailer.number, trailer.hash
        self.flushes += 1


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
