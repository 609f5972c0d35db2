"""Code is tried on the logs of runs that are under way: which would be paused is known before it is deployed."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from waypost.child.load import load, place_of
from waypost.child.rehearsal import tried
from waypost.model import rehearsal
from waypost.model.rehearsal import Recorded, Tried
from waypost.testing.histories import flow, folders
from waypost.testing.memory_log import REPOSITORY, RUN

HISTORIES = folders(Path(__file__).parents[2] / "histories")


@pytest.fixture(autouse=True)
def _imports_as_before() -> Iterator[None]:
    """Flows are imported by their names; those of other tests must not meet these."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("flow_"):
            del sys.modules[name]


def recorded(folder: Path, upto: int | None = None) -> Recorded:
    """A recorded run as it was after so many events."""
    events = tuple((folder / "events.jsonl").read_bytes().splitlines()[:upto])
    blobs = {each.name: each.read_bytes() for each in (folder / "blobs").iterdir()}
    return Recorded(run=RUN, repository=REPOSITORY, events=events, blobs=blobs)


@pytest.mark.parametrize("folder", HISTORIES, ids=lambda folder: folder.name)
def test_the_code_that_a_run_has_fits_it_wherever_it_is(folder: Path) -> None:
    """After each of its events: whoever is told of a pause that doesn't come learns to ignore it."""
    workflow = load(place_of(flow(folder))).workflow
    for upto in range(1, len(recorded(folder).events) + 1):
        assert tried(workflow, recorded(folder, upto)) == Tried(run=RUN)


def test_a_run_that_goes_another_way_is_told_with_the_difference() -> None:
    """As the child would say it when it pauses the run."""
    approval, retries = (next(each for each in HISTORIES if each.name == name) for name in ("approval", "retries"))
    found = tried(load(place_of(flow(retries))).workflow, recorded(approval))
    assert found.code == "code-changed"
    assert "the log has" in found.detail


def test_what_is_given_comes_as_it_was(tmp_path: Path) -> None:
    """One record behind the other, and none of it is text."""
    several = tuple(map(recorded, HISTORIES))
    file = tmp_path / "runs"
    file.write_bytes(b"".join(map(rehearsal.write, several)))
    with file.open("rb") as stream:
        assert tuple(rehearsal.read(stream)) == several
