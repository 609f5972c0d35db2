"""``waypost deploy FILE|DIR``: by the host that runs there, or alone; the deployment's next process runs that code."""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from waypost.host.code.rehearsing import Rehearsed
    from waypost.host.described import Described
    from waypost.host.processes.isolation import Isolation

from waypost.cli import granting, scheduling, words
from waypost.cli.client import Client, Said
from waypost.cli.output import harmless, out
from waypost.cli.place import for_host, plain
from waypost.host.answers.records import CodeDeployed
from waypost.host.datadir.directory import DataDir
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
        if done.again:
            after = "its host starts it anew, as it loads now"
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


def check(place: str, data: str | None, *, as_json: bool = False) -> Exit:
    """``waypost deploy --check FILE|DIR``: which live runs it would pause.

    REFUSED where there are any, else LEFT where not all were tried. Nothing is stored, beside a host or without one.
    Raises BadWorkflow, NotIsolated, SubstrateError.
    """
    from waypost.host.code.rehearsing import rehearse

    where = DataDir(for_host(data, Path(place)))
    one, isolation = _looked_at(Path(place), where.path)
    name, found = one.spec.name, rehearse(where, one, os.environ, isolation)
    if as_json:
        out(msgspec.json.encode(found).decode())
    else:
        out(*(harmless(line) for line in _rehearsed(name, found)))
    if found.paused:
        return Exit.REFUSED
    return Exit.LEFT if found.untried else Exit.OK


def _rehearsed(name: str, found: "Rehearsed") -> Iterator[str]:
    for each in found.paused[:_LISTED]:
        yield f"  {each.run} would be paused ({each.code}): {each.detail}"
    if len(found.paused) > _LISTED:
        yield f"  … {len(found.paused) - _LISTED:,} more would be"
    if found.untried:
        yield f"  not tried, as they are too many or took too long: {words.count(len(found.untried), 'run')}"
    live = len(found.paused) + found.fit + len(found.untried)
    fate = f"{found.fit:,} would go on, {len(found.paused):,} would be paused"
    yield f"{name}: {words.count(live, 'live run')}: {fate}"
    yield "nothing was stored: `waypost deploy` without --check does it"


def _introduced(where: DataDir, name: str) -> Iterator[str]:
    """Whom it may mail, what its secrets lack, and what is due when; nothing where the host is busy with it."""
    with suppress(Said):
        granted = granting.read(where, name)
        yield from (f"    {line}" for line in granting.introduced(granted))
        asked = (handle for each in granted.steps for handle in each.asks)
        yield from (f"    {line}" for line in granting.unlisted(where, asked))
        yield from (f"    {line}" for line in scheduling.introduced(where, name))


def _without_host(path: Path, where: Path) -> CodeDeployed:
    """Alone; where a host has begun and doesn't listen yet, or another deploy is at it, later is the time."""
    try:
        return _alone(path, where)
    except HostRuns as taken:
        raise NotNow(f"what is at work in {where} doesn't answer ({taken.holder})") from None


def _alone(path: Path, where: Path) -> CodeDeployed:
    from waypost.host.code.deploying import deploy_alone
    from waypost.host.code.redeploying import told

    one, _ = _looked_at(path, where)
    return told(one, new=deploy_alone(where, one, command=("waypost", *sys.argv[1:])))


def _looked_at(path: Path, where: Path) -> "tuple[Described, Isolation]":
    from waypost.host.code.describe import describe
    from waypost.host.processes.isolation import Asked, choose

    isolation = choose(Asked(), data=str(where), environment=os.environ)
    one = describe(path, timeout=DEFAULT.ready_deadline, environment=os.environ, data=where, isolation=isolation)
    return one, isolation
