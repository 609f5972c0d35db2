"""Git's object model as bytes: object ids, commits, trees and the names that may stand in them.

Pure: bytes in, bytes out. What is written here is accepted by ``git fsck --strict``; what could not be (a name that is
special to git or to a file system, an identity with a newline) is refused before an object is made of it.
"""

import enum
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha1

from substrate.errors import BadObject, BadPath


class Kind(enum.IntEnum):
    """The kinds of object that we write, numbered as in a pack."""

    COMMIT = 1
    TREE = 2
    BLOB = 3


_SIZES = 4096
"""How many sizes of each kind are remembered with what they begin with: making that costs as much as the hash."""


def _heads(form: bytes) -> Callable[[int], bytes]:
    return functools.lru_cache(maxsize=_SIZES)(lambda size: form % size)


# A tuple, because hashing a member of an enum costs more than hashing a small object does.
_HEAD = (_heads(b"%d"), _heads(b"commit %d\0"), _heads(b"tree %d\0"), _heads(b"blob %d\0"))
_LARGE = 64 * 1024
EMPTY_TREE = bytes.fromhex("4b825dc642cb6eb9a060e54bf8d69288fbee4904")

# ASCII without what a shell, Windows or NTFS treat specially; no component starts with '-' or ends with '.', and none
# starts with '.git' in any case (.gitmodules and .gitattributes are read by git as commands).
_PATH = re.compile(
    r"(?:(?!-|\.{1,2}(?:/|\Z)|\.[gG][iI][tT])[A-Za-z0-9_%=+@,.-]{0,254}[A-Za-z0-9_%=+@,-](?:/(?!\Z)|\Z))+\Z"
)
_IDENTITY = re.compile(r"[^<>\x00-\x1f\x7f]*[^<>\x00-\x20\x7f.,:;'\"\\] <[^<>\x00-\x20\x7f]+>\Z")
_LINE = re.compile(r"[^\x00-\x1f\x7f]{1,1000}\Z")
_SUBJECT = 1000
PATH_LIMIT = 1024
"""Characters of a whole path."""
_DIRECTORIES = 1024
"""How many directories are remembered to be good or bad: most writes go where one has just gone."""


def object_id(kind: Kind, data: bytes) -> bytes:
    """The id of an object: 20 raw bytes."""
    # SHA-1 is git's object model; what must not rest on it has the flush hash (storage §2).
    size = len(data)
    head = _HEAD[kind](size)
    if size > _LARGE:  # one more copy of it would hold up every other thread
        digest = sha1(head, usedforsecurity=False)
        digest.update(data)
        return digest.digest()
    return sha1(head + data, usedforsecurity=False).digest()


def check_path(path: str) -> None:
    """Refuse a path that git, a shell or another file system could trip over. Raises BadPath."""
    above, slash, name = path.rpartition("/")
    if len(path) > PATH_LIMIT or not _PATH.match(name) or (slash and not _is_path(above)):
        raise BadPath(path, "a component is empty, special, too long, or not of A-Z a-z 0-9 _ % = + @ , . -")


@functools.lru_cache(maxsize=_DIRECTORIES)
def _is_path(directory: str) -> bool:
    return _PATH.match(directory) is not None


def check_identity(identity: str) -> bytes:
    """An identity ``name <email>`` as a commit may carry it. Raises BadObject."""
    if not _IDENTITY.match(identity):
        raise BadObject(
            f"{identity[:80]!r} can't be a commit's identity; expected 'name <email>' without control marks"
        )
    return identity.encode()


def check_subject(subject: str) -> bytes:
    """A commit's one line, at most 1,000 characters. Raises BadObject."""
    good = 0 < len(subject) <= _SUBJECT and subject.isprintable()  # nearly always; else it is looked at more closely
    if not (good or _LINE.match(subject)) or subject.isspace():
        raise BadObject(f"{subject[:80]!r} can't be a commit's message; expected one line without control marks")
    return subject.encode()


def commit_date(at: int) -> bytes:
    """Unix milliseconds as a commit's date: whole seconds, a clock before 1970 counts as 1970."""
    return _date(at // 1000 if at > 0 else 0)


@functools.lru_cache(maxsize=16)
def _date(second: int) -> bytes:
    return b" %d +0000" % second


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit, taken apart. ``payload`` is what a signature covers: the commit without its ``gpgsig`` header."""

    tree: bytes
    parent: bytes | None
    author: bytes
    committer: bytes
    message: bytes
    signature: bytes | None
    payload: bytes


def parse_commit(data: bytes) -> Commit:
    """Take a commit apart. Raises BadObject for what is none, or is a merge, which a linear log can't hold."""
    head, gap, message = data.partition(b"\n\n")
    if not gap:
        raise BadObject("a commit without a message")
    fields: dict[bytes, bytes] = {}
    kept: list[bytes] = []
    last = b""
    for line in head.split(b"\n"):
        if line.startswith(b" ") and last:
            fields[last] += b"\n" + line[1:]
        else:
            last, _, value = line.partition(b" ")
            if last in fields:
                raise BadObject(f"a commit with two {last.decode('ascii', 'replace')} headers")
            fields[last] = value
        if last != b"gpgsig":
            kept.append(line)
    try:
        return Commit(
            tree=bytes.fromhex(fields[b"tree"].decode("ascii")),
            parent=bytes.fromhex(fields[b"parent"].decode("ascii")) if b"parent" in fields else None,
            author=fields[b"author"],
            committer=fields[b"committer"],
            message=message,
            signature=fields.get(b"gpgsig"),
            payload=b"\n".join(kept) + b"\n\n" + message,
        )
    except (KeyError, ValueError) as bad:
        raise BadObject(f"not a commit: {bad}") from None


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One line of a tree: the raw line, the key it sorts by (a directory's ends with ``/``), and what it names."""

    line: bytes
    key: bytes
    oid: bytes

    @property
    def name(self) -> str:
        """The name, without the slash of a directory."""
        return self.key.rstrip(b"/").decode("utf-8", "surrogateescape")

    @property
    def is_directory(self) -> bool:
        """Whether it names a tree."""
        return self.key.endswith(b"/")


def parse_tree(data: bytes) -> Iterator[TreeEntry]:
    """The lines of a tree, in order. Raises BadObject."""
    at = 0
    while at < len(data):
        space = data.find(b" ", at, at + 8)
        nul = data.find(b"\0", space)
        if space < 0 or nul < 0 or nul + 21 > len(data):
            raise BadObject("a tree that ends within a line")
        directory = data[at:space] == b"40000"
        name = data[space + 1 : nul]
        yield TreeEntry(data[at : nul + 21], name + b"/" if directory else name, data[nul + 1 : nul + 21])
        at = nul + 21
