"""``credentials.toml`` in the data directory: where the secrets of this host's deployments are, and where models are.

It says where a secret is and never holds one; the host alone reads it, at its start and when it is told to.

    [credentials.github]                 the handle that steps are granted, and ask for
    file = "/srv/secrets/github"         one of: a file (from the data directory, if relative),
    env = "GITHUB_TOKEN"                 a variable of the host's environment, or
    command = ["pass", "show", "github"] what a command prints
    deployments = ["orders"]             who may have it; left out: whoever an operator grants it to
    refresh = 300                        seconds after which it is read again; left out: when the host is told to

    [[sources]]                          in this order, the default first
    id = "main"
    provider = "example"
    model = "large-1"
    base_url = "https://models.example.com/v1"
    credential = "models"                the handle that it wants; left out: none
    deployments = ["orders"]

Promise: what isn't understood is refused by its name and line, and then nothing of the file counts; no message repeats
what a file says in the place of a value.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, UnsetType

from ipc.deliveries import Source
from waypost.host.credentials import toml_file
from waypost.host.credentials.errors import BadCredentials
from waypost.model.errors import Invalid
from waypost.model.grants import handle as checked
from waypost.model.ids import deployment

NAME = "credentials.toml"
SIZE = 256 * 1024
"""Bytes of the file at most."""
CREDENTIALS = 256
SOURCES = 64
SOONEST = 1.0
"""Seconds between two readings at least."""
LATEST = 366 * 86_400.0
_MESSAGE = 200
"""Characters of what is wrong in a table; a name in it may be as long as the file."""
_TELLTALE = {"value", "secret", "token", "password", "key"}
"""What somebody writes who wants to put the secret itself here."""


@dataclass(frozen=True, slots=True)
class FromFile:
    """All of a file, but one line end at its end."""

    path: str


@dataclass(frozen=True, slots=True)
class FromEnvironment:
    """A variable of the host's environment."""

    name: str


@dataclass(frozen=True, slots=True)
class FromCommand:
    """What a command prints, but one line end at its end."""

    words: tuple[str, ...]


Way: TypeAlias = FromFile | FromEnvironment | FromCommand
KINDS = {FromFile: "file", FromEnvironment: "env", FromCommand: "command"}


@dataclass(frozen=True, slots=True)
class Credential:
    """Where one secret is. ``deployments``: None for all; ``refresh`` in seconds: None for never by itself."""

    handle: str
    way: Way
    deployments: frozenset[str] | None = None
    refresh: float | None = None

    def is_for(self, name: str) -> bool:
        """Whether this deployment may have it."""
        return self.deployments is None or name in self.deployments


@dataclass(frozen=True, slots=True)
class Configured:
    """What the file says. Sources each with the deployments that may use them (None: all)."""

    credentials: Mapping[str, Credential] = field(default_factory=dict)
    sources: tuple[tuple[Source, frozenset[str] | None], ...] = ()

    @property
    def variables(self) -> frozenset[str]:
        """Names of the host's variables that are secrets: no child gets them with its environment."""
        return frozenset(each.way.name for each in self.credentials.values() if isinstance(each.way, FromEnvironment))

    def sources_of(self, name: str) -> tuple[Source, ...]:
        """The model sources of a deployment, in order."""
        return tuple(source for source, who in self.sources if who is None or name in who)


NOTHING = Configured()


def read(path: Path) -> Configured:
    """Read the file; one that isn't there says nothing. Raises BadCredentials."""
    raw = _bytes(path)
    return NOTHING if raw is None else parse(raw, str(path))


def parse(raw: bytes, path: str) -> Configured:
    """What these bytes say; ``path`` is for the messages. Raises BadCredentials."""
    try:
        text = raw.decode()
        found = toml_file.read(text)
    except UnicodeDecodeError as bad:
        raise BadCredentials(path, raw.count(b"\n", 0, bad.start) + 1, "these bytes are no UTF-8") from None
    except toml_file.NotToml as bad:
        raise BadCredentials(path, bad.line, bad.message) from None
    return _Reading(path, text).configured(found)


