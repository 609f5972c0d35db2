"""A host ends when it is told to: no signal is lost, wherever in its threads or in its start it finds it."""

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


def told(before: str, after: str = "pass") -> tuple[str, int]:
    """What such a process says that it was told, and its status; it is killed when it isn't told anything."""
    code = WAIT.format(before=before, after=after)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert not done.stderr
    return done.stdout.strip(), done.returncode


@pytest.mark.parametrize(
    "before",
    [
        "threading.Timer(0.1, elsewhere).start()",
        "thread = threading.Thread(target=elsewhere); thread.start(); thread.join()",
        pytest.param("signal.raise_signal(signal.SIGTERM)", marks=pytest.mark.torture),
    ],
    ids=["in another thread", "in another thread, before it waits", "before it waits"],
)
def test_a_signal_ends_the_wait_wherever_it_lands(before: str) -> None:
    """The kernel may give it to any thread, and at the moment before the main one lies down."""
    assert told(before) == ("SIGTERM", 0)


def test_a_host_that_gives_up_ends_the_wait() -> None:
    """From whichever thread finds it out, also where nobody waits yet."""
    assert told("threading.Timer(0.1, signals.give_up, [HostError('x')]).start()") == ("given up", 0)
    assert told("signals.give_up(HostError('x'))") == ("given up", 0)


def test_a_second_signal_is_final() -> None:
    """Who asks twice doesn't wait for what hangs."""
    said, status = told("signal.raise_signal(signal.SIGINT)", "signal.raise_signal(signal.SIGINT); print('still here')")
    assert "still here" not in said
    assert status == 1


@pytest.mark.parametrize(
    "late",
    [
        "elsewhere()",
        pytest.param("threading.Timer(0.1, elsewhere).start(); threading.Event().wait(30)", marks=pytest.mark.torture),
    ],
)
def test_a_second_signal_is_final_also_while_the_host_drains(late: str) -> None:
    """What the main thread waits for then is a bell, too: a wait for an answer is not ended by a signal elsewhere."""
    work = f"(lambda: [{late.replace('; ', ', ')}, threading.Event().wait(30)])"
    said, status = told("signal.raise_signal(signal.SIGTERM)", f"signals.until({work}); print('still here')")
    assert "still here" not in said
    assert status == 1


def test_a_drain_that_is_over_lets_the_host_end() -> None:
    """Also one that has failed."""
    said, status = told("signal.raise_signal(signal.SIGTERM)", "signals.until(lambda: None); print('on')")
    assert (said.splitlines(), status) == (["SIGTERM", "on"], 0)
    failing = "try:\n        signals.until(lambda: 1 / 0)\n    except ZeroDivisionError:\n        print('failed')"
    assert told("signal.raise_signal(signal.SIGTERM)", failing) == ("SIGTERM\nfailed", 0)
