"""Which run a mail belongs to (storage §5): decided at enqueue, in arrival order, from headers and what is known.

``Threads`` remembers which run a message id belongs to and which run follows which; ``route`` is the decision. Of runs
that nobody has touched lately it remembers nothing: those are asked for, one at a time, in an ``Archive``. No run is
read here. Belonging to a thread gives no rights: who may answer is checked at the wait.
"""

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, assert_never

from waypost.model import events as ev
from waypost.model.ids import RunId, message_key, run_ordinal

Runs = Literal["thread", "message", "deployment"]
Standing = Literal["absent", "live", "ended"]
_NAMING = frozenset({ev.RunStarted, ev.SignalReceived, ev.MailQueued})
"""Events that may name a message. By type, as most events are of none of these."""


@dataclass(frozen=True, slots=True)
class Thread:
    """What a run's log says of threads: which run it follows, and the keys of its mails, in and out."""

    run: RunId
    after: RunId | None
    keys: tuple[str, ...]


class Archive(Protocol):
    """The same of all runs that haven't been touched lately, somewhere else than in memory."""

    def run_of(self, key: str, /) -> RunId | None:
        """The run that the message with this key belongs to."""
        ...

    def unsealed(self, key: str, /) -> RunId | None:
        """The same, if that run isn't sealed."""
        ...

    def root_of(self, run: RunId, /) -> RunId | None:
        """The first run of the thread that this run is in; None for one that isn't in the archive."""
        ...

    def newest_of(self, root: RunId, /) -> RunId | None:
        """The newest run of the thread that began with ``root``, itself excepted."""
        ...


class NoArchive:
    """Of nothing: everything is in memory."""

    def run_of(self, _key: str) -> RunId | None:
        """None."""
        return None

    def unsealed(self, _key: str) -> RunId | None:
        """None."""
        return None

    def root_of(self, _run: RunId) -> RunId | None:
        """None."""
        return None

    def newest_of(self, _root: RunId) -> RunId | None:
        """None."""
        return None


class Threads:
    """Message ids and the runs they belong to; runs and the runs that follow them.

    What is remembered of a message is its key, 32 bytes. A thread's runs form one line, and a mail that hits any of
    them belongs to the newest: so two replies to a finished run that arrive together become one new run, not two.
    """

    def __init__(self, archive: Archive | None = None) -> None:
        self._archive: Archive = archive or NoArchive()
        self._runs: dict[bytes, RunId] = {}
        self._root: dict[RunId, RunId] = {}
        self._newest: dict[RunId, RunId] = {}
        self._before: dict[RunId, RunId] = {}
        self.latest: RunId | None = None
        """The newest run of the deployment, started or queued, that is nobody's child."""

    def belongs(self, key: str, run: RunId) -> None:
        """Remember that the message with this key belongs to this run."""
        self._runs[bytes.fromhex(key)] = run

    def forget(self, key: str) -> None:
        """A message was rejected: it starts no thread any more."""
        self._runs.pop(bytes.fromhex(key), None)

    def appears(self, run: RunId, *, follows: RunId | None, child: bool = False) -> None:
        """A run was started, or a mail was queued that will start it; ``child``: by its parent."""
        if not child and (self.latest is None or run_ordinal(run) > run_ordinal(self.latest)):
            self.latest = run
        if follows is not None and run not in self._before:
            root = self.root(follows)
            self._before[run] = follows
            self._root[run] = root
            self._newest[root] = _newest(self._newest.get(root), run)

    def before(self, run: RunId) -> RunId | None:
        """The finished run that this one follows."""
        return self._before.get(run)

    def find(self, message_id: bytes) -> RunId | None:
        """The newest run of the thread that this message belongs to."""
        return self.find_key(message_key(message_id))

    def find_key(self, key: str) -> RunId | None:
        """The same, by the message's key."""
        run = self._runs.get(bytes.fromhex(key)) or self._archive.run_of(key)
        if run is None:
            return None
        root = self.root(run)
        return _newest(self._newest.get(root), self._archive.newest_of(root), run)

    def unsealed(self, key: str) -> RunId | None:
        """The run that the message with this key belongs to, itself, if it isn't sealed."""
        return self._runs.get(bytes.fromhex(key)) or self._archive.unsealed(key)

    def root(self, run: RunId) -> RunId:
        """The first run of the thread that this one is in: itself, where it follows none."""
        return self._root.get(run) or self._archive.root_of(run) or run

    def archived(self, thread: Thread) -> None:
        """What is told of the run's thread is in the archive: forget it here."""
        for key in thread.keys:
            raw = bytes.fromhex(key)
            if self._runs.get(raw) == thread.run:
                del self._runs[raw]
        self._before.pop(thread.run, None)
        root = self._root.pop(thread.run, None)
        if root is not None and self._newest.get(root) == thread.run:
            del self._newest[root]  # the archive has it; a newer one would be here instead


@dataclass(frozen=True, slots=True)
class Route:
    """Where a mail goes: an existing run (or one that an earlier mail will start), or None for a new one.

    ``old``: the finished run that the new one is to name.
    """

    run: RunId | None
    old: RunId | None = None


def route(runs: Runs, candidates: Iterable[bytes], threads: Threads, standing: Callable[[RunId], Standing]) -> Route:
    """Decide for one mail; ``candidates`` are the ids that it names, best first (the first hit wins)."""
    match runs:
        case "message":
            return Route(None)
        case "deployment":
            hit = threads.latest
        case "thread":
            hit = next((run for each in candidates if (run := threads.find(each)) is not None), None)
        case _:
            assert_never(runs)
    if hit is None:
        return Route(None)
    return Route(None, hit) if standing(hit) == "ended" else Route(hit)


def key_of(event: ev.AnyEvent) -> str | None:
    """The key of the message that belongs to a run by this event of it, in or out."""
    if type(event) not in _NAMING:
        return None
    match event:
        case ev.RunStarted():
            return mailed_key(event.mail)
        case ev.SignalReceived() if event.mail:
            return mailed_key(event.mail)
        case ev.MailQueued():
            return message_key(event.message_id.encode())
        case _:
            return None


def mailed_key(mailed: ev.Mailed) -> str:
    """The key of the mail behind an event."""
    return message_key(base64.b64decode(mailed.id) if mailed.base64 else mailed.id.encode())


def _newest(*runs: RunId | None) -> RunId:
    """The one with the highest ordinal; one of them must be there."""
    return max((run for run in runs if run is not None), key=run_ordinal)
