"""How each deployment is at this moment, for `waypost top`: from what the root and the observer know already.

One question to each of these two, however many deployments there are. Pure.
"""

from collections.abc import Iterable

from waypost.host.answers.top import Top, TopRow
from waypost.host.messages import Deployed
from waypost.host.reading.narrate import printable
from waypost.host.watching.observer_logic import State, Watched
from waypost.model.limits import Limits
from waypost.model.times import Now, stamp

LATCHED = "crash-looping"
"""The code of a deployment that has used up its budget, whatever is remembered of how."""


def top(deployed: Iterable[Deployed], observed: State | None, limits: Limits, now: Now) -> Top:
    """The answer. ``observed``: what the observer knows; None where there is none any more."""
    known = {} if observed is None else observed.deployments
    rows = (_row(each, known.get(each.spec.name) or Watched(), limits, now) for each in deployed)
    return Top(
        at=stamp(now.wall),
        observed=observed is not None,
        deployments=tuple(sorted(rows, key=lambda row: row.deployment)),
    )


def _row(each: Deployed, watched: Watched, limits: Limits, now: Now) -> TopRow:
    description, census = each.description, watched.census
    return TopRow(
        deployment=each.spec.name,
        address=each.spec.address,
        state=description.state,
        code=description.code,
        reason=printable(description.reason),
        needed=description.why.needed,
        generation=max(description.generation, watched.generation),
        live=None if census is None else census.live,
        waiting=None if census is None else {str(kind): count for kind, count in census.waits().items()},
        queued=None if census is None else census.queued,
        on_hold=None if census is None else census.on_hold,
        rejected=None if census is None else census.rejected,
        outbox=None if census is None else census.outbox,
        flush_p99=watched.flush_p99,
        crash_budget=0 if description.code == LATCHED else description.budget.left(now.mono, limits),
        deadline=_deadline(each, watched),
    )


def _deadline(each: Deployed, watched: Watched) -> str | None:
    """While it is dormant nobody counts, and the root knows when it is to be woken."""
    description = each.description
    if description.state == "dormant" and description.until is not None:
        return stamp(description.until)
    census = watched.census
    return None if census is None or census.next is None else stamp(census.next)
