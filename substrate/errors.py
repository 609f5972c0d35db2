"""What can go wrong with a repository, in types.

Each error says what, where and what to do next, and carries the parts as fields. None of them is ever answered by
guessing: a repository that can't be read as written is left exactly as it is.
"""

import errno as numbers
import shlex
from typing import Self

from waypost.model.errors import WaypostError

_FULL = (numbers.ENOSPC, numbers.EDQUOT)
"""Ends by itself when there is space; any other error, but those below, is the disk's own."""
_DISKS = (numbers.EIO, numbers.EROFS)
"""Said to who syncs what was written before an error: the system has made the file system read-only, or lost pages."""
_FILES = (numbers.EMFILE, numbers.ENFILE)
TOO_MANY_FILES = "too-many-files"
"""A fault of the host's limit, or the machine's, and not of the disk; it ends by itself, too."""
_MEND = {
    **dict.fromkeys(_FULL, "free some space, then start again, or give the command again"),
    numbers.EFBIG: "raise the limit on file sizes (`ulimit -f`), then start again, or give the command again",
    0: "look after the disk, then start again, or give the command again",
}


def lacks_files(words: str) -> bool:
    """Whether an error of a library, which tells no number, says that no more files can be opened."""
    return "Too many open files" in words  # strerror(3) of EMFILE, and the beginning of that of ENFILE


class SubstrateError(WaypostError):
    """Base of all errors of the storage."""


class BadPath(SubstrateError):
    """A path that may not stand in the tree: hostile, malformed, or in conflict with what is there."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path[:200]!r} can't be a path in the repository: {why}")
        self.path = path
        self.why = why


class BadObject(SubstrateError):
    """Bytes that are no git object, pack entry or signature, or not the one that was asked for."""


# --- opening -------------------------------------------------------------------------------------------------------


class NotARepository(SubstrateError):
    """There is no deployment's repository at this path."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: no Waypost repository here: {why}", hint="check the path; nothing was changed")
        self.path = path


class Unreadable(SubstrateError):
    """The operating system doesn't let a repository be read; what is in it may be in order."""

    def __init__(self, path: str, why: str, *, mend: str = "check the folder and who may read it") -> None:
        super().__init__(f"{path}: {why}", hint=f"{mend}; nothing was changed")
        self.path, self.why = path, why

    @classmethod
    def by(cls, failure: OSError, path: str) -> Self:
        """What the system said, of the file that it named or else of ``path``."""
        where, why = str(failure.filename or path), failure.strerror or str(failure)
        if failure.errno in _DISKS:
            return cls(where, why, mend="the disk no longer vouches for it: see to it (`dmesg`), and mount it anew")
        return cls(where, why)


class NewerFormat(SubstrateError):
    """The repository was written by a later Waypost."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            f"{path}: its format is {found}, this Waypost knows formats up to {known}",
            hint="install the Waypost that wrote it, or a later one; nothing was changed",
        )
        self.path = path
        self.found = found
        self.known = known


class WrongOwner(SubstrateError):
    """The repository was made for another deployment or another address."""

    def __init__(self, path: str, found: str, expected: str) -> None:
        super().__init__(
            f"{path}: it belongs to {found}, and here is {expected}",
            hint="give the workflow its old name and address, or start the new one with a data directory of its own",
        )
        self.path = path
        self.found = found
        self.expected = expected


class OthersFolder(SubstrateError):
    """The repository belongs to another user of this machine, who hasn't let this one write into it."""

    def __init__(self, path: str, owner: str, user: str) -> None:
        super().__init__(
            f"{path}: it belongs to {owner}, and this host runs as {user}, who may not write there",
            hint=f"start the host as {owner}, or give it the folder: `chown -R {user} {shlex.quote(path)}`",
        )
        self.path, self.owner, self.user = path, owner, user


class Damaged(SubstrateError):
    """The repository isn't what was written and acknowledged. Nothing was cut, moved or deleted."""

    def __init__(self, file: str, why: str, *, offset: int | None = None, heads: tuple[str, ...] = ()) -> None:
        where = f" at byte {offset}" if offset is not None else ""
        named = f" ({' and '.join(heads)})" if heads else ""
        super().__init__(
            f"{file}{where}: damaged: {why}{named}",
            hint="keep a copy of the folder; restore a backup, or copy out what is readable: `waypost fsck --salvage`",
        )
        self.file = file
        self.why = why
        self.offset = offset
        self.heads = heads


class ForeignJournal(Damaged):
    """A journal holds flushes that join neither the history nor the journal before it: it belongs elsewhere."""


class RolledBack(SubstrateError):
    """The history doesn't hold the head that was noted outside: it was set back, or is another one."""

    def __init__(
        self, path: str, noted: str, found: str, *, went_back: bool, another: bool, still_there: str | None
    ) -> None:
        if another:
            what = "it is another repository than the one that was here"
        elif went_back:
            what = f"history went back from {_short(noted)} to {_short(found)}"
        else:
            what = f"history was replaced: {_short(noted)} is not in it"
        super().__init__(
            f"{path}: {what} (noted: {noted}; found: {found}); it was not opened",
            hint=(
                "the branch alone was moved: "
                f"`git --git-dir {shlex.quote(path)} update-ref refs/heads/log {still_there}` puts it back"
                if still_there
                else "put the newer repository back from where it went, or give up what is missing with "
                f"`waypost accept-rollback {_deployment(path)}` while no host runs"
            ),
        )
        self.path, self.noted, self.found = path, noted, found


