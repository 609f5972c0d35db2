"""Who follows what happens in which deployment: the decision of the FollowersActor.

A follower is passed on to the supervisor of each deployment that it wants to hear of, and again whenever there is
another one, or another crew: so it hears of a deployment that sleeps, wakes, or is made anew as long as it is there.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from actors.messages import WatchRun
from actors.watching import EVERYTHING, Asking, Sleeps
from waypost.acting import Next, Ref, Tell
from waypost.model.ids import Deployment
from waypost.model.times import Now


@dataclass(frozen=True, slots=True)
class Follow:
    """A follower is there; ``deployment``: the only one that it wants to hear of. Answered by ``Following``."""

    follower: Ref
    deployment: Deployment | None = None


@dataclass(frozen=True, slots=True)
class HangUp:
    """The host ends: every follower is told ``Ended``."""


@dataclass(frozen=True, slots=True)
class Following:
    """To a follower: it will be told ``Asking`` by these deployments, and of their events from then on.

    Or else ``Sleeps``: then there is nothing to tell before it is told ``Asking``.
    """

    deployments: frozenset[Deployment]


@dataclass(frozen=True, slots=True)
class Ended:
    """To a follower: nothing more comes."""


FollowersMessage: TypeAlias = Follow | HangUp | Asking | Sleeps


@dataclass(frozen=True, slots=True)
class Hub:
    """``supervisors``: where each deployment is that doesn't sleep; one that has gone is told nothing: no error."""

    supervisors: Mapping[Deployment, Ref] = field(default_factory=dict)
    followers: tuple[Follow, ...] = ()


@dataclass(frozen=True, slots=True)
class Over:
    """The host ends."""


State: TypeAlias = Hub | Over


def advance(state: State, message: FollowersMessage, _now: Now) -> Next[State]:
    """Pass followers on."""
    match state:
        case Over():
            return Next(state, (Tell(message.follower, Ended()),) if isinstance(message, Follow) else ())
        case Hub():
            # Forgotten with the follower: whoever looks for a moment leaves nothing behind.
            there = tuple(each for each in state.followers if each.follower.is_alive())
            return _hub(replace(state, followers=there), message)
        case _:
            assert_never(state)


def _hub(state: Hub, message: FollowersMessage) -> Next[State]:
    match message:
        case Follow():
            wanted = {name: ref for name, ref in state.supervisors.items() if message.deployment in {None, name}}
            watches = (Tell(ref, WatchRun(EVERYTHING, message.follower)) for ref in wanted.values())
            answer = Tell(message.follower, Following(frozenset(wanted)))
            return Next(replace(state, followers=(*state.followers, message)), (answer, *watches))
        case Asking(name, _, supervisor):
            known = replace(state, supervisors={**state.supervisors, name: supervisor})
            before = state.supervisors.get(name)
            if before is not None and before == supervisor:
                return Next(known)  # its crew was made anew, and it passes on itself whom it was told of
            wanting = (each.follower for each in state.followers if each.deployment in {None, name})
            return Next(known, tuple(Tell(supervisor, WatchRun(EVERYTHING, who)) for who in wanting))
        case Sleeps(name):
            # Who was just passed on to it may have come too late, and would wait for its word.
            awake = {each: ref for each, ref in state.supervisors.items() if each != name}
            wanting = (each.follower for each in state.followers if each.deployment in {None, name})
            return Next(replace(state, supervisors=awake), tuple(Tell(who, message) for who in wanting))
        case HangUp():
            return Next(Over(), tuple(Tell(each.follower, Ended()) for each in state.followers))
        case _:
            assert_never(message)
