"""The event loop of one ``async def`` run: deterministic, so that a replay takes the same road.

Three rules make asyncio replayable. Identity: waypost.child.lanes. Order: outcomes are delivered in log order, one at
a time, and the loop runs until idle between two of them, live and in replay alike; identity alone doesn't survive
as_completed, wait, Queue or Lock. No other source of wake-ups: no real clock, socket, executor or thread; they raise
NotReplayable, which names what to write instead.

One loop per run; all loops of a child live in one thread.
"""

import asyncio
import logging
import sys
import threading
from asyncio import events
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextvars import Context, copy_context
from types import FrameType
from typing import Any, NoReturn, Self, TypeVar, TypeVarTuple, Unpack

from waypost.authoring.errors import NotReplayable
from waypost.authoring.requests import Request, Sleep, topic
from waypost.authoring.scope import Ask, enter
from waypost.child.lanes import LaneTask, caller, lent_lane
from waypost.child.program import Asked, Command, Finished, Gave, GaveUp, Outcome, Raised, Rest, Stuck, Turn, Waiting
from waypost.model.ids import CallId
from waypost.model.times import seconds

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_log = logging.getLogger(__name__)
FAREWELL = 10_000
"""Callbacks that the tasks left over by a finished run may take to clean up after themselves."""


class NamedTimer(asyncio.TimerHandle):
    """A timer with the identity of the durable call behind it."""

    __slots__ = ("call",)
    call: CallId


