"""What a deployment does with what it is asked from outside, in each of its states; the page of it is generated."""

from typing import Any

import pytest

from actors.logic.supervisor.sleep import Dormant
from actors.logic.supervisor.states import Down, Ending, Lost, Over, Stopped
from waypost.acting import Reply
from waypost.testing.lifecycle import PUBLIC, outcome
from waypost.testing.supervision import STATES, step


def _over(state: Any) -> bool:
    return isinstance(state, Stopped | Down) or (isinstance(state, Ending) and isinstance(state.then, Over | Lost))


@pytest.mark.parametrize("state", STATES, ids=lambda s: type(s).__name__)
def test_mail_is_taken_in_every_state_that_can_run_again_and_withheld_in_the_others(state: Any) -> None:
    """Crash-looping and held included: whoever sends it must not have to know how the workflow is.

    A question is treated alike, but where it would wake a sleeper: it is answered from the disk.
    """
    mail, question = (outcome(state, PUBLIC[label]) for label in ("a mail", "a question"))
    assert mail in ({"withheld"} if _over(state) else {"kept", "passed on", "→ Opening"})
    assert (mail == "→ Opening") is isinstance(state, Dormant)
    assert question in {mail, "refused `asleep`"}


@pytest.mark.parametrize("state", STATES, ids=lambda s: type(s).__name__)
def test_nobody_is_left_without_an_answer(state: Any) -> None:
    """It is done, kept for later, or said why not; what is kept or passed on is answered when that is."""
    assert [label for label in PUBLIC.keys() - {"Start", "Stop"} if not outcome(state, PUBLIC[label])] == []


@pytest.mark.parametrize("state", [state for state in STATES if _over(state)], ids=lambda s: type(s).__name__)
def test_what_is_withheld_says_why(state: Any) -> None:
    """A sender that is told nothing gives up, or tries for ever."""
    (reply,) = (each for each in step(state, PUBLIC["a mail"]).effects if isinstance(each, Reply))
    assert "the deployment is" in reply.value.reason
