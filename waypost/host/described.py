"""What is known of a deployment before it runs, as a record: what its workflow declares, and the code it is made of."""

from dataclasses import dataclass, field
from pathlib import Path

from actors.messages import DeploymentSpec
from waypost.model import declaration
from waypost.model.code import Deployed, Files
from waypost.model.ids import RunId

TREE = "tree"
"""The name of the tree itself in the folder that is named by its hash (``code/materialise.py``)."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """It sleeps; something is to be done at ``deadline`` (Unix ms; None: when something comes).

    ``live``: its runs, as far as they are named.
    """

    deadline: int | None
    live: tuple[RunId, ...] = ()


@dataclass(frozen=True, slots=True)
class Described:
    """A deployment as data, and the tree of code that it runs; without ``files`` once that is in its repository.

    ``compiled``: the hash of what Python made of the tree, where that lies beside it.
    """

    spec: DeploymentSpec
    record: Deployed
    runs: declaration.Runs
    files: Files = field(repr=False)
    compiled: str = ""
    sleep: Sleep | None = None
    """As it is noted: nobody has looked at its repository, or its code."""

    def arguments(self, folder: Path) -> tuple[str, ...]:
        """For ``python -m waypost.child``, with the folder of its materialised tree."""
        tree = folder / TREE
        root = tree / self.record.root
        code = ("--tree", str(tree), "--sha256", self.spec.code)
        compiled = ("--compiled", self.compiled) if self.compiled else ()
        return ("--root", str(root), f"--module={self.record.module}", *code, *compiled)
