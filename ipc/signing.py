"""Ed25519 as the control channel uses it: which public keys may be trusted, and a verification that answers yes or no.

A key of small order verifies signatures that nobody made, and a key with two spellings can't be compared; neither
is ever accepted (RFC 8032 §5.1.7 leaves both to the caller; not every library and version refuses them).
"""

from waypost import ed25519
from waypost.ed25519 import PUBLIC_KEY

_P = 2**255 - 19
_ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
# The y coordinates of the eight points whose order divides 8; x only gives each its sign.
_SMALL_ORDER = frozenset({0, 1, _P - 1, _ORDER_8, _P - _ORDER_8})


def key_fault(raw: bytes) -> str | None:
    """Why these bytes must not be trusted as a public key; None if they may be."""
    if len(raw) != PUBLIC_KEY:
        return f"a public key has {PUBLIC_KEY} bytes, not {len(raw)}"
    y = int.from_bytes(raw, "little") & ((1 << 255) - 1)
    if y >= _P:
        return "the public key isn't in its canonical form"
    if y in _SMALL_ORDER:
        return "the public key is of small order: anybody can sign for it"
    return None


def verifies(raw_key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether this is the key's signature of the message. Never raises, whatever the bytes."""
    return key_fault(raw_key) is None and ed25519.verifies(raw_key, message, signature)
