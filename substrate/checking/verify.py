"""Is this history whole, and whose is it? Checked from the objects up, by anyone who has a copy.

Signatures, flush numbers and flush hashes over the whole row of commits (``proof``), then what the last tree says of
every run, by the same rules that the writer and ``fsck`` have for them (``rules``). A fault is a sentence with a commit
and a path; one fault doesn't hide the next. What is proved has an end: a history that was cut back to an older head
looks whole, which is why the report says its reach.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from substrate import layout
from substrate import state as files
from substrate.checking.history import Objects, Step, back_to_the_start
from substrate.checking.looking import look, refuse_partial, seen
from substrate.checking.proof import Fault, Proof
from substrate.errors import SubstrateError, Unreadable
from substrate.packs.objects import Commit
from substrate.rules import Ground
from substrate.rules.whole_runs import Counts, every_run
from substrate.signing import sshsig
from substrate.signing.epoch import Noted
from substrate.signing.keys import PublicKey
from substrate.signing.receipt import Receipt
from waypost.model.errors import Invalid
from waypost.model.limits import DEFAULT

_AUTHOR = re.compile(rb"(supervisor|workflow-process|hub) <\1@deployment\.waypost> [0-9]+ \+0000\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A flush that must be in the history: told by a ``receipt``, or by what the host has noted outside.

    ``signer`` is the raw key of a receipt's signature, None where it has no good one; a note isn't signed.
    """

    what: str
    repository: str
    epoch: int
    flush: int
    hash: str
    signed: bool = True
    signer: bytes | None = None


def by_receipt(receipt: Receipt) -> Expected:
    """What a receipt asks for."""
    return Expected(
        what="the receipt",
        repository=receipt.repository,
        epoch=receipt.epoch,
        flush=receipt.flush,
        hash=receipt.hash,
        signer=receipt.signer,
    )


def by_note(noted: Noted) -> Expected:
    """What a host's own note asks for: the last seal.

    Of flushes after it, which a host that was killed left in a journal, nothing is known elsewhere: a history whose
    last journal was removed looks like that of a host that was killed before it. A receipt tells one from the other.
    """
    return Expected(
        what="what was noted here",
        repository=noted.repository,
        epoch=noted.epoch,
        flush=noted.flush,
        hash=noted.hash,
        signed=False,
    )


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
    signers: tuple[str, ...] = ()
    """Fingerprints of the keys that signed, one after the other, each named by the one before."""
    earlier: tuple[str, ...] = ()
    """Fingerprints of keys that signed before a restore, and that named nobody: the present signer vouches for them."""
    receipts: tuple[int, ...] = ()
    """Flushes that receipts prove to be there."""
    proved: int = 0
    """The last flush before anything is wrong with the row itself."""
    faults: tuple[Fault, ...] = field(default=())

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    @property
    def reach(self) -> str:
        """How far the proof goes, in words."""
        if self.faults:
            whole = f"; by itself the row of flushes is whole up to flush {self.proved}" if self.proved else ""
            return f"nothing is proved{whole}"
        signed = "" if self.pinned else "consistent, signer not pinned; "
        upto = f"{signed}complete up to flush {self.last_flush}"
        if not self.receipts:
            return f"{upto}; a longer history may have existed"
        newest = max(self.receipts)
        if newest == self.last_flush:
            return f"{upto}, as the receipt says"
        return f"{upto}; the receipt proves flush {newest}, a longer history may have existed since"


def verify(path: str | Path, key: PublicKey | None = None, expected: Sequence[Expected] = ()) -> Report:
    """Check a repository, live or at rest, or a clone of one; ``key`` is one that must have signed it.

    Raises NotARepository when there is nothing to check, or when it was cloned without some of the history. Everything
    else that is wrong is in the report.
    """
    refuse_partial(Path(path))
    # By the key that the newest commit names: it may be a later one of the row that the trusted key began.
    try:
        found = look(path)
        if found.signer is None and key is not None:
            found = look(path, key)
    except Unreadable as failure:
        return Report(faults=(Fault(failure.message),))
    if found.signer is None:
        return Report(faults=(Fault("the newest commit is not signed", found.tip.hex()),))
    faults = [] if found.unread is None else [Fault(found.unread.message)]
    return _report(found.objects, found.tip, key, faults, expected)


