"""Reading a run's log out of a repository's tree: sealed file, segments and tail (storage §1).

Pure over a ``Tree`` (two functions: read a file, list a directory), so the writer's memory, a sealed pack and a dict in
a test are read by the same lines. What is handed out are the stored bytes, unchanged; a gap is reported, never closed.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec

from substrate import layout
from substrate.errors import Damaged
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.ids import RunId, is_run_id, run_ordinal

_MISSING = "the file is missing"
_TOGETHER = 16
"""Events of a tail that are read in one go: whoever wants but some of them has as many in memory."""


class Tree(Protocol):
    """A repository's files at one moment."""

    def read(self, path: str) -> bytes | None:
        """A file's bytes; None where there is none."""
        ...

    def entries(self, path: str) -> tuple[str, ...]:
        """The sorted names in a directory; empty where there is none."""
        ...

    def several(self, directory: str, names: Sequence[str]) -> list[bytes | None]:
        """Files of one directory, each as ``read`` has it: a tail is read with each fold, so with many an append."""
        ...


class Rooted(Tree, Protocol):
    """A tree whose directories have ids."""

    def directory_id(self, path: str) -> str:
        """The id of a directory, 40 hex digits; empty where there is none."""
        ...

    def directory(self, oid: bytes) -> bytes:
        """The bytes of a directory by its id, as git has them. Raises Damaged where it isn't there."""
        ...


class Known(msgspec.Struct, frozen=True):
    """A run as its log tells it: its state, and what the next append needs.

    ``prev``: SHA-256 of the newest event's bytes. ``folded``: so many events lie in segments; the rest is the tail.
    ``changed``: when the newest event was recorded.
    """

    run: fold.Run
    seq: int = 0
    prev: str = ""
    folded: int = 0
    changed: str = ""


ABSENT = Known(fold.Absent())


def leaves(tree: Tree, root: str) -> Iterator[tuple[str, str]]:
    """Everything that lies in radix directories below ``root``, as (directory, name), by ordinal of the directory."""
    for count in sorted(tree.entries(root), key=_depth):
        yield from _below(tree, f"{root}/{count}", _depth(count))


