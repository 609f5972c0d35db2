"""A tree of code: its files, its hash, its bounds; and the record of what is deployed.

The hash of a tree, a format for ever: SHA-256 over each file in the order of its path's UTF-8 bytes, as path NUL length
NUL bytes, the length in decimal digits. Times, owners and modes take no part: what Python reads is what is hashed.

``state/code.json``, a format for ever: one line of JSON with the fields of ``Deployed``. It names a tree that lies
under ``code/<hh>/<tree>/`` of the same repository, where a tree is written once and stays: what a run began on can be
read in any clone.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import Annotated, TypeAlias

import msgspec

from waypost.model.declaration import Declared
from waypost.model.errors import Invalid

Files: TypeAlias = Mapping[str, bytes]
"""Bytes by path; paths are relative to the tree, with ``/``."""

FILES = 2_000
FILE = 1_000_000
"""Bytes of one file."""
TOTAL = 10_000_000
"""Bytes of all files of a tree."""

_Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
_LONGEST = 1_000
"""Bytes of a path."""


class Deployed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a deployment runs.

    ``root`` is the folder of the tree that goes on the import path (empty: the tree itself), ``module`` the workflow's
    dotted name in there; ``definition`` is the SHA-256 of the very bytes of ``declared``, the JSON of a ``Declared``.
    """

    tree: _Sha256
    root: str
    module: Annotated[str, msgspec.Meta(min_length=1, max_length=_LONGEST)]
    definition: _Sha256
    declared: msgspec.Raw

    @property
    def declaration(self) -> Declared:
        """What the workflow declares. Raises Invalid."""
        try:
            return msgspec.json.decode(bytes(self.declared), type=Declared)
        except msgspec.MsgspecError as bad:
            raise Invalid(f"the deployed workflow's declaration can't be read: {bad}") from None


_records = msgspec.json.Decoder(Deployed)


def tree_hash(files: Files) -> str:
    """The name of a tree: 64 hex digits."""
    digest = hashlib.sha256()
    for path, data in sorted((path.encode(), data) for path, data in files.items()):
        digest.update(b"%b\0%d\0" % (path, len(data)))
        digest.update(data)
    return digest.hexdigest()


def deployed(files: Files, *, root: str, module: str, declared: Declared) -> Deployed:
    """The record of a tree and the workflow in it."""
    raw = msgspec.json.encode(declared)
    definition = hashlib.sha256(raw).hexdigest()
    return Deployed(tree=tree_hash(files), root=root, module=module, definition=definition, declared=msgspec.Raw(raw))


def encode(record: Deployed) -> bytes:
    """One line of JSON, keys in the order of the record."""
    return msgspec.json.encode(record)


def decode(raw: bytes) -> Deployed:
    """Read ``state/code.json``, strictly. Raises Invalid."""
    try:
        found = _records.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise Invalid(f"not a state/code.json: {bad}") from None
    if found.root and not is_path(found.root):
        raise Invalid(f"not a state/code.json: {found.root[:80]!r} is no folder of a tree")
    return found


def is_path(text: str) -> bool:
    """Whether a path may stand in a tree: relative, no ``.`` or ``..`` in it, Unicode without control marks."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return False
    parts = text.split("/")
    return size <= _LONGEST and text.isprintable() and not {"", ".", ".."}.intersection(parts)


def too_big(sizes: Iterable[tuple[str, int]]) -> str:
    """Which bound a tree of these files, with their bytes, is over; empty when it is over none."""
    known = tuple(sizes)
    total = sum(size for _, size in known)
    large = [path for path, size in known if size > FILE]
    if len(known) > FILES:
        return f"it has {len(known):,} files, {FILES:,} are allowed"
    if large:
        return f"{len(large)} of its files {'is' if len(large) == 1 else 'are'} over {FILE:,} bytes"
    return f"it has {total:,} bytes, {TOTAL:,} are allowed" if total > TOTAL else ""


def largest(sizes: Iterable[tuple[str, int]], count: int = 5) -> tuple[tuple[str, int], ...]:
    """The largest files, largest first."""
    return tuple(sorted(sizes, key=lambda each: (-each[1], each[0]))[:count])


def is_secret(path: str) -> bool:
    """Whether a name looks like that of a secret: ``.env*``, ``*.pem``, ``*.key``, ``id_*``, in any case."""
    *folders, name = path.casefold().split("/")
    return (
        name.startswith("id_")
        or name.endswith((".pem", ".key"))
        or any(part.startswith(".env") for part in (*folders, name))
    )
