"""A host takes what it is allowed of open files, and says beforehand when that isn't enough."""

import resource
import subprocess
import sys

import pytest

from waypost.host.descriptors import EACH, OWN, ROOM, too_few

ASK = """
import resource, sys
from waypost.host.descriptors import raise_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
print(raise_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
"""
HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]


@pytest.mark.parametrize(
    ("soft", "hard", "told"),
    [(64, 1024, "1024 1024 1024"), (256, 256, "256 256 256"), (100, 100, "100 100 100")],
    ids=["lower than it may be", "as high as it may be", "lower still"],
)
def test_the_soft_limit_becomes_the_hard_one(soft: int, hard: int, told: str) -> None:
    """In a process of its own, as what is lowered can't be raised again."""
    done = subprocess.run([sys.executable, "-c", ASK, str(soft), str(hard)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == told


@pytest.mark.skipif(HARD != resource.RLIM_INFINITY and HARD < ROOM, reason="no process here may have as many")
def test_a_limit_without_bounds_is_not_taken_whole() -> None:
    """Programs that look at each possible descriptor would take minutes."""
    done = subprocess.run([sys.executable, "-c", ASK, "64", str(HARD)], capture_output=True, text=True, check=True)
    assert done.stdout.split()[:2] == [str(ROOM)] * 2


def test_a_limit_is_named_only_where_it_is_too_low() -> None:
    """With what is needed, and how one gives it."""
    assert too_few(OWN + 30 * EACH, 30) == ""
    said = too_few(256, 30)
    assert "enough for about 12 of 30 deployments" in said
    assert f"allow it {OWN + 30 * EACH:,} or more: `ulimit -n`" in said
