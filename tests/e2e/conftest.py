"""Plays with real processes: their folders, and the play without kills that all others are compared with."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from waypost.testing.claims import Scene, errands
from waypost.testing.driver import play
from waypost.testing.host import FLUSHES

FLOWS = Path(__file__).parent / "flows"


@dataclass(frozen=True, slots=True)
class Undisturbed:
    """A play in which nothing was killed: what came of each call, and how many flushes its host made."""

    outcomes: dict[str, dict[str, object]]
    flushes: int


@pytest.fixture
def flows() -> Path:
    """The folder of the workflows that are run here."""
    return FLOWS


def stop_measuring(patch: pytest.MonkeyPatch) -> None:
    """No coverage of what will be killed: its figures die with it, its file stays, and it takes twice as long."""
    for name in ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"):
        patch.delenv(name, raising=False)


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes that this test starts aren't measured."""
    stop_measuring(monkeypatch)


@pytest.fixture
def scene(tmp_path: Path, unmeasured: None) -> Callable[[str], Scene]:
    """Makes the folder of a play, by name."""
    return lambda name: Scene(tmp_path / name, FLOWS / "expenses_like.py").prepare()


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """The scenario without a kill, once for all tests."""
    scene = Scene(tmp_path_factory.mktemp("undisturbed") / "play", FLOWS / "expenses_like.py").prepare()
    with pytest.MonkeyPatch.context() as patch:
        stop_measuring(patch)
        played = play(scene.place, errands())
    found = scene.check(None, played)
    (flushes,) = (int(line.split()[1]) for line in played.lines[-1] if line.startswith(FLUSHES))
    return Undisturbed(found.outcomes, flushes)
