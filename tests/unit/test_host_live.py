"""Asking a host whose parts don't answer: nobody is told more than is known."""

from collections.abc import Iterator
from typing import Any

import pykka
import pytest

from waypost.acting import Ref
from waypost.host.errors import NotNow, Unanswered
from waypost.host.live import Live
from waypost.model.limits import DEFAULT


class Silent(pykka.ThreadingActor):
    """Gives whoever asks an answer that never comes."""

    use_daemon_thread = True

    def on_receive(self, message: Any) -> Any:
        """Promise."""
        return pykka.ThreadingFuture()


@pytest.fixture
def silent() -> Iterator[Ref]:
    ref = Silent.start()
    yield ref
    ref.stop()


def test_an_answer_that_takes_too_long_says_nothing_about_what_is_stored(silent: Ref) -> None:
    """The mail may become durable a moment later."""
    with pytest.raises(Unanswered, match="isn't known"):
        Live(silent, DEFAULT, timeout=0.01).deployed()


def test_a_root_that_has_ended_is_an_error_of_ours_and_no_traceback(silent: Ref) -> None:
    """As it is while a host ends."""
    silent.stop()
    with pytest.raises(Unanswered, match="has ended"):
        Live(silent, DEFAULT).deployed()


def test_what_is_withheld_may_be_there_all_the_same() -> None:
    """The deployment may have been made anew after its disk had it: a retry is right, a promise of nothing is not."""
    assert "nothing was stored" not in NotNow("the deployment was made anew").hint
