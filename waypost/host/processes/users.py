"""Which user each deployment's code runs as, where the host is root: always the same, and nobody else's.

Promise: two deployments never share a user, and none gets one that somebody else has, by /etc/passwd, by a process
that runs, or by another host that does (`waypost.host.processes.reserved`). ``<data>/users.json`` keeps what was given:
``{"<deployment>": <uid>}``, 0600. The group has the same number.
"""

import hashlib
import logging
import os
import pwd
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from substrate.errors import Damaged
from substrate.files import plain
from waypost.host.datadir.files import sync_directory, write_synced
from waypost.host.errors import NotWritable
from waypost.host.processes.isolation_errors import NoUser
from waypost.host.processes.reserved import Reserved

log = logging.getLogger(__name__)

RANGE = range(70_000, 80_000)
"""No distribution gives these away: people end at 60000, dynamic services at 65535, containers begin at 100000."""


_USERS = range(1, 2**32 - 1)
"""What a user's number may be, but root's and the one that stands for none."""


def user_name(uid: int) -> str:
    """The operating system's name for a user; its number where it has none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def assign(
    names: Iterable[str], known: Mapping[str, int], *, among: range, taken: Collection[int], salt: str
) -> dict[str, int]:
    """Everybody's user: as ``known``, or one of ``among`` that is neither known nor taken. Raises NoUser.

    ``salt`` spreads the users of several hosts of one machine over the range.
    """
    given = {name: uid for name, uid in known.items() if uid in among}
    for name in sorted(set(names) - given.keys()):
        used = {*given.values(), *taken}
        start = int.from_bytes(hashlib.sha256(f"{salt}\0{name}".encode()).digest()[:4], "big")
        free = (among[(start + step) % len(among)] for step in range(len(among)))
        found = next((uid for uid in free if uid not in used), None)
        if found is None:
            raise NoUser(name, among[0], among[-1])
        given[name] = found
    return given


def users(path: Path, names: Iterable[str], *, among: range, reserved: Reserved) -> dict[str, int]:
    """Read who has which user, give one to who has none yet, and keep it. Under the host's lock only.

    Who has one that another host of this machine has reserved is given another one: it can only be told from that
    host's by its number. Raises NoUser, NotWritable.
    """
    try:
        known = known_users(path)
        given = _reserve(tuple(names), known, among, str(path), reserved)
        if given != known:
            written = path.with_suffix(".new")
            written.unlink(missing_ok=True)
            write_synced(written, msgspec.json.encode(given) + b"\n")
            written.replace(path)
            sync_directory(path.parent)
    except OSError as failure:
        raise NotWritable(str(path), failure) from failure
    for name in sorted(name for name, uid in known.items() if uid in among and given.get(name, uid) != uid):
        log.warning(
            "%s has been user %d, which is another host's that runs; now it is %d: let that one into what it may write",
            name,
            known[name],
            given[name],
        )
    return given


def _reserve(
    names: tuple[str, ...], known: Mapping[str, int], among: range, salt: str, reserved: Reserved
) -> dict[str, int]:
    """As ``assign``, until each can be reserved. Raises NoUser, OSError."""
    lost = {name for name, uid in known.items() if uid in among and not reserved.take(uid)}
    kept = {name: uid for name, uid in known.items() if name not in lost}
    others = {known[name] for name in lost} | taken()
    while True:
        given = assign((*names, *lost), kept, among=among, taken=others, salt=salt)
        held = {uid for uid in given.values() if not reserved.take(uid)}
        if not held:
            return given
        others |= held


def known_users(path: Path) -> dict[str, int]:
    """Who was given which user. What is lost is given anew: no file of anybody's belongs to them. Raises OSError.

    So is one that has a name by now: it is that one's, and what runs as it is nobody's to end.
    """
    try:
        found = msgspec.json.decode(plain.read(path), type=dict[str, int])
    except (FileNotFoundError, Damaged, msgspec.MsgspecError):
        return {}
    return {name: uid for name, uid in found.items() if uid in _USERS and not _named(uid)}


def _named(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def taken() -> frozenset[int]:
    """Users that have a name here, or a process that hasn't ended."""
    found = {entry.pw_uid for entry in pwd.getpwall()}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # gone meanwhile
                found.update(_owners(entry))
    return frozenset(found)


def _owners(process: Path) -> set[int]:
    """Not the folder's: that is root's for a process that isn't dumpable. One that has ended runs as nobody."""
    lines = (process / "status").read_text(encoding="utf-8", errors="replace").splitlines()
    if any(line.startswith("State:\tZ") for line in lines):
        return set()
    return {int(line.split()[1]) for line in lines if line.startswith("Uid:")}


def closed_to_others(path: str) -> str | None:
    """What on the way to a path other users can't go through, or the path if they can't read it; None: nothing."""
    real = Path(os.path.realpath(path))
    for folder in reversed(real.parents):
        if not folder.stat().st_mode & 0o001:
            return str(folder)
    return None if real.stat().st_mode & 0o004 else str(real)
