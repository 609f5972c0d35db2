"""The large values of one run: fetched before the code is given the event that names one, stored before it is named.

What is at hand already, because it came with a page or is on its way out, is fetched no second time.
"""

import hashlib
from collections.abc import Iterable, Sequence

from waypost.child import effects as fx
from waypost.child import outcomes
from waypost.child.errors import HostBroke
from waypost.model import events as ev
from waypost.model.ids import RunId


class Blobs:
    """``inline``: bytes up to which a value travels in its event."""

    def __init__(self, run: RunId, inline: int) -> None:
        self._run, self._inline = run, inline
        self._at_hand: dict[str, bytes] = {}
        self._awaited: str | None = None
        self._unkept: dict[str, list[tuple[ev.AnyEvent, ...]]] = {}
        """Events that wait until the value that they name is stored."""

    def bring(self, mails: Iterable[bytes]) -> None:
        """Mails that came with a page of the log."""
        self._at_hand.update((hashlib.sha256(mail).hexdigest(), mail) for mail in mails)

    def fetched(self, sha256: str, raw: bytes) -> None:
        """What was fetched. Raises HostBroke when it isn't what was asked for."""
        if hashlib.sha256(raw).hexdigest() != sha256:
            raise HostBroke(f"{self._run}: the blob {sha256[:12]}… came with other bytes")
        self._at_hand[sha256] = raw

    def missing(self, event: ev.AnyEvent) -> tuple[fx.Fetch, ...] | None:
        """What is to be fetched before the code is given this event, once; None where all of it is at hand."""
        needed = outcomes.blob_of(event)
        if needed is None or needed in self._at_hand:
            return None
        asked, self._awaited = self._awaited == needed, needed
        return () if asked else (fx.Fetch(needed),)

    def take(self, event: ev.AnyEvent) -> bytes:
        """The value that the event names, which is at hand; empty where it names none."""
        self._awaited = None
        needed = outcomes.blob_of(event)
        return b"" if needed is None else self._at_hand.pop(needed)

    def propose(
        self, event: ev.StepCompleted | ev.RunCompleted | ev.RunFailed | ev.RunCancelled
    ) -> Sequence[fx.Effect]:
        """Propose an event that may hold a large value; that is stored first, and named by its hash."""
        slim, raw = outcomes.slimmed(event, self._inline)
        if raw is None:
            return (fx.Append((slim,)),)
        sha256 = hashlib.sha256(raw).hexdigest()
        self._at_hand[sha256] = raw  # the event comes back, and then the value is there
        known = sha256 in self._unkept  # another call may have brought the same value: one way there is enough
        self._unkept.setdefault(sha256, []).append((slim,))
        return () if known else (fx.Keep(sha256, raw),)

    def answered(self, sha256: str) -> Sequence[tuple[ev.AnyEvent, ...]]:
        """The events that waited for this value: it is stored, or was refused."""
        return self._unkept.pop(sha256, ())
