"""The tree of a DIR: what git would take of it, or, outside of a repository, everything but what is never code.

Never code: names that begin with a dot, ``__pycache__`` and ``*.pyc``, virtual environments, ``node_modules``, and a
data directory. The file that is deployed is the one with a ``Workflow(…)`` at its top.
"""

import os
import subprocess
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from waypost.host.code.errors import NoEntry, NotAFile
from waypost.host.code.file import listed_paths, refuse_hiding, refuse_secrets, root_of
from waypost.host.code.imports import has_workflow, listed_files
from waypost.host.code.source import Source
from waypost.host.datadir.directory import NAME
from waypost.host.errors import BadWorkflow
from waypost.host.keeping_errors import GitFailed, NoGit
from waypost.model.code import FILE

_NEVER = frozenset({"__pycache__", "node_modules"})
_OF_DATA = ("format.json", "host.lock")
_SETTINGS = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
_WORDS = {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_LITERAL_PATHSPECS": "1", "GIT_TERMINAL_PROMPT": "0"}
_SHOWN = 2000


class FolderTree:
    """What belongs to a folder. ``entry`` is the workflow file's path in the tree, ``source`` where that is."""

    def __init__(self, folder: Path, data: Path | None = None) -> None:
        """``data``: a data directory that is no part of it. Raises NoEntry, BadWorkflow, NoGit, GitFailed."""
        path = folder.absolute()
        root = root_of(path)
        self._folder = path.relative_to(root).as_posix()
        self._data = None if data is None else Path(os.path.realpath(data))
        self.source = Source(str(folder), root)
        self._taken = tuple(self._named())
        entries = [
            each
            for each in self._taken
            if each.endswith(".py") and (self.source.size(each) or 0) <= FILE and has_workflow(self.text(each))
        ]
        if len(entries) != 1:
            raise NoEntry(str(folder), tuple(entries))
        self.entry = entries[0]
        refuse_hiding(self.source, root_of((root / self.entry).parent).relative_to(root).as_posix())

    def paths(self, listed: Iterable[str] = (), modules: Iterable[str] = ()) -> dict[str, int]:
        """Every file of the tree, with its bytes. ``modules`` are all there already. Raises BadWorkflow's children."""
        del modules
        by_name = tuple(listed)
        found = {*self._taken, *listed_paths(self.source, self.entry, by_name)}
        refuse_secrets(self.source, self.entry, sorted(found), by_name)
        return {path: self.source.size(path) or 0 for path in sorted(found)}

    def module(self, name: str) -> Iterator[str]:
        """Nothing: whatever could be imported is in the tree."""
        del name
        return iter(())

    def text(self, path: str) -> bytes:
        """A file's bytes."""
        return self.source.read({path: 0})[path]

    def listed(self) -> tuple[str, ...]:
        """What the workflow's file lists as far as its text says so."""
        return listed_files(self.text(self.entry))

    def _named(self) -> Iterator[str]:
        """The tree's files. Raises NotAFile for what is in a tree's way."""
        top = "" if self._folder == "." else self._folder
        in_git = any((above / ".git").exists() for above in (self.source.root, *self.source.root.parents))
        for path in self._by_git(top) if in_git else self.source.below(top, self._left_out):
            if self.source.size(path) is not None:
                yield path
            elif self.source.is_folder(path):
                self._refuse_repository(path)
                yield from self.source.below(path, self._left_out)  # a link to a folder of the same tree

    def _left_out(self, path: str) -> bool:
        """What is never code. Raises NotAFile for a git repository: what of it is code only its own git could say."""
        name = path.rpartition("/")[2]
        place = self.source.root / path
        never = (
            name.startswith(".")
            or name in _NEVER
            or name.endswith(".pyc")
            or _there(place / "pyvenv.cfg")
            or self._is_data(place)
        )
        if not never:
            self._refuse_repository(path)
        return never

    def _refuse_repository(self, path: str) -> None:
        if _there(self.source.root / path / ".git"):
            hint = "deploy it by itself, or take it out of the folder"
            raise NotAFile(self.source.shown, path, "is a git repository of its own", hint=hint)

    def _is_data(self, place: Path) -> bool:
        """Whether a folder is a data directory, the one that is told or any other: keys lie in it."""
        known = self._data is not None and Path(os.path.realpath(place)) == self._data
        return known or place.name == NAME or all(_there(place / name) for name in _OF_DATA)

    def _by_git(self, top: str) -> Iterator[str]:
        """What is tracked, and what isn't ignored; names of the tree."""
        asked = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", top or ".")
        command = ["git", *_SETTINGS, "-C", str(self.source.root), *asked]
        # The user's own configuration counts: it may say what git is to ignore.
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program; what comes from outside stands behind `--`
                command, env=environment | _WORDS, stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
        except FileNotFoundError:
            raise NoGit from None
        if done.returncode:
            raise GitFailed("ls-files", done.stderr.decode("utf-8", "replace")[-_SHOWN:].strip())
        names = done.stdout.decode("utf-8", "surrogateescape").split("\0")
        found = sorted({name.rstrip("/") for name in names if name})
        if not found:
            raise BadWorkflow(self.source.shown, "git ignores all that is in it", hint="name a folder that git takes")
        within: Collection[str] = () if self._data is None else (f"{self._data}/",)
        for name in found:
            real = os.path.realpath(self.source.root / name)
            if not (real.startswith(tuple(within)) or NAME in name.split("/")):
                yield name


def _there(place: Path) -> bool:
    """Also not where that can't be told, as of what is in a folder that is closed to us: whoever reads it says so."""
    return os.path.exists(place)  # noqa: PTH110 - pathlib's raises then
