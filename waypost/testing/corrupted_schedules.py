"""Seeded corruptions of schedules: a tick that is lost, or comes twice, or that nobody but the host may call.

Part of ``corruptions``, which says what they are for.
"""

from collections.abc import Callable
from dataclasses import replace

import msgspec

from substrate import layout
from substrate.ticking import decode, encode
from waypost.model.ids import message_key
from waypost.model.schedule import tick_id
from waypost.model.times import unstamp
from waypost.testing.corrupted import DAILY, Bad, World
from waypost.testing.desk import ADDRESS

PATH = layout.schedule_path(DAILY.id)
TICK = "2026-12-24T08:00:00.000Z"
LATER = "2030-01-01T00:00:00.000Z"


def ticked(world: World, **changed: object) -> Bad:
    """The schedule's file with some of it changed."""
    return Bad(puts={PATH: encode(msgspec.structs.replace(decode(world.read(PATH)), **changed))})


def undeclared(world: World) -> Bad:
    """The same of a schedule that the code doesn't have."""
    other = msgspec.structs.replace(decode(world.read(PATH)), id="weekly")
    return Bad(puts={layout.schedule_path("weekly"): encode(other)})


def posed(world: World) -> Bad:
    """A mail under the id of a tick, which the schedule knows nothing of."""
    identity = tick_id(DAILY.id, unstamp(TICK))
    bad = world.fresh("tick@x", id=identity)
    arrival = world.state.arrival
    old, new = (layout.inbox_path(ADDRESS, arrival, message_key(each)) for each in (b"<tick@x>", identity.encode()))
    return replace(bad, puts={new if path == old else path: raw for path, raw in bad.puts.items()})


SCHEDULES: tuple[tuple[str, str, Callable[[World], Bad]], ...] = (
    ("a schedule's file that is none", "record", lambda _: Bad(puts={PATH: b"{}"})),
    ("a schedule under another name", "name", lambda w: ticked(w, id="weekly")),
    ("a schedule that nothing declares", "schedule", undeclared),
    ("a schedule of another expression", "schedule", lambda w: ticked(w, expression="1 9 * * *")),
    ("a schedule is gone", "schedule", lambda _: Bad(deletes=(PATH,))),
    ("a schedule begins later", "schedule", lambda w: ticked(w, since=LATER)),
    ("a tick is passed over", "schedule", lambda w: ticked(w, last=TICK)),
    ("a tick without its mail", "schedule", lambda w: ticked(w, last=TICK, fate="sent")),
    ("a tick waits and the mail is another", "schedule", lambda w: ticked(w, last=TICK, fate="waiting", arrival=1)),
    (
        "a schedule goes back as if it had gone on",
        "schedule",
        lambda w: ticked(w, last="2020-01-01T00:00:00.000Z", fate="missed"),
    ),
    ("a mail passes for a tick", "schedule", posed),
    (
        "a child lets a schedule tick",
        "author",
        lambda w: replace(ticked(w, last=TICK, fate="missed"), author="workflow-process"),
    ),
)
"""Name, the rule that says no, and how it is made."""
UNSEEN = frozenset(
    {
        "a schedule begins later",
        "a tick is passed over",
        "a tick without its mail",
        "a tick waits and the mail is another",
        "a schedule goes back as if it had gone on",
        "a mail passes for a tick",
        "a child lets a schedule tick",
    }
)
"""What only the commit shows."""
