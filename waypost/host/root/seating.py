"""Whoever looks on and fails is followed by another, who is told of every deployment anew.

One that fails too often within a window is not: what it can't stand comes again, and the deployments have to go on
without being looked at rather than not at all. Pure.
"""

from dataclasses import replace

from actors.messages import StateChanged
from actors.watching import TURNS, Sleeps
from waypost.acting import ActorEnded, Next, Tell
from waypost.host.root import states as st
from waypost.host.root.seats import Seat
from waypost.host.root.sleep import AWARE
from waypost.model.times import Now


def unseated(
    setup: st.Setup, state: st.Opening | st.Running, seat: Seat, message: ActorEnded, now: Now
) -> Next[st.State]:
    """Whoever sat there has failed."""
    lapses, often = st.lapsed(state.lapses, seat.name, now, setup.limits)
    after = replace(state, lapses=lapses)
    if often >= setup.limits.actor_failures:
        return Next(after, (st.Vacate(seat, f"failed {often} times within a short while: {message.failure}"),))
    members = state.members.values() if seat.watches else ()
    awake = (each.supervisor for each in members if isinstance(each, st.Raised | st.Parting | st.Leaving))
    asleep = (each.spec for each in members if isinstance(each, st.Dormant) and seat.what in AWARE)
    return Next(
        after,
        (
            st.Reseat(seat, message.incarnation + 1),
            *(st.Introduce(seat, supervisor) for supervisor in awake),
            *(Tell(seat, Sleeps(each.name, each.address)) for each in asleep),
            *(Tell(seat, StateChanged(each.description)) for each in members if seat.what == TURNS),
        ),
    )
