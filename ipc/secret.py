"""Bytes that never show and can be overwritten.

No repr, error or pickle prints them; comparison takes constant time. Wiping is best effort: this process's own copy
is overwritten, copies that a crypto library or a kernel's pipe made are not within reach.
"""

import hmac
from typing import Never

from ipc.errors import SecretWiped


class Secret:
    """A key held in memory until `wipe`."""

    __slots__ = ("_bytes",)

    def __init__(self, raw: bytes | bytearray) -> None:
        self._bytes = bytearray(raw)

    def reveal(self) -> bytearray:
        """The bytes themselves, not a copy: use them at once, keep no reference. Raises SecretWiped."""
        if not self._bytes:
            raise SecretWiped
        return self._bytes

    def wipe(self) -> None:
        """Overwrite the bytes and forget them: a wiped key must not pass for a key of zeros."""
        self._bytes[:] = bytes(len(self._bytes))
        self._bytes.clear()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._bytes, other._bytes)

    __hash__ = None  # type: ignore[assignment]  # a secret that can be wiped belongs into no set

    def __repr__(self) -> str:
        return "Secret(…)"

    def __reduce__(self) -> Never:
        raise TypeError("a secret is never pickled")
