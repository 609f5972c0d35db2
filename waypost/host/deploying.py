"""Deploying: the code goes into the deployment's repository, and into a folder that its children are started on.

Under the host's lock and before anybody else has the repository open. Code that is deployed already is no commit. A
repository that can't be opened is left to its supervisor, which says so and starts no child.
"""

import errno
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ipc.secret import Secret
from substrate.disk import Disk
from substrate.effects import To
from substrate.errors import FlushFailed, SubstrateError
from substrate.keys import PublicKey, SigningKey
from substrate.messages import Deploy, Done, Refused, Submit, Withheld
from substrate.reader import Reader
from substrate.settings import Settings, message_ids
from substrate.writer import Writer
from waypost.acting import Reply
from waypost.host import offline
from waypost.host.code_errors import CodeGone, NothingDeployed
from waypost.host.datadir import DataDir
from waypost.host.describe import Described, ask, described, refuse_taken
from waypost.host.errors import BadWorkflow, NotNow, NotWritable, RefusedByRule
from waypost.host.materialise import materialise, sweep
from waypost.model.code import Deployed, tree_hash
from waypost.model.declaration import NotDescribed
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import Now

_TOKEN = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What deploying needs of a host; no repr shows a key."""

    data: DataDir
    key: SigningKey
    mail_key: Secret
    disk: Disk
    now: Now
    limits: Limits = DEFAULT


def deploy(means: Means, one: Described) -> bool:
    """Make this the code of its deployment; whether it wasn't already. Raises NotWritable, NotNow, RefusedByRule.

    SubstrateError where the repository can't be opened; nothing is changed then.
    """
    path = means.data.repo(one.spec.name)
    if path.exists() and Reader.open(path, means.key.public).deployed() == one.record:
        return False
    settings = Settings(
        deployment=one.spec.name,
        address=one.spec.address,
        message_id=message_ids(bytes(means.mail_key.reveal()), one.spec.address),
        heads=means.data.head(one.spec.name),
    )
    try:
        writer = Writer.open(path, settings, key=means.key, disk=means.disk, limits=means.limits, now=means.now)
        operation = Deploy(record=one.record, files=one.files)
        effects = [*writer.submit(Submit(what=operation), To(token=_TOKEN), means.now), *writer.close(means.now)]
    except FlushFailed as failure:
        number = failure.errno or errno.EIO
        raise NotWritable(str(path), OSError(number, os.strerror(number))) from failure
    match next((effect.value for effect in effects if isinstance(effect, Reply) and effect.token == _TOKEN), None):
        case Done():
            return True
        case Refused(code, why, hint):
            raise RefusedByRule(code, why, hint)
        case Withheld(reason):
            raise NotNow(reason)
        case other:
            raise TypeError(f"a writer answered {other!r}")


def deploy_all(means: Means, every: Iterable[Described]) -> tuple[Described, ...]:
    """Deploy and materialise each; trees that no deployment here uses go. They come back without their files.

    Raises NotWritable, NotNow, RefusedByRule.
    """
    used: list[Described] = []
    for one in every:
        with suppress(SubstrateError):  # its supervisor opens the same repository next, and tells what is wrong with it
            deploy(means, one)
        _materialised(means.data, one)
        used.append(replace(one, files={}))
    _sweep(means, {one.record.tree for one in used})
    return tuple(used)


def _materialised(data: DataDir, one: Described) -> Path:
    try:
        return materialise(data.code, one.files)
    except OSError as failure:
        raise NotWritable(str(data.code), failure) from failure


def _sweep(means: Means, used: set[str]) -> None:
    """Trees of deployments that aren't run now stay: they may be run by another command a moment later."""
    try:
        others = {record.tree for _, record in records(means.data, means.key.public)}
        sweep(means.data.code, used | others)
    except (SubstrateError, OSError):
        return  # nothing is lost with a tree too many


def records(data: DataDir, key: PublicKey) -> Iterable[tuple[str, Deployed]]:
    """Every deployment here that has code, and its record. Raises SubstrateError."""
    for name in data.deployments():
        record = Reader.open(data.repo(name), key).deployed()
        if record is not None:
            yield name, record


def deployed_here(data: DataDir, *, timeout: float, environment: Mapping[str, str]) -> tuple[Described, ...]:
    """Every deployment of a data directory on the code that is deployed, looked at as a file is that is run.

    Raises NothingDeployed, CodeGone, BadWorkflow, Taken; NoDataDirectory; SubstrateError.
    """
    key = offline.public_key(data)
    found: list[Described] = []
    for name in data.deployments():
        reader = Reader.open(data.repo(name), key)
        record = reader.deployed()
        if record is not None:
            one = _again(name, record, reader.code(record.tree), timeout, environment)
            refuse_taken(one, found)
            found.append(one)
    if not found:
        raise NothingDeployed(str(data.path))
    return tuple(found)


def _again(
    name: str, record: Deployed, files: dict[str, bytes], timeout: float, environment: Mapping[str, str]
) -> Described:
    if tree_hash(files) != record.tree:
        raise CodeGone(name, "its files aren't those that its record names")
    bare = "/".join(filter(None, (record.root, *record.module.split("."))))
    entry = f"{bare}/__init__.py" if f"{bare}/__init__.py" in files else f"{bare}.py"
    answer = ask(name, files, entry, timeout=timeout, environment=environment)
    if isinstance(answer, NotDescribed):
        raise BadWorkflow(name, answer.error, hint=answer.hint)
    one = described(name, files, answer)
    if one.spec.name != name:
        raise CodeGone(name, f"it says that it is {one.spec.name!r}")
    return one
