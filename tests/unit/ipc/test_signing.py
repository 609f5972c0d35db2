"""Ed25519: which keys and signatures are taken, against the known forgeries."""

import pytest

from ipc.signing import key_fault, verifies
from waypost.ed25519 import PrivateKey
from waypost.testing import cases

P = 2**255 - 19
ROWS = cases.rows("ed25519.tsv")
OUTCOMES = {
    "accept": True,
    "reject": False,
    "reject (refuse such a public key in the ready frame)": False,
    "reject without a crash": False,
}


def test_every_outcome_of_the_rows_is_known() -> None:
    """A row with a new outcome must be thought about, not skipped."""
    assert {row["right_outcome"] for row in ROWS} <= set(OUTCOMES)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_signature_is_taken_or_refused_as_it_should_be(row: dict[str, str]) -> None:
    """The library alone accepts several of these forgeries."""
    key, message, signature = (bytes.fromhex(row[f"{part}_hex"]) for part in ("public_key", "message", "signature"))
    assert verifies(key, message, signature) is OUTCOMES[row["right_outcome"]]
    if row["name"].startswith("small_order"):
        assert key_fault(key) is not None


def test_a_fresh_key_is_trusted() -> None:
    """The check must not refuse what everybody makes."""
    for _ in range(20):
        assert key_fault(PrivateKey.generate().public) is None


@pytest.mark.parametrize("y", [P, P + 1, P + 3, 2**255 - 1])
@pytest.mark.parametrize("sign", [0, 1 << 255])
def test_a_key_with_two_spellings_is_refused(y: int, sign: int) -> None:
    """A pinned key must be comparable byte by byte (RFC 8032 §5.1.3)."""
    assert "canonical" in str(key_fault((y | sign).to_bytes(32, "little")))


@pytest.mark.parametrize("raw", [b"", bytes(31), bytes(33), b"\x01" * 64])
def test_a_key_of_the_wrong_length_is_refused_without_a_crash(raw: bytes) -> None:
    """Hex where raw bytes belong, and the like."""
    assert "32 bytes" in str(key_fault(raw))
