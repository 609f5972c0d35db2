"""``waypost drain`` and ``waypost recycle``: begun by the host, and looked on until they are done, or Ctrl-C."""

import itertools
import shlex
from collections.abc import Iterator

import msgspec

from waypost.cli.client import Client, Said
from waypost.cli.output import harmless, out
from waypost.cli.place import existing, plain
from waypost.host.answers.records import DeploymentDraining, DeploymentFollowed, DeploymentRecycling, DeploymentStatus
from waypost.host.errors import HostError, NoHost, Unanswered
from waypost.host.exits import Exit
from waypost.host.keeping_errors import CameOtherwise, DrainedLater, Forgotten

_SETTLED = frozenset({"held", "down"})
"""States in which a deployment stays, whatever else is so; whoever has begun it says that it is so far."""
_UNSAID = frozenset({"idle", "dormant", "waking", "starting", "running", "dozing"})
"""States that one is in before what was begun begins, as one that slept is woken for it."""
_BREAKS = 2
"""How often a host that is killed breaks off: what it had taken, then what waited to be taken; then nobody listens."""


def drain(name: str, data: str | None, *, end: bool) -> Exit:
    """``waypost drain DEPLOYMENT [--end]``: until nothing executes, or every run has ended, and it is held."""
    client, name = Client(existing(data).socket), plain("the deployment", name)
    try:
        body = msgspec.json.encode({"end": end})
        client.post(DeploymentDraining, "deployments", name, "drain", body=body)
    except Said as said:
        if said.code not in {"retiring" if end else "draining", "held"}:
            raise  # else it is what was begun before, and this looks on
    try:
        ended = _follow(client, name, DrainedLater(name, f"waypost drain {name}{' --end' if end else ''}"))
    except KeyboardInterrupt:
        out(f"{name} goes on draining; `waypost drain {name}` shows it again, `waypost resume {name}` ends it")
        return Exit.OK
    if ended.state != "held":
        raise CameOtherwise(name, "it isn't drained", ended.state, ended.reason)
    out(f"{name} is drained and held: mail is accepted, runs stay live, nothing executes and nothing leaves")
    out(f"next: `waypost resume {name}` lists what would go out, and lets it go on")
    return Exit.OK


def recycle(name: str, reason: str, data: str | None) -> Exit:
    """``waypost recycle DEPLOYMENT``: until a fresh process runs."""
    client, name = Client(existing(data).socket), plain("the deployment", name)
    body = msgspec.json.encode({"reason": plain("--reason", reason)})
    begun = client.post(DeploymentRecycling, "deployments", name, "recycle", body=body)
    try:
        alone = Forgotten(name, f"waypost recycle {name} --reason {shlex.quote(reason)}")
        ended = _follow(client, name, alone, after=begun.generation)
    except KeyboardInterrupt:
        out(f"{name} goes on being recycled")
        return Exit.OK
    if ended.state != "running":
        raise CameOtherwise(name, "it has no fresh process", ended.state, ended.reason)
    out(f"{name} has a fresh process: generation {ended.generation} after {begun.generation}, pid {ended.pid}")
    return Exit.OK


def _follow(client: Client, name: str, alone: HostError, after: int = -1) -> DeploymentStatus:
    """Show each change until the deployment stays as it is, by a generation behind ``after`` where it runs.

    ``alone`` is raised where the host has ended. Raises Said, Unanswered, too.
    """
    said: tuple[str, ...] = ()
    for status in _changes(client, name, alone):
        if _stays(status, after):
            return status
        lines = () if status.state in _UNSAID else tuple(_lines(status))
        if lines != said:
            out(*lines)
        said = lines
    raise AssertionError("a deployment never changes no more")


def _stays(status: DeploymentStatus, after: int) -> bool:
    """Whether that is how it ended. What is stopped for no reason of its own has a host that ends, or new code."""
    match status.state:
        case "running":
            return status.generation > after
        case "stopped":
            return bool(status.code)
        case state:
            return state in _SETTLED


def _changes(client: Client, name: str, alone: HostError) -> Iterator[DeploymentStatus]:
    mark = ""
    for _ in itertools.count():
        followed = _followed(client, name, alone, mark)
        if followed.mark != mark:
            mark = followed.mark
            yield followed.status


def _followed(client: Client, name: str, alone: HostError, mark: str, breaks: int = _BREAKS) -> DeploymentFollowed:
    try:
        # The host answers when something has changed, or after a while.
        return client.get(DeploymentFollowed, "deployments", name, known=mark)
    except NoHost:
        raise alone from None
    except Unanswered:
        if not breaks:
            raise
        return _followed(client, name, alone, "", breaks - 1)


def _lines(status: DeploymentStatus) -> Iterator[str]:
    if not status.executing:
        yield f"{status.name} is {status.state}" + (f": {harmless(status.reason)}" if status.reason else "")
        return
    yield f"{status.name} is {status.state}; it waits for"
    for each in status.executing:
        yield f"  {each.run}  {harmless(each.step)}" + (f", since {each.since}" if each.since else "")
    if status.more:
        yield f"  and {status.more} more"
