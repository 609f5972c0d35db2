"""The data directory: where everything of one host lies (decision 13), made private and checked before use.

What this promises: nothing is written into a directory of a newer format, on a file system that can't keep a lock, or
beside keys that others can read; and what can't be used is refused in words before any mail could be accepted.
"""

import json
import logging
import os
import re
import secrets
import shlex
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from substrate.errors import Damaged
from substrate.files import plain
from waypost.host.datadir.files import place, sync_directory, write_synced
from waypost.host.datadir.mounts import mount_of
from waypost.host.errors import (
    BadMailKey,
    DamagedFormat,
    NewerData,
    NoDataDirectory,
    NotWritable,
    UnfinishedExchange,
    UnsafeFileSystem,
)

_log = logging.getLogger(__name__)
FORMAT = 1
NAME = ".waypost"
_MAIL_KEY = 32
_HALF_MADE = re.compile(
    r"(\.(mail\.key|host\.ed25519|\.gitignore|format\.json|probe)\.\d+\.[0-9a-f]{8}|host\.ed25519[.a-z]*\.[0-9a-f]{16}\.new)\Z"
)
"""Names under which a file of ours is written before it gets its own."""
_PROBE = 64 * 1024
"""Bytes that a start writes and removes again: a full disk is found before a mail is."""


@dataclass(frozen=True, slots=True)
class DataDir:
    """The paths of one data directory; making one opens nothing."""

    path: Path

    @property
    def format_file(self) -> Path:
        """Format version of the directory."""
        return self.path / "format.json"

    @property
    def lock(self) -> Path:
        """Held by the running host; never deleted."""
        return self.path / "host.lock"

    @property
    def socket(self) -> Path:
        """The host's API."""
        return self.path / "host.sock"

    @property
    def keys(self) -> Path:
        """Private keys; every file in it is 0600."""
        return self.path / "keys"

    @property
    def signing_key(self) -> Path:
        """Ed25519, OpenSSH format; the public half lies beside it."""
        return self.keys / "host.ed25519"

    @property
    def next_key(self) -> Path:
        """The key that an exchange is under way to; there from its beginning to its end."""
        return self.keys / "host.ed25519.next"

    @property
    def public_key(self) -> Path:
        """What anyone may have who verifies."""
        return self.keys / "host.ed25519.pub"

    @property
    def mail_key(self) -> Path:
        """Makes the Message-IDs of outgoing mail recognisable to us alone."""
        return self.keys / "mail.key"

    @property
    def credentials(self) -> Path:
        """Where the secrets of deployments are; written by an operator, read by the host alone."""
        return self.path / "credentials.toml"

    @property
    def repos(self) -> Path:
        """One bare repository for each deployment."""
        return self.path / "repos"

    def repo(self, deployment: str) -> Path:
        """The repository of a deployment."""
        return self.repos / f"{deployment}.git"

    def deployments(self) -> tuple[str, ...]:
        """Names of the deployments that have a repository here, sorted."""
        try:
            return tuple(sorted(p.name.removesuffix(".git") for p in self.repos.iterdir() if p.name.endswith(".git")))
        except FileNotFoundError:
            return ()

    def noted(self) -> tuple[str, ...]:
        """Names of the deployments of which was noted how far they had got: they have a repository, or had one."""
        try:
            return tuple(path.stem for path in (self.path / "heads").iterdir() if path.suffix == ".json")
        except FileNotFoundError:
            return ()

    def head(self, deployment: str) -> Path:
        """How far a deployment's repository had got: noted here because it must not lie in the repository."""
        return self.path / "heads" / f"{deployment}.json"

    def sleeping(self, deployment: str) -> Path:
        """What is noted of a deployment that sleeps, so that a start needn't open it; may be deleted at any time."""
        return self.path / "dormant" / f"{deployment}.json"

    @property
    def code(self) -> Path:
        """Deployed trees of code, materialised: a folder for each, named by its hash; made anew at any start."""
        return self.path / "code"

    @property
    def users(self) -> Path:
        """Which user each deployment's code runs as, where the host is root."""
        return self.path / "users.json"

    @property
    def restoring(self) -> Path:
        """What a restore has unpacked and not installed yet; after a kill it is nobody's."""
        return self.path / "restoring"

    def spool(self, deployment: str) -> Path:
        """Maildir of mail that was sent while no host ran."""
        return self.path / "spool" / deployment

    @property
    def out(self) -> Path:
        """Maildir of outgoing mail."""
        return self.path / "out"

    @property
    def logs(self) -> Path:
        """What the children wrote to stdout and stderr."""
        return self.path / "logs"


def find(start: Path, told: str | None = None, *, begun: bool = True) -> DataDir:
    """The data directory that is meant: the one told, else the nearest ``.waypost`` from ``start`` upwards.

    ``begun``: a host has made it one; else a folder will do that an operator has put something into for the first host.
    Raises NoDataDirectory, NewerData and DamagedFormat.
    """
    if told is not None:
        chosen = Path(told)
        if not chosen.is_dir():
            raise NoDataDirectory(told, "there is no such directory")
    else:
        for folder in (start, *start.parents):
            if (folder / NAME).is_dir():
                chosen = folder / NAME
                break
        else:
            raise NoDataDirectory(str(start), f"there is no {NAME} here or in a folder above")
    data = DataDir(chosen.absolute())
    if data.format_file.exists():
        check_format(data)
    elif begun or not data.credentials.exists():
        raise NoDataDirectory(str(chosen), "this is not a data directory: it has no format.json")
    return data


