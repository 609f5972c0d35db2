"""Identity of tasks: who made whom, in which order.

A task's lane is its parent's lane and its place among the parent's children; a durable call is named by its lane and
its number in it. The same program names them alike in every process and on every Python.
"""

import asyncio
import sys
import zlib
from contextvars import Context
from types import FrameType
from typing import Any

from waypost.authoring.errors import NotReplayable
from waypost.model.ids import CALL_ID_LIMIT, CallId

DEPTH = 64
"""Of tasks that make tasks; the call's identity has no room for more."""

_SALT = 2**28 - 1
_RELAYS = ("_ensure_future", "ensure_future", "<setcomp>")


class LaneTask(asyncio.Task[Any]):
    """A task that knows its place in the program.

    The hash comes from the lane: sets of tasks (asyncio.wait, as_completed) then iterate in the same order in every
    process and every Python, which object addresses do not. A birth counter won't do: wait_for makes a task on 3.11
    and none on 3.12.
    """

    _log_destroy_pending: bool

    def __init__(
        self,
        coro: Any,
        *,
        loop: asyncio.AbstractEventLoop,
        lane: str,
        owner: "LaneTask | None" = None,
        name: str | None = None,
        context: Context | None = None,
    ) -> None:
        self.lane = lane
        self.calls = 0
        self.children = 0
        self.owner: LaneTask = owner or self
        """The task whose lane this one's calls are counted in: itself, or the caller of wait_for."""
        lane_hash = zlib.crc32(lane.encode())
        # asyncio keeps all tasks of a process in one set, by the hash that they have now: by the lane's alone, the
        # first task of each run would be compared there with that of every other.
        self._lane_hash = lane_hash | (id(loop) >> 4 & _SALT) << 32
        super().__init__(coro, loop=loop, name=name or lane, context=context)
        self._lane_hash = lane_hash
        self._log_destroy_pending = False  # a finished run drops its tasks on purpose

    def __hash__(self) -> int:
        return self._lane_hash

    def __eq__(self, other: object) -> bool:
        return self is other

    def next_call(self) -> CallId:
        """Name the next durable call of this task."""
        self.owner.calls += 1
        call = f"{self.owner.lane}#{self.owner.calls}"
        if len(call) > CALL_ID_LIMIT:
            raise NotReplayable("a call this deep inside tasks", "start the tasks from fewer levels of tasks")
        return CallId(call)

    def next_lane(self) -> str:
        """Name the next child of this task."""
        self.owner.children += 1
        if self.owner.lane.count(".") >= DEPTH - 1:
            raise NotReplayable("a task this deep inside tasks", "start the tasks from fewer levels of tasks")
        return f"{self.owner.lane}.{self.owner.children}"


def lent_lane(made_from: FrameType | None) -> bool:
    """Whether a task, made by code at this frame, works in its maker's lane: only wait_for's does.

    wait_for wraps its coroutine in a task on 3.11 and awaits it in the caller from 3.12 on: same identities. Raises
    NotReplayable for as_completed over coroutines, which starts them in the order of their addresses.
    """
    maker = made_from
    while maker is not None and maker.f_code.co_name in _RELAYS:
        maker = maker.f_back
    if maker is None or maker.f_globals.get("__name__") != "asyncio.tasks":
        return False
    if maker.f_code.co_name == "as_completed" or "_AsCompletedIterator" in maker.f_code.co_qualname:
        raise NotReplayable("as_completed over coroutines", "give it tasks: [create_task(c) for c in …]")
    return maker.f_code.co_name == "wait_for"


def caller(depth: int) -> FrameType | None:
    """The frame ``depth`` levels above the caller of this function."""
    try:
        return sys._getframe(depth + 1)  # noqa: SLF001 - asyncio gives no other way to tell wait_for from create_task
    except ValueError:
        return None
