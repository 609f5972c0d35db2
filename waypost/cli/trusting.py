"""``waypost credentials``: how the secrets of deployments are, whether they can be read, and the file anew."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from waypost.cli import words
from waypost.cli.client import Client
from waypost.cli.output import err, harmless
from waypost.cli.place import existing, plain
from waypost.cli.reading import either, give
from waypost.host.answers.credentials import CredentialShown, CredentialsReloaded, CredentialsShown
from waypost.host.credentials.errors import BadCredentials
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import NoHost
from waypost.host.exits import Exit

HEADINGS = ("handle", "from", "state", "since", "used by", "for", "why")
_BECAME = {"kept": "kept for its next process", "refused": "not delivered"}
_HOST = "tried: what the host has loaded; `waypost credentials reload` loads credentials.toml as it is now"
_FILE = "tried: credentials.toml as it is now, in this shell's environment"
"""What was looked at, which may be another thing than whoever asks has just written."""
SOURCES = ("source", "provider", "model", "credential", "base url", "for")


def shown(data: str | None, *, as_json: bool) -> Exit:
    """``waypost credentials list``."""
    where = existing(data, begun=False)
    answer = either(where, lambda client: client.get(CredentialsShown, "credentials"), _offline_list)
    give(answer, _all(answer), as_json=as_json)
    return Exit.OK


def handles(where: DataDir) -> frozenset[str]:
    """What is listed, by the host if one runs; nothing where the file can't be used."""
    try:
        answer = either(where, lambda client: client.get(CredentialsShown, "credentials"), _offline_list)
    except BadCredentials:
        return frozenset()
    return frozenset(each.handle for each in answer.credentials)


def check(data: str | None, *, as_json: bool) -> Exit:
    """``waypost credentials check``: also of a file that lies there for a host that has never been started."""
    where = existing(data, begun=False)
    try:
        answer, tried = Client(where.socket).post(CredentialsShown, "credentials", "check"), _HOST
    except NoHost:
        answer, tried = _offline_check(where), _FILE
    give(answer, _table(answer.credentials), as_json=as_json)
    err(tried)
    return Exit.OK if all(each.state == "ok" for each in answer.credentials) else Exit.REFUSED


def reload(deployment: str | None, data: str | None, *, as_json: bool) -> Exit:
    """``waypost credentials reload [DEPLOYMENT]``."""
    client, named = Client(existing(data).socket), plain("the deployment", deployment or "")
    answer = client.post(CredentialsReloaded, "credentials", "reload", deployment=named)
    give(answer, _reloaded(answer), as_json=as_json)
    unread = [each.handle for each in answer.credentials if each.state in {"stale", "failing"}]
    refused = [each.deployment for each in answer.delivered if each.state == "refused"]
    if unread:
        err("waypost: not read: " + ", ".join(unread), "  `waypost credentials check` tries them again")
    return Exit.REFUSED if unread or (refused and deployment is not None) else Exit.OK


def _all(answer: CredentialsShown) -> Iterator[str]:
    yield from _table(answer.credentials)
    if answer.sources:
        yield ""
        rows = [(e.id, e.provider, e.model, e.credential, e.base_url, ", ".join(e.deployments)) for e in answer.sources]
        yield from _columns(SOURCES, rows)


def _table(credentials: Iterable[CredentialShown]) -> Iterator[str]:
    rows = [
        (
            each.handle,
            each.kind,
            each.state,
            words.moment(each.since),
            ", ".join(each.used_by),
            ", ".join(each.deployments),
            each.why,
        )
        for each in credentials
    ]
    if rows:
        yield from _columns(HEADINGS, rows)
    else:
        yield "no credentials: credentials.toml in the data directory would list them"


def _columns(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Aligned, without columns in which nothing is."""
    filled = [number for number in range(len(headings)) if any(row[number] for row in rows)]
    yield from words.columns([[headings[n] for n in filled], *([row[n] for n in filled] for row in rows)])


def _reloaded(answer: CredentialsReloaded) -> Iterator[str]:
    yield from _table(answer.credentials)
    for each in answer.delivered:
        said = _BECAME.get(each.state, each.state)
        yield f"{each.deployment}: {said}" + (f": {harmless(each.why)}" if each.why else "")


# --- without a host --------------------------------------------------------------------------------------------------


def _offline_list(data: DataDir) -> CredentialsShown:
    from waypost.host.credentials.file import read
    from waypost.host.credentials.words import listed, sources

    configured = read(data.credentials)
    return CredentialsShown(credentials=listed(configured), sources=sources(configured))


def _offline_check(data: DataDir) -> CredentialsShown:
    """By this shell's environment, as a host that is started here would have it."""
    from waypost.host.credentials import providers
    from waypost.host.credentials.file import read
    from waypost.host.credentials.logic import AT_ONCE
    from waypost.host.credentials.words import attempt, sources

    configured = read(data.credentials)
    around = providers.Surroundings(environment=os.environ, folder=data.path)
    listed = configured.credentials.values()
    with ThreadPoolExecutor(AT_ONCE) as pool:  # one command that hangs is waited for, and not one after the other
        readings = tuple(pool.map(lambda each: providers.read(each.way, around), listed))
    now = int(time.time() * 1000)
    found = (
        attempt(each, reading if isinstance(reading, providers.Failed) else reading.warning, now)
        for each, reading in zip(listed, readings, strict=True)
    )
    return CredentialsShown(credentials=tuple(found), sources=sources(configured))
