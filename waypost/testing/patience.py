"""How long a test waits for what is to come: one number for all of them, so that nobody has to guess one.

It is no measure of anything. What is waited for ends the wait when it is there; this only ends the wait for what never
comes, with words, and before the limit of the whole test does. A machine that has much else to do is no failure.
"""

import threading
import time
from collections.abc import Callable

PATIENCE = 90.0
"""Seconds after which what was waited for counts as not coming."""
_MOMENT = 0.002


def eventually(fact: Callable[[], bool], what: str) -> None:
    """Wait until the operating system, or another process, shows it: it tells nobody, and can only be asked."""
    until, pause = time.monotonic() + PATIENCE, threading.Event()
    while not fact():
        assert time.monotonic() < until, f"never: {what}"
        pause.wait(_MOMENT)  # leaves the processor to those who are waited for