def check_format(data: DataDir) -> None:
    """Refuse a directory that a later Waypost made. Raises NewerData, DamagedFormat; fine when there is none yet."""
    try:
        found = json.loads(plain.read(data.format_file))["format"]
    except FileNotFoundError:
        return
    except Damaged as damaged:
        raise DamagedFormat(str(data.format_file), damaged.why) from None
    except OSError as failure:
        raise DamagedFormat(str(data.format_file), failure.strerror or str(failure)) from failure
    except (ValueError, KeyError, TypeError):
        raise DamagedFormat(str(data.format_file), "no format number in it") from None
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise DamagedFormat(str(data.format_file), f"{found!r} is no format number")
    if found > FORMAT:
        raise NewerData(str(data.path), found, FORMAT)


def prepare(path: Path, *, allow_network: bool = False, mountinfo: str | None = None) -> DataDir:
    """Make the directory (0700) where there is none, and see that a host can live in it; for the host only.

    Raises DataDirectory's children: NewerData, DamagedFormat, UnsafeFileSystem, NotWritable.
    """
    data = DataDir(path.absolute())
    try:
        if not allow_network:
            _refuse_unsafe(data.path, mountinfo)
        data.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        check_format(data)
        if stat.S_IMODE(data.path.stat().st_mode) & 0o077:
            data.path.chmod(0o700)
        _probe(data.path)
    except OSError as failure:
        raise NotWritable(str(data.path), failure) from failure
    return data


def refuse_unfinished(data: DataDir) -> None:
    """Whoever needs one key for all repositories must wait for the end of an exchange. Raises UnfinishedExchange."""
    if data.next_key.exists():
        raise UnfinishedExchange(str(data.next_key))


def lay_out(data: DataDir) -> None:
    """Make what is missing, and clear away what a killed verb left; under the lock only. Raises NotWritable."""
    shutil.rmtree(data.restoring, ignore_errors=True)
    clear(data)
    try:
        maildir = (data.out / "tmp", data.out / "new", data.out / "cur")
        for folder in (data.keys, data.repos, data.logs, data.path / "spool", data.out, *maildir):
            folder.mkdir(mode=0o700, exist_ok=True)
        place(data.path / ".gitignore", b"*\n", 0o644)
        # Last: a directory with a format file is one that is whole.
        place(data.format_file, json.dumps({"format": FORMAT}).encode() + b"\n")
        sync_directory(data.path)
    except OSError as failure:
        raise NotWritable(str(data.path), failure) from failure


def clear(data: DataDir) -> None:
    """Remove what was being made when a process was killed, copies of keys above all; under the lock only.

    Raises NotWritable.
    """
    try:
        for folder in (data.path, data.keys):
            for file in folder.iterdir() if folder.is_dir() else ():
                if _HALF_MADE.match(file.name):
                    file.unlink(missing_ok=True)
    except OSError as failure:
        raise NotWritable(str(data.path), failure) from failure


def mail_key(data: DataDir) -> bytes:
    """The key of outgoing Message-IDs, 32 bytes, made at the first start. Raises BadMailKey, NotWritable.

    One that is gone later is made anew, which is told. No history rests on it: a mail keeps the Message-ID that was
    recorded when it was queued, and by that a reply finds its run.
    """
    path = data.mail_key
    try:
        if not path.exists():
            if data.deployments():
                _log.warning("%s was gone, and is made anew: mail from now on has Message-IDs of another key", path)
            place(path, secrets.token_hex(_MAIL_KEY).encode() + b"\n")
        if not path.is_file():
            raise BadMailKey(str(path), "it is not a regular file")
        if (mode := stat.S_IMODE(path.stat().st_mode)) & 0o077:
            raise BadMailKey(
                str(path), f"the key is open to others (mode {mode:04o})", hint=f"`chmod 600 {shlex.quote(str(path))}`"
            )
        text = path.read_bytes()
    except OSError as failure:
        raise NotWritable(str(path), failure) from failure
    try:
        key = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        raise BadMailKey(str(path), "not a key: it must be hex digits") from None
    if len(key) != _MAIL_KEY:
        raise BadMailKey(str(path), f"not a key: it has {len(key)} bytes instead of {_MAIL_KEY}")
    return key


def _refuse_unsafe(path: Path, mountinfo: str | None) -> None:
    if mountinfo is None:
        try:
            mountinfo = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return  # no /proc: nothing is known against it
    mount = mount_of(os.path.realpath(path), mountinfo)
    if mount is not None and mount.unsafe:
        raise UnsafeFileSystem(str(path), mount.kind, mount.point)


def _probe(path: Path) -> None:
    probe = path / f".probe.{os.getpid()}.{secrets.token_hex(4)}"
    write_synced(probe, b"\0" * _PROBE)
    probe.unlink(missing_ok=True)  # a host that starts at this moment clears it away
