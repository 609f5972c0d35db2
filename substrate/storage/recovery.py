"""What to make of the journals that a host left behind: pure decisions by flush (storage §3).

A flush counts if it is whole, follows the flush before it and verifies. What is left is a torn tail, unless some
journal proves that a later flush was begun: then the flush in between was acknowledged, and the repository is damaged.
Nothing is guessed, and nothing that was acknowledged is ever cut.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from substrate.errors import Damaged, ForeignJournal, Unsigned
from substrate.storage.scan import Flushed, Head, Scan, Stop

InHistory = Callable[[Head], bool]
"""Whether a head is the tip or one of its ancestors."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Flushes of this journal go on where the history ends: cut it behind the last of them, and seal it."""

    scan: Scan
    last: Flushed


@dataclass(frozen=True, slots=True)
class Drop:
    """Nothing in this journal counts, or all of it is in the history already: delete it."""

    scan: Scan


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with each journal, in order, and the last head that counts."""

    steps: tuple[Keep | Drop, ...]
    head: Head

    @property
    def torn(self) -> tuple[Scan, ...]:
        """Journals that end in a tail which is no whole flush."""
        return tuple(step.scan for step in self.steps if step.scan.stop is Stop.TORN and step.scan.sha is None)


def decide(tip: Head, scans: Sequence[Scan], in_history: InHistory) -> Plan:
    """Which flushes count, journal by journal in ascending order, from the ref's ``tip`` on.

    Raises Damaged, ForeignJournal or Unsigned; then nothing may be changed.
    """
    head = tip
    steps: list[Keep | Drop] = []
    odd: Scan | None = None
    for scan in scans:
        fresh = [flush for flush in scan.flushes if not (flush.head.number <= tip.number and in_history(flush.head))]
        last: Flushed | None = None
        for flush in fresh:
            if flush.parent != head.oid or flush.head.number != head.number + 1:
                odd = odd or scan
                break
            head, last = flush.head, flush
        steps.append(Drop(scan) if last is None else Keep(scan, last))
    _refuse_damage(head, scans)
    if odd is not None:
        raise ForeignJournal(
            odd.file,
            "it holds flushes that join neither the history nor the journal before it",
            heads=(str(head), str(odd.flushes[0].head)),
        )
    return Plan(tuple(steps), head)


def _refuse_damage(head: Head, scans: Sequence[Scan]) -> None:
    for scan in scans:
        if scan.stop is Stop.UNSIGNED:
            raise Unsigned(scan.file, Stop.UNSIGNED.value, offset=scan.stopped, heads=(str(head),))
        if scan.stop is Stop.SPOILT:
            raise Damaged(scan.file, Stop.SPOILT.value, offset=scan.end, heads=(str(head),))
        if scan.stop is Stop.HEADLESS:
            raise Damaged(scan.file, Stop.HEADLESS.value, offset=0, heads=(str(head),))
    beyond = [later for scan in scans for later in _heads(scan) if later.number >= head.number + 2]
    if beyond:
        torn = next((scan for scan in scans if scan.stop is Stop.TORN), scans[0])
        raise Damaged(
            torn.file,
            f"flush {head.number + 1} was acknowledged and can't be read, though a later one is there",
            offset=torn.end,
            heads=(str(head), str(min(beyond, key=lambda later: later.number))),
        )


def _heads(scan: Scan) -> Iterator[Head]:
    yield from (flush.head for flush in scan.flushes)
    yield from scan.later
