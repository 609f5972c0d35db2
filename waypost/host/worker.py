"""One thread that does an actor's slow file work, so that its mailbox never waits for a disk.

A job is a function that returns the message to tell its actor; what it can fail with is part of that message.
"""

import logging
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from waypost.host.messages import WorkerBroke
from waypost.shell import Ref, tell

log = logging.getLogger(__name__)
Job = Callable[[], Any]


class Worker:
    """Jobs in, messages out, in order. ``close`` ends it after the jobs that it has."""

    def __init__(self, name: str, owner: Ref) -> None:
        self._owner = owner
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def do(self, job: Job) -> None:
        """Run a job; the message that it returns (None: no message) is told to the owner."""
        self._jobs.put(job)

    def close(self) -> None:
        """Take no more jobs."""
        self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                message = job()
            except Exception as failure:
                log.exception("a job failed")
                message = WorkerBroke(repr(failure))
            if message is not None:
                tell(self._owner, message)