def leaves_newest_first(tree: Tree, root: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The radix leaves below ``root`` with the names in each, newest leaf first; names as the tree has them."""
    for count in sorted(tree.entries(root), key=_depth, reverse=True):
        yield from _leaves_back(tree, f"{root}/{count}", _depth(count))


def run_ids(tree: Tree, root: str = layout.RUNS) -> list[RunId]:
    """The runs below ``runs`` or ``sealed``, oldest first."""
    found = [RunId(name) for _, name in leaves(tree, root) if name.startswith("run_")]
    return sorted(found, key=run_ordinal)


def oldest_first(tree: Tree, root: str) -> Iterator[RunId]:
    """The runs below ``runs`` or ``sealed``, oldest first; read as far as it is asked."""
    by_leaf = itertools.groupby(leaves(tree, root), key=lambda leaf: leaf[0])
    for _, entries in by_leaf:
        yield from sorted((RunId(name) for _, name in entries if name.startswith("run_")), key=run_ordinal)


def newest_first(tree: Tree, root: str) -> Iterator[RunId]:
    """The runs below ``runs`` or ``sealed``, newest first; read as far as it is asked."""
    for _, names in leaves_newest_first(tree, root):
        found = [RunId(name) for name in names if name.startswith("run_")]
        yield from sorted(found, key=run_ordinal, reverse=True)


def is_there(tree: Tree, run: RunId) -> bool:
    """Whether the run has begun, sealed or not."""
    return bool(tree.entries(layout.run_dir(run))) or is_sealed(tree, run)


def is_sealed(tree: Tree, run: RunId) -> bool:
    """Whether the run's log has been sealed into one file; what is no run id at all (a child's word) has none."""
    return is_run_id(run) and "events.jsonl" in tree.entries(layout.sealed_dir(run))


def events(tree: Tree, run: RunId, *, after: int = 0) -> Iterator[bytes]:
    """The stored events of a run with a seq above ``after``, in order; nothing for a run that isn't there.

    Raises Damaged where a file of the log is missing.
    """
    names = tree.entries(layout.events_dir(run))
    if not names and is_sealed(tree, run):  # what has a tail isn't sealed: the seal takes it away
        yield from sealed_events(tree, run)[after:]
        return
    folded = _before(names)
    first = after - after % layout.FAN + 1
    while first <= folded:
        lines = _lines(tree, layout.segment_path(run, first))
        if len(lines) != layout.FAN:
            raise Damaged(
                layout.segment_path(run, first), f"a segment holds {layout.FAN} events, this one {len(lines)}"
            )
        yield from lines[max(0, after - first + 1) :]
        first += layout.FAN
    directory = layout.events_dir(run)
    if after > folded:
        names = tuple(name for name in names if layout.parse_number(name.removesuffix(".json")) > after)
    for at in range(0, len(names), _TOGETHER):
        some = names[at : at + _TOGETHER]
        for name, data in zip(some, tree.several(directory, some), strict=True):
            yield _there(f"{directory}/{name}", data)


def tail(tree: Tree, run: RunId, known: Known) -> list[tuple[str, bytes]]:
    """The events that lie in files of their own, as (path, bytes), oldest first."""
    directory = layout.events_dir(run)
    names = [f"{seq:010d}.json" for seq in range(known.folded + 1, known.seq + 1)]  # layout.event_path
    found: list[tuple[str, bytes]] = []
    for name, data in zip(names, tree.several(directory, names), strict=True):
        path = f"{directory}/{name}"
        found.append((path, _there(path, data)))
    return found


def folded_events(tree: Tree, run: RunId) -> int:
    """How many events of a live run lie in segments: the first event of the tail tells, or the last segment."""
    return _before(tree.entries(layout.events_dir(run)))


def stored(tree: Tree, path: str) -> bytes:
    """The bytes of a file that must be there. Raises Damaged."""
    return _there(path, tree.read(path))


def find_grants(tree: Tree, run: RunId) -> bytes | None:
    """The bytes of ``grants.json`` of a live or sealed run."""
    found = tree.read(layout.grants_path(run))
    return tree.read(layout.sealed_grants_path(run)) if found is None else found


def blobs_of(tree: Tree, run: RunId) -> Iterator[str]:
    """The names of the blobs that lie under a live run."""
    root = layout.blobs_dir(run)
    for first in tree.entries(root):
        for second in tree.entries(f"{root}/{first}"):
            yield from tree.entries(f"{root}/{first}/{second}")


def page(
    tree: Tree, run: RunId, *, after: int, limit: int, remembered: Callable[[RunId], list[bytes]] | None = None
) -> tuple[tuple[bytes, ...], int]:
    """The events above ``after`` that together have at most ``limit`` bytes, at least one; and the newest seq.

    Nothing is folded. A page of a sealed log costs reading the whole of it, unless that is ``remembered``: by a cache
    of ``sealed_events``. (), 0 for a run that isn't there.
    """
    if not is_run_id(run):
        return (), 0
    if is_sealed(tree, run):
        lines = sealed_events(tree, run) if remembered is None else remembered(run)
        return _fitting(itertools.islice(lines, after, None), limit), len(lines)
    names = tree.entries(layout.events_dir(run))
    last = layout.parse_number(names[-1].removesuffix(".json")) if names else 0
    return _fitting(events(tree, run, after=after), limit), last


def sealed_events(tree: Tree, run: RunId) -> list[bytes]:
    """The whole log of a sealed run. Raises Damaged."""
    return _lines(tree, layout.sealed_log_path(run))


@dataclass(frozen=True, slots=True)
class Summary:
    """What a list shows of a sealed run; ``arrival``: of the mail that started it; ``parent``: whose child it is."""

    outcome: str
    started: str
    changed: str
    seq: int
    arrival: int
    parent: str = ""


def summary(tree: Tree, run: RunId) -> Summary:
    """A sealed run's line, from the first and the last events of its log: the cost is that of reading the file.

    Raises Damaged where these can't be read.
    """
    path = layout.sealed_log_path(run)
    lines = _lines(tree, path)
    try:
        started, last = ev.decode(lines[0]), ev.decode(lines[-1])
        # Only the fate of its mail may follow the end.
        end = next(event for raw in reversed(lines) if isinstance(event := ev.decode(raw), ev.TERMINAL))
    except (Invalid, StopIteration) as bad:
        raise Damaged(path, f"not the log of a finished run: {bad}") from None
    if not isinstance(started, ev.RunStarted):
        raise Damaged(path, "it doesn't begin with RunStarted")
    parent = started.parent.run if started.parent else ""
    return Summary(fold.outcome(end), started.at, last.at, len(lines), started.mail.arrival, parent)


def find_blob(tree: Tree, run: RunId, sha256: str) -> bytes | None:
    """A blob of a live or sealed run."""
    found = tree.read(layout.blob_path(run, sha256))
    return tree.read(layout.sealed_blob_path(run, sha256)) if found is None else found


def load(tree: Tree, run: RunId, note: Callable[[ev.AnyEvent], None] = lambda _event: None) -> Known:
    """Fold a run's whole log; ``note`` is told of each event in passing. ``ABSENT`` for a run that isn't there.

    Raises Damaged for a log that can't be folded: unreadable, with a gap, with an event that may not follow, or with a
    broken chain (what ``prev`` of seq 1 must be is for ``verify`` to say).
    """
    return load_on(tree, run, ABSENT, events(tree, run), note)


def load_on(
    tree: Tree,
    run: RunId,
    before: Known,
    more: Iterable[bytes],
    note: Callable[[ev.AnyEvent], None] = lambda _event: None,
) -> Known:
    """The same from where a run was known already, by the events that came after that."""
    state, seq, prev, changed = before.run, before.seq, before.prev, before.changed
    for raw in more:
        try:
            event = ev.decode(raw)
            state = fold.evolve(state, event, run_id=run)
        except (Invalid, fold.Illegal) as bad:
            raise Damaged(f"{run}, event {seq + 1}", bad.message) from None
        if seq and event.prev != prev:
            raise Damaged(f"{run}, event {event.seq}", "its prev isn't the hash of the event before it")
        seq, prev, changed = event.seq, ev.digest(raw), event.at
        note(event)
    if not seq:
        return ABSENT
    return Known(state, seq, prev, folded_events(tree, run), changed)


def _there(path: str, data: bytes | None) -> bytes:
    if data is None:
        raise Damaged(path, _MISSING)
    return data


def _before(names: Sequence[str]) -> int:
    """How many events come before those in a tail with these files."""
    return layout.parse_number(names[0].removesuffix(".json")) - 1 if names else 0


def _fitting(raws: Iterable[bytes], limit: int) -> tuple[bytes, ...]:
    taken: list[bytes] = []
    size = 0
    for raw in raws:
        size += len(raw)
        if taken and size > limit:
            break
        taken.append(raw)
    return tuple(taken)


def _depth(count: str) -> int:
    if not count.isdecimal():
        raise Damaged(count, "not a radix directory")
    return int(count)


def _below(tree: Tree, directory: str, depth: int) -> Iterator[tuple[str, str]]:
    for name in tree.entries(directory):
        if depth:
            yield from _below(tree, f"{directory}/{name}", depth - 1)
        else:
            yield directory, name


def _leaves_back(tree: Tree, directory: str, depth: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    if not depth:
        yield directory, tree.entries(directory)
        return
    for name in reversed(tree.entries(directory)):
        yield from _leaves_back(tree, f"{directory}/{name}", depth - 1)


def _lines(tree: Tree, path: str) -> list[bytes]:
    # Not splitlines(): a carriage return may stand between the tokens of a value, only a line feed ends an event.
    return stored(tree, path).removesuffix(b"\n").split(b"\n")
