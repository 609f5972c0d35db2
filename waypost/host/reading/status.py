"""How a deployment is, as the API answers it; with a mark by which whoever looks on knows that nothing has changed."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import msgspec

from actors.describing import Description
from ipc.crowded import Crowd, Machine
from ipc.stopped import stopped, traced
from waypost.host.answers.records import AtWork, ChildExit, DeploymentFollowed, DeploymentStatus, FreshProcess
from waypost.host.mail.stuck import sentence
from waypost.host.messages import Deployed
from waypost.host.reading.explain import Situation
from waypost.host.reading.narrate import printable
from waypost.model.limits import Limits
from waypost.model.times import stamp


class _Which(Protocol):
    def __call__(self, child: int, *, boxed: bool) -> tuple[int, ...]: ...


def situations_of(every: Iterable[Deployed], limits: Limits, out: Path) -> tuple[Situation, ...]:
    """All that is known of deployments that a host runs; ``out`` is where their mail for others is put."""
    machine = Machine()
    return tuple(_situation(each, limits, out, machine) for each in every)


def _situation(each: Deployed, limits: Limits, out: Path, machine: Machine) -> Situation:
    return Situation(
        name=each.spec.name,
        address=each.spec.address,
        hosted=True,
        state=each.description.state,
        reason=each.description.reason,
        isolation=each.spec.isolation,
        code=each.description.code,
        since=each.description.since,
        generation=each.description.generation,
        exited=exit_of(each.description),
        limits=limits,
        file="" if each.spec.file == each.spec.name else each.spec.file,
        why=each.description.why,
        live=each.description.live,
        stopped=_of_child(each.description, stopped),
        traced=_of_child(each.description, traced),
        crowd=crowd_of(each.description, machine),
        stuck=None if each.stuck is None else sentence(each.stuck, out),
    )


def status_of(description: Description) -> DeploymentStatus:
    """The answer for one deployment."""
    renewed = description.renewed
    return DeploymentStatus(
        name=description.name,
        address=description.address,
        state=description.state,
        reason=printable(description.reason),
        generation=description.generation,
        pid=description.pid,
        until=None if description.until is None else stamp(description.until),
        code=description.code,
        exited=exit_of(description),
        executing=tuple(
            AtWork(run=each.run, step=printable(each.step), since=each.since) for each in description.executing
        ),
        more=description.more,
        renewed=None
        if renewed is None
        else FreshProcess(
            origin=renewed.origin, reason=printable(renewed.reason), at=stamp(renewed.at), after=renewed.generation
        ),
    )


def followed(description: Description) -> DeploymentFollowed:
    """The same, with its mark."""
    status = status_of(description)
    return DeploymentFollowed(status=status, mark=hashlib.sha256(msgspec.json.encode(status)).hexdigest()[:16])


def exit_of(description: Description) -> ChildExit | None:
    """How the last child ended that nobody had asked to."""
    exited = description.exited
    if exited is None:
        return None
    return ChildExit(
        generation=exited.generation, at=stamp(exited.at), why=printable(exited.why), stderr=exited.reason.stderr
    )


def _of_child(description: Description, which: "_Which") -> tuple[int, ...]:
    """Processes of its child that do nothing, as the kernel says now."""
    child = description.pid
    return () if child is None else which(child, boxed=_boxed(description))


def crowd_of(description: Description, machine: Machine) -> Crowd | None:
    """The limit that lets its child begin no more threads, as the kernel says now."""
    child = description.pid
    return None if child is None else machine.crowded(child, boxed=_boxed(description))


def _boxed(description: Description) -> bool:
    return description.isolation.startswith("namespace")
