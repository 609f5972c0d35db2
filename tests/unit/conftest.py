"""A repository with runs in every state and the derived index beside it: made once, a copy of it for each test."""

from pathlib import Path

import pytest

from waypost.testing.indexed import World


@pytest.fixture(scope="session")
def made_world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the one that is copied."""
    folder = tmp_path_factory.mktemp("indexed")
    World.make(folder)
    return folder


@pytest.fixture
def world(made_world: Path, tmp_path: Path) -> World:
    """One that may be harmed."""
    return World.copied(made_world, tmp_path)
