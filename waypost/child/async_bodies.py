"""An ordinary event loop in a thread of its own, for ``async def`` steps."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Hashable
from contextvars import Context
from functools import partial
from typing import Any

from waypost.child.voice import or_end


class AsyncBodies:
    """The loop and its thread; both begin with the object."""

    def __init__(self) -> None:
        """Raises RuntimeError where no thread can be had, OSError where no descriptor can."""
        self._loop = asyncio.new_event_loop()
        # asyncio keeps no task alive; touched by the loop's thread alone.
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}
        self._over = False
        self._thread = threading.Thread(target=or_end, args=(self._turn,), name="waypost-async-steps", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self._loop.close()
            raise

    def start(self, make: Callable[[], Coroutine[Any, Any, None]], context: Context, name: Hashable) -> None:
        """Run a coroutine, made in the loop's thread, in a context. It must not raise."""
        self._loop.call_soon_threadsafe(or_end, partial(self._spawn, make, context, name))

    def cancel(self, name: Hashable) -> None:
        """Cancel the coroutine of this name, if it runs."""
        self._loop.call_soon_threadsafe(self._cancel, name)

    def close(self) -> None:
        """Cancel what runs and end the thread."""
        self._loop.call_soon_threadsafe(self._end)
        self._thread.join()

    def _end(self) -> None:
        self._over = True
        self._loop.stop()

    def _spawn(self, make: Callable[[], Coroutine[Any, Any, None]], context: Context, name: Hashable) -> None:
        task = self._loop.create_task(make(), context=context)
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._tasks.pop(name, None))

    def _cancel(self, name: Hashable) -> None:
        task = self._tasks.get(name)
        if task is not None:
            # In a turn after its first: one that is cancelled before that never enters its body, and could say nothing.
            self._loop.call_soon(task.cancel)

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._over:  # a step that stops it holds up the others for a moment only
            self._loop.run_forever()
        for task in tuple(self._tasks.values()):
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks.values(), return_exceptions=True))
        self._loop.close()
