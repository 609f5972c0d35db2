"""How the supervisor's crew ends, and what is made anew, arrow by arrow: no thread, no process, no clock."""

from dataclasses import replace

import pytest

from actors.logic.supervisor.books import Early
from actors.logic.supervisor.effects import (
    AttendAll,
    Enlist,
    Hire,
    Introduce,
    TellDispatch,
)
from actors.logic.supervisor.states import Again, Down, Ending, Lost, Opening, Over, Stopped
from actors.messages import (
    Forward,
    GenerationDown,
    Role,
    Stop,
    Terminate,
    Woken,
)
from substrate.messages import Done, Outcome, Withheld
from waypost.acting import ActorEnded, Asked, Next, Reply
from waypost.model.ids import Generation
from waypost.testing.supervision import (
    BACKING_OFF,
    BOOKS,
    DIED,
    MAIL,
    RUNNING,
    STATES,
    YOUNGEST_FIRST,
    ended,
    ending,
    step,
)

# --- one for all ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [Role.SUBSTRATE, Role.DISPATCH, Role.SCHEDULER, Role.CHILD])
@pytest.mark.parametrize("failure", ["boom", None])
def test_if_one_fails_all_are_made_anew(role, failure) -> None:
    """Whoever fails has lost its fold, and the others may have acted on what it told them; a clean end unasked, too."""
    present = 3 if role is Role.CHILD else 1
    following = step(RUNNING, ended(role, failure=failure, incarnation=present))
    left = tuple(other for other in YOUNGEST_FIRST if other is not role)
    assert following.state.left == left
    assert isinstance(following.state.then, Again)
    state, order = following.state, []
    while isinstance(state, Ending):
        order.append(state.left[0])
        state = step(
            state, ended(state.left[0], failure=None, incarnation=3 if state.left[0] is Role.CHILD else 1)
        ).state
    assert tuple(order) == left
    assert isinstance(state, Opening)
    assert state.books.incarnation == 2


def test_a_lost_substrate_leaves_its_questions_withheld() -> None:
    """Nothing is known to be durable of what it hadn't answered (storage §2)."""
    asked = step(RUNNING, Asked(5, Forward(MAIL))).state
    following = step(asked, ended(Role.SUBSTRATE))
    assert Reply(5, Withheld("the repository's writer failed: boom")) in following.effects
    assert following.state.books.asked == {}


def test_a_substrate_that_ends_in_its_turn_answers_before() -> None:
    """It flushes when it is stopped; those answers still go out. What it leaves open is withheld."""
    asked = step(step(RUNNING, Asked(5, Forward(MAIL))).state, Asked(6, Forward(MAIL))).state
    state = replace(step(asked, ended(Role.DISPATCH)).state, left=(Role.SUBSTRATE,))
    answered = step(state, Outcome(11, Done(4)))
    assert answered.effects == (Reply(5, Done(4)),)
    following = step(answered.state, ended(Role.SUBSTRATE, failure=None))
    assert Reply(6, Withheld("the repository was closed before it could answer")) in following.effects


def test_the_broadcaster_alone_is_replaced_alone() -> None:
    """Nobody depends on it; watchers go on with the new one, and the child learns whom to tell of its progress."""
    following = step(RUNNING, ended(Role.BROADCASTER))
    assert following.state == replace(RUNNING, books=replace(BOOKS, broadcaster=2, faults=(100.0,)))
    assert following.effects == (Hire(Role.BROADCASTER, 2), Enlist(Role.BROADCASTER), AttendAll(), Introduce())
    assert Introduce() not in step(BACKING_OFF, ended(Role.BROADCASTER)).effects


def test_three_failures_in_a_minute_leave_the_deployment_down() -> None:
    """A fault of the host's own code doesn't go away by starting again, and says so."""
    state = replace(RUNNING, books=replace(BOOKS, faults=(60.0, 99.0)))
    following = step(state, ended(Role.DISPATCH))
    assert isinstance(following.state.then, Lost)
    assert following.state.then.reason == "host-fault"


