"""An ordinary event loop in a thread of its own, for ``async def`` steps."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any


class AsyncBodies:
    """The loop and its thread; both begin with the object."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._tasks: set[asyncio.Task[None]] = set()  # asyncio keeps no task alive; touched by the loop's thread alone
        self._thread = threading.Thread(target=self._turn, name="waypost-async-steps", daemon=True)
        self._thread.start()

    def start(self, make: Callable[[], Coroutine[Any, Any, None]], context: Context) -> None:
        """Run a coroutine, made in the loop's thread, in a context. It must not raise."""
        self._loop.call_soon_threadsafe(self._spawn, make, context)

    def close(self) -> None:
        """Cancel what runs and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _spawn(self, make: Callable[[], Coroutine[Any, Any, None]], context: Context) -> None:
        task = self._loop.create_task(make(), context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            for task in self._tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
            self._loop.close()
