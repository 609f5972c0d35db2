"""The keys of one spawn: made, handed to the child by a descriptor, and wiped.

No key travels by environment or argument, and nothing here prints one.
"""

import os

import msgspec

from ipc.errors import BadSecrets
from ipc.parent import SECRETS_FD
from ipc.sealed import CHANNEL_ID
from ipc.secret import Secret
from waypost.ed25519 import PrivateKey

EVENT_KEY = 32
"""Bytes of the event channel's HMAC key."""

_MAGIC = b"waypost secrets 1\0"
_BLOCK = len(_MAGIC) + EVENT_KEY


class SpawnKeys(msgspec.Struct, frozen=True):
    """What the host makes for one child: its own signing key, the channel id, the event channel's key."""

    signing: PrivateKey
    channel_id: bytes
    events: Secret

    @property
    def public_key(self) -> bytes:
        """The 32 bytes by which the child knows its host."""
        return self.signing.public

    def for_child(self) -> bytes:
        """What the secrets descriptor brings; give it to `ipc.spawn.spawn` and nobody else."""
        return _MAGIC + bytes(self.events.reveal())

    def wipe(self) -> None:
        """Overwrite what can be overwritten; the event channel is of no use after it."""
        self.events.wipe()


def mint() -> SpawnKeys:
    """Make the keys of one spawn from the kernel's randomness. Never used twice."""
    return SpawnKeys(
        signing=PrivateKey.generate(),
        channel_id=os.urandom(CHANNEL_ID),
        events=Secret(os.urandom(EVENT_KEY)),
    )


def read_secrets(fd: int = SECRETS_FD) -> Secret:
    """Read the event channel's key to the end of the descriptor and close it, in the child, before user code.

    Raises BadSecrets when it holds anything but exactly one block, or isn't open.
    """
    block = bytearray()
    try:
        try:
            while len(block) <= _BLOCK and (part := os.read(fd, _BLOCK + 1 - len(block))):
                block += part
        finally:
            os.close(fd)
    except OSError as failure:
        raise BadSecrets(f"descriptor {fd} can't be read: {failure.strerror}") from None
    secret = Secret(block[len(_MAGIC) :])
    fits = len(block) == _BLOCK and block.startswith(_MAGIC)
    block[:] = bytes(len(block))
    if not fits:
        secret.wipe()
        raise BadSecrets(f"descriptor {fd} doesn't hold one block of secrets")
    return secret
