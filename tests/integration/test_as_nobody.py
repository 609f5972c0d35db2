"""The fault grids by a user who may do nothing: root passes over modes and owners, and so would prove too much."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FLUSH = "test_store_faults.py::test_a_second_death_in_recovery_loses_nothing"
MERGE = "test_store_merge.py::test_a_second_death_in_the_recovery_of_a_merge_loses_nothing"
SEAL = "test_run_sealing.py::test_a_second_death_in_the_sweep_is_made_up_for_as_well"
CODE = (
    "test_deployed_child.py::test_a_tree_that_is_whole_is_left_alone_and_any_other_is_made_anew",
    "test_deployed_child.py::test_trees_that_nobody_uses_go_with_all_that_a_death_left",
    "test_deployed_child.py::test_a_staged_tree_is_gone_afterwards",
)
GRIDS = (
    "test_store_faults.py",
    "test_store_merge.py",
    "test_run_sealing.py",
    "test_store_eio.py",
    "test_store_power.py",
    "test_queue_faults.py",
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="whoever runs this is no root: the grids themselves show it")


@pytest.fixture(name="folder")
def _folder() -> Iterator[Path]:
    """A folder that anybody can reach; pytest's own are root's alone."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def as_nobody(folder: Path, tests: tuple[str, ...], *options: str) -> str:
    """Run tests as nobody; the last line that pytest printed."""
    command = [sys.executable, "-m", "waypost.testing.unprivileged", str(folder), *(str(HERE / test) for test in tests)]
    done = subprocess.run([*command, *options], cwd=HERE.parents[1], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.torture
def test_deaths_in_recovery_lose_nothing_of_an_ordinary_users(folder: Path) -> None:
    """Flush, seal, merge and recovery, with a second death in the recovery."""
    said = as_nobody(folder, (FLUSH, MERGE, SEAL))
    assert said.startswith("3 passed")


@pytest.mark.torture
def test_folders_of_code_are_made_and_cleared_by_an_ordinary_user(folder: Path) -> None:
    """They are read-only for their owner, too, who has to move and remove them."""
    said = as_nobody(folder, CODE)
    assert said.startswith("3 passed")


@pytest.mark.torture
@pytest.mark.timeout(900)
def test_every_grid_holds_for_an_ordinary_user(folder: Path) -> None:
    """All files of them; not their longest forms, which would take as long again as they do for root."""
    said = as_nobody(folder, GRIDS, "-m", "not torture and not soak")
    assert "passed" in said
    assert "skipped" not in said
