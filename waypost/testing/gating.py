"""The barrier in dispatch, each state reached the way it is reached at work; for its picture."""

from collections.abc import Callable
from typing import Any

from actors.credentials import Assembled, NotAssembled
from actors.logic.dispatch.barrier import Assembling, Deferred, Lingering, TurnedAway
from actors.logic.dispatch.decision import advance
from actors.logic.dispatch.state import Open
from actors.logic.dispatch.turn import Setup
from actors.messages import GenerationDown, GenerationUp, Woken
from ipc.deliveries import CredentialsUpdated
from substrate.messages import Durable, GrantsChanged, InForce
from waypost.acting import Next
from waypost.model.ids import Generation
from waypost.model.limits import Limits
from waypost.testing.dispatch_bench import CHILD, NOW, START, Bench
from waypost.testing.dispatching import NOTHING, facts

Make = Callable[[Open], Any]
VALUES = CredentialsUpdated(serial=1, bindings={}, materials={})


def apply(state: Open, make: Make) -> Next[Any]:
    """Advance; Any, as a picture doesn't care which state follows."""
    return advance(state, make(state), NOW)


def gate(state: Open) -> str:
    """The name of the gate's state."""
    return type(state.barrier.gate).__name__


def gates() -> tuple[Open, ...]:
    """Every state of the gate."""
    closed, assembling, lingering, clear, deferred, away, changed = (_bench() for _ in range(7))
    for bench in (assembling, lingering, clear, deferred, away, changed):
        bench.up()
    lingering.tell(_woken(_open(lingering)))
    for bench, answer in ((clear, _yes), (deferred, _passing), (away, _lasting), (changed, _yes)):
        bench.tell(answer(_open(bench)))
    changed.tell(facts(GrantsChanged(InForce()))(_open(changed)))
    return tuple(map(_open, (closed, assembling, lingering, clear, deferred, away, changed)))


def _bench() -> Bench:
    limits = Limits()
    return Bench(limits, setup=Setup(start=START, limits=limits, steps=("read",), keeper=True))


def _open(bench: Bench) -> Open:
    assert isinstance(bench.state, Open)
    return bench.state


def _yes(state: Open) -> Any:
    at = state.barrier.gate
    return Assembled(at.correlation if isinstance(at, Assembling | Lingering) else -1, VALUES)


def _passing(state: Open) -> Any:
    at = state.barrier.gate
    return NotAssembled(at.correlation if isinstance(at, Assembling | Lingering) else -1, passing=True, why="x")


def _lasting(state: Open) -> Any:
    at = state.barrier.gate
    return NotAssembled(at.correlation if isinstance(at, Assembling | Lingering) else -1, passing=False, why="x")


def _woken(state: Open) -> Any:
    at = state.barrier.gate
    return Woken(at.token) if isinstance(at, Assembling | Lingering | Deferred | TurnedAway) else NOTHING


GATE_MESSAGES: dict[str, Make] = {
    "GenerationUp": lambda _state: GenerationUp(Generation(9), CHILD),
    "GenerationUp, broken": lambda _state: GenerationUp(Generation(9), CHILD, "SyntaxError"),
    "GenerationDown": lambda _state: GenerationDown(Generation(9), unexpected=False),
    "grants changed": facts(GrantsChanged(InForce())),
    "that is durable": lambda state: Durable(state.position),
    "assembled": _yes,
    "not for the moment": _passing,
    "not for good": _lasting,
    "woken": _woken,
}
