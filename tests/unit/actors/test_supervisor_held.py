"""A deployment that is held: mail comes in, nothing leaves, and only an operator's word makes it anew."""

from dataclasses import replace

from actors.logic.supervisor.books import Early
from actors.logic.supervisor.effects import Dismiss, Enlist, EnlistOutsiders, Hire, OpenRepository, Pass, TellChild
from actors.logic.supervisor.states import Again, Ending, Held, Lifting, Opening, Raising
from actors.logic.supervisor.words import describe
from actors.messages import Forward, Role
from substrate.messages import BeginGeneration, Done, Outcome, Refused, ResumeDeployment, Withheld
from waypost.acting import Asked, Reply
from waypost.testing.supervision import (
    BOOKS,
    HELD,
    LIFTED,
    LIFTING,
    MAIL,
    OPENING,
    SETUP,
    SNAPSHOT,
    TOKEN,
    ended,
    step,
)

HELD_SNAPSHOT = replace(SNAPSHOT, held="restore")


def test_a_held_repository_gets_nobody_who_could_let_anything_out() -> None:
    """No dispatch, no scheduler, no child, and no courier on its stream: by construction, not by a flag in each."""
    after = step(OPENING, Outcome(TOKEN, Done(0, HELD_SNAPSHOT)))
    assert isinstance(after.state, Held)
    assert [effect.role for effect in after.effects if isinstance(effect, Hire)] == [Role.BROADCASTER]
    assert [effect.role for effect in after.effects if isinstance(effect, Enlist)] == [Role.BROADCASTER]
    assert not any(isinstance(effect, EnlistOutsiders | TellChild | Pass) for effect in after.effects)
    assert describe(SETUP, after.state).state == "held"


def test_mail_is_accepted_while_it_is_held() -> None:
    """Whoever sends must not notice that somebody moved house."""
    after = step(HELD, Asked(9, Forward(MAIL)))
    assert isinstance(after.state, Held)
    (passed,) = (effect for effect in after.effects if isinstance(effect, Pass))
    answered = step(after.state, Outcome(passed.correlation, Done(1, None)))
    assert Reply(9, Done(1, None)) in answered.effects
    assert isinstance(answered.state, Held)


def test_an_operators_word_is_made_durable_and_then_all_is_made_anew() -> None:
    """What goes on is built from a log that says so; a crash in between leaves it held, or not, and never half."""
    asked = step(HELD, Asked(5, Forward(ResumeDeployment("ann"))))
    assert isinstance(asked.state, Lifting)
    assert asked.effects[:-1] == (Pass(TOKEN + 1, ResumeDeployment("ann")),)
    lifted = step(asked.state, Outcome(TOKEN + 1, Done(1, None)))
    assert Reply(5, Done(1, None)) in lifted.effects
    assert isinstance(lifted.state, Ending)
    assert isinstance(lifted.state.then, Again)
    assert lifted.state.left == (Role.BROADCASTER, Role.SUBSTRATE)
    assert Dismiss(Role.BROADCASTER) in lifted.effects
    broadcaster = step(lifted.state, ended(Role.BROADCASTER, failure=None))
    substrate = step(broadcaster.state, ended(Role.SUBSTRATE, failure=None))
    assert isinstance(substrate.state, Opening)
    assert any(isinstance(effect, OpenRepository) for effect in substrate.effects)
    opened = step(substrate.state, Outcome(substrate.state.opened, Done(1, SNAPSHOT)))
    assert isinstance(opened.state, Raising)
    assert any(isinstance(effect, Pass) and isinstance(effect.what, BeginGeneration) for effect in opened.effects)


def test_a_word_that_was_not_made_durable_changes_nothing() -> None:
    """It is answered as it is, and can be given again."""
    for result in (Withheld("no space"), Refused("not-held", "it isn't")):
        after = step(LIFTING, Outcome(LIFTED, result))
        assert after.state == replace(HELD, books=after.state.books)
        assert Reply(6, result) in after.effects


def test_a_second_word_is_passed_on_and_answered_by_the_log() -> None:
    """Two operators at once: one of them is told that there is nothing to resume."""
    after = step(LIFTING, Asked(7, Forward(ResumeDeployment("bob"))))
    assert isinstance(after.state, Lifting)
    assert after.state.lifted == LIFTED
    assert any(isinstance(effect, Pass) for effect in after.effects)


def test_a_word_that_comes_while_the_repository_opens_is_not_lost() -> None:
    """It is kept like mail, and what it lifts is made anew all the same."""
    opening = replace(OPENING, early=(Early(1, MAIL), Early(2, ResumeDeployment("ann"))))
    after = step(opening, Outcome(TOKEN, Done(0, HELD_SNAPSHOT)))
    assert isinstance(after.state, Lifting)
    assert after.state.lifted == BOOKS.last + 2
    assert isinstance(step(after.state, Outcome(after.state.lifted, Done(1, None))).state, Ending)
