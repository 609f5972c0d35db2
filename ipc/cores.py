"""One core for the threads of a host, as a rule, and every core for the processes that it starts.

Of the threads only one runs Python at a time, so a second core would buy them little; but each time the interpreter's
lock goes from one core to another, that costs a wake-up and cold caches, several times an append. On one core four
deployments write half as much again, and a single one a fifth more (``python -m benchmarks.deployments``). Nothing
depends on it: where the system refuses, threads run where they like.

Which core follows from the process's number, so that hosts beside each other spread, as a rule: an operator may give a
host a core of its own, by what starts it, or more than one. The main thread is never kept anywhere: what it may use is
what the process was given, and what the processes that it starts are given again.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def together(count: int = 1) -> Iterator[None]:
    """Keep the threads that are started meanwhile, and those that they will start, on so many cores of this process."""
    others = set(threading.enumerate())
    yield
    for thread in threading.enumerate():
        if thread not in others and thread.native_id is not None:
            keep(thread.native_id, count)


def keep(thread: int, count: int = 1) -> None:
    """Keep one thread, by its native id (0: the calling one), on so many cores of this process, or all that it has."""
    with suppress(OSError):  # it has ended, or the system refuses
        given = sorted(_given())
        os.sched_setaffinity(
            thread, {given[(os.getpid() + each) % len(given)] for each in range(min(count, len(given)))}
        )


@contextmanager
def all_given() -> Iterator[None]:
    """Let the calling thread use every core that the process was given, and so whatever it starts meanwhile."""
    mine: set[int] = set()
    with suppress(OSError):
        mine = os.sched_getaffinity(0)
        os.sched_setaffinity(0, _given())
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(0, mine)


def _given() -> set[int]:
    return os.sched_getaffinity(os.getpid())  # the main thread's
