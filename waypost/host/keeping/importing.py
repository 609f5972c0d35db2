"""``waypost import``: a deployment out of a repository of the reference system, whole or not at all.

The source is only read. The new repository is made aside, in ``importing/`` of the data directory, verified there, and
gets its name by one rename: so a death at any moment leaves nothing of it, and the same command again makes it anew.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

import msgspec

from substrate.checking.verify import verify
from substrate.files.disk import Disk
from substrate.reference.bring import Brought, bring
from substrate.reference.errors import Left, ManyAddresses, NotReference
from substrate.reference.source import Source
from substrate.reference.survey import Survey, survey
from substrate.settings import Settings, message_ids
from waypost import __version__
from waypost.host.clock import SystemClock
from waypost.host.datadir.directory import DataDir, lay_out, mail_key, prepare
from waypost.host.datadir.lock import HostLock
from waypost.host.datadir.signing import signing_key
from waypost.host.errors import HostError, NotWritable
from waypost.host.reading import offline
from waypost.model.ids import Deployment
from waypost.model.limits import DEFAULT, Limits
from waypost.model.mail import BadAddress
from waypost.model.mail import address as normal
from waypost.model.times import stamp


class NoAddress(HostError):
    """Nothing says which address the deployment is to have, or what does is no address here."""

    code = "usage"

    def __init__(self, said: str, *, hint: str = "say by --address which address the workflow has") -> None:
        super().__init__(said, hint=hint)


class NothingToImport(HostError):
    """The source is no repository of the reference system, or can't be read as one."""

    code = "malformed"


class Exists(HostError):
    """An import never overwrites, and an address belongs to one deployment."""

    code = "taken"

    def __init__(self, what: str, value: str, place: str) -> None:
        hint = f"choose another one with --{what}, or import into a data directory of its own with --data DIR"
        super().__init__(f"{place} has a deployment with the {what} {value!r} already, or had one", hint=hint)


class Unsound(HostError):
    """What was made doesn't verify: a fault of ours, found before anything got its name."""

    def __init__(self, path: str, fault: str) -> None:
        super().__init__(f"{path}: the import was given up, because what it made doesn't verify: {fault}")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is taken over. ``run`` is its id here, empty in a dry run; ``was_live``: it is ended by the import."""

    name: str
    run: str = ""
    events: int
    was_live: bool


class Thing(msgspec.Struct, frozen=True):
    """What isn't taken over, and why."""

    path: str
    why: str


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did, or a dry run would do."""

    source: str
    deployment: str
    address: str
    dry_run: bool
    runs: tuple[Run, ...]
    queued: int
    """Mails that wait; in a dry run, all that would be looked at."""
    held: int = 0
    filed: int = 0
    """Mails that caused no event, whose ids are known; in a dry run, all that were consumed."""
    grants: tuple[str, ...] = ()
    """Steps that have grants."""
    left: tuple[Thing, ...] = ()
    more_left: int = 0


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for. ``address``: the deployment's, if it isn't the source's own; ``steps``: repository by step."""

    source: Path
    name: Deployment
    address: str | None
    steps: Mapping[str, Path]
    command: tuple[str, ...] = ("waypost", "import")


def look(order: Order) -> tuple[Survey, str]:
    """Look at the source: the survey, and the address that the deployment will have. Raises HostError.

    Nothing is written anywhere.
    """
    try:
        steps = {step: Source.open(path) for step, path in order.steps.items()}
        found = survey(Source.open(order.source), order.address, steps)
    except NotReference as bad:
        raise NothingToImport(bad.message, hint=bad.hint) from bad
    except ManyAddresses as bad:
        raise NoAddress(bad.message, hint=bad.hint) from bad
    chosen = order.address or found.queue.address
    if not chosen:
        raise NoAddress(f"{order.source}: no mail ever came to it, so it names no address")
    try:
        return found, normal(chosen)
    except BadAddress as bad:
        raise NoAddress(f"{order.source}: {bad.message}") from bad


def dry_run(order: Order) -> Imported:
    """What an import would take over, and what it would leave. Raises as ``look``."""
    found, address = look(order)
    runs = tuple(Run(name=_shown(run.name), events=run.events, was_live=not run.ended) for run in found.runs)
    queue = found.queue
    return _answer(order, found, address, runs, dry_run=True, queued=len(queue.waiting), filed=len(queue.consumed))


def carry_out(data: Path, order: Order, *, disk: Disk | None = None, limits: Limits = DEFAULT) -> Imported:
    """Import into a data directory, which is made where there is none; no host may run there.

    Raises HostError: DataDirectory and its children, HostRuns, Exists, NothingToImport, Unsound; SubstrateError.
    """
    found, address = look(order)
    writer, now = disk or Disk(), SystemClock().now()
    place = prepare(data)
    with HostLock.take(place.lock, command=order.command, since=stamp(now.wall)):
        lay_out(place)
        _refuse_existing(place, order, address)
        settings = Settings(deployment=order.name, address=address, message_id=message_ids(mail_key(place), address))
        aside = place.path / "importing"
        try:
            key = signing_key(place)
            _clear(aside, writer)
            writer.make_directory(str(aside), 0o700)
            made = aside / f"{order.name}.git"
            result = bring(made, settings, found, key=key, disk=writer, limits=limits, now=now, version=__version__)
            report = verify(made, key.public)
            if not report.sound:
                raise Unsound(str(made), str(report.faults[0]))
            writer.rename(str(made), str(place.repo(order.name)))
            writer.sync_directory(str(place.repos))
            _clear(aside, writer)
        except OSError as failure:
            raise NotWritable(str(aside), failure) from failure
    return _answer(
        order,
        found,
        address,
        tuple(map(_run, result.runs)),
        dry_run=False,
        queued=result.queued,
        held=result.held,
        filed=result.filed,
    )


def _refuse_existing(place: DataDir, order: Order, address: str) -> None:
    if place.repo(order.name).exists() or place.head(order.name).exists():
        raise Exists("name", order.name, str(place.path))
    if address in offline.addresses(place)[0]:
        raise Exists("address", address, str(place.path))


def _clear(aside: Path, writer: Disk) -> None:
    """Remove what a killed import left, or this one no longer needs."""
    if aside.exists():
        writer.point("clear", str(aside))
        rmtree(aside)


def _run(brought: Brought) -> Run:
    return Run(name=_shown(brought.name), run=brought.run, events=brought.events, was_live=brought.was_live)


def _shown(name: str) -> str:
    """A name of theirs, as UTF-8 can hold it."""
    return name.encode("utf-8", "replace").decode()


def _answer(
    order: Order,
    found: Survey,
    address: str,
    runs: tuple[Run, ...],
    *,
    dry_run: bool,
    queued: int,
    held: int = 0,
    filed: int = 0,
) -> Imported:
    def thing(left: Left) -> Thing:
        return Thing(left.path, left.why)

    return Imported(
        source=str(order.source),
        deployment=order.name,
        address=address,
        dry_run=dry_run,
        runs=runs,
        queued=queued,
        held=held,
        filed=filed,
        grants=tuple(sorted(found.grants)),
        left=tuple(map(thing, found.leaving.named)),
        more_left=found.leaving.more,
    )
