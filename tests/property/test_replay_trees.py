"""Trees of random programs, cancelled and killed anywhere: each call of a child has one outcome, each log replays."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from waypost import Workflow
from waypost.model import events as ev
from waypost.testing.family_check import check_family
from waypost.testing.random_program import RandomProgram, mix
from waypost.testing.tree_run import TreeRun

DEPTH = 2


def a_workflow(seed: int) -> Workflow:
    """The workflow of a seed; a child's program follows from its argument, which says how deep it lies, too."""
    flow = Workflow("expenses", address="expenses@example.com")

    @flow.run
    async def main() -> int:
        program = RandomProgram(seed, children=True)
        return await program.block(mix(seed), 2)

    @flow.child
    async def kin(tag: str) -> int:
        level = tag.count("^")
        program = RandomProgram(mix(tag), children=level < DEPTH, level=level)
        value = await (program.block(mix(tag), 2) if mix(tag) % 2 else program.leaf(mix(tag)))
        if value % 11 == 0:
            raise ValueError(value)
        return value

    return flow


@settings(max_examples=6)
@given(
    seed=st.integers(0, 2**32),
    kills=st.lists(st.integers(0, 120), max_size=3),
    cancels=st.lists(st.integers(0, 60), max_size=2),
)
def test_a_tree_comes_to_its_end_whatever_befalls_it(seed: int, kills: list[int], cancels: list[int]) -> None:
    """Under the rule book, commit by commit; and no code finds another log than the one that it would write."""
    chance = random.Random(seed)
    tree = TreeRun(a_workflow(seed), "kin", chance=chance)
    for steps in kills:
        tree.go_on(steps)
        tree.kill()
    for steps in cancels:
        tree.go_on(steps)
        tree.cancel(chance.choice(list(tree.runs())))
    assert tree.go_on()
    assert not tree.pauses
    runs = tree.runs()
    check_family(runs)
    tree.family.check()
    for run, log in runs.items():
        if not isinstance(log[-1], ev.RunCancelled):
            assert not tree.replayed(run)
