"""The verbs that only read: they ask the host, and where none runs they read the repositories themselves."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from waypost.cli import words
from waypost.cli.client import TIMEOUT, VERIFY_TIMEOUT, Client
from waypost.cli.output import err, harmless, out
from waypost.cli.place import existing, run_named
from waypost.host.answers.records import Answer, EventsPage, Runs, RunShown, Verified
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import NoHost
from waypost.host.exits import Exit

if TYPE_CHECKING:
    from substrate.signing.receipt import Receipt

A = TypeVar("A", bound=Answer)


def runs(data: str | None, deployment: str | None, states: Sequence[str], limit: int, *, as_json: bool) -> Exit:
    """``waypost runs``."""
    where = existing(data)
    asked = {**({"deployment": deployment} if deployment else {}), **({"state": ",".join(states)} if states else {})}
    answer = either(
        where,
        lambda client: client.get(Runs, "runs", limit=limit, **asked),
        lambda data: _offline_runs(data, deployment, states, limit),
    )
    if as_json or not sys.stdout.isatty():
        rows = [words.HEADINGS, *map(words.row, answer.runs)]
        give(answer, words.columns(rows), as_json=as_json)
    else:
        _table(answer)
    err(*words.left_out(answer))
    return Exit.LEFT if answer.unread else Exit.OK


def show(run: str, data: str | None, *, as_json: bool) -> Exit:
    """``waypost show RUN``."""
    where, run = existing(data), run_named(run)
    answer = either(where, lambda client: client.get(RunShown, "runs", run), lambda data: _offline_show(data, run))
    give(answer, words.show(answer), as_json=as_json)
    return Exit.OK


def log(run: str, data: str | None) -> Exit:
    """``waypost log RUN``: the stored events, byte for byte, one a line."""
    for page in pages_of(existing(data), run_named(run)):
        out(*(event.decode() for event in page))
    return Exit.OK


def verify(data: str | None, key: str | None, repository: str | None, receipt: str | None, *, as_json: bool) -> Exit:
    """``waypost verify``: the repositories of a data directory, one of them by its name, or a clone anywhere."""
    if repository is not None:
        answer = _verify_one(repository, data, key, receipt)
    elif receipt is not None:
        answer = _verify_receipt(existing(data), key, receipt)
    else:
        where = existing(data)
        if key is None:
            answer = either(
                where, lambda client: client.get(Verified, "verify"), _offline_verify, timeout=VERIFY_TIMEOUT
            )
        else:
            answer = _offline_verify(where, key)
    give(answer, words.verified(answer), as_json=as_json)
    return Exit.OK if all(each.sound for each in answer.deployments) else Exit.REFUSED


def either(
    where: DataDir, online: Callable[[Client], A], offline: Callable[[DataDir], A], *, timeout: float = TIMEOUT
) -> A:
    """Ask the host, or read without one where none runs."""
    try:
        return online(Client(where.socket, timeout))
    except NoHost:
        return offline(where)


def pages_of(where: DataDir, run: str) -> Iterator[tuple[bytes, ...]]:
    """A run's stored events, page by page, from the host, or from the disk where none runs."""
    after = 0
    while True:
        page = page_of(where, run, after)
        if page.events:
            yield tuple(map(bytes, page.events))
        after += len(page.events)
        if not page.events or after >= page.last:
            return


def page_of(where: DataDir, run: str, after: int) -> EventsPage:
    """A run's stored events after a seq, from the host, or from the disk where none runs."""
    return either(
        where,
        lambda client: client.get(EventsPage, "runs", run, "events", after=after),
        lambda data: _offline_page(data, run, after),
    )


def give(answer: Answer, text: Iterable[str], *, as_json: bool) -> None:
    """An answer, as one line of JSON or in words."""
    if as_json:
        out(msgspec.json.encode(answer).decode())
    else:
        out(*text)


# --- without a host: the storage is imported only here ---------------------------------------------------------------


def _offline_runs(data: DataDir, deployment: str | None, states: Sequence[str], limit: int) -> Runs:
    from waypost.host.reading import offline, runs

    found = runs.listed(offline.Offline(data), limit, deployment=deployment, states=states)
    if any(each.waiting for each in found.runs):
        err("no host runs here, and what waits goes on only with one: `waypost run`")
    return found


def _offline_show(data: DataDir, run: str) -> RunShown:
    from waypost.host.reading import offline, source

    return source.show(offline.Offline(data), run)


def _offline_page(data: DataDir, run: str, after: int) -> EventsPage:
    from waypost.host.reading import offline, source

    return source.events(offline.Offline(data), run, after)


def _offline_verify(data: DataDir, key: str | None = None) -> Verified:
    from waypost.host.reading import offline

    return offline.check(data, offline.public_key(data) if key is None else offline.load_key(Path(key)))


def _verify_one(which: str, data: str | None, key: str | None, receipt: str | None) -> Verified:
    """A repository or clone by its path, or else a deployment of the data directory by its name."""
    from substrate.signing.receipt import load
    from waypost.host.errors import NoDataDirectory
    from waypost.host.reading import offline

    found = None if receipt is None else load(Path(receipt))
    if "/" not in which and not Path(which).exists():
        with suppress(NoDataDirectory):  # then it is a path, to which nothing leads
            return _verify_deployment(existing(data), which, key, found)
    return offline.check_one(Path(which), None if key is None else offline.load_key(Path(key)), found)


def _verify_receipt(data: DataDir, key: str | None, receipt: str) -> Verified:
    """The repository of this data directory that the receipt is for."""
    from substrate.signing.receipt import load

    found = load(Path(receipt))
    return _verify_deployment(data, found.deployment, key, found)


def _verify_deployment(data: DataDir, name: str, key: str | None, receipt: "Receipt | None") -> Verified:
    from waypost.host.keeping_errors import NoSuchDeployment
    from waypost.host.reading import offline

    if name not in data.deployments():
        raise NoSuchDeployment(name, data.deployments())
    trusted = offline.public_key(data) if key is None else offline.load_key(Path(key))
    return offline.check_one(data.repo(name), trusted, receipt)


def _table(answer: Runs) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*words.HEADINGS, box=None, pad_edge=False)
    for each in answer.runs:
        # Text, so that nothing in a subject is taken for mark-up.
        table.add_row(*(Text(harmless(cell)) for cell in words.row(each)))
    Console().print(table)
