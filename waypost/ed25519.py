"""Ed25519 by libsodium (RFC 8032): a private key that signs and never shows, and a check that answers yes or no.

The one door to it, for host, child and storage. It calls libsodium as PyNaCl compiles it in (`nacl._sodium`: the C
functions under their own names, which don't change; pyproject.toml bounds the version) and not by `nacl.bindings`:
that loads all of PyNaCl, which is 5 ms of a child's start. libsodium takes constant time for secrets.
"""

from typing import Never, Self

from nacl._sodium import ffi, lib  # type: ignore[import-not-found]  # a compiled module without types

SEED = 32
"""Bytes of a private key."""
PUBLIC_KEY = 32
"""Bytes of a public key."""
SIGNATURE = 64
"""Bytes of a signature."""

# Picks the fastest implementation for this machine; may be called again and again. -1: there is no randomness.
if lib.sodium_init() == -1:
    raise ImportError("libsodium can't be set up")


class PrivateKey:
    """A key pair. ``seed``: the 32 private bytes; ``public``: the 32 that anybody may have."""

    __slots__ = ("_secret", "public")

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED:
            raise ValueError(f"an Ed25519 seed has {SEED} bytes, not {len(seed)}")
        public = ffi.new("unsigned char[]", PUBLIC_KEY)
        self._secret = ffi.new("unsigned char[]", SEED + PUBLIC_KEY)
        lib.crypto_sign_seed_keypair(public, self._secret, seed)
        self.public: bytes = ffi.buffer(public)[:]

    @classmethod
    def generate(cls) -> Self:
        """A new key, of the kernel's randomness."""
        seed = ffi.new("unsigned char[]", SEED)
        lib.randombytes(seed, SEED)
        return cls(ffi.buffer(seed)[:])

    @property
    def seed(self) -> bytes:
        """The private half, to be kept in a file and nowhere else."""
        raw: bytes = ffi.buffer(self._secret, SEED)[:]
        return raw

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes of the signature; the same for the same message."""
        signed = ffi.new("unsigned char[]", SIGNATURE + len(message))
        lib.crypto_sign(signed, ffi.NULL, message, len(message), self._secret)
        signature: bytes = ffi.buffer(signed, SIGNATURE)[:]
        return signature

    def __repr__(self) -> str:
        return f"PrivateKey(public={self.public.hex()})"

    def __reduce__(self) -> Never:
        raise TypeError("a private key is never pickled")


def verifies(public: bytes, message: bytes, signature: bytes) -> bool:
    """Whether this is the key's signature of the message. Never raises, whatever the bytes.

    Also no for a key of small order, and for keys and signatures that aren't in their one canonical form.
    """
    if len(public) != PUBLIC_KEY or len(signature) != SIGNATURE:
        return False
    opened = ffi.new("unsigned char[]", SIGNATURE + len(message))
    size = ffi.new("unsigned long long *")
    found: int = lib.crypto_sign_open(opened, size, signature + message, SIGNATURE + len(message), public)
    return found == 0
