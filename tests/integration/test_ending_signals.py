"""A host ends when it is told to: no signal is lost, wherever in its threads or in its start it finds it."""

import json
import subprocess
import sys

import pytest

from waypost.testing.patience import PATIENCE

WAIT = """
import signal, threading
from waypost.cli.running import Signals
from waypost.host.errors import HostError

def elsewhere():
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

with Signals() as signals:
    {before}
    came = signals.wait()
    print("given up" if isinstance(came, HostError) else came.name)
    {after}
"""
APART = """
import json, os, sys
import waypost.cli.running

told = []
for code in json.loads(sys.argv[1]):
    ours, theirs = os.pipe()
    if not (pid := os.fork()):
        os.dup2(theirs, 1)
        exec(code)
        sys.exit()
    os.close(theirs)
    with os.fdopen(ours) as words:
        told.append((words.read().strip(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
print(json.dumps(told))
"""
"""Each of these programs in a process of its own, by one interpreter: its imports are all that takes long."""


ELSEWHERE = (
    "threading.Timer(0.1, elsewhere).start()",
    "thread = threading.Thread(target=elsewhere); thread.start(); thread.join()",
    "signal.raise_signal(signal.SIGTERM)",
)
"""In another thread; there, before the main one waits; before it waits."""
GIVES_UP = (
    "threading.Timer(0.1, signals.give_up, [HostError('x')]).start()",
    "signals.give_up(HostError('x'))",
)
"""Late, and early."""
INTERRUPTED, TERMINATED = "signal.raise_signal(signal.SIGINT)", "signal.raise_signal(signal.SIGTERM)"
STILL = "print('still here')"
TWICE = (
    (INTERRUPTED, f"{INTERRUPTED}; {STILL}"),
    *(
        (TERMINATED, f"signals.until(lambda: [{late}, threading.Event().wait(30)]); {STILL}")
        for late in ("elsewhere()", "threading.Timer(0.1, elsewhere).start()")
    ),
)
DRAINS = (
    (TERMINATED, "signals.until(lambda: None); print('on')"),
    (TERMINATED, "try:\n        signals.until(lambda: 1 / 0)\n    except ZeroDivisionError:\n        print('failed')"),
)
PROGRAMS = (*((before, "pass") for before in (*ELSEWHERE, *GIVES_UP)), *TWICE, *DRAINS)
Told = dict[tuple[str, str], tuple[str, int]]


@pytest.fixture(scope="module", name="told")
def _told() -> Told:
    """What each such process says that it was told, and its status; all are killed when one isn't told anything."""
    codes = json.dumps([WAIT.format(before=before, after=after) for before, after in PROGRAMS])
    done = subprocess.run(
        [sys.executable, "-c", APART, codes], capture_output=True, text=True, timeout=PATIENCE, check=True
    )
    assert not done.stderr
    return dict(zip(PROGRAMS, map(tuple, json.loads(done.stdout)), strict=True))


def test_a_signal_ends_the_wait_wherever_it_lands(told: Told) -> None:
    """The kernel may give it to any thread, and at the moment before the main one lies down."""
    assert {told[before, "pass"] for before in ELSEWHERE} == {("SIGTERM", 0)}


def test_a_host_that_gives_up_ends_the_wait(told: Told) -> None:
    """From whichever thread finds it out, also where nobody waits yet."""
    assert {told[before, "pass"] for before in GIVES_UP} == {("given up", 0)}


def test_a_second_signal_is_final(told: Told) -> None:
    """Who asks twice doesn't wait for what hangs.

    Also while the host drains: what the main thread waits for then is a bell, too, and a wait for an answer is not
    ended by a signal elsewhere.
    """
    ends = [told[program] for program in TWICE]
    assert [status for _, status in ends] == [1] * 3
    assert not any("still here" in said for said, _ in ends)


def test_a_drain_that_is_over_lets_the_host_end(told: Told) -> None:
    """Also one that has failed."""
    assert [told[program] for program in DRAINS] == [("SIGTERM\non", 0), ("SIGTERM\nfailed", 0)]
