"""What a deployment's steps may do, and what they ask for: shown, changed by an operator, written out.

With a host the host is asked; without one the repository is read, and written under the host's own lock.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from substrate.files.disk import Disk
from substrate.messages import ChangeGrants, InForce
from substrate.reader import Reader
from substrate.reference.export import export as repositories
from substrate.settings import Settings, message_ids
from substrate.signing.keys import SigningKey
from waypost.host.alone import alone
from waypost.host.answers.records import Answer
from waypost.host.clock import SystemClock
from waypost.host.datadir.directory import DataDir, mail_key, refuse_unfinished
from waypost.host.errors import NotWritable
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.host.once import once
from waypost.host.processes.users import user_name
from waypost.host.reading.offline import public_key
from waypost.model.code import Deployed
from waypost.model.declaration import Declared
from waypost.model.errors import Invalid
from waypost.model.grants import NOTHING, RUN, Asked, StepGrants, content_hash, may_read


class StepShown(Answer, frozen=True, kw_only=True):
    """One step; ``mail`` and ``children`` are None where they are as the code declares, or for a step granted none.

    ``asks``: the handles that its code asks for; ``lacks``: those of them that it isn't granted.
    """

    step: str
    mail: tuple[str, ...] | None
    secrets: tuple[str, ...]
    children: tuple[str, ...] | None
    content_hash: str
    asks: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


class GrantsShown(Answer, frozen=True, kw_only=True):
    """What is granted in a deployment; ``declared``: whom its workflow names in ``mail_to``, and its child workflows.

    ``sha256``: of the snapshot that a run's start names. ``unreadable``: a file that can't be read, and why.
    """

    deployment: str
    sha256: str
    steps: tuple[StepShown, ...]
    declared: tuple[str, ...] = ()
    declared_children: tuple[str, ...] = ()
    unreadable: str = ""


class GrantsWanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What an operator asks for: to give a step something, to take it back, or to have it as the code declares."""

    step: str = RUN
    give: StepGrants = NOTHING
    take: StepGrants = NOTHING
    declared: bool = False

    def operation(self, by: str) -> ChangeGrants:
        """The operation, with every value in its one form. Raises Invalid."""
        return ChangeGrants(
            by=by, step=self.step, give=_checked(self.give), take=_checked(self.take), declared=self.declared
        )


class GrantsSet(Answer, frozen=True, kw_only=True):
    """A step's grants were changed, durably, or were so already."""

    deployment: str
    step: str
    grants: StepGrants
    by: str


def shown(
    name: str,
    granted: InForce,
    *,
    steps: Iterable[str],
    mail_to: tuple[str, ...],
    children: tuple[str, ...] = (),
    asked: Sequence[Asked],
) -> GrantsShown:
    """What is granted beside what is asked for: the run first, then the steps in the order of the file, then others."""
    return GrantsShown(
        deployment=name,
        sha256=granted.sha256,
        steps=tuple(_step(step, granted, asked) for step in dict.fromkeys((RUN, *steps, *granted.steps))),
        declared=mail_to,
        declared_children=children,
        unreadable=granted.why_unreadable,
    )


def show_alone(data: DataDir, name: str) -> GrantsShown:
    """The same without a host. Raises NoSuchDeployment, SubstrateError."""
    reader = _reader(data, name)
    declared = _declared(reader.deployed())
    if declared is None:
        return shown(name, reader.granted(), steps=(), mail_to=(), asked=())
    names = (step.name for step in declared.steps)
    return shown(
        name,
        reader.granted(),
        steps=names,
        mail_to=declared.mail_to,
        children=tuple(each.name for each in declared.children or ()),
        asked=declared.asked(),
    )


def change_alone(data: DataDir, name: str, wanted: GrantsWanted, disk: Disk | None = None) -> GrantsSet:
    """Change what is granted, without a host.

    Raises NoSuchDeployment, HostRuns, RefusedByRule, NotNow, NotWritable, Invalid; SubstrateError.
    """
    _known(data, name)
    by = user_name(os.getuid())
    operation = wanted.operation(by)
    with alone(data):
        refuse_unfinished(data)
        return GrantsSet(deployment=name, step=wanted.step, grants=_write(data, name, operation, disk or Disk()), by=by)


def export(data: DataDir, name: str, folder: Path) -> tuple[Path, ...]:
    """A repository for each step with grants, as the reference system's agent-state repositories are.

    What is there already is refused, not overwritten. Raises NoSuchDeployment, NotWritable; SubstrateError.
    """
    granted = _reader(data, name).granted()
    try:
        return repositories(granted.steps, folder, SystemClock().now().wall // 1000)
    except OSError as failure:
        hint = "name a folder of your own in which no step has one yet: nothing there is overwritten"
        raise NotWritable(str(failure.filename or folder), failure, hint) from failure


def _declared(record: Deployed | None) -> Declared | None:
    with suppress(Invalid):
        return None if record is None else record.declaration
    return None


def _step(step: str, granted: InForce, asked: Sequence[Asked]) -> StepShown:
    grants = granted.steps.get(step, NOTHING)
    asks = tuple(handle for who, handle in asked if who == step)
    return StepShown(
        step=step,
        mail=grants.mail or (() if grants.mail == () else None),
        secrets=grants.secrets,
        children=grants.children or (() if grants.children == () else None),
        content_hash=content_hash(grants),
        asks=asks,
        lacks=tuple(handle for handle in asks if not may_read(granted.taken, step, handle)),
    )


def _checked(grants: StepGrants) -> StepGrants:
    from waypost.model.grants import granted

    return granted(mail=grants.mail, secrets=grants.secrets, children=grants.children)


def _known(data: DataDir, name: str) -> None:
    if name not in data.deployments():
        raise NoSuchDeployment(name, data.deployments())


def _reader(data: DataDir, name: str) -> Reader:
    _known(data, name)
    return Reader.open(data.repo(name), public_key(data))


def _write(data: DataDir, name: str, operation: ChangeGrants, disk: Disk) -> StepGrants:
    key, now, path = SigningKey.load(data.signing_key), SystemClock().now(), data.repo(name)
    address = Reader.open(path, key.public).facts().address
    settings = Settings(
        deployment=name, address=address, message_id=message_ids(mail_key(data), address), heads=data.head(name)
    )
    changed: StepGrants = once(path, settings, operation, key=key, disk=disk, now=now)
    return changed
