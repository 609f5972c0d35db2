"""Seeded corruptions of schedules: a tick that is lost, or comes twice, or that nobody but the host may call.

Part of ``corruptions``, which says what they are for.
"""

from collections.abc import Callable
from dataclasses import replace

import msgspec

from substrate import layout
from substrate.ticking import decode, encode
from waypost.model.code import deployed
from waypost.model.code import encode as encode_deployed
from waypost.model.declaration import Declared
from waypost.model.ids import message_key
from waypost.model.queue import decode as decode_entry
from waypost.model.schedule import tick_id
from waypost.model.times import unstamp
from waypost.testing.corrupted import CODE, DAILY, Bad, World
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


def posed(world: World, due: str = TICK, *, base64: bool = False) -> Bad:
    """A mail under the id of a tick, which the schedule knows nothing of."""
    identity = tick_id(DAILY.id, unstamp(due))
    bad = world.fresh("tick@x", id=identity, base64=base64)
    arrival = world.state.arrival
    old, new = (layout.inbox_path(ADDRESS, arrival, message_key(each)) for each in (b"<tick@x>", identity.encode()))
    return replace(bad, puts={new if path == old else path: raw for path, raw in bad.puts.items()})


def spelled_wrong(world: World) -> Bad:
    """A mail under the id of a tick, with an entry that can't be read."""
    bad = posed(world)
    return replace(bad, puts={path: raw.replace(b'"starts":false', b'"starts":7') for path, raw in bad.puts.items()})


def redeployed(world: World, expression: str, **changed: object) -> Bad:
    """The same code is deployed with the schedule at this expression, whose file says more than that."""
    schedules = (msgspec.structs.replace(DAILY, expression=expression),)
    declared = Declared(name="expenses", address=ADDRESS, mail_to=("boss@example.com",), schedules=schedules)
    record = deployed(CODE, root="", module="flow", declared=declared)
    file = ticked(world, expression=expression, **changed)
    return Bad(puts={**file.puts, layout.DEPLOYED: encode_deployed(record)})


def sent(world: World, due: str, **changed: object) -> Bad:
    """A tick with its mail, and the schedule's file says more than that."""
    mail = posed(world, due)
    entry = next(decode_entry(raw) for path, raw in mail.puts.items() if path.startswith("queue/"))
    file = ticked(world, last=due, fate="sent", arrival=entry.arrival, run=entry.run, **changed)
    return replace(mail, puts={**mail.puts, **file.puts})


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
    ("a tick's entry that is none", "record", spelled_wrong),
    ("a tick's id that is no base64", "name", lambda w: posed(w, base64=True)),
    ("a schedule ticks as it is deployed again", "schedule", lambda w: redeployed(w, "0 9 * * *", last=TICK)),
    ("a schedule begins with a tick", "schedule", lambda w: redeployed(w, "1 9 * * *", last=TICK, fate="missed")),
    ("a tick is sent and another waits", "schedule", lambda w: sent(w, TICK, waiting=(TICK,))),
    ("a tick is sent and the schedule goes back", "schedule", lambda w: sent(w, "2020-01-01T08:00:00.000Z")),
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
        "a schedule ticks as it is deployed again",
        "a schedule begins with a tick",
        "a tick is sent and another waits",
        "a tick is sent and the schedule goes back",
        "a child lets a schedule tick",
    }
)
"""What only the commit shows."""
