"""kill -9 of the child and of the host, at random moments and right after flushes: the outside can't tell."""

import random
from collections.abc import Callable
from itertools import count

import pytest

from waypost.testing.claims import Scene, errands
from waypost.testing.driver import play
from waypost.testing.host import KILLED
from waypost.testing.reaper import Kill, Reaper, kill_child, kill_host

pytestmark = pytest.mark.e2e

MakeScene = Callable[[str], Scene]
Outcomes = dict[str, dict[str, object]]
KINDS = pytest.mark.parametrize(
    ("kill", "span"),
    # Seconds within which the next kill comes: about as long as a play goes on after the one before.
    [pytest.param(kill_child, 0.4, id="child"), pytest.param(kill_host, 1.0, id="host")],
)


# --- at random moments ---------------------------------------------------------------------------------------------


def kill_at_random(scene: MakeScene, undisturbed: Outcomes, kill: Kill, span: float, kills: int, seed: int) -> None:
    """Play until there were so many kills, at most three a play; compare each play with the undisturbed one."""
    done = 0
    for each in count(seed):
        with scene(f"seed-{each}").explained(f"seed {each}") as here:
            reaper = Reaper.seeded(kill, each, kills=min(3, kills - done), span=span)
            played = play(here.place, errands(), reaper=reaper)
            here.check(undisturbed, played)
        done += played.kills
        assert played.lives == (1 if kill is kill_child else played.kills + 1)
        if done == kills:
            return


@pytest.mark.torture
@KINDS
def test_killed_at_random_moments_it_comes_to_the_same(scene, undisturbed, kill: Kill, span: float) -> None:
    """The promise of the whole: kill any process at any moment, the run goes on where it was."""
    kill_at_random(scene, undisturbed.outcomes, kill, span, kills=6, seed=20)


@pytest.mark.torture
@pytest.mark.parametrize("part", range(8))
@KINDS
def test_killed_at_forty_random_moments_it_comes_to_the_same(scene, undisturbed, kill: Kill, span, part: int) -> None:
    """The same for longer, five kills in each part, at other moments each time; a failure says its seed."""
    kill_at_random(scene, undisturbed.outcomes, kill, span, kills=5, seed=random.randrange(1 << 30))


# --- right after a flush -------------------------------------------------------------------------------------------


def host_dies_after(here: Scene, undisturbed: Outcomes, flushes: list[int]) -> int:
    """One host after the other dies right after the n-th flush of its own life; how many of them did."""
    with here.explained(f"the hosts die after flushes {flushes}"):
        played = play(here.place, errands(), lives=[("--die-after-sync", str(n)) for n in flushes])
        here.check(undisturbed, played)
    return played.lives - 1


def child_dies_after(here: Scene, undisturbed: Outcomes, flushes: list[int]) -> int:
    """The child dies right after each of these flushes of one host, where there is a child; how often it did."""
    with here.explained(f"the child dies after flushes {flushes}"):
        options = [word for n in flushes for word in ("--kill-child-after-sync", str(n))]
        played = play(here.place, errands(), lives=[options])
        here.check(undisturbed, played)
    assert played.lives == 1
    return sum(line.startswith(KILLED) for lines in played.lines for line in lines)


@pytest.mark.parametrize("first", [7])
def test_a_host_that_dies_after_a_flush_has_told_nobody_and_loses_nothing(scene, undisturbed, first: int) -> None:
    """Durable and untold is the narrowest moment: the answer, the mail, the body that waited must still come, once.

    Two kills a play, half of the play apart; torture and soak together meet each flush.
    """
    apart = undisturbed.flushes // 2
    assert host_dies_after(scene("play"), undisturbed.outcomes, [first, apart]) >= 1


@pytest.mark.torture
@pytest.mark.parametrize("first", [5])
def test_a_child_that_dies_after_a_flush_is_replaced_and_nothing_is_done_twice(scene, undisturbed, first: int) -> None:
    """The answer to its write is on the way to a child that is gone; the next generation must not need it.

    Six kills a play, a sixth of the play apart; torture and soak together meet each flush.
    """
    apart = undisturbed.flushes // 6
    assert child_dies_after(scene("play"), undisturbed.outcomes, [first + n * apart for n in range(6)]) >= 1


@pytest.mark.torture
@pytest.mark.parametrize("part", range(0, 10, 2))
@pytest.mark.parametrize("dies_after", [host_dies_after, child_dies_after])
def test_killed_after_every_other_flush_it_comes_to_the_same(scene, undisturbed, dies_after, part: int) -> None:
    """One kill a play, after each other flush that an undisturbed host makes; every tenth one in each part."""
    after_each(scene, undisturbed, dies_after, part)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(1, 10, 2))
@pytest.mark.parametrize("dies_after", [host_dies_after, child_dies_after])
def test_killed_after_any_of_the_others_it_comes_to_the_same(scene, undisturbed, dies_after, part: int) -> None:
    """So that each single flush is met."""
    after_each(scene, undisturbed, dies_after, part)


def after_each(scene, undisturbed, dies_after, part: int) -> None:
    """After every tenth flush, from this one on."""
    for n in range(1 + part, undisturbed.flushes + 1, 10):
        dies_after(scene(f"after-{n}"), undisturbed.outcomes, [n])
