"""What a decision of the substrate sees and what it yields.

A decision is ``decide(view, operation, context)``: the view is what is visible now, the context what the world says
(time, randomness, settings); the result is data. One ``Change`` is one commit.
"""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import msgspec

from substrate.granting import InForce
from substrate.messages import Appended, Fact, OutboxAdded, Queued, Refused
from substrate.principals import Name
from substrate.routing import Runs, Standing, Threads
from substrate.runlog import Known, Tree
from substrate.state import State
from waypost.model.ids import Generation, RunId
from waypost.model.limits import Limits
from waypost.model.queue import Entry
from waypost.model.run import Driven
from waypost.model.times import Now, stamp

__all__ = [
    "Change",
    "Context",
    "Decided",
    "Extension",
    "Hold",
    "Item",
    "Refused",
    "Settled",
    "View",
    "changed",
    "plain",
]


@dataclass(frozen=True, slots=True)
class Item:
    """A mail that isn't consumed: as it was last told, and whether it is claimed."""

    queued: Queued
    claimed: bool = False


class View(Tree, Protocol):
    """What is visible now: the tree, and what is kept in memory about it."""

    @property
    def state(self) -> State:
        """Generation and ordinals."""
        ...

    @property
    def granted(self) -> InForce:
        """What the steps may do."""
        ...

    @property
    def threads(self) -> Threads:
        """Which run a message belongs to."""
        ...

    @property
    def queue(self) -> Mapping[int, Item]:
        """Mails in inbox and processing by arrival, in arrival order."""
        ...

    @property
    def on_hold(self) -> Mapping[int, Entry]:
        """Mails on hold, by arrival."""
        ...

    @property
    def outbox(self) -> Mapping[int, OutboxAdded]:
        """Mails that wait to be delivered, by ordinal."""
        ...

    def known(self, run: RunId) -> Known:
        """A run's state, ``ABSENT`` when it has no log."""
        ...

    def standing(self, run: RunId) -> Standing:
        """Whether the run is absent, live or ended."""
        ...

    def driven(self) -> tuple[Driven, ...]:
        """The states of the runs whose code has something to do, oldest first."""
        ...

    def arrival_of(self, key: str) -> int | None:
        """The arrival of the unconsumed mail with this key."""
        ...

    def queued_for(self, run: RunId) -> tuple[int, ...]:
        """Arrivals of the unconsumed mails of a run, oldest first."""
        ...

    def packed(self, directory: str) -> bytes:
        """The keys in a directory of a closed bucket, 32 bytes each; remembered, because it never changes."""
        ...

    def held(self, run: RunId, sha256: str) -> bytes | None:
        """A blob that was put and that no event has named yet."""
        ...

    @property
    def held_bytes(self) -> int:
        """How much is held so."""
        ...


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What the world says to a decision. A struct, as ``Change`` is: made for every write, ten times as quickly."""

    now: Now
    deployment: str
    repository: str
    address: str
    runs: Runs
    limits: Limits
    message_id: Callable[[str], str]
    """The Message-ID of a call's mail, from the call's idempotency key; only this host can make it."""
    random: Callable[[], bytes]
    """Eight random bytes, for a run's id."""

    @property
    def at(self) -> str:
        """The time as events carry it."""
        return stamp(max(0, self.now.wall))


class Extension(msgspec.Struct, frozen=True):
    """A run's log with events added: the files of it, the run after it, the fact of it; ``before``: the run before it.

    Only ``append.extend`` makes one: each event was numbered, chained, read back from its own bytes, and folded. So the
    rules don't do that again where the run is still what it was ``before``, and what is written are these very bytes.
    """

    before: Known
    puts: Mapping[str, bytes]
    deletes: tuple[str, ...]
    known: Known
    fact: Appended


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One commit: who, what in one line, which files; what it means (facts, the new state); what is answered."""

    author: Name
    subject: str
    puts: Mapping[str, bytes]
    deletes: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    state: State | None = None
    """Generation and ordinals after it, where it changes them; its file is added to ``puts`` by ``with_state``."""
    known: Mapping[RunId, Known] = msgspec.field(default_factory=dict)
    """The runs after it."""
    used: tuple[tuple[RunId, str], ...] = ()
    """Held blobs that have entered the tree."""
    sealed: RunId | None = None
    """The run that this commit seals."""
    extension: Extension | None = None
    """Where all of it comes of one."""
    value: Any = None


def changed(made: Iterable[Extension], subject: str, *, author: Name = "supervisor", value: Any = None) -> Change:
    """One commit of all that these extensions add, each to another run's log."""
    made = tuple(made)
    puts: dict[str, bytes] = {}
    for each in made:
        puts.update(each.puts)
    return Change(
        author=author,
        subject=subject,
        puts=puts,
        deletes=tuple(path for each in made for path in each.deletes),
        facts=tuple(each.fact for each in made),
        known={each.fact.run: each.known for each in made},
        value=value,
    )


@dataclass(frozen=True, slots=True)
class Settled:
    """Nothing to write: it is as was asked already."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Nothing to write yet: keep the blob until an event names it."""

    run: RunId
    sha256: str
    data: bytes = field(repr=False)


Decided: TypeAlias = Change | Settled | Hold | Refused

_UNPLAIN = re.compile(r"[^A-Za-z0-9_.\-]+")
_NAME = 60
_NAMES = 1024
"""How many are remembered: a deployment has few steps."""


@functools.lru_cache(maxsize=_NAMES)
def plain(name: str) -> str:
    """A name that user code chose, as it may stand in a commit's one line."""
    cut = _UNPLAIN.sub("-", name)[:_NAME].strip("-.")
    return cut or "unnamed"


def fence(view: View, generation: Generation) -> Refused | None:
    """Refuse what an older (or never begun) incarnation says."""
    if generation == view.state.generation:
        return None
    return Refused("generation", f"generation {generation} is not at work, {view.state.generation} is")
