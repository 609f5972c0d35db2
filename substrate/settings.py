"""What a deployment's repository must be told from outside, and the Message-IDs that only its host can make."""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from substrate.errors import WrongOwner
from substrate.routing import Runs
from substrate.state import decode_format


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Of one deployment. ``runs`` says which mails belong to one run (storage §5)."""

    deployment: str
    address: str
    runs: Runs = "thread"
    message_id: Callable[[str], str] = field(repr=False)
    """From a call's idempotency key; see ``message_ids``."""
    heads: Path | None = None
    """Where it is noted, outside of the repository, how far that got; None where nobody does (``heads``)."""


def check_owner(path: str, raw: bytes, settings: Settings) -> None:
    """A repository is one deployment's, and its queue one address's: another name or address is not guessed at.

    ``raw`` is its ``format.json``. Raises WrongOwner.
    """
    found = decode_format(raw)
    if (found.deployment, found.address) != (settings.deployment, settings.address):
        raise WrongOwner(path, f"{found.deployment} at {found.address}", f"{settings.deployment} at {settings.address}")


def message_ids(mail_key: bytes, address: str) -> Callable[[str], str]:
    """Message-IDs for the mail of calls: the same for the same call, recognisable to us, not to be guessed.

    ``<32 hex digits@waypost.domain>``: 128 bits of HMAC-SHA256 under the host's mail key over the call's idempotency
    key (storage §5), at the domain of the deployment's address.
    """
    domain = address.rpartition("@")[2]

    def message_id(idempotency_key: str) -> str:
        tag = hmac.new(mail_key, idempotency_key.encode(), hashlib.sha256).hexdigest()[:32]
        return f"<{tag}@waypost.{domain}>"

    return message_id
