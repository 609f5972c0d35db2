"""Asking a host whose parts don't answer: nobody is told more than is known."""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pykka
import pytest

from waypost.acting import Ref
from waypost.host.datadir import DataDir
from waypost.host.errors import NotNow, Unanswered
from waypost.host.live import Live
from waypost.host.offline import Offline
from waypost.model.limits import DEFAULT


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
        Live(silent, DEFAULT, resting, timeout=0.01).deployed()


def test_a_root_that_has_ended_is_an_error_of_ours_and_no_traceback(silent: Ref, resting: Resting) -> None:
    """As it is while a host ends."""
    silent.stop()
    with pytest.raises(Unanswered, match="has ended"):
        Live(silent, DEFAULT, resting).deployed()


def test_what_is_withheld_may_be_there_all_the_same() -> None:
    """The deployment may have been made anew after its disk had it: a retry is right, a promise of nothing is not."""
    assert "nothing was stored" not in NotNow("the deployment was made anew").hint