# --- what it says --------------------------------------------------------------------------------------------------

_Word = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern=r"\A[^\x00]*\Z")]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_Deployments = Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=1000)]


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file: _Word | UnsetType = UNSET
    env: Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_]*\Z", max_length=200)] | UnsetType = UNSET
    command: Annotated[tuple[_Word, ...], msgspec.Meta(min_length=1, max_length=64)] | UnsetType = UNSET
    deployments: _Deployments | UnsetType = UNSET
    refresh: Annotated[float, msgspec.Meta(ge=SOONEST, le=LATEST)] | UnsetType = UNSET


class _Listed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    id: _Name
    provider: _Name
    model: _Name
    base_url: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    credential: str = ""
    deployments: _Deployments | UnsetType = UNSET


class _Reading:
    """One file being read: its name and lines, for the messages."""

    def __init__(self, path: str, text: str) -> None:
        self._path, self._lines = path, [line.strip() for line in text.split("\n")]

    def configured(self, found: Mapping[str, Any]) -> Configured:
        for name in found:
            if name not in {"credentials", "sources"}:
                self._refuse(name, f"{name[:40]!r} is nothing that this file has", "[credentials.HANDLE], [[sources]]")
        tables = self._kind("credentials", found.get("credentials", {}), dict, "[credentials.HANDLE] are tables")
        listed = self._kind("sources", found.get("sources", []), list, "[[sources]] are tables")
        if len(tables) > CREDENTIALS or len(listed) > SOURCES:
            self._refuse("", f"at most {CREDENTIALS} credentials and {SOURCES} sources")
        credentials = {name: self._credential(name, table) for name, table in tables.items()}
        sources = tuple(self._sources(listed, credentials))
        return Configured(credentials, sources)

    def _credential(self, name: str, table: object) -> Credential:
        where = f"credentials.{name}"
        try:
            checked(name)
        except Invalid as bad:
            self._refuse(where, bad.message)
        entry = self._converted(where, table, _Entry)
        ways = [
            way
            for given, way in (
                (entry.file, lambda: FromFile(str(entry.file))),
                (entry.env, lambda: FromEnvironment(str(entry.env))),
                (entry.command, lambda: FromCommand(entry.command or ())),
            )
            if given is not UNSET
        ]
        if len(ways) != 1:
            self._refuse(where, f"{name} wants one of file, env and command, and has {len(ways) or 'none'}")
        if isinstance(entry.file, str) and entry.file.startswith("~"):
            self._refuse(where, f"{name}: write the path out, '~' means nothing here")
        refresh = None if entry.refresh is UNSET else entry.refresh
        return Credential(name, ways[0](), self._who(where, entry.deployments), refresh)

    def _sources(
        self, listed: list[object], credentials: Mapping[str, Credential]
    ) -> Iterator[tuple[Source, frozenset[str] | None]]:
        known: set[str] = set()
        for number, table in enumerate(listed):
            where = f"sources {number}"
            entry = self._converted(where, table, _Listed)
            if entry.id in known:
                self._refuse(where, f"two sources have the id {entry.id!r}")
            known.add(entry.id)
            if entry.credential and entry.credential not in credentials:
                self._refuse(where, f"source {entry.id!r} wants a credential that isn't listed under [credentials]")
            try:
                url = urlsplit(entry.base_url)
            except ValueError:
                self._refuse(where, f"source {entry.id!r}: base_url is no URL")
            if entry.base_url and (url.scheme not in {"http", "https"} or not url.netloc):
                self._refuse(where, f"source {entry.id!r}: base_url begins with https:// or http://")
            if "@" in url.netloc:
                self._refuse(where, f"source {entry.id!r}: a base_url isn't secret; name a credential instead")
            source = Source(
                id=entry.id,
                provider=entry.provider,
                model=entry.model,
                base_url=entry.base_url,
                credential=entry.credential,
            )
            yield source, self._who(where, entry.deployments)

    def _who(self, where: str, names: tuple[str, ...] | UnsetType) -> frozenset[str] | None:
        if isinstance(names, UnsetType):
            return None
        try:
            return frozenset(map(deployment, names))
        except Invalid as bad:
            self._refuse(where, bad.message)

    def _converted(self, where: str, table: object, kind: type[Any]) -> Any:
        try:
            return msgspec.convert(table, kind)
        except msgspec.ValidationError as bad:
            named = re.search(r"unknown field `([^`]*)`|at `\$\.(\w+)", str(bad))
            key = (named[1] or named[2]) if named else ""
            hint = "this file says where a secret is, and never holds one" if key.lower() in _TELLTALE else ""
            self._refuse(where, f"{_shown(where)}: {str(bad)[:_MESSAGE]}", hint, key=key)

    def _kind(self, where: str, found: object, kind: type[Any], why: str) -> Any:
        if not isinstance(found, kind):
            self._refuse(where, why)
        return found

    def _refuse(self, where: str, why: str, hint: str = "", *, key: str = "") -> NoReturn:
        raise BadCredentials(self._path, self._line(where, key), why, hint=hint)

    def _line(self, where: str, key: str) -> int:
        """The line that a table begins at, or that a key of it is in; 0 where it can't be told."""
        kind, _, name = where.partition("." if where.startswith("credentials.") else " ")
        if kind == "sources" and name:
            starts = [n for n, line in enumerate(self._lines, 1) if re.match(r"\s*\[\[\s*sources\s*\]\]", line)]
            begin = starts[int(name)] if int(name) < len(starts) else 0
        else:
            header = rf"\s*\[?\s*credentials\s*\.\s*[\"']?{re.escape(name)}[\"']?\s*[\].=]" if name else None
            begin = self._first(header or rf"\s*\[*\s*[\"']?{re.escape(kind)}\b", 0)
        within = self._first(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", begin) if key and begin else 0
        return within or begin

    def _first(self, pattern: str, after: int) -> int:
        found = (n for n, line in enumerate(self._lines[after:], after + 1) if re.match(pattern, line))
        return next(found, 0)


def _shown(where: str) -> str:
    kind, _, number = where.partition(" ")
    return f"{kind}[{number}]" if number else where


# --- the file ------------------------------------------------------------------------------------------------------


def _bytes(path: Path) -> bytes | None:
    """Its bytes, from a plain file that nobody else can write to; None where there is none. Raises BadCredentials."""
    shown = str(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as failure:
        if path.is_symlink():
            raise BadCredentials(shown, 0, "it is a link", hint="put the file itself here") from None
        raise BadCredentials(shown, 0, f"can't be read ({failure.strerror or failure})") from failure
    with contextlib.ExitStack() as opened:
        opened.callback(os.close, descriptor)
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise BadCredentials(shown, 0, "it is no plain file", hint="put a plain file here")
        if found.st_uid not in {0, os.geteuid()}:
            raise BadCredentials(shown, 0, "it belongs to somebody else", hint=f"chown it: {shown}")
        if stat.S_IMODE(found.st_mode) & 0o022:
            why = "others may write to it, and so name commands that this host runs"
            raise BadCredentials(shown, 0, why, hint=f"chmod go-w {shown}")
        try:
            raw = whole(descriptor, SIZE + 1)
        except OSError as failure:
            raise BadCredentials(shown, 0, f"can't be read ({failure.strerror or failure})") from failure
    if len(raw) > SIZE:
        raise BadCredentials(shown, 0, f"over the limit of {SIZE:,} bytes")
    return raw


def whole(descriptor: int, most: int) -> bytes:
    """What a plain file has, at most so many bytes. Raises OSError."""
    parts = b""
    while len(parts) < most and (part := os.read(descriptor, most - len(parts))):
        parts += part
    return parts
