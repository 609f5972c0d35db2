"""Seeded corruptions of child runs: one that nobody awaits, one that is awaited in vain, an end that wasn't.

Part of ``corruptions``, which says what they are for.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec

from substrate import layout
from substrate.messages import Cancel
from substrate.operations import Change
from waypost.model import events as ev
from waypost.model.child_mail import child_id
from waypost.model.ids import RunId, message_key, run_id
from waypost.testing.corrupted import NULL, Bad, World
from waypost.testing.desk import ADDRESS, STARTED, call

DONE = ev.RunCompleted(result=NULL)
FIRST = call(1)
HOST, CHILD = "supervisor", "workflow-process"


def told(world: World, value: ev.Value = NULL) -> Bad:
    """The parent is told that its child has completed."""
    event = ev.ChildCompleted(call=FIRST, outcome="completed", result=value)
    return Bad(puts=dict([world.next(event, world.parent)]), author=HOST)


def ended(world: World, run: RunId, event: ev.AnyEvent = DONE) -> Bad:
    """A run ends, and nothing beside it."""
    return Bad(puts=dict([world.next(event, run)]), author=CHILD)


def misquoted(world: World) -> Bad:
    """A child ends, and its parent is told something else."""
    other = told(world, ev.Value(inline=msgspec.Raw(b"2")))
    mine = ended(world, world.child)
    return replace(mine, puts={**mine.puts, **other.puts})


def spawned(world: World, author: str = HOST) -> Bad:
    """A run has a child that nobody can start."""
    event = ev.ChildSpawned(
        call=call(9), child=run_id(world.state.run, b"12345678"), workflow="pay", arguments="0" * 64, seen=0
    )
    return Bad(puts=dict([world.next(event, world.parent)]), author=author)


def posed(world: World) -> Bad:
    """A mail under the id of a call's child, which the run knows nothing of."""
    identity = child_id(world.parent, call(9))
    bad = world.fresh("child@x", id=identity)
    arrival = world.state.arrival
    old, new = (layout.inbox_path(ADDRESS, arrival, message_key(each)) for each in (b"<child@x>", identity.encode()))
    return replace(bad, puts={new if path == old else path: raw for path, raw in bad.puts.items()})


def begun(world: World, **changed: object) -> Bad:
    """A queued child is cancelled, as it may be, and begins as something else than it is."""
    change = world.desk.decide(
        Cancel(run=world.unborn, reason="enough", origin="supervisor-operator", by="ann", start=STARTED)
    )
    assert isinstance(change, Change), change
    began = {path: raw for path, raw in sorted(change.puts.items()) if world.unborn in path and "/events/" in path}
    # The code of its start is that of before any was deployed; the tree that is there now is named instead.
    deployed = world.desk.tree.entries(layout.CODE)[0]
    (tree,) = world.desk.tree.entries(f"{layout.CODE}/{deployed}")
    return Bad(
        puts={**change.puts, **_rewritten(began, {"code": tree, **changed})}, deletes=change.deletes, author=HOST
    )


def _rewritten(logged: Mapping[str, bytes], changed: Mapping[str, object]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    prev = ""
    for path, raw in logged.items():
        event = ev.decode(raw)
        if isinstance(event, ev.RunStarted):
            event, prev = msgspec.structs.replace(event, **changed), event.prev
        found[path] = ev.stored(event, seq=event.seq, at=event.at, prev=prev)[1]
        prev = ev.digest(found[path])
    return found


def parent_of(world: World, depth: int = 1) -> ev.Parent:
    """Whose child the queued one is."""
    return ev.Parent(run=world.parent, call=call(2), workflow="pay", depth=depth)


LET_GO = ev.ChildCancelRequested(call=FIRST)
ASKED = ev.CancelRequested(origin="parent", reason="enough")

CHILDREN: tuple[tuple[str, str, Callable[[World], Bad]], ...] = (
    ("a child without its mail", "child", spawned),
    ("a child process starts a child", "author", lambda w: spawned(w, CHILD)),
    ("a child's mail that no run has asked for", "child", posed),
    ("a child ends and its parent isn't told", "child", lambda w: ended(w, w.child)),
    ("a parent is told of an end that wasn't", "child", told),
    ("a parent is told another result", "child", misquoted),
    ("a parent ends and its children aren't told", "child", lambda w: ended(w, w.parent)),
    ("a child is let go of and isn't told", "child", lambda w: ended(w, w.parent, LET_GO)),
    (
        "a child is cancelled in the name of its parent",
        "child",
        lambda w: replace(ended(w, w.child, ASKED), author=HOST),
    ),
    ("a child begins deeper than it is", "child", lambda w: begun(w, parent=parent_of(w, depth=7))),
    ("a child begins with other keys", "child", lambda w: begun(w, parent=parent_of(w), origin="0" * 64)),
)
"""By name, the rule that each breaks, and how it is made."""

UNSEEN_OF_CHILDREN = frozenset(
    {
        "a parent is told another result",
        "a child is cancelled in the name of its parent",
        "a child begins deeper than it is",
        "a child begins with other keys",
    }
)
"""Those that the commit alone shows, and the tree after it doesn't."""
