"""The key that signs all of a data directory's repositories: made once, before the first of them, and never again.

What this promises: where something was signed already, a key that is gone is said to be gone. Another one in its place
would make of each repository here one that somebody else has signed.
"""

from substrate.files.disk import Disk
from substrate.signing.keys import SigningKey
from waypost.host.datadir.directory import DataDir
from waypost.host.keeping_errors import KeyGone


def signing_key(data: DataDir, disk: Disk | None = None) -> SigningKey:
    """The host's signing key, made where there is no repository yet. Raises KeyGone, BadKey, OSError."""
    if data.deployments() and not data.signing_key.exists():
        raise _gone(data)
    return SigningKey.load_or_create(data.signing_key, disk)


def key_of(data: DataDir) -> SigningKey:
    """The key that has signed what is here. Raises KeyGone, BadKey, OSError."""
    try:
        return SigningKey.load(data.signing_key)
    except FileNotFoundError:
        raise _gone(data) from None


def _gone(data: DataDir) -> KeyGone:
    signed = data.deployments()
    return KeyGone(str(data.signing_key), str(data.repo((*signed, "NAME")[0])), len(signed))
