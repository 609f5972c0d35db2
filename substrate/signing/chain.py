"""Whether a log is the one that was recorded: each event names the hash of the one before it, the run's state the last.

Told of a whole log at once, or of a long one in portions (``Chain``), so that nobody waits for a hundred thousand
hashes; then it goes into a commit as ``Proven`` bytes, which only this file and ``folding`` make.
"""

import re
from collections.abc import Iterable

from waypost.model import events as ev
from waypost.model.errors import Invalid

_HEAD = re.compile(rb'\{"seq":[0-9]+,"type":"[A-Za-z]+","at":"[^"\\]*","prev":"([0-9a-f]{64})"')


def chained(raws: list[bytes], newest: str, genesis: str) -> int:
    """The position of the last event that isn't the one that the chain says, from its newest back; 0 when all are."""
    expected = newest
    for position in range(len(raws), 0, -1):
        raw = raws[position - 1]
        if ev.digest(raw) != expected:
            return position
        expected = _prev(raw)
        if not expected:
            return position
    return 0 if expected == genesis else 1


class Chain:
    """A log that is followed from its beginning, portion by portion."""

    def __init__(self, genesis: str) -> None:
        self.genesis = self.newest = genesis
        self.count = 0

    def follow(self, raws: Iterable[bytes]) -> bool:
        """Go on; whether every one of these events names the one before it."""
        for raw in raws:
            if _prev(raw) != self.newest:
                return False
            self.newest = ev.digest(raw)
            self.count += 1
        return True


class Proven(bytes):
    """A log, an event a line, whose chain was followed while it was gathered; with what a pack needs of it.

    ``oid`` is its id as a blob, ``deflated`` its compressed form; ``chain`` says from where to where it leads.
    """

    oid: bytes
    deflated: bytes
    chain: Chain


def _prev(raw: bytes) -> str:
    head = _HEAD.match(raw)
    if head is not None:
        return head[1].decode()
    try:  # another spelling of the same record, as an import may have it
        return ev.decode(raw).prev
    except Invalid:
        return ""
