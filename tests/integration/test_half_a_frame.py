"""A real child writes half a frame and sleeps: nobody waits for the rest of it for ever."""

import os
import signal
from pathlib import Path

from ipc.stopped import stopped
from waypost.model.limits import Limits
from waypost.testing.child_stage import alive
from waypost.testing.deployment import READY, SERVE, Deployment, by_count
from waypost.testing.patience import eventually

HALVES = "import os, time\nos.write(3, bytes((0, 16, 0, 0, 0x82)))\ntime.sleep(600)\n"
"""What a child does that says how long its frame will be, sends the first byte of it, and no more."""
STOPS = HALVES.replace("time.sleep", "os.kill(os.getpid(), 19)\ntime.sleep")
"""The same, but that it stops itself there, as somebody with a SIGSTOP would."""


def test_a_child_that_writes_half_a_frame_and_sleeps_is_replaced(tmp_path: Path) -> None:
    """It looked well, answered nothing, and would have done so until somebody spoke for it."""
    deployment = Deployment(tmp_path / "data")
    try:
        limits = Limits(backoff_first=0.02, frame_look=0.1)
        deployment.start(by_count(tmp_path, READY + HALVES, SERVE), limits=limits)
        before = deployment.until("running")
        assert before.pid is not None
        assert "went no further (5 bytes)" in deployment.until("backing-off").reason
        eventually(lambda: not alive(before.pid or 0), "it is killed")
        assert deployment.until("running").generation == 2
        deployment.enqueue(1)
    finally:
        deployment.close()


def test_a_child_that_somebody_has_stopped_in_the_middle_of_a_frame_is_waited_for(tmp_path: Path) -> None:
    """Nothing of its own is wrong: no run is charged for it. Once it may go on, it has to."""
    deployment = Deployment(tmp_path / "data")
    try:
        limits = Limits(backoff_first=0.02, frame_look=0.01)
        deployment.start(by_count(tmp_path, READY + STOPS, SERVE), limits=limits)
        pid = deployment.until("running").pid
        assert pid is not None
        eventually(lambda: stopped(pid, boxed=False) != (), "it has stopped itself")
        for number in range(20):  # each of which takes longer than from one look to the next
            deployment.enqueue(number)
        assert stopped(pid, boxed=False)
        os.kill(pid, signal.SIGCONT)
        assert "went no further (5 bytes)" in deployment.until("backing-off").reason
        assert deployment.until("running").generation == 2
    finally:
        deployment.close()
