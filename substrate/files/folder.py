"""The folder of one deployment's repository: its file names, and a bare repository made by hand.

Stock git reads this folder like any bare repository; the subfolder ``waypost`` holds what git doesn't know: the open
journals, and files that are written aside before they get their name.
"""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from substrate.errors import Damaged, NotARepository, OthersFolder
from substrate.files import plain
from substrate.files.disk import Disk

REF = "refs/heads/log"
_WRITE = os.R_OK | os.W_OK | os.X_OK

# hideRefs refuses every push to the branch: administrators write through the host.
_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
[gc]
\tauto = 0
[maintenance]
\tauto = false
[receive]
\tautogc = false
\thideRefs = refs/heads/log
"""


@dataclass(frozen=True, slots=True)
class Folder:
    """A repository's path, and the names below it."""

    path: str

    @property
    def objects(self) -> str:
        """Git's object database."""
        return f"{self.path}/objects"

    @property
    def packs(self) -> str:
        """Where sealed packs lie."""
        return f"{self.path}/objects/pack"

    @property
    def heads(self) -> str:
        """The directory of the branch."""
        return f"{self.path}/refs/heads"

    @property
    def ref(self) -> str:
        """The file of the branch, while no ``git pack-refs`` has moved it."""
        return f"{self.path}/{REF}"

    @property
    def aside(self) -> str:
        """Files without a name yet: an index or a ref in the making."""
        return f"{self.path}/waypost"

    @property
    def journals(self) -> str:
        """The packs in progress."""
        return f"{self.path}/waypost/journal"

    @property
    def derived(self) -> str:
        """What is known of runs without reading them: may be deleted at any time while no host runs."""
        return f"{self.path}/waypost/derived/runs.sqlite"

    def journal(self, number: int) -> str:
        """The file of one journal; numbers only go up."""
        return f"{self.journals}/{number:08d}.jpack"

    def pack(self, sha: str, suffix: str) -> str:
        """A file of a sealed pack: suffix ``pack``, ``idx`` or ``keep``."""
        return f"{self.packs}/pack-{sha}.{suffix}"

    def journal_numbers(self) -> tuple[int, ...]:
        """The journals that exist, ascending. Raises Damaged for a file that is none."""
        numbers = []
        for file in Path(self.journals).iterdir():
            if file.suffix != ".jpack" or not file.stem.isdecimal() or self.journal(int(file.stem)) != str(file):
                raise Damaged(str(file), "a file that is no journal lies among the journals")
            numbers.append(int(file.stem))
        return tuple(sorted(numbers))

    def read_ref(self) -> str | None:
        """Where the branch stands: 40 hex digits, None without a branch.

        Looks into ``packed-refs`` as git does, because a ``git gc`` may have moved it there. Raises Damaged.
        """
        try:
            text = plain.read(self.ref)
        except FileNotFoundError:
            return self._packed_ref()
        return self._hex(self.ref, text.removesuffix(b"\n"))

    def _packed_ref(self) -> str | None:
        file = Path(self.path) / "packed-refs"
        try:
            lines = plain.read(file).splitlines()
        except FileNotFoundError:
            return None
        found = [line[: -len(REF) - 1] for line in lines if line.endswith(b" " + REF.encode())]
        return self._hex(str(file), found[0]) if found else None

    @staticmethod
    def _hex(file: str, text: bytes) -> str:
        if len(text) != 40 or text.strip(b"0123456789abcdef"):  # noqa: PLR2004 - the width of an object id
            raise Damaged(file, f"the branch doesn't hold an object id but {text[:60]!r}")
        return text.decode()

    def check(self) -> None:
        """Refuse a path that is no repository of ours. Raises NotARepository."""
        if not Path(self.path).is_dir():
            raise NotARepository(self.path, "no such folder")
        for needed in ("HEAD", "objects", "refs/heads", "waypost/journal"):
            if not (Path(self.path) / needed).exists():
                raise NotARepository(self.path, f"{needed} is missing")

    def check_owner(self) -> None:
        """Refuse a repository of another user that isn't ours to write into. Raises OthersFolder, OSError."""
        try:
            owner, user = Path(self.path).stat().st_uid, os.geteuid()
        except FileNotFoundError:
            return  # said by ``check``
        written = (self.path, self.packs, self.heads, self.aside, self.journals)
        if owner != user and not all(os.access(path, _WRITE, effective_ids=True) for path in written):
            raise OthersFolder(self.path, _user(owner), _user(user))

    def make(self, disk: Disk) -> None:
        """Make the empty repository, its names durable. Raises OSError."""
        made = ["", "/objects", "/objects/info", "/objects/pack", "/refs", "/refs/heads", "/refs/tags"]
        made += ["/waypost", "/waypost/journal"]
        for name in made:
            disk.make_directory(f"{self.path}{name}", 0o700 if not name else 0o755)
        disk.write_file(f"{self.path}/HEAD", f"ref: {REF}\n".encode())
        disk.write_file(f"{self.path}/config", _CONFIG.encode())
        for name in reversed(made):
            disk.sync_directory(f"{self.path}{name}")


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