def test_a_disk_that_fails_again_leaves_the_storage_failed() -> None:
    """The first time the good flushes are saved by a copy; the second time it is an operator's turn (storage §2)."""
    failed = replace(ended(Role.SUBSTRATE), fault="disk")
    first = step(RUNNING, failed).state
    assert isinstance(first.then, Again)
    again = replace(RUNNING, books=replace(first.books, faults=()))
    following = step(step(again, Asked(5, Forward(MAIL))).state, failed)
    assert isinstance(following.state.then, Lost)
    assert following.state.then.reason == "storage-failed"
    assert Reply(5, Withheld("the repository's writer failed: boom")) in following.effects
    assert isinstance(step(again, ended(Role.SUBSTRATE)).state.then, Again), "another fault isn't the disk's"
    assert isinstance(step(again, replace(ended(Role.DISPATCH), fault="disk")).state.then, Again)


def test_a_full_disk_is_no_actors_fault() -> None:
    """However often it fills up, it ends by itself: the deployment is made anew and never given up for it."""
    state = replace(RUNNING, books=replace(BOOKS, faults=(60.0, 99.0)))
    following = step(state, replace(ended(Role.SUBSTRATE), fault="full"))
    assert isinstance(following.state.then, Again)
    assert following.state.books.faults == (60.0, 99.0)


def test_failures_long_ago_do_not_count() -> None:
    """Three in a year are bad luck."""
    state = replace(RUNNING, books=replace(BOOKS, faults=(1.0, 40.0)))
    assert isinstance(step(state, ended(Role.DISPATCH)).state.then, Again)


def test_an_actor_that_does_not_end_is_not_built_around() -> None:
    """A stuck writer may still write: a second one beside it would be two writers."""
    state = ending(Again("x", (Early(1, MAIL),)), Role.SUBSTRATE)
    following = step(state, Woken(10))
    assert isinstance(following.state, Down)
    assert following.state.reason == "host-fault"
    assert isinstance(following.effects[0].value, Withheld)


@pytest.mark.parametrize("who", [ActorEnded("clock", 1, "x"), ended(Role.DISPATCH, deployment="other"), ended("cook")])
def test_the_end_of_strangers_is_ignored(who) -> None:
    """Names are compared whole."""
    assert step(RUNNING, who) == Next(RUNNING)


def test_one_that_fails_while_it_waits_for_its_turn_is_crossed_off() -> None:
    """It needn't be asked to end any more."""
    state = ending(Again("x"), Role.DISPATCH, Role.BROADCASTER, Role.SUBSTRATE)
    following = step(state, ended(Role.BROADCASTER))
    assert following.state.left == (Role.DISPATCH, Role.SUBSTRATE)
    assert following.effects == ()


# --- stop ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", STATES, ids=lambda s: type(s).__name__)
def test_a_stop_works_in_every_state_and_is_answered_once_all_have_ended(state) -> None:
    """Whoever stops a host must not depend on luck."""
    following = step(state, Asked(8, Stop()))
    answers = [effect for effect in following.effects if isinstance(effect, Reply)]
    after = following.state
    while isinstance(after, Ending):
        assert Reply(8, None) not in answers
        head = after.left[0]
        present = {Role.CHILD: 3, Role.BROADCASTER: after.books.broadcaster}.get(head, 1)
        end = step(after, ended(head, failure=None, incarnation=present))
        after, answers = end.state, [*answers, *(e for e in end.effects if isinstance(e, Reply))]
    assert isinstance(after, Stopped)
    assert answers[-1] == Reply(8, None)


def test_a_stop_tells_dispatch_first_and_ends_youngest_first() -> None:
    """Runs stay live: the exit that follows is no crash and charges nobody."""
    following = step(RUNNING, Stop())
    assert following.effects[0] == TellDispatch(GenerationDown(Generation(3), unexpected=False))
    assert isinstance(following.effects[1].message, Terminate)
    assert following.state.left == YOUNGEST_FIRST
    assert step(following.state, DIED).state == following.state


def test_a_stop_goes_on_past_an_actor_that_does_not_end() -> None:
    """Each has its deadline; the answer comes all the same."""
    state = ending(Over((8,)), Role.SUBSTRATE)
    assert step(state, Woken(9)).state == state
    assert step(state, Woken(10)).effects[0] == Reply(8, None)
