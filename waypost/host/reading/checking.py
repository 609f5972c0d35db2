"""Which repositories a check by the rules is about, and what it says of them as records.

A check reads the repository itself, beside a host or without one, and writes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from substrate.checking.fsck import Finding, Looked, fsck
from substrate.errors import BadKey, NotARepository
from substrate.rules import RULES
from substrate.signing.keys import PublicKey
from substrate.upkeep.salvage import Salvaged, salvage
from waypost.host.answers.records import Answer
from waypost.host.datadir.directory import DataDir, find
from waypost.host.errors import NoDataDirectory
from waypost.host.reading.offline import load_key
from waypost.model.errors import Invalid
from waypost.model.ids import deployment


class Broken(Answer, frozen=True, kw_only=True):
    """One finding: ``rule`` by name and what it ``says``, where, the offending ``value``, and what to do."""

    commit: str
    rule: str
    path: str
    value: str
    says: str
    advice: str


class Checked(Answer, frozen=True, kw_only=True):
    """What the check of one repository found. ``more``: findings that were left out."""

    name: str
    repository: str
    commits: int
    oldest: str
    broken: tuple[Broken, ...] = ()
    more: int = 0


class Checks(Answer, frozen=True, kw_only=True):
    """What the check of every repository found."""

    repositories: tuple[Checked, ...]


@dataclass(frozen=True, slots=True)
class Target:
    """A repository to be checked; ``key`` is the host's, where it is known."""

    name: str
    path: Path
    key: PublicKey | None


def targets(start: Path, told: str | None, what: str | None, key: str | None) -> tuple[Target, ...]:
    """The repositories that are meant: a deployment, a path, or all deployments of the data directory.

    Raises NoDataDirectory, NotARepository, NoKey and what else makes a data directory unusable.
    """
    given = None if key is None else load_key(Path(key))
    if what is not None and not _is_name(what):
        return (Target(what, Path(what), given),)
    try:
        data = find(start, told)
    except NoDataDirectory:
        if what is None or told is not None or not Path(what).is_dir():
            raise
        return (Target(what, Path(what), given),)
    if what is None:
        return tuple(_of(data, name, given) for name in data.deployments())
    if what in data.deployments():
        return (_of(data, what, given),)
    if Path(what).is_dir():
        return (Target(what, Path(what), given),)
    raise NotARepository(str(data.repo(what)), f"the data directory has no deployment {what}")


def look(target: Target, looked: Looked, *, tip: bool) -> Iterator[Broken]:
    """Check one repository; the findings as they are found. Raises NotARepository."""
    for each in fsck(target.path, looked, key=target.key, tip=tip):
        yield _told(each)


def copy_out(target: Target, into: Path) -> Salvaged:
    """Copy out what is readable. Raises NotARepository, NothingToSalvage, OSError."""
    return salvage(target.path, into, target.key)


def _is_name(what: str) -> bool:
    try:
        deployment(what)
    except Invalid:
        return False
    return True


def _of(data: DataDir, name: str, given: PublicKey | None) -> Target:
    try:
        return Target(name, data.repo(name), given or PublicKey.load(data.public_key))
    except (OSError, BadKey):
        return Target(name, data.repo(name), None)  # the rules need no key; `verify` says what is wrong with it


def _told(each: Finding) -> Broken:
    return Broken(
        commit=each.commit,
        rule=each.rule,
        path=each.path,
        value=each.value,
        says=RULES[each.rule].says,
        advice=each.advice,
    )