class RepositoryGone(SubstrateError):
    """Where a repository was noted there is none: it is never taken for a new, empty one."""

    def __init__(self, path: str, noted: str) -> None:
        super().__init__(
            f"{path}: the repository is gone; it had reached {noted}",
            hint="put it back, `waypost restore` a backup, or give it up with "
            f"`waypost accept-rollback {_deployment(path)}` while no host runs",
        )
        self.path, self.noted = path, noted


class NothingToAccept(SubstrateError):
    """The history holds all that was noted of it."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path}: nothing went back here: it holds all that was noted of it",
            hint="`waypost run` starts it; if it doesn't, its message says why",
        )
        self.path = path


class NothingSigned(SubstrateError):
    """No part of the history is this host's, so there is nothing to go on from."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}", hint="`waypost restore` a backup of it, or a clone, after moving it away")
        self.path, self.why = path, why


class BranchLocked(SubstrateError):
    """Another program holds the lock of the branch, or died while it held it."""

    def __init__(self, lock: str) -> None:
        super().__init__(
            f"{lock}: another program holds the lock of the branch",
            hint="wait for the git that works on it; if there is none any more, remove this file; then try again",
        )
        self.lock = lock


class BadReceipt(SubstrateError):
    """A file that is no receipt."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: not a receipt: {why}", hint="name a file that `waypost receipt` has written")
        self.path, self.why = path, why


class BadNote(SubstrateError):
    """The file that remembers a repository's head can't be read."""

    def __init__(self, file: str, why: str) -> None:
        super().__init__(
            f"{file}: {why}",
            hint="restore this file from a backup; if there is none, compare `waypost verify` with a receipt that you "
            "trust, then move the file away",
        )
        self.file, self.why = file, why


class NothingToSalvage(SubstrateError):
    """No commit of the repository has a tree that can be read."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path}: no commit in it can be read", hint="restore it from a backup; nothing was copied, nothing changed"
        )
        self.path = path


class NoSuchRun(SubstrateError):
    """The repository holds no run of this id."""

    def __init__(self, run: str) -> None:
        super().__init__(f"there is no run {run}", hint="`waypost runs` lists them")
        self.run = run


class Unsigned(Damaged):
    """A head that this host's key has not signed stands where one of ours must: the host never builds on it."""


class NotInHistory(SubstrateError):
    """A commit that was asked for isn't one of this repository's history."""

    def __init__(self, path: str, commit: str) -> None:
        super().__init__(
            f"{path}: commit {commit[:80]!r} is not in its history",
            hint="`git log refs/heads/log` in it lists those that are sealed",
        )
        self.path = path
        self.commit = commit


def _deployment(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".git")


def _short(head: str) -> str:
    return " ".join(head.split()[:2])


class UnsignedBranch(Unsigned):
    """Somebody else has put commits on top of what this host has signed."""

    def __init__(self, path: str, ref: str, commit: str) -> None:
        super().__init__(ref, "the branch names a commit that this host's key has not signed", heads=(commit,))
        self.hint = (
            f"`git --git-dir {shlex.quote(path)} log` shows whose it is; put the branch back yourself, or set the "
            f"commit aside with `waypost accept-rollback {_deployment(path)}` while no host runs"
        )


# --- writing -------------------------------------------------------------------------------------------------------


class RuleBroken(SubstrateError):
    """A commit that we have decided ourselves breaks a rule of the repository. It was not written."""

    def __init__(self, rule: str, path: str, value: str) -> None:
        super().__init__(
            f"{path or 'a commit'}: the rule {rule!r} refuses it: {value}",
            hint="nothing of it was written; please report it: this is a fault of Waypost's",
        )
        self.rule = rule
        self.path = path
        self.value = value


class FlushFailed(SubstrateError):
    """The disk refused a write: what was visible and not durable is void, and this store is finished.

    ``fault``: ``full``, ``too-many-files`` (nothing is wrong with the disk), or ``disk``.
    """

    def __init__(self, path: str, reason: str, errno: int | None) -> None:
        many = errno in _FILES or lacks_files(reason)
        more = "allow its host more open files (`ulimit -n` of the shell, LimitNOFILE= of systemd)"
        mend = more if many else _MEND.get(errno or 0, _MEND[0])
        super().__init__(f"{path}: writing failed: {reason}", hint=f"nothing was acknowledged; {mend}")
        self.path = path
        self.reason = reason
        self.errno = errno
        self.fault = TOO_MANY_FILES if many else "full" if errno in _FULL else "disk"


class DerivedFailed(SubstrateError):
    """The derived index of runs can't be read or written. ``passing``: for now; the disk is full, or it is locked."""

    def __init__(self, file: str, reason: str, *, passing: bool = False) -> None:
        super().__init__(
            f"{file}: the index of runs failed: {reason}",
            hint="nothing is lost: it is built again from the repository when that is opened",
        )
        self.file = file
        self.reason = reason
        self.passing = passing


class Broken(SubstrateError):
    """The store was used after a failure or after it was closed; open the repository again."""


class SecondWriter(SubstrateError):
    """The branch isn't where this store left it: somebody else writes into this repository."""

    def __init__(self, path: str, expected: str, found: str) -> None:
        super().__init__(
            f"{path}: the branch stands at {found}, this host left it at {expected}: a second writer exists",
            hint="find who wrote into the repository (a push? a second host?) before anything else",
        )
        self.path = path
        self.expected = expected
        self.found = found


# --- keys ----------------------------------------------------------------------------------------------------------


class BadKey(SubstrateError):
    """A key file that can't be used: unreadable, not Ed25519, or open to others."""

    def __init__(self, path: str, why: str, *, hint: str = "") -> None:
        super().__init__(f"{path}: {why}", hint=hint or "put the key back from your backup; Waypost never replaces one")
        self.path = path
        self.why = why
