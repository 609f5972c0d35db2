"""Agent-state repositories as the reference system has them: one for each step, with its grants on branch ``main``.

Only what it calls the step's grants is written, ``state/grants.json``; its other files are of an agent's conversation,
and this host has none. What was exported can be imported again (``survey``).
"""

from collections.abc import Mapping
from pathlib import Path

import pygit2

from waypost.model import reference_grants
from waypost.model.grants import StepGrants

_FILE, _FOLDER = pygit2.enums.FileMode.BLOB, pygit2.enums.FileMode.TREE
_WHO = ("waypost", "waypost@localhost")


def export(steps: Mapping[str, StepGrants], folder: Path, at: int) -> tuple[Path, ...]:
    """``<folder>/<step>.git`` for each step, made at this time (Unix seconds).

    Raises OSError: FileExistsError, too, as nothing is overwritten.
    """
    return tuple(_write(folder / f"{step}.git", step, grants, at) for step, grants in sorted(steps.items()))


def _write(path: Path, step: str, grants: StepGrants, at: int) -> Path:
    path.mkdir(parents=True)
    try:
        repository = pygit2.init_repository(str(path), bare=True, initial_head="main")
        state, root = repository.TreeBuilder(), repository.TreeBuilder()
        state.insert("grants.json", repository.create_blob(reference_grants.write(grants)), _FILE)
        root.insert("state", state.write(), _FOLDER)
        who = pygit2.Signature(*_WHO, at, 0)
        words = f"Write step grants for {step}"
        repository.create_commit("refs/heads/main", who, who, words, root.write(), [])
    except pygit2.GitError as failure:
        raise OSError(0, str(failure), str(path)) from failure
    return path
