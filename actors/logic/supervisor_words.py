"""How each state of a deployment's supervisor is described to people, and to programs. Pure."""

from typing import assert_never

from actors.describing import Description
from actors.logic.supervisor_states import (
    Again,
    BackingOff,
    Counting,
    CrashLooping,
    Dismissing,
    Down,
    Ending,
    Evicting,
    Held,
    Idle,
    Latching,
    Lifting,
    Lost,
    Opening,
    Over,
    Raising,
    Resetting,
    Running,
    Setup,
    Starting,
    State,
    Stopped,
    Unmanned,
)

LATCH = "crash-looping"
"""Why a latched deployment is down, for programs."""


def describe(setup: Setup, state: State) -> Description:
    """The state in words for people."""
    word, code, reason = _words(state, setup.spec.name)
    return Description(
        name=setup.spec.name,
        address=setup.spec.address,
        state=word,
        reason=reason,
        generation=state.books.generation,
        pid=state.pid if isinstance(state, Running) else None,
        until=state.until if isinstance(state, BackingOff) else None,
        isolation=setup.spec.isolation,
        code=code,
        since=state.latch.at if isinstance(state, CrashLooping | Resetting) else "",
        exited=state.books.exited,
    )


def _words(state: State, name: str) -> tuple[str, str, str]:  # noqa: PLR0911 - one return per word
    """The state, the code of its reason where it is down, and the reason for people."""
    match state:
        case Idle() | Stopped():
            return type(state).__name__.lower(), "", ""
        case Opening() | Raising() | Starting():
            return "starting", "", state.reason if isinstance(state, Opening) else ""
        case Running():
            return "running", "", state.broken
        case Evicting() | Counting() | BackingOff():
            return "backing-off", "", state.reason
        case Latching():
            return "down", LATCH, f"{LATCH}: {state.detail}"
        case CrashLooping() | Resetting():
            return "down", LATCH, f"{LATCH}: {state.latch.detail}; `waypost reset {name}` lets it have a child again"
        case Dismissing() | Unmanned() | Down():
            return "down", state.reason, f"{state.reason}: {state.message}"
        case Held() | Lifting():
            return "held", "", f"after {state.why}; `waypost resume {name}` lists what would go out and lets it go on"
        case Ending():
            return _afterwards(state.then)
        case _:
            assert_never(state)


def _afterwards(then: Again | Over | Lost) -> tuple[str, str, str]:
    match then:
        case Again():
            return "starting", "", then.reason
        case Over():
            return "stopping", "", ""
        case Lost():
            return "down", then.reason, f"{then.reason}: {then.message}"
        case _:
            assert_never(then)
