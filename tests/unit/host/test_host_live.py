"""Asking a host whose parts don't answer: nobody is told more than is known."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pykka
import pytest

from actors.logic.supervisor.words import describe
from waypost.acting import Ref
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import NotNow, Unanswered
from waypost.host.messages import Deployed, Deployments
from waypost.host.reading.live import Live
from waypost.host.reading.offline import Offline
from waypost.host.reading.reasons import of_all
from waypost.model.limits import DEFAULT
from waypost.testing.supervision import RUNNING, SETUP, a_spec


class Silent(pykka.ThreadingActor):
    """Gives whoever asks an answer that never comes."""

    use_daemon_thread = True

    def on_receive(self, message: Any) -> Any:
        """Promise."""
        return pykka.ThreadingFuture()


Resting = Callable[[Collection[str]], Offline]


@pytest.fixture
def silent() -> Iterator[Ref]:
    ref = Silent.start()
    yield ref
    ref.stop()


@pytest.fixture
def resting(tmp_path: Path) -> Resting:
    """A data directory with nothing in it."""
    return lambda hosted: Offline(DataDir(tmp_path), DEFAULT, hosted)


def test_an_answer_that_takes_too_long_says_nothing_about_what_is_stored(silent: Ref, resting: Resting) -> None:
    """The mail may become durable a moment later."""
    with pytest.raises(Unanswered, match="isn't known"):
        Live(silent, DEFAULT, resting, Path("out"), timeout=0.01).deployed()


def test_a_root_that_has_ended_is_an_error_of_ours_and_no_traceback(silent: Ref, resting: Resting) -> None:
    """As it is while a host ends."""
    silent.stop()
    with pytest.raises(Unanswered, match="has ended"):
        Live(silent, DEFAULT, resting, Path("out")).deployed()


def test_what_is_withheld_may_be_there_all_the_same() -> None:
    """The deployment may have been made anew after its disk had it: a retry is right, a promise of nothing is not."""
    assert "nothing was stored" not in NotNow("the deployment was made anew").hint


class Counting(pykka.ThreadingActor):
    """Answers what it was told, and counts how often it is asked."""

    use_daemon_thread = True

    def __init__(self, deployed: tuple[Deployed, ...], asked: list[object]) -> None:
        super().__init__()
        self._deployed, self._asked = deployed, asked

    def on_receive(self, message: Any) -> Any:
        """Once for each question."""
        self._asked.append(message.body)
        message.answer.put(self._deployed)


def test_why_asks_once_however_many_deployments_there_are(resting: Resting) -> None:
    """A thousand of them are answered from what the root knows already; none of them is asked itself."""
    asked: list[object] = []
    several = tuple(
        Deployed(spec, describe(replace(SETUP, spec=spec), RUNNING), None)
        for spec in (a_spec(f"d{number}") for number in range(50))
    )
    root = Counting.start(several, asked)
    try:
        found = of_all(Live(root, DEFAULT, resting, Path("out")).everything())
    finally:
        root.stop()
    assert len(found.deployments) == 50
    assert asked == [Deployments()]
