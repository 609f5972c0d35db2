"""kill -9 of the child and of the host, at random moments and at the boundaries between commits: nobody can tell."""

import random
from collections.abc import Callable
from itertools import count

import pytest

from waypost.testing.boundaries import met, named, subject_of
from waypost.testing.claims import AMOUNTS, DEPLOYMENT, Scene
from waypost.testing.driver import Played, play
from waypost.testing.evidence import subjects
from waypost.testing.killing import KILLED
from waypost.testing.reaper import Kill, Reaper, kill_child, kill_host

pytestmark = pytest.mark.e2e

MakeScene = Callable[..., Scene]
Outcomes = dict[str, dict[str, object]]
KINDS = pytest.mark.parametrize("kill", [pytest.param(kill_child, id="child"), pytest.param(kill_host, id="host")])
LINES, SPAN = 14, 0.03
"""A kill comes after up to so many lines of the timeline, a sixth of an undisturbed one, and up to so many seconds."""
MOST = 10
"""Kills in one play, which costs a start for each of them, and one story for all."""
LIVES = 200
"""More than there are boundaries."""
BY_THE_CHILD = ("append Step", "append TimerSet", "append SignalAwaited", "queue outgoing mail", "append RunCompleted")
"""Commits that the child asks for. It is there when they are durable, but where it has asked for two at a time, as for
the steps that begin with ``check_``: the first one may have been its end."""


# --- at random moments ---------------------------------------------------------------------------------------------


def kill_at_random(scene: MakeScene, undisturbed: Outcomes, kill: Kill, kills: int, seed: int) -> None:
    """Play until there were so many kills; compare each play with the undisturbed one."""
    done = 0
    for each in count(seed):
        with scene(f"seed-{each}").explained(f"seed {each}") as here:
            reaper = Reaper.seeded(kill, each, kills=min(MOST, kills - done), span=SPAN, lines=LINES)
            played = play(here.place, here.errands, reaper=reaper)
            here.check(undisturbed, played)
        done += played.kills
        # A host that is killed when all is done has no successor.
        assert played.lives in ({1} if kill is kill_child else {played.kills, played.kills + 1})
        if done == kills:
            return


@KINDS
def test_killed_at_random_moments_it_comes_to_the_same(scene, undisturbed, kill: Kill) -> None:
    """The promise of the whole: kill any process at any moment, the run goes on where it was."""
    kill_at_random(scene, undisturbed, kill, kills=6, seed=20)


@pytest.mark.torture
@pytest.mark.parametrize("part", range(4))
@KINDS
def test_killed_at_forty_random_moments_it_comes_to_the_same(scene, undisturbed, kill: Kill, part: int) -> None:
    """The same for longer, ten kills in each part, at other moments each time; a failure says its seed."""
    kill_at_random(scene, undisturbed, kill, kills=10, seed=random.randrange(1 << 30))


# --- at the boundaries ---------------------------------------------------------------------------------------------


def die_at_boundaries(here: Scene, undisturbed: Outcomes, every: int, *options: str) -> tuple[Played, dict[str, bool]]:
    """One play, in which somebody dies after each flush that brings an ``every``-th new boundary; see ``met``."""
    noted = here.folder / "boundaries"
    words = ("--record", str(here.folder / "record"), "--boundaries", str(noted), "--every", str(every), *options)
    with here.explained(f"somebody dies at each {every}. boundary"):
        played = play(here.place, here.errands, lives=[words] * LIVES)
        here.check(undisturbed, played)
        boundaries = met(noted)
        said = {named(subject) for subject in subjects(here.data.repo(DEPLOYMENT), here.key)}
        assert said == {subject_of(boundary) for boundary in boundaries}, "the disk has seen all that was written"
    return played, boundaries


EVERY = pytest.mark.parametrize(
    ("every", "amount"),
    [pytest.param(2, 412, id="every-second"), *(pytest.param(1, each, marks=pytest.mark.torture) for each in AMOUNTS)],
)


@EVERY
def test_a_host_that_dies_at_a_boundary_has_told_nobody_and_loses_nothing(
    scene, undisturbed, every: int, amount: int
) -> None:
    """Durable and untold is the narrowest moment: the answer, the mail, the body that waited must still come, once."""
    played, boundaries = die_at_boundaries(scene("play", amount), undisturbed, every)
    died = sum(boundaries.values())
    assert died >= len(boundaries) // every
    assert played.lives > died // 2, "it is said that somebody died, and nobody had to be started again"


@EVERY
def test_a_child_that_dies_at_a_boundary_is_replaced_and_nothing_is_done_twice(
    scene, undisturbed, every: int, amount: int
) -> None:
    """The answer to its write is on the way to a child that is gone; the next generation must not need it."""
    played, boundaries = die_at_boundaries(scene("play", amount), undisturbed, every, "--spare-host")
    assert played.lives == 1
    its_own = [died for each, died in boundaries.items() if each.startswith(BY_THE_CHILD) and " check_" not in each]
    assert every > 1 or all(its_own)
    assert sum(boundaries.values()) >= len(its_own) // every
    assert sum(line.startswith(KILLED) for line in played.lines[0]) >= len(its_own) // every
