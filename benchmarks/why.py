"""What ``waypost why`` costs with many deployments: one question to the root, the answer, the wire, the words.

CPU time of this process, which does both sides; a tenth of the deployments are in every state there is, the others run.

    python -m benchmarks.why [--count DEPLOYMENTS]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pykka

from actors.logic.supervisor.words import describe
from benchmarks.figures import load, say, show
from waypost.cli.explaining import all_words
from waypost.host.answers.why import Whys
from waypost.host.code.deploying import keys
from waypost.host.datadir.directory import DataDir, lay_out, prepare
from waypost.host.messages import Deployed
from waypost.host.reading import reasons
from waypost.host.reading.live import Live
from waypost.host.reading.offline import Offline
from waypost.model.limits import DEFAULT
from waypost.shell import Question
from waypost.testing.supervision import RUNNING, SETUP, STATES, a_spec

LIMIT = 100.0
"""Milliseconds for all of it, at 1,000 deployments."""
REPEATS = 7
T = TypeVar("T")


class Root(pykka.ThreadingActor):
    """Answers as a host's root does: with what it was told last of each deployment."""

    use_daemon_thread = True

    def __init__(self, deployed: tuple[Deployed, ...]) -> None:
        super().__init__()
        self._deployed = deployed
        self.asked = 0

    def on_receive(self, message: Any) -> None:  # Any: pykka's own
        """Once for each question."""
        assert isinstance(message, Question)
        self.asked += 1
        message.answer.put(self._deployed)


def deployments(count: int, data: DataDir) -> tuple[Deployed, ...]:
    """So many, each with a folder in the data directory."""
    made = []
    for number in range(count):
        state = STATES[number // 10 % len(STATES)] if number % 10 == 0 else RUNNING
        spec = a_spec(f"d{number}")
        made.append(Deployed(spec, describe(replace(SETUP, spec=spec), state), None))
        data.repo(f"d{number}").mkdir()
    return tuple(made)


def milliseconds(work: Callable[[], T]) -> tuple[float, T]:
    """CPU time of one call, the best of several, because others use the machine; and what it returned."""
    best, found = float("inf"), work()
    for _ in range(REPEATS):
        begin = time.process_time()
        work()
        best = min(best, time.process_time() - begin)
    return best * 1e3, found


def main() -> None:
    """Measure."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=1000, help="deployments")
    options.add_argument("--folder", help="where to write")
    chosen = options.parse_args()
    load()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        data = prepare(Path(folder) / "data")
        lay_out(data)
        keys(data)
        root = Root.start(deployments(chosen.count, data))
        live = Live(root, DEFAULT, lambda hosted: Offline(data, DEFAULT, hosted), data.out)
        try:
            answered, answer = milliseconds(lambda: reasons.of_all(live.everything()))
        finally:
            root.stop()
    sent, raw = milliseconds(lambda: msgspec.json.encode(answer))
    read, back = milliseconds(lambda: msgspec.json.decode(raw, type=Whys))
    said, _ = milliseconds(lambda: list(all_words(back)))
    say("the host's answer", answered, "ms")
    say("the wire: encoded, and decoded", sent + read, "ms")
    say("in words", said, "ms")
    show(f"why, {len(answer.deployments)} deployments", answered + sent + read + said, LIMIT, "ms")


if __name__ == "__main__":
    main()
