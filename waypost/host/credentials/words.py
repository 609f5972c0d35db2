"""How credentials are said to people and programs: where they are and how reading them went, never a value. Pure."""

from typing import assert_never

from ipc.deliveries import handles_of
from waypost.host.answers.credentials import CredentialShown, CredentialsShown, SourceShown
from waypost.host.credentials.file import KINDS, Configured, Credential
from waypost.host.credentials.providers import Failed
from waypost.host.credentials.states import Entry, Keeper, Kept, Missing, Stale, Trying, Unread
from waypost.model.times import stamp


def listed(configured: Configured) -> tuple[CredentialShown, ...]:
    """What the file names, of which nothing has been read."""
    return tuple(_shown(credential, Unread(), ()) for credential in configured.credentials.values())


def sources(configured: Configured) -> tuple[SourceShown, ...]:
    """The model sources, in order."""
    return tuple(
        SourceShown(
            id=source.id,
            provider=source.provider,
            model=source.model,
            base_url=source.base_url,
            credential=source.credential,
            deployments=tuple(sorted(who or ())),
        )
        for source, who in configured.sources
    )


def everything(state: Keeper) -> CredentialsShown:
    """Each credential, how its last reading went, and the sources."""
    return CredentialsShown(credentials=shown(state), sources=sources(state.configured))


def shown(state: Keeper) -> tuple[CredentialShown, ...]:
    """Each credential, and how its last reading went."""
    users = {name: handles_of(client.bindings) for name, client in state.clients.items()}
    return tuple(
        _shown(
            credential,
            state.entries.get(handle, Unread()),
            tuple(sorted(name for name, handles in users.items() if handle in handles)),
        )
        for handle, credential in state.configured.credentials.items()
    )


def tried(state: Keeper, trying: Trying, wall: int) -> CredentialsShown:
    """Each credential, how trying it went, and the sources; ``wall``: Unix ms."""
    found = tuple(
        attempt(credential, trying.found.get(handle, Failed("it is still being read")), wall)
        for handle, credential in state.configured.credentials.items()
    )
    return CredentialsShown(credentials=found, sources=sources(state.configured))


def attempt(credential: Credential, found: str | Failed, wall: int) -> CredentialShown:
    """How one try went: why it failed, or, of one that could be read, what somebody should see to all the same."""
    if isinstance(found, Failed):
        return _shown(credential, Missing(wall, found.why), ())
    return _said(credential, "ok", stamp(wall), found, ())


def _shown(credential: Credential, entry: Entry, used_by: tuple[str, ...]) -> CredentialShown:
    match entry:
        case Unread():
            state, since, why = "unread", "", ""
        case Kept():
            state, since, why = "ok", stamp(entry.since), entry.warning
        case Stale():
            state, since, why = "stale", stamp(entry.since), entry.why
        case Missing():
            state, since, why = "failing", stamp(entry.since), entry.why
        case _:
            assert_never(entry)
    return _said(credential, state, since, why, used_by)


def _said(credential: Credential, state: str, since: str, why: str, used_by: tuple[str, ...]) -> CredentialShown:
    return CredentialShown(
        handle=credential.handle,
        kind=KINDS[type(credential.way)],
        state=state,
        deployments=tuple(sorted(credential.deployments or ())),
        refresh=credential.refresh,
        since=since,
        why=why,
        used_by=used_by,
    )
