"""The time of a cancelled run in dispatch, each state reached the way it is reached at work; for pictures and grids."""

from typing import Any

from actors.logic.dispatch.decision import advance
from actors.logic.dispatch.state import Open
from actors.messages import GenerationDown, GenerationUp, Woken
from substrate.messages import Cancel, Done, Outcome, Refused, Withheld
from waypost.acting import Next
from waypost.model import events as ev
from waypost.model.ids import Generation
from waypost.model.times import Now
from waypost.testing.dispatch_bench import CHILD, RUN, Bench
from waypost.testing.dispatching import NOTHING, Make, committed, waiting

LATER = Now(0, 1e9)
"""When every time is up."""


def apply(state: Open, make: Make) -> Next[Any]:
    """Advance, when every time is up; Any, as a picture doesn't care which state follows."""
    return advance(state, make(state), LATER)


def grace(state: Open) -> str:
    """The name of how the run stands."""
    found = state.graces.get(RUN)
    if found is None:
        return "Uncancelled"
    if found.asked is not None:
        return "Ending"
    return "Told" if found.told else "Untold"


def graces() -> tuple[Open, ...]:
    """Every state of it, over a run with a step under way, with a child that follows it or without one."""
    alone, followed, untold, told, ending = (waiting() for _ in range(5))
    for bench in (followed, told, ending):
        bench.up()
        bench.settle()
    for bench in (untold, told, ending):
        bench.do(Cancel(run=RUN, reason="enough", origin="supervisor-operator"))
    ending.later(ending.limits.cancel_grace)
    return tuple(map(_open, (alone, followed, untold, told, ending)))


def _open(bench: Bench) -> Open:
    assert isinstance(bench.state, Open)
    return bench.state


def _answered(result: Any) -> Make:
    def make(state: Open) -> Any:
        asked = state.graces[RUN].asked if RUN in state.graces else None
        return NOTHING if asked is None else Outcome(asked, result)

    return make


GRACE_MESSAGES: dict[str, Make] = {
    "CancelRequested committed": committed(ev.CancelRequested(origin="self", reason="enough")),
    "RunCancelled committed": committed(ev.RunCancelled()),
    "GenerationUp": lambda _state: GenerationUp(Generation(3), CHILD),
    "GenerationDown": lambda _state: GenerationDown(Generation(9), unexpected=True),
    "the time is up": lambda state: NOTHING if state.grace_wake is None else Woken(state.grace_wake[0]),
    "its end is recorded": _answered(Done(0)),
    "its end is refused": _answered(Refused("terminal", ".")),
    "its end is withheld": _answered(Withheld(".")),
}
