"""``waypost deploy FILE|DIR``: by the host that runs there, or alone; the deployment's next process runs that code."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from waypost.cli import granting, scheduling
from waypost.cli.client import Client, Said
from waypost.cli.output import harmless, out
from waypost.cli.place import for_host, plain
from waypost.host.answers import CodeDeployed
from waypost.host.datadir import DataDir
from waypost.host.errors import HostRuns, NoHost, NotNow
from waypost.host.exits import Exit
from waypost.model.limits import DEFAULT

_PATIENCE = 120.0
"""Seconds: the host lets runs come to rest before it takes other code."""
_LISTED = 20


def deploy(place: str, data: str | None, *, grant: bool = False, as_json: bool = False) -> Exit:
    """``waypost deploy FILE|DIR``; ``grant``: what it asks for. Raises BadWorkflow, DataDirectory, NotNow, Said."""
    where = for_host(data, Path(place))
    body = msgspec.json.encode({"path": plain("the path", str(Path(place).absolute()))})
    try:
        done = Client(DataDir(where).socket, _PATIENCE).post(CodeDeployed, "deploy", body=body)
        after = "its host runs it from now on" if done.new else "its host runs it already"
        if done.later:
            after = "its host left it out: end that host (Ctrl-C) and start it again, by `waypost run`, and it runs it"
    except NoHost:
        done = _without_host(Path(place), where)
        after = f"next: `waypost run --data {where}` runs what is deployed there"
    given = granting.give_asked(DataDir(where), done.deployment) if grant else ()
    if as_json:
        out(msgspec.json.encode(done).decode())
        return Exit.OK
    count = len(done.files)
    out(
        f"{done.deployment}: {'deployed' if done.new else 'deployed already'} as {done.tree[:12]}: "
        f"{count:,} {'file' if count == 1 else 'files'}, {done.size:,} bytes",
        *(f"    {harmless(path)}" for path in done.files[:_LISTED]),
        *([f"    … {count - _LISTED:,} more"] if count > _LISTED else []),
        *(f"    {granting.told(each)}" for each in given),
        *_introduced(DataDir(where), done.deployment),
        after,
    )
    return Exit.OK


def _introduced(where: DataDir, name: str) -> Iterator[str]:
    """Whom it may mail, which secrets it asks for, and what is due when; nothing where the host is busy with it."""
    with suppress(Said):
        yield from (f"    {line}" for line in granting.introduced(granting.read(where, name)))
        yield from (f"    {line}" for line in scheduling.introduced(where, name))


def _without_host(path: Path, where: Path) -> CodeDeployed:
    """Alone; where a host has begun and doesn't listen yet, or another deploy is at it, later is the time."""
    try:
        return _alone(path, where)
    except HostRuns as taken:
        raise NotNow(f"what is at work in {where} doesn't answer ({taken.holder})") from None


def _alone(path: Path, where: Path) -> CodeDeployed:
    from waypost.host.deploying import deploy_alone
    from waypost.host.describe import describe
    from waypost.host.isolation import Asked, choose
    from waypost.host.redeploying import told

    isolation = choose(Asked(), data=str(where), environment=os.environ)
    one = describe(path, timeout=DEFAULT.ready_deadline, environment=os.environ, data=where, isolation=isolation)
    return told(one, new=deploy_alone(where, one, command=("waypost", *sys.argv[1:])))
