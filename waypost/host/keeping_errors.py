"""What is refused by the verbs that look after a deployment as a whole: held ones, backups, restores."""

import shlex
from difflib import get_close_matches

from waypost.host.errors import DataDirectory, HostError

_NAMED = 8
"""Deployments that are named where one is looked for that isn't there."""
_LONGEST = 63
_FAULTS = 8
"""Of what is wrong with a repository, that much is said."""
_LIKE = 0.5
"""From 0 to 1: how much of a name must be the same for it to be meant."""


class NoSuchDeployment(HostError):
    """No deployment of this data directory has the name."""

    code = "no-such-deployment"

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        have = f"there is {_few(name, known)}" if known else "there is none yet"
        super().__init__(f"no deployment here is called {name[:80]!r}", hint=f"check the name: {have}")
        self.name, self.known = name, known


def _few(name: str, known: tuple[str, ...]) -> str:
    """Names that are there, those first that are most like it; of many only some."""
    like = get_close_matches(name[:_LONGEST], known, n=_NAMED, cutoff=_LIKE)
    shown = (*like, *(each for each in known if each not in like))[:_NAMED]
    left = len(known) - len(shown)
    return ", ".join(shown) + (f" and {left:,} more; `waypost why --json` has them all" if left else "")


class NotHeld(HostError):
    """The deployment isn't held."""

    code = "not-held"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} isn't held: it goes on by itself while its host runs")
        self.name = name


class CameOtherwise(HostError):
    """Something that was begun, and looked on, has ended in another way than was wanted."""

    code = "came-otherwise"

    def __init__(self, name: str, what: str, state: str, reason: str) -> None:
        super().__init__(f"{name}: {what}; it is {state}" + (f": {reason}" if reason else ""))
        self.name, self.state = name, state


class Forgotten(HostError):
    """The host ended while somebody looked on at what it did, which isn't recorded until it is done."""

    code = "no-host"

    def __init__(self, name: str, command: str) -> None:
        super().__init__(
            f"{name}: the host has ended, and what was begun is forgotten: the next host runs {name} as ever",
            hint=f"`waypost run`, then once more: `{command}`",
        )
        self.name = name


class DrainedLater(HostError):
    """The host ended while somebody looked on at a drain, which the next one goes on with."""

    code = "no-host"

    def __init__(self, name: str, command: str) -> None:
        super().__init__(
            f"{name}: the host has ended; that {name} is to be drained is recorded, and the next host goes on with it",
            hint=f"`waypost run`, then look on: `{command}`",
        )
        self.name = name


class NotConfirmed(HostError):
    """Nobody has said that it may go on."""

    code = "not-confirmed"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} stays held: nobody has agreed", hint="the same command with --yes doesn't ask")
        self.name = name


class BadBackup(HostError):
    """A file that is no backup, or one that was damaged or made to deceive."""

    code = "malformed"

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: not a backup that can be used: {why}", hint="nothing was restored")
        self.name, self.why = name, why


class InTheWayOfBackup(HostError):
    """A backup never takes the place of a file."""

    code = "in-the-way"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: something of that name exists", hint="name another file; nothing was written")
        self.path = path


class AlreadyThere(HostError):
    """A restore never writes over what is there."""

    code = "taken"

    def __init__(self, what: str, value: str, data: str) -> None:
        super().__init__(
            f"{data}: the {what} {value!r} is there already; nothing was restored",
            hint="name another data directory with --data, or move the repository away first",
        )
        self.what, self.value = what, value


class NotSound(HostError):
    """A repository that doesn't verify is neither backed up nor restored."""

    code = "not-sound"

    def __init__(self, name: str, faults: tuple[str, ...], *, hint: str) -> None:
        shown = "".join(f"\n    {fault}" for fault in faults[:_FAULTS])
        more = f"\n    and {len(faults) - _FAULTS} more" if len(faults) > _FAULTS else ""
        super().__init__(f"{name}: it isn't sound:{shown}{more}", hint=hint)
        self.name, self.faults = name, faults


class KeyGone(DataDirectory):
    """The host's signing key isn't there, and repositories are that it has signed."""

    def __init__(self, path: str, repository: str, count: int) -> None:
        signed = "a repository" if count <= 1 else f"{count} repositories"
        super().__init__(
            f"{path}: the signing key is gone, and it has signed {signed} here; no other one is made in its place",
            hint="put it back from your backup; if it is lost for good, each goes on under a new key in another place: "
            f"`waypost restore --from {shlex.quote(repository)} --data DIR`",
        )
        self.path, self.repository, self.count = path, repository, count


class NoGit(HostError):
    """There is no git."""

    code = "no-git"

    def __init__(self) -> None:
        super().__init__("git is not installed, or not on the PATH", hint="install git, then try again")


class GitFailed(HostError):
    """Git refused."""

    code = "git"

    def __init__(self, verb: str, words: str) -> None:
        another = "copy the folder as a user of yours (cp -r), and name the copy: git reads nobody else's"
        mend = another if "dubious ownership" in words else "see to what git says"
        if "Out of diskspace" in words or "No space left" in words:
            mend = "free some space, or name a place on another disk"
        said = words.partition("To add an exception")[0].strip() or "it said nothing"
        super().__init__(f"git {verb} failed: {said}", hint=f"{mend}; nothing was changed here")
        self.words = words