def _report(
    objects: Objects, tip: bytes, key: PublicKey | None, faults: list[Fault], expected: Sequence[Expected]
) -> Report:
    steps: list[Step] = []
    known: files.Format | None = None
    counted = Counts()
    proof = Proof(objects, "")
    receipts: tuple[int, ...] = ()
    try:
        steps = back_to_the_start(objects, tip, _judge)
        newest = seen(objects, steps[-1].tree)
        known = files.decode_format(newest.read(layout.FORMAT) or b"")
        proof = Proof(objects, known.repository, frozenset((each.epoch, each.flush) for each in expected))
        faults.extend(proof.faults_of(steps))
        faults.extend(_trusted(proof, key))
        unmet = {each: tuple(_met(proof, each, known.repository)) for each in expected}
        faults.extend(Fault(what) for whats in unmet.values() for what in whats)
        receipts = tuple(each.flush for each, whats in unmet.items() if each.signed and not whats)
        state = files.decode_state(newest.read(layout.STATE) or b"")
        ground = Ground(repository=known.repository, address=known.address, limits=DEFAULT)
        faults.extend(
            Fault(f"{each.rule}: {each.value}", path=each.path) for each in every_run(newest, state, ground, counted)
        )
    except (SubstrateError, Invalid) as failure:
        faults.append(Fault(f"the check ends here: {failure.message}"))
    signers = tuple(map(sshsig.fingerprint, proof.row.keys))
    return Report(
        repository=known.repository if known else "",
        deployment=known.deployment if known else "",
        address=known.address if known else "",
        epoch=known.epoch if known else 0,
        signer=key.fingerprint if key is not None else (signers[-1] if signers else ""),
        pinned=key is not None,
        flushes=proof.flushes,
        first_flush=proof.first,
        last_flush=proof.last,
        last_hash=proof.hash,
        commits=len(steps),
        events=counted.events,
        runs=counted.runs,
        signers=signers,
        earlier=tuple(sorted(map(sshsig.fingerprint, proof.row.earlier.difference(proof.row.keys)))),
        receipts=receipts,
        proved=proof.proved,
        faults=tuple(faults),
    )


def _judge(commit: Commit) -> tuple[str, ...]:
    return () if _AUTHOR.match(commit.author) else ("its author is no principal",)


def _trusted(proof: Proof, key: PublicKey | None) -> Iterator[Fault]:
    """A trusted key vouches for what it signed, for all before it, and for whom it named."""
    if key is None or key.raw in proof.row.keys:
        return
    if key.raw in proof.row.earlier:
        yield Fault(
            f"{key.fingerprint} signed only what was before a restore; since then another host's key signs, "
            f"{sshsig.fingerprint(proof.row.keys[-1])}, which it never named",
            proof.head,
        )
    else:
        yield Fault(
            f"the head of flush {proof.last} is not signed by {key.fingerprint}, nor is any before it", proof.head
        )


def _met(proof: Proof, expected: Expected, repository: str) -> Iterator[str]:
    """What is wrong by a flush that must be there."""
    what, flush = expected.what, f"flush {expected.flush} of epoch {expected.epoch}"
    found = proof.found.get((expected.epoch, expected.flush))
    if expected.signed and expected.signer is None:
        yield f"{what} has no good signature"
    elif expected.signer is not None and not proof.row.knows(expected.signer):
        yield f"{what} is signed by {sshsig.fingerprint(expected.signer)}, which signed nothing here"
    elif expected.repository != repository:
        yield f"{what} is for another repository, {expected.repository}"
    elif found == expected.hash:
        return
    elif found is not None:
        yield f"{what} is for another {flush}: history was replaced"
    elif expected.epoch in proof.ended:
        yield f"{what} is for {flush}, and that epoch was ended after flush {proof.ended[expected.epoch]}"
    else:
        yield f"history went back from flush {expected.flush} to flush {proof.last}: {what} is for {flush}"
