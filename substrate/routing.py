"""Which run a mail belongs to (storage §5): decided at enqueue, in arrival order, from headers and what is known.

``Threads`` remembers which run a message id belongs to and which run follows which; ``route`` is the decision. Pure:
no run is read here. Belonging to a thread gives no rights: who may answer is checked at the wait.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, assert_never

from waypost.model.ids import RunId, message_key, run_ordinal

Runs = Literal["thread", "message", "deployment"]
Standing = Literal["absent", "live", "ended"]


class Threads:
    """Message ids and the runs they belong to; runs and the runs that follow them.

    What is remembered of a message is its key, 32 bytes. A thread's runs form one line, and a mail that hits any of
    them belongs to the newest: so two replies to a finished run that arrive together become one new run, not two.
    """

    def __init__(self) -> None:
        self._runs: dict[bytes, RunId] = {}
        self._root: dict[RunId, RunId] = {}
        self._newest: dict[RunId, RunId] = {}
        self._before: dict[RunId, RunId] = {}
        self.latest: RunId | None = None
        """The newest run of the deployment, started or queued."""

    def belongs(self, key: str, run: RunId) -> None:
        """Remember that the message with this key belongs to this run."""
        self._runs[bytes.fromhex(key)] = run

    def forget(self, key: str) -> None:
        """A message was rejected: it starts no thread any more."""
        self._runs.pop(bytes.fromhex(key), None)

    def appears(self, run: RunId, *, follows: RunId | None) -> None:
        """A run was started, or a mail was queued that will start it."""
        if self.latest is None or run_ordinal(run) > run_ordinal(self.latest):
            self.latest = run
        if follows is not None and run not in self._before:
            root = self._root.get(follows, follows)
            self._before[run] = follows
            self._root[run] = root
            self._newest[root] = run

    def before(self, run: RunId) -> RunId | None:
        """The finished run that this one follows."""
        return self._before.get(run)

    def find(self, message_id: bytes) -> RunId | None:
        """The newest run of the thread that this message belongs to."""
        run = self._runs.get(bytes.fromhex(message_key(message_id)))
        return None if run is None else self._newest.get(self._root.get(run, run), run)


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