class WorkflowLoop(asyncio.AbstractEventLoop):
    """A Program made of coroutines. ``body`` makes the run's coroutine; ``on_turn`` takes what each turn asked for."""

    def __init__(self, body: Callable[[], Coroutine[Any, Any, object]], on_turn: Callable[[Turn], None]) -> None:
        self._body = body
        self._on_turn = on_turn
        self._thread = threading.get_ident()
        self._ready: deque[asyncio.Handle] = deque()
        self._now = 0.0
        self._root: LaneTask | None = None
        self._tasks: dict[LaneTask, None] = {}
        self._waiting: dict[CallId, asyncio.Future[Any] | NamedTimer] = {}
        self._takers: dict[CallId, str] = {}
        """Open waits for what others could take as well, and its topic."""
        self._given_up: dict[CallId, str] = {}
        self._unread: deque[tuple[CallId, str, object]] = deque()
        self._commands: list[Command] = []

    @classmethod
    def create(cls, body: Callable[[], Coroutine[Any, Any, object]], on_turn: Callable[[Turn], None]) -> Self:
        """Make the loop of one run."""
        # By this way, because a type checker takes the class for abstract: what is missing refuses at run time.
        return cls(body, on_turn)

    # --- the drive -------------------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Call the function; the first turn."""
        self._now = now
        context = copy_context()
        context.run(enter, self)
        self._root = LaneTask(self._body(), loop=self, lane="r1", context=context)
        self._tasks[self._root] = None
        self._turn()

    def deliver(self, call: CallId, outcome: Outcome, now: float) -> None:
        """Hand one outcome to the call that waits for it, and run until idle."""
        self._now = max(self._now, now)
        waiter = self._waiting.pop(call, None)
        self._takers.pop(call, None)
        match waiter:
            case NamedTimer():
                if not waiter.cancelled():
                    self._ready.append(waiter)
            case asyncio.Future() if not waiter.done():
                _settle(waiter, outcome)
            case _ if call in self._given_up and isinstance(outcome, Gave):
                self._pass_on(call, self._given_up.pop(call), outcome.value)
            case _:
                pass  # the outcome of a call that nobody waits for any more
        self._turn()

    def cancel(self, now: float) -> None:
        """Cancel the run's own task, and run until idle; what it awaits is cancelled by asyncio's rules."""
        self._now = max(self._now, now)
        assert self._root is not None
        self._root.cancel()
        self._turn()

    def drop(self) -> None:
        """Cancel what is left and forget it; no turn follows."""
        self._on_turn = _nowhere
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()
        self._run_ready(FAREWELL)
        self._ready.clear()

    def _turn(self) -> None:
        self._run_ready(None)
        commands, self._commands = tuple(self._commands), []
        self._on_turn(Turn(commands, self._rest()))

    def _run_ready(self, most: int | None) -> None:
        before = events._get_running_loop()  # noqa: SLF001 - the one door that asyncio leaves to a loop
        hooks = sys.get_asyncgen_hooks()
        events._set_running_loop(self)  # noqa: SLF001 - the one door that asyncio leaves to a loop
        sys.set_asyncgen_hooks(firstiter=None, finalizer=self._asyncgen_dropped)
        try:
            while self._ready and most != 0:
                handle = self._ready.popleft()
                if handle.cancelled():
                    continue
                try:
                    handle._run()  # noqa: SLF001 - the one door that asyncio leaves to a loop
                except BaseException as error:  # noqa: BLE001 - SystemExit of one task must not end the child
                    # The task holds it, too, and hands it to whoever awaits it.
                    _log.warning("a task of the workflow raised %s", type(error).__name__)
                if most is not None:
                    most -= 1
        finally:
            sys.set_asyncgen_hooks(*hooks)
            events._set_running_loop(before)  # noqa: SLF001 - the one door that asyncio leaves to a loop

    def _rest(self) -> Rest:
        root = self._root
        if root is None or not root.done():
            return Waiting() if self._waiting else Stuck()
        unread = tuple(call for call, _, _ in self._unread)
        if root.cancelled():
            return Finished(Raised(asyncio.CancelledError("the workflow's own task was cancelled")), unread)
        error = root.exception()
        return Finished(Gave(root.result()) if error is None else Raised(error), unread)

    # --- calls -----------------------------------------------------------------------------------------------------

    def perform(self, operation: Callable[[Ask], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        """Carry out an operation of the authoring API: its coroutine, to be awaited."""
        return operation(self._ask)

    async def _ask(self, request: Request) -> Any:
        call = self._next_call("a durable call")
        about = topic(request)
        for kept in () if about is None else tuple(self._unread):
            if kept[1] == about:
                self._unread.remove(kept)
                return kept[2]
        future = self.create_future()
        self._waiting[call] = future
        if about is not None:
            self._takers[call] = about
        self._commands.append(Asked(call, request))
        try:
            return await future
        except asyncio.CancelledError:
            self._cancelled(call, future, about)
            raise

    def _cancelled(self, call: CallId, future: asyncio.Future[Any], about: str | None) -> None:
        if future.cancelled():
            self._waiting.pop(call, None)
            self._takers.pop(call, None)
            self._commands.append(GaveUp(call))
            if about is not None:
                self._given_up[call] = about  # an answer may be on its way already
        elif future.exception() is None and about is not None:
            self._pass_on(call, about, future.result())  # answered and cancelled in one turn

    def _pass_on(self, call: CallId, about: str, value: object) -> None:
        """An answer whose task was cancelled goes to the oldest open wait for the like, or to the next one."""
        heir = next((taker for taker, other in self._takers.items() if other == about), None)
        if heir is None:
            self._unread.append((call, about, value))
            return
        del self._takers[heir]
        future = self._waiting.pop(heir)
        assert isinstance(future, asyncio.Future)
        if future.done():  # cancelled in this very turn, its task hasn't noticed yet
            self._waiting[heir] = future
            self._pass_on(call, about, value)
            return
        future.set_result(value)
        self._given_up[heir] = about
        self._commands.append(GaveUp(heir))

    def _next_call(self, what: str) -> CallId:
        task = asyncio.current_task(self)
        if not isinstance(task, LaneTask):
            raise NotReplayable(f"{what} from a callback", "make it from a task")
        return task.next_call()

    # --- tasks -----------------------------------------------------------------------------------------------------

    def create_task(
        self, coro: Any, *, name: object = None, context: Context | None = None, **_options: Any
    ) -> asyncio.Task[Any]:
        """Start a task in a lane of its own, or in its maker's where wait_for makes it."""
        try:
            parent = asyncio.current_task(self)
            owner, lane = _place(parent, caller(1))
        except NotReplayable:
            if asyncio.iscoroutine(coro):
                coro.close()  # else Python complains that it was never awaited
            raise
        task = LaneTask(coro, loop=self, lane=lane, owner=owner, name=str(name) if name else None, context=context)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    def set_task_factory(self, factory: object) -> None:
        """Refuse any but the plain factory: identities come from create_task."""
        if factory is not None:
            raise NotReplayable("another task factory", "use create_task")

    def get_task_factory(self) -> None:
        """None: tasks are plain."""

    # --- time ------------------------------------------------------------------------------------------------------

    def time(self) -> float:
        """The run's clock: Unix seconds of the newest delivered event."""
        return self._now

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Set a durable timer."""
        # A duration, not an instant: the host makes it absolute when it commits TimerSet, else a run that was resumed
        # an hour after its last event would find its new sleep(60) overdue.
        delay = seconds(max(0.0, when - self._now) if when == when else when)  # noqa: PLR0124 - NaN is refused there
        call = self._next_call("a timer")
        handle = NamedTimer(when, callback, args, self, context)
        handle.call = call
        self._waiting[call] = handle
        self._commands.append(Asked(call, Sleep(delay)))
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Set a durable timer, relative to the run's clock."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: NamedTimer) -> None:
        if self._waiting.pop(handle.call, None) is not None:
            self._commands.append(GaveUp(handle.call))

    # --- what asyncio itself needs ---------------------------------------------------------------------------------

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Run a callback in this turn. Raises NotReplayable in another thread: futures are set through here."""
        if threading.get_ident() != self._thread:
            raise NotReplayable(*_REFUSED["call_soon_threadsafe"])
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=self)

    def get_debug(self) -> bool:
        """Never: debug mode changes what asyncio does."""
        return False

    def is_running(self) -> bool:
        """Whether code may await here."""
        return True

    def is_closed(self) -> bool:
        """Never closed: it holds nothing that could be."""
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """An error that no task took goes to the child's log."""
        _log.error("%s", context.get("message"), exc_info=context.get("exception"))

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """As above; nobody else handles them."""
        self.call_exception_handler(context)

    def _asyncgen_dropped(self, generator: AsyncGenerator[Any, Any]) -> None:
        _log.error("%r was dropped half-way: its finally did not run; use contextlib.aclosing()", generator)


def _place(parent: object, made_from: FrameType | None) -> tuple[LaneTask | None, str]:
    """Owner (where it is another task) and lane of a task that ``parent`` makes."""
    if not isinstance(parent, LaneTask):
        raise NotReplayable("a task made from a callback", "make it from a task")
    if lent_lane(made_from):
        return parent.owner, parent.owner.lane
    return None, parent.next_lane()


def _settle(future: asyncio.Future[Any], outcome: Outcome) -> None:
    match outcome:
        case Gave():
            future.set_result(outcome.value)
        case Raised():
            future.set_exception(outcome.error)


def _nowhere(_: Turn) -> None:
    """Turns of a dropped run."""


# --- what a workflow may not do ------------------------------------------------------------------------------------

_STEP = "put it into a step: steps run outside of the workflow's loop"
_REFUSED = {
    "call_soon_threadsafe": ("waking a workflow from another thread", "let the thread's work be a step"),
    "run_in_executor": ("to_thread or run_in_executor in a workflow", "make that function a step"),
    **dict.fromkeys(("run_forever", "run_until_complete", "stop", "close"), ("driving the loop", "await instead")),
    **dict.fromkeys(("add_signal_handler", "remove_signal_handler"), ("a signal handler in a workflow", _STEP)),
    **dict.fromkeys(("subprocess_exec", "subprocess_shell"), ("a process in a workflow", _STEP)),
    **dict.fromkeys(
        (
            *("create_connection", "create_server", "create_unix_connection", "create_unix_server"),
            *("create_datagram_endpoint", "connect_accepted_socket", "getaddrinfo", "getnameinfo", "start_tls"),
            *("sock_accept", "sock_connect", "sock_recv", "sock_recv_into", "sock_recvfrom", "sock_recvfrom_into"),
            *("sock_sendall", "sock_sendfile", "sock_sendto", "sendfile", "connect_read_pipe", "connect_write_pipe"),
            *("add_reader", "add_writer", "remove_reader", "remove_writer"),
        ),
        ("network or pipes in a workflow", _STEP),
    ),
}


def _refusal(asked: str, instead: str) -> Callable[..., NoReturn]:
    def refuse(_loop: WorkflowLoop, *_args: object, **_options: object) -> NoReturn:
        raise NotReplayable(asked, instead)

    return refuse


for _name, _why in _REFUSED.items():
    setattr(WorkflowLoop, _name, _refusal(*_why))
