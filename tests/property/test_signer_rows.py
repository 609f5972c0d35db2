"""The row of signers against a plain model: whoever may sign is always the one, and only the one, that was named."""

from hypothesis import given
from hypothesis import strategies as st

from substrate.signing.signers import Row, Signed, Signer, encode
from substrate.signing.sshsig import public_line

KEYS = [bytes([number]) * 32 for number in range(1, 5)]
KEY = st.sampled_from(KEYS)
STEP = st.tuples(
    KEY,  # who signs
    st.booleans(),  # whether the signature is good
    st.one_of(st.none(), st.tuples(KEY, KEY)),  # (whose word it says that it is, whom it names)
    st.booleans(),  # whether a restore begins here
)


def naming(before: bytes, key: bytes) -> bytes:
    return encode(Signer(key=public_line(key), before=public_line(before), at=""))


@given(st.lists(STEP, max_size=12))
def test_a_head_is_followed_exactly_where_the_model_follows_it(
    steps: list[tuple[bytes, bool, tuple[bytes, bytes] | None, bool]],
) -> None:
    """For any history, forged or not: no fault means that the right key signed, and each wrong one is a fault."""
    row, may, row_keys, gone = Row(), None, list[bytes](), set[bytes]()
    for number, (signer, good, named, restored) in enumerate(steps, 1):
        raw = None if named is None else naming(*named)
        faults = list(row.head(number, Signed(signer, good), raw, restored=restored))
        right = good and (may is None or signer == may or restored)
        if right:
            if may is not None and signer != may:
                gone |= set(row_keys)
                row_keys = []
            row_keys += [] if row_keys and row_keys[-1] == signer else [signer]
            may = signer
            if named is not None and named[0] == signer:
                may = named[1]
        assert bool(faults) == (not right or (named is not None and named[0] != signer))
        assert row.last == may
        assert all(row.knows(key) == (key in row_keys or key in gone) for key in KEYS)


@given(st.lists(KEY, min_size=1, max_size=8), st.integers(min_value=1, max_value=3))
def test_a_whole_row_of_exchanges_has_no_fault_and_every_key_in_order(keys: list[bytes], heads: int) -> None:
    """Each key signs some flushes, then names the next."""
    row, number = Row(), 0
    for at, key in enumerate(keys):
        for left in range(heads, 0, -1):
            number += 1
            named = naming(key, keys[at + 1]) if left == 1 and at + 1 < len(keys) else None
            assert list(row.head(number, Signed(key, good=True), named, restored=False)) == []
    assert row.keys == keys
