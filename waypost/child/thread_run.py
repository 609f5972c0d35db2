"""The program of one ``def`` run: one thread, one lane, calls block.

The hand-over is strict: the runtime delivers an outcome only when the thread waits for it, so the log's order is the
only order there is. A thread that is busy with something else (time.sleep, a file) holds up its own run and no other:
its turn ends when it next waits or returns, and is reported from that thread.
"""

import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from waypost.authoring.errors import NotReplayable, RunCancelled
from waypost.authoring.requests import Request
from waypost.authoring.scope import Ask, enter
from waypost.child.errors import NoThread
from waypost.child.program import Asked, Command, Finished, Gave, GaveUp, Outcome, Raised, Turn, Waiting
from waypost.child.voice import or_end
from waypost.model.ids import CallId

T = TypeVar("T")


class ThreadRun:
    """A Program made of one blocking function. ``on_turn`` is called from the run's own thread."""

    def __init__(self, name: str, body: Callable[[], object], on_turn: Callable[[Turn], None]) -> None:
        self._body = body
        self._on_turn = on_turn
        self._outcomes: list[Outcome] = []
        self._go = threading.Semaphore(0)
        self._calls = 0
        self._waits_at: CallId | None = None
        self._commands: list[Command] = []
        self._thread = threading.Thread(target=or_end, args=(self._main,), name=name, daemon=True)

    def start(self, now: float) -> None:  # noqa: ARG002 - it has no clock of its own
        """Call the function in its thread. Raises NoThread; then it may be tried again."""
        try:
            self._thread.start()
        except RuntimeError as failure:
            raise NoThread(f"{failure}", hint="allow the deployment more processes (--processes)") from None

    def deliver(self, call: CallId, outcome: Outcome, now: float) -> None:  # noqa: ARG002 - it has no clock of its own
        """Wake the thread with the outcome of the call at which it waits."""
        if call != self._waits_at:
            self._on_turn(Turn((), Waiting()))
            return
        self._waits_at = None
        self._outcomes.append(outcome)
        self._go.release()

    def cancel(self, now: float) -> None:  # noqa: ARG002 - it has no clock of its own
        """Wake the thread with RunCancelled at the call where it waits; what it calls after that is made as ever."""
        assert self._waits_at is not None, "it rests, and hasn't returned"
        self._commands.append(GaveUp(self._waits_at))
        self._waits_at = None
        self._outcomes.append(Raised(RunCancelled()))
        self._go.release()

    def drop(self) -> None:
        """Let the thread end: RunCancelled is raised at the call where it waits."""
        self._on_turn = _nowhere
        self._outcomes.append(Raised(RunCancelled()))
        self._go.release()

    def perform(self, operation: Callable[[Ask], Coroutine[Any, Any, T]]) -> T:
        """Carry out an operation of the authoring API; each of its calls blocks."""
        if threading.current_thread() is not self._thread:
            raise NotReplayable("a durable call from a thread that the workflow made", "make that work a step")
        coroutine = operation(self._ask)
        try:
            coroutine.send(None)
        except StopIteration as done:
            result: T = done.value
            return result
        coroutine.close()
        raise NotReplayable("awaiting in a def workflow", "make the workflow async def")

    async def _ask(self, request: Request) -> Any:
        if self._on_turn is _nowhere:
            raise RunCancelled  # dropped, and its clean-up asks for more
        self._calls += 1
        call = CallId(f"r1#{self._calls}")
        self._commands.append(Asked(call, request))
        self._waits_at = call
        self._rest()
        self._go.acquire()
        match self._outcomes.pop():
            case Gave(value):
                return value
            case Raised(error):
                raise error

    def _rest(self) -> None:
        commands, self._commands = tuple(self._commands), []
        self._on_turn(Turn(commands, Waiting()))

    def _main(self) -> None:
        enter(self)
        try:
            outcome: Outcome = Gave(self._body())
        except BaseException as error:  # noqa: BLE001 - SystemExit ends this run, not its thread in silence
            outcome = Raised(error)
        commands, self._commands = tuple(self._commands), []
        self._on_turn(Turn(commands, Finished(outcome)))


def _nowhere(_: Turn) -> None:
    """Turns of a dropped run."""
