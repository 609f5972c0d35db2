"""How a run begins, where a test needs one and the rest of it is no matter; and what its events come to."""

from collections.abc import Iterable

import msgspec

from waypost.model import events as ev
from waypost.model.ids import Generation, RunId
from waypost.model.run import Absent, Run, evolve

HASH = "0" * 64
AT = "2026-01-02T03:04:05.678Z"
NULL = ev.Value(inline=msgspec.Raw(b"null"))
BEGAN = ev.RunStarted(
    mail=ev.Mailed(arrival=12, id="<a@b>", sha256=HASH, sender="ann@example.com"),
    definition=HASH,
    code=HASH,
    python="3.11.7",
    waypost="0.1.0",
    generation=Generation(1),
    grants=HASH,
    origin=HASH,
)


def folded(run: RunId, events: Iterable[ev.AnyEvent]) -> Run:
    """The run after these events, the first of which is its first."""
    state: Run = Absent()
    for seq, event in enumerate(events, start=1):
        state = evolve(state, ev.stored(event, seq=seq, at="now", prev=HASH)[0], run_id=run)
    return state


def log_of(*events: ev.AnyEvent) -> list[bytes]:
    """The same events as they are stored, in one chain."""
    raws, prev = list[bytes](), HASH
    for seq, event in enumerate(events, start=1):
        raws.append(ev.stored(event, seq=seq, at=AT, prev=prev)[1])
        prev = ev.digest(raws[-1])
    return raws
