"""Reading code from somebody's folder: regular files only, nothing from outside of it, nothing that is too big.

A symbolic link stands for what it leads to, if that lies in the same tree of code; else it is refused. What is looked
at and what is read are two moments: a file that grows in between is refused, not read to its end.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from substrate.errors import BadPath
from substrate.packs.code_names import spell
from waypost.host.code.errors import LeavesTree, NotAFile, TooBig
from waypost.host.code.patterns import matching
from waypost.model.code import FILE, too_big

LOOKED_AT = 50_000
"""Names in a folder, after which it is no longer looked through: it is far too big."""
_AGAIN = "deploy again, once nobody writes there"
_UNREAD = "let the user that deploys read it, or take it out of the folder"


@dataclass(frozen=True, slots=True)
class Source:
    """A folder of code. ``shown`` is what somebody asked to deploy, for messages; ``root`` where the tree begins."""

    shown: str
    root: Path
    _seen: dict[str, Path] = field(default_factory=dict, repr=False, compare=False)

    def size(self, path: str) -> int | None:
        """Bytes of a file of the tree; None where there is none. Raises LeavesTree, NotAFile."""
        place = self.root / path
        try:
            if not place.is_symlink() and place.is_dir():
                return None
            real = self._within(path)
            found = real.stat()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as failure:
            raise NotAFile(self.shown, path, f"can't be read: {failure}", hint=_UNREAD) from None
        if stat.S_ISDIR(found.st_mode):
            return None
        if not stat.S_ISREG(found.st_mode):
            raise NotAFile(self.shown, path, "is no regular file")
        try:
            spell(path)
        except BadPath as bad:
            why = f"has a name that can't be kept: {bad.why}"
            raise NotAFile(self.shown, ascii(path)[1:-1], why, hint="give it another name") from None
        return found.st_size

    def is_folder(self, path: str) -> bool:
        """Whether a folder of the tree is there; one that a link leads to counts. Raises LeavesTree, NotAFile."""
        try:
            return (self.root / path).is_dir() and self._within(path).is_dir()
        except FileNotFoundError:  # gone since it was looked at
            return False
        except OSError as failure:
            raise NotAFile(self.shown, path, f"can't be read: {failure.strerror}", hint=_UNREAD) from None

    def real(self, path: str) -> str:
        """The name in the tree of what a name leads to, links followed: mostly the same. Raises LeavesTree."""
        with suppress(FileNotFoundError):  # gone since it was looked at; whoever reads it says so
            return self._within(path).relative_to(self._real("")).as_posix()
        return path

    def below(self, path: str, left_out: Callable[[str], bool] = lambda _path: False) -> Iterator[str]:
        """Every name below a folder that isn't a folder itself, but for what is ``left_out``, with all below it.

        Raises NotAFile, LeavesTree.
        """
        todo, seen = [path], 0
        while todo:
            folder = todo.pop()
            try:
                names = sorted(each.name for each in (self.root / folder).iterdir())
            except FileNotFoundError:
                raise NotAFile(self.shown, folder or ".", "went away while it was being read", hint=_AGAIN) from None
            except OSError as failure:
                raise NotAFile(self.shown, folder or ".", f"can't be read: {failure.strerror}", hint=_UNREAD) from None
            for name in names:
                seen += 1
                found = f"{folder}/{name}" if folder else name
                if left_out(found):
                    continue
                if seen > LOOKED_AT:
                    raise NotAFile(self.shown, folder or ".", f"has over {LOOKED_AT:,} files below it")
                if self.is_folder(found):
                    self._refuse_loop(found)
                    todo.append(found)
                else:
                    yield found

    def matching(self, pattern: str) -> list[str]:
        """The files that a pattern means, as far as they are looked through. Raises NotAFile."""
        try:
            return sorted(matching(self.root, pattern, LOOKED_AT))
        except FileNotFoundError:
            raise NotAFile(self.shown, pattern, "went away while it was being looked for", hint=_AGAIN) from None
        except OSError as failure:
            path = os.path.relpath(failure.filename, self.root)
            raise NotAFile(self.shown, path, f"can't be read: {failure.strerror}", hint=_UNREAD) from None

    def read(self, sizes: Mapping[str, int]) -> dict[str, bytes]:
        """The bytes of these files. Raises TooBig, NotAFile, LeavesTree."""
        known = tuple(sizes.items())
        if why := too_big(known):
            raise TooBig(self.shown, why, known)
        files = {path: self._read(path) for path in sizes}
        now = tuple((path, len(data)) for path, data in files.items())
        if why := too_big(now):
            raise TooBig(self.shown, why, now)
        return files

    def _read(self, path: str) -> bytes:
        try:
            descriptor = os.open(self._within(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                    raise NotAFile(self.shown, path, "is no regular file")
                return file.read(FILE + 1)
        except FileNotFoundError:
            raise NotAFile(self.shown, path, "went away while it was being read", hint=_AGAIN) from None
        except OSError as failure:
            raise NotAFile(self.shown, path, f"can't be read: {failure.strerror}", hint=_UNREAD) from None

    def _within(self, path: str) -> Path:
        """Where a name leads to, links followed. Raises LeavesTree where that is outside, FileNotFoundError."""
        above, _, name = path.rpartition("/")
        place = self._real(above) / name
        if not os.path.lexists(place):
            raise FileNotFoundError(path)
        real = place
        if place.is_symlink():
            try:
                real = place.resolve(strict=True)
            except FileNotFoundError:
                raise LeavesTree(self.shown, path, str(place.readlink())) from None
            except (OSError, RuntimeError):  # a loop of links
                raise LeavesTree(self.shown, path, "itself") from None
        if not real.is_relative_to(self._real("")):
            raise LeavesTree(self.shown, path, str(real))
        return real

    def _refuse_loop(self, path: str) -> None:
        with suppress(FileNotFoundError):  # gone since it was looked at
            if (self.root / path).is_symlink() and (self._real("") / path).is_relative_to(self._within(path)):
                raise LeavesTree(self.shown, path, "a folder that it lies in")

    def _real(self, folder: str) -> Path:
        """A folder's own place, looked at once: there may be two thousand files in it."""
        if folder not in self._seen:
            self._seen[folder] = Path(os.path.realpath(self.root / folder))
        return self._seen[folder]
