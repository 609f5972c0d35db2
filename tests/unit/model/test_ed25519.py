"""The one door to libsodium: RFC 8032's own vectors, and a private key that never shows."""

import pickle

import pytest

from waypost.ed25519 import PUBLIC_KEY, SEED, SIGNATURE, PrivateKey, verifies

# RFC 8032 §7.1, tests 1 to 3: private key, public key, message, signature.
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        (
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
            "d25bf5f0595bbe24655141438e7a100b"
        ),
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        (
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
            "387b2eaeb4302aeeb00d291612bb0c00"
        ),
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        (
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
            "4a7c15e9716ed28dc027beceea1ec40a"
        ),
    ),
]


@pytest.mark.parametrize(("seed", "public", "message", "signature"), VECTORS)
def test_the_standard_s_own_vectors(seed: str, public: str, message: str, signature: str) -> None:
    """Any other library checks what this one signed, and the other way round."""
    key = PrivateKey(bytes.fromhex(seed))
    assert (key.seed.hex(), key.public.hex()) == (seed, public)
    assert key.sign(bytes.fromhex(message)).hex() == signature
    assert verifies(key.public, bytes.fromhex(message), bytes.fromhex(signature))


def test_whatever_else_is_given_doesn_t_verify() -> None:
    """A bit of the message, of the key or of the signature, and any other length of the latter two."""
    key, message = PrivateKey.generate(), b"message"
    signature = key.sign(message)
    assert len(signature) == SIGNATURE
    assert verifies(key.public, message, signature)
    assert not verifies(key.public, message + b"\0", signature)
    for at in range(8 * SIGNATURE):
        flipped = bytearray(signature)
        flipped[at // 8] ^= 1 << at % 8
        assert not verifies(key.public, message, bytes(flipped))
    for at in range(8 * PUBLIC_KEY):
        other = bytearray(key.public)
        other[at // 8] ^= 1 << at % 8
        assert not verifies(bytes(other), message, signature)
    for wrong in (b"", signature[:-1], signature + b"\0", signature * 2):
        assert not verifies(key.public, message, wrong)
    for wrong in (b"", key.public[:-1], key.public + b"\0", key.public * 2):
        assert not verifies(wrong, message, signature)


def test_two_keys_that_are_made_are_two() -> None:
    """From the kernel's randomness."""
    assert PrivateKey.generate().seed != PrivateKey.generate().seed


@pytest.mark.parametrize("size", [0, SEED - 1, SEED + 1, 2 * SEED])
def test_a_seed_of_another_length_is_refused(size: int) -> None:
    """The C function would read past its end."""
    with pytest.raises(ValueError, match=f"not {size}"):
        PrivateKey(bytes(size))


def test_a_private_key_never_shows() -> None:
    """Neither printed nor pickled."""
    key = PrivateKey(bytes(range(SEED)))
    assert key.public.hex() in repr(key)
    assert key.seed.hex() not in f"{key} {key!r}"
    with pytest.raises(TypeError):
        pickle.dumps(key)
