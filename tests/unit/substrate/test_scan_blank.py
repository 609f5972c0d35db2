"""What follows the last flush of a journal: nothing, or something, wherever in megabytes of zeros it lies."""

import pytest

from substrate.packs import pack
from substrate.storage.scan import Stop, scan

HEAD = pack.MAGIC + bytes(pack.HEADER - len(pack.MAGIC))
RESERVED = 5_000_000
PIECE = 64 * 1024


def stopped(raw: bytes) -> Stop:
    """How a journal that holds no flush ends; no signature is looked at."""
    return scan("journal", raw, lambda _signed, _signature: False).stop


def test_what_was_only_reserved_holds_nothing() -> None:
    """A host that was killed leaves megabytes of it in each of its repositories."""
    assert stopped(HEAD) is stopped(HEAD + bytes(1)) is stopped(HEAD + bytes(RESERVED)) is Stop.END


@pytest.mark.parametrize("at", [1, PIECE - 1, PIECE, PIECE + 1, RESERVED // 2, RESERVED - PIECE, RESERVED - 1])
def test_a_single_byte_in_it_is_a_torn_tail(at: int) -> None:
    """Behind zeros that were never overwritten no flush can lie; what is there is looked through all the same."""
    raw = bytearray(HEAD + bytes(RESERVED))
    raw[len(HEAD) + at] = 1
    assert stopped(bytes(raw)) is Stop.TORN
