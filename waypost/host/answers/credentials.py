"""What the API answers about credentials: where they are and how reading them went, never a value."""

from waypost.host.answers.records import Answer


class CredentialShown(Answer, frozen=True, kw_only=True):
    """A credential. ``kind``: ``file``, ``env`` or ``command``; ``deployments``: who may have it (empty: all).

    ``state``: ``unread`` (nobody has wanted it yet), ``ok``, ``stale`` (it was read once, can't be since, and what
    there was stays in use) or ``failing``; ``since`` when; ``why``, or what somebody should see to all the same.
    ``used_by``: deployments that have asked for it.
    """

    handle: str
    kind: str
    state: str
    deployments: tuple[str, ...] = ()
    refresh: float | None = None
    since: str = ""
    why: str = ""
    used_by: tuple[str, ...] = ()


class SourceShown(Answer, frozen=True, kw_only=True):
    """A model source; of several, the first one is the default."""

    id: str
    provider: str
    model: str
    base_url: str = ""
    credential: str = ""
    deployments: tuple[str, ...] = ()


class CredentialsShown(Answer, frozen=True, kw_only=True):
    """All that ``credentials.toml`` names."""

    credentials: tuple[CredentialShown, ...]
    sources: tuple[SourceShown, ...] = ()


class Delivered(Answer, frozen=True, kw_only=True):
    """What a reload has brought to a deployment.

    ``state``: ``delivered`` to its process, ``kept`` for the next one, or ``refused``, and then ``why``.
    """

    deployment: str
    state: str
    why: str = ""


class CredentialsReloaded(Answer, frozen=True, kw_only=True):
    """A reload is done."""

    credentials: tuple[CredentialShown, ...]
    delivered: tuple[Delivered, ...] = ()
