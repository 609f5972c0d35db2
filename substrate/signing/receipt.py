"""A receipt: the host's signed word that a repository reached a flush, kept by whoever wants to prove it later.

A format for ever: one line of JSON, ``receipt`` (1), ``deployment``, ``repository`` (its id), ``epoch``, ``flush``,
``hash`` (of that flush, 64 hex digits), ``at`` (ISO 8601 UTC), ``signature`` (an armoured SSH signature). Signed is
``waypost receipt 1``, a newline, and the same line of JSON without ``signature``; no git object begins like that.
"""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

from substrate.errors import BadReceipt
from substrate.signing.epoch import Ordinal
from substrate.signing.keys import SigningKey
from substrate.signing.signers import signature_of

_LONGEST = 16_384
_DOMAIN = b"waypost receipt 1\n"


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a receipt says."""

    receipt: Literal[1] = 1
    deployment: str
    repository: str
    epoch: Ordinal
    flush: Ordinal
    hash: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    at: str


class Receipt(Claim, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What it says, and the signature over it."""

    signature: str

    @property
    def claim(self) -> Claim:
        """Without the signature."""
        return Claim(**{name: getattr(self, name) for name in Claim.__struct_fields__})

    @property
    def signer(self) -> bytes | None:
        """The raw public key whose good signature it has; None where it has none."""
        signed = signature_of(_to_sign(self.claim), self.signature.encode())
        return signed.public if signed is not None and signed.good else None


_receipts = msgspec.json.Decoder(Receipt)


def issue(claim: Claim, key: SigningKey) -> Receipt:
    """Sign it."""
    fields = {name: getattr(claim, name) for name in Claim.__struct_fields__}
    return Receipt(**fields, signature=key.sign(_to_sign(claim)).decode())


def encode(receipt: Receipt) -> bytes:
    """One line of JSON, keys in the order of the record."""
    return msgspec.json.encode(receipt)


def load(path: Path) -> Receipt:
    """Read a receipt's file. Raises BadReceipt, OSError."""
    with path.open("rb") as file:
        return decode(file.read(_LONGEST), str(path))


def decode(raw: bytes, name: str) -> Receipt:
    """Read a receipt, strictly; ``name`` is what an error calls it. Raises BadReceipt."""
    try:
        return _receipts.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as bad:
        raise BadReceipt(name, str(bad)) from None


def _to_sign(claim: Claim) -> bytes:
    return _DOMAIN + msgspec.json.encode(claim)
