"""What the host refuses, in types. Each has a ``code`` that API and exit status are derived from."""

import errno
import os
import shlex
from pathlib import PurePath
from typing import ClassVar

from waypost.model.errors import WaypostError

SHOWN = 5
"""Of a longer list, in a message."""


class HostError(WaypostError):
    """Base of all errors of the host. ``code`` is the API's word for it."""

    code: ClassVar[str] = "refused"


# --- the queue -----------------------------------------------------------------------------------------------------


class NotOnHold(HostError):
    """No mail that is on hold has this name."""

    code = "not-held"

    def __init__(self, text: str) -> None:
        super().__init__(f"no mail {text[:80]!r} is on hold", hint="`waypost queue hold` lists what is")
        self.text = text


class AmbiguousMail(HostError):
    """Several deployments have a mail with this number on hold."""

    code = "ambiguous-mail"

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        listed = ", ".join(names[:SHOWN]) + (", …" if len(names) > SHOWN else "")
        super().__init__(f"{text} may be any of {listed}", hint="name one of them")
        self.text, self.names = text, names


# --- the data directory --------------------------------------------------------------------------------------------


class DataDirectory(HostError):
    """The data directory can't be used as it is; nothing in it was changed."""

    code = "data-directory"


class NoDataDirectory(DataDirectory):
    """None was found."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{path}: {why}", hint="start a host with `waypost run FILE`, or name its data directory with --data DIR"
        )
        self.path = path


class NewerData(DataDirectory):
    """A later Waypost made it."""

    def __init__(self, path: str, found: int, known: int) -> None:
        super().__init__(
            f"{path}: the data directory has format {found}, this Waypost knows formats up to {known}",
            hint="install the Waypost that made it, or a later one; nothing was changed",
        )
        self.path, self.found, self.known = path, found, known


class DamagedFormat(DataDirectory):
    """format.json isn't what Waypost writes."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(
            f"{path}: not a Waypost data directory's format file: {why}",
            hint="name another directory with --data, or restore this file from a backup; nothing was changed",
        )
        self.path = path


class UnsafeFileSystem(DataDirectory):
    """It lies on a network or FUSE file system, where locks and fsync may not mean what they say."""

    def __init__(self, path: str, kind: str, point: str) -> None:
        super().__init__(
            f"{path}: lies on {point}, a file system of type {kind}, where locks and syncs may not hold what they "
            "promise",
            hint="name a local directory with --data, or take the risk with --allow-network-fs",
        )
        self.path, self.kind, self.point = path, kind, point


class NotWritable(DataDirectory):
    """The disk is full, read-only, or not ours to write to."""

    def __init__(self, path: str, failure: OSError, hint: str = "") -> None:
        """``hint``: what helps where it isn't the data directory that is written to."""
        number = failure.errno or 0
        super().__init__(f"{path}: {_reason(number, failure)}", hint=hint or _ADVICE.get(number, _ADVICE[0]))
        self.path, self.errno = path, number


_FULL = "free some space and start again; every accepted mail is still there"
_ADVICE = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "raise the limit on file sizes (ulimit -f) and start again; every accepted mail is still there",
    errno.EROFS: "name a writable directory with --data, or mount this one read-write",
    errno.EACCES: "name a directory of your own with --data, or start as the user that owns this one",
    errno.EPERM: "name a directory of your own with --data, where there are permissions and hard links (not on FAT)",
    errno.ENOTDIR: "name another directory with --data",
    errno.EEXIST: "name another directory with --data",
    0: "check the disk, then start again; every accepted mail is still there",
}


def _reason(number: int, failure: OSError) -> str:
    match number:
        case errno.ENOSPC | errno.EDQUOT:
            return f"the disk is full ({os.strerror(number)})"
        case errno.EROFS:
            return "the file system is read-only"
        case _:
            return f"can't be written to ({failure.strerror or failure})"


class InTheWay(DataDirectory):
    """A file lies where the host's socket belongs, and it is none of the host's."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: a file that is no socket lies here", hint="move it away, then start again")
        self.path = path


class UnfinishedExchange(DataDirectory):
    """The signing key is being exchanged: some repositories are signed by the old key, some by the new one."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path}: an exchange of the signing key was begun and not ended",
            hint="`waypost rotate-key` goes on with it; nothing is lost",
        )
        self.path = path


class BadMailKey(DataDirectory):
    """keys/mail.key can't be used."""

    def __init__(self, path: str, why: str, *, hint: str = "") -> None:
        anew = f"put it back from your backup; if you have none, `rm {shlex.quote(path)}`: another one is made"
        super().__init__(f"{path}: {why}", hint=hint or anew)
        self.path = path


class HostRuns(HostError):
    """Another host holds the lock of this data directory."""

    code = "host-runs"

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(
            f"{path}: a host runs here already ({holder})",
            hint="end it first (Ctrl-C); or look with `waypost runs`, and give it code with `waypost deploy FILE`",
        )
        self.path, self.holder = path, holder


class AllDown(DataDirectory):
    """No deployment's repository could be opened."""

    def __init__(self, reasons: tuple[str, ...]) -> None:
        super().__init__(
            f"every deployment is down: {'; '.join(reasons)}",
            hint="nothing was changed; see to the reason, then start again",
        )
        self.reasons = reasons


class HostBroke(HostError):
    """A part that a host can't be without failed, and can't be made anew beside what still runs."""

    code = "broken"

    def __init__(self, why: str) -> None:
        super().__init__(why, hint="start the host again: it goes on where it was; the lines above say what went wrong")
        self.why = why


# --- workflow files ------------------------------------------------------------------------------------------------


