"""Deploying: the code goes into the deployment's repository, and into a folder that its children are started on.

Under the host's lock and before anybody else has the repository open. Code that is deployed already is no commit. A
repository that can't be opened is left to its supervisor, which says so and starts no child.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ipc.secret import Secret
from substrate.errors import SubstrateError
from substrate.files.disk import Disk
from substrate.messages import Deploy
from substrate.reader import Reader
from substrate.settings import Settings, message_ids
from substrate.signing.keys import SigningKey
from waypost.host.clock import SystemClock
from waypost.host.code.deployed import Known, known
from waypost.host.code.materialise import compiled, materialise, sweep
from waypost.host.datadir.directory import DataDir, lay_out, mail_key, prepare, refuse_unfinished
from waypost.host.datadir.lock import HostLock
from waypost.host.datadir.signing import signing_key
from waypost.host.described import Described
from waypost.host.errors import NotWritable, Taken
from waypost.host.once import once
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import Now, stamp


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
    operation = Deploy(record=one.record, files=one.files)
    once(path, settings, operation, key=means.key, disk=means.disk, now=means.now, limits=means.limits)
    return True


def deploy_all(means: Means, every: Iterable[Described]) -> tuple[Described, ...]:
    """Deploy and materialise each; trees that no deployment here uses go. They come back without their files.

    Raises Taken, NotWritable, NotNow, RefusedByRule.
    """
    wanted = tuple(every)
    here = known(means.data, means.key.public, (one for one in wanted if one.sleep is not None))
    all_read = len(here) == len(means.data.deployments())
    refuse_resting(here, wanted)
    used: list[Described] = []
    for one in wanted:
        if one.sleep is not None:
            used.append(one)  # it is deployed, and its folder is seen to when it is woken
            continue
        before = here.get(one.spec.name)
        if before is not None and before.record == one.record:
            used.append(materialised(means.data, one))
            continue
        with suppress(SubstrateError):  # its supervisor opens the same repository next, and tells what is wrong with it
            deploy(means, one)
        used.append(materialised(means.data, one))
    if all_read:
        # Trees of deployments that aren't run now stay: they may be run by another command a moment later.
        others = {each.record.tree for each in here.values() if each.record is not None}
        with suppress(OSError):  # nothing is lost with a tree too many
            sweep(means.data.code, {one.record.tree for one in used} | others)
    return tuple(used)


def materialised(data: DataDir, one: Described) -> Described:
    """The same without its files, which are in a folder of the data directory then. Raises NotWritable."""
    try:
        folder = materialise(data.code, one.files)
        return replace(one, files={}, compiled=compiled(folder, one.files))
    except OSError as failure:
        raise NotWritable(str(data.code), failure) from failure


def deploy_alone(place: Path, one: Described, *, command: tuple[str, ...]) -> bool:
    """Deploy without a host, into a data directory that is made where there is none; whether it wasn't deployed yet.

    Raises HostError: DataDirectory and its children, HostRuns, Taken; BadKey, SubstrateError.
    """
    now = SystemClock().now()
    data = prepare(place)
    with HostLock.take(data.lock, command=command, since=stamp(now.wall)):
        lay_out(data)
        refuse_unfinished(data)
        key, secret = keys(data)
        refuse_resting(known(data, key.public), (one,))
        return deploy(Means(data=data, key=key, mail_key=Secret(secret), disk=Disk(), now=now), one)


def keys(data: DataDir) -> tuple[SigningKey, bytes]:
    """The host's signing key and its mail key, made at the first start.

    Raises KeyGone, BadKey, BadMailKey, NotWritable.
    """
    try:
        return signing_key(data), mail_key(data)
    except OSError as failure:
        raise NotWritable(str(data.keys), failure) from failure


def refuse_resting(here: Mapping[str, Known], wanted: Iterable[Described]) -> None:
    """An address belongs to one deployment of a host, also while nobody runs that one. Raises Taken."""
    several = tuple(wanted)
    names = {one.spec.name for one in several}
    resting = {each.address: name for name, each in here.items() if name not in names}
    for one in several:
        if one.spec.address in resting:
            other = f"the deployment {resting[one.spec.address]!r} of this data directory"
            raise Taken("address", one.spec.address, other, one.spec.file)
