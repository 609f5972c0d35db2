"""The child's environment, built here from nothing and read here (design §8).

No variable is passed on because it happened to be there, and none of them is secret.
"""

from collections.abc import Collection, Mapping

import msgspec

from ipc.errors import BadAnchor, ReservedVariable
from ipc.sealed import CHANNEL_ID
from ipc.signing import key_fault
from waypost.ed25519 import PUBLIC_KEY

AS_THE_HOST = ("PATH", "HOME", "LANG", "TZ", "TMPDIR")
FIXED = {"PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
"""The hash seed lets sets iterate alike in every replay; the others let a dying child's last words out."""
ANCHORS = ("IPC_CHANNEL_ID", "HOST_PUBKEY", "DEPLOYMENT_ID", "DEFINITION_HASH", "MAILBOX_ADDRESS")

MARK = "IPC_MARK"
"""By which all that a child starts is found (`ipc.strays`)."""

RESERVED = frozenset((*AS_THE_HOST, *FIXED, *ANCHORS, MARK))
"""What a deployment can't list under ``env``."""

_HEX = frozenset("0123456789abcdef")
_SHA256 = 32


class Anchors(msgspec.Struct, frozen=True, kw_only=True):
    """What a child knows of its place before the first frame. Nothing here is secret."""

    channel_id: bytes
    """16 bytes."""
    host_key: bytes
    """The host's Ed25519 public key for this spawn, 32 bytes."""
    deployment: str
    definition: str
    """SHA-256, 64 hex digits."""
    address: str


def child_environment(host: Mapping[str, str], anchors: Anchors, *, listed: Collection[str] = ()) -> dict[str, str]:
    """Build the whole environment of a child.

    ``host`` is the host's own environment, ``listed`` the names that the deployment lists under ``env``: those that
    the host has are passed on. Raises ReservedVariable; BadAnchor for an anchor that the child would refuse.
    """
    clash = tuple(sorted(RESERVED.intersection(listed)))
    if clash:
        raise ReservedVariable(clash)
    environment = {name: host[name] for name in (*AS_THE_HOST, *listed) if name in host}
    environment |= FIXED
    environment |= {
        "IPC_CHANNEL_ID": anchors.channel_id.hex(),
        "HOST_PUBKEY": anchors.host_key.hex(),
        "DEPLOYMENT_ID": anchors.deployment,
        "DEFINITION_HASH": anchors.definition,
        "MAILBOX_ADDRESS": anchors.address,
    }
    read_anchors(environment)
    return environment


def read_anchors(environ: Mapping[str, str]) -> Anchors:
    """Read what `child_environment` wrote. Raises BadAnchor naming the variable and what is wrong with it."""
    host_key = bytes.fromhex(_hex(environ, "HOST_PUBKEY", PUBLIC_KEY))
    fault = key_fault(host_key)
    if fault is not None:
        raise BadAnchor("HOST_PUBKEY", f"can't be trusted: {fault}")
    return Anchors(
        channel_id=bytes.fromhex(_hex(environ, "IPC_CHANNEL_ID", CHANNEL_ID)),
        host_key=host_key,
        deployment=_text(environ, "DEPLOYMENT_ID"),
        definition=_hex(environ, "DEFINITION_HASH", _SHA256),
        address=_text(environ, "MAILBOX_ADDRESS"),
    )


def _text(environ: Mapping[str, str], name: str) -> str:
    value = environ.get(name, "")
    if not value:
        raise BadAnchor(name, "isn't set")
    if "\0" in value:
        raise BadAnchor(name, "holds a NUL character")
    return value


def _hex(environ: Mapping[str, str], name: str, size: int) -> str:
    value = _text(environ, name)
    if len(value) != 2 * size or not _HEX.issuperset(value):
        raise BadAnchor(name, f"isn't {2 * size} lowercase hex digits")
    return value