class BadWorkflow(HostError):
    """A workflow file can't be deployed. ``file`` names it; the message has the reason and, where known, the line."""

    code = "workflow"

    def __init__(self, file: str, why: str, *, hint: str = "") -> None:
        name = PurePath(file).name
        rest = why.removeprefix(file).removeprefix(name)
        # Its child calls the file by its name: that need not be said twice.
        message = f"{file}{rest}" if rest != why and rest[:1] in {" ", ":"} else f"{file}: {why}"
        super().__init__(message, hint=hint or "correct the file and start again; nothing was changed")
        self.file, self.why = file, why


class Taken(HostError):
    """Two deployments claim one name or one address."""

    code = "taken"

    def __init__(self, what: str, value: str, first: str, second: str) -> None:
        super().__init__(
            f"{second}: the {what} {value!r} is taken by {first}",
            hint=f"give one of them another {what} in Workflow(…)",
        )
        self.what, self.value, self.first, self.second = what, value, first, second


class NotOurs(HostError):
    """A package that the host is made of comes from somebody else's distribution."""

    code = "not-ours"

    def __init__(self, package: str, owners: tuple[str, ...]) -> None:
        found = ", ".join(owners) or "no distribution"
        super().__init__(
            f"the package {package!r} belongs to {found}, not to waypost alone: another one has overwritten it",
            hint="install waypost in an environment of its own (a venv, pipx, or `uv tool install`)",
        )
        self.package, self.owners = package, owners


# --- mail and runs -------------------------------------------------------------------------------------------------


class MalformedMail(HostError):
    """Refused at the door."""

    code = "malformed"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"not accepted: {why}", hint="send a message as mail programs save it (an .eml file); nothing was stored"
        )
        self.why = why


class BadPayload(HostError):
    """Refused at the door."""

    code = "malformed"

    def __init__(self, why: str) -> None:
        super().__init__(f"not accepted: {why}", hint='write a value such as {"paid": true}, or null')
        self.why = why


class TooLarge(HostError):
    """More bytes than are taken at once."""

    code = "too-large"

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(
            f"not accepted: {what} is over the limit of {limit:,} bytes", hint="send less at once; nothing was stored"
        )
        self.limit = limit


class NoSuchAddress(HostError):
    """No deployment of this host has the address."""

    code = "no-such-address"

    def __init__(self, address: str, known: tuple[str, ...]) -> None:
        have = f"it has {', '.join(known)}" if known else "it has none yet"
        super().__init__(
            f"nobody here has the address {address!r}; nothing was stored", hint=f"check the address: {have}"
        )
        self.address, self.known = address, known


class NotNow(HostError):
    """Withheld: nobody was told that anything is durable. It may be there all the same; a repeat is recognised."""

    code = "withheld"

    def __init__(self, why: str) -> None:
        hint = "`waypost why` says what it waits for; try again later: what is there already is recognised"
        super().__init__(f"not accepted now: {why}", hint=hint)
        self.why = why


class Unanswered(HostError):
    """The host went away, or spoke nonsense, before it had answered: whether it took the request isn't known."""

    code = "withheld"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"no answer: {why}; whether the host took the request isn't known",
            hint="look with `waypost runs`, or repeat it: a mail that is there already is recognised",
        )
        self.why = why


class RefusedByRule(HostError):
    """A rule of the log says no. ``rule`` is its code."""

    def __init__(self, rule: str, why: str, hint: str = "") -> None:
        super().__init__(why, hint=hint)
        self.rule = rule


class NoSuchRun(HostError):
    """No run has this id, or none begins with it."""

    code = "no-such-run"

    def __init__(self, text: str) -> None:
        super().__init__(f"no run is called {text!r}", hint="`waypost runs` lists them")
        self.text = text


class NotHosted(HostError):
    """The deployment lies in this data directory, and isn't among those that the running host runs."""

    code = "not-hosted"

    def __init__(self, deployment: str, *, first: str = "stop it") -> None:
        super().__init__(
            f"the host that runs here doesn't run {deployment}",
            hint=f"`waypost why {deployment}` says why and what mends it; {first} and start it without a file:"
            " `waypost run` runs all that is deployed",
        )
        self.deployment = deployment


class AmbiguousRun(HostError):
    """Several runs begin with this text."""

    code = "ambiguous-run"

    def __init__(self, text: str, runs: tuple[str, ...]) -> None:
        shown = ", ".join(runs[:SHOWN]) + (", …" if len(runs) > SHOWN else "")
        super().__init__(f"{text!r} may be {shown}", hint="write more of it")
        self.text, self.runs = text, runs


class Usage(HostError):
    """The request isn't one of those that the API has."""

    code = "usage"


class NotText(HostError):
    """An argument whose bytes are no UTF-8."""

    code = "usage"

    def __init__(self, what: str, text: str) -> None:
        super().__init__(f"{what} {text[:60]!r} isn't text: its bytes are no UTF-8", hint="write it in UTF-8")
        self.what = what


class NoKey(HostError):
    """The key to verify with can't be read, or is none."""

    code = "usage"

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}", hint="name a public key file, such as keys/host.ed25519.pub, with --key")
        self.path = path


class NoThread(HostError):
    """The system has no thread to give: its user, or its service, is at a limit."""

    code = "withheld"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"the host can't start: {why}",
            hint="allow its user more processes: `ulimit -u` of the shell, TasksMax= of systemd; or end others",
        )


class NoHost(HostError):
    """The verb needs a running host."""

    code = "no-host"

    def __init__(self, path: str, why: str = "no host runs here") -> None:
        super().__init__(f"{path}: {why}", hint="`waypost run` starts one with what is deployed")
        self.path = path
