"""Plays with real processes: their folders, and the play without kills that all others are compared with."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from waypost.testing.claims import AMOUNTS, Scene
from waypost.testing.driver import play
from waypost.testing.host_process import HostProcess

FLOWS = Path(__file__).parent / "flows"


@pytest.fixture
def flows() -> Path:
    """The folder of the workflows that are run here."""
    return FLOWS


def stop_measuring(patch: pytest.MonkeyPatch) -> None:
    """No coverage of what is started: what is killed takes its figures along, and what is measured takes twice as long.

    What a host does is measured in the tests' own process, and in a few that say so by their mark.
    """
    for name in ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"):
        patch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def unmeasured(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes that this test starts aren't measured, unless it is marked so."""
    if request.node.get_closest_marker("measured") is None:
        stop_measuring(monkeypatch)


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Callable[..., HostProcess]]:
    """Makes hosts on one data directory, not started; what still runs at the end is killed."""
    made: list[HostProcess] = []

    def make(*files: Path, env: Mapping[str, str] | None = None, options: tuple[str, ...] = ()) -> HostProcess:
        made.append(HostProcess(*files, data=tmp_path / "data", env=env, options=("--isolation", "none", *options)))
        return made[-1]

    yield make
    for each in made:
        with suppress(AssertionError):  # it was never started
            each.kill()


@pytest.fixture
def books(tmp_path: Path) -> Path:
    """Where the bodies of ``takes_its_time`` write, and where their gates are."""
    books = tmp_path / "books"
    books.mkdir()
    for gate in ("north", "south"):
        os.mkfifo(books / gate)
    return books


@pytest.fixture
def scene(tmp_path: Path) -> Callable[..., Scene]:
    """Makes the folder of a play, by name; of claims of these amounts, or of all three."""
    return lambda name, *amounts: Scene(tmp_path / name, FLOWS / "expenses_like.py", amounts or AMOUNTS).prepare()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """What came of each call, by mail, in a play in which nothing was killed; once for all tests."""
    scene = Scene(tmp_path_factory.mktemp("undisturbed") / "play", FLOWS / "expenses_like.py").prepare()
    with pytest.MonkeyPatch.context() as patch:
        stop_measuring(patch)
        played = play(scene.place, scene.errands)
    return scene.check(None, played).outcomes
