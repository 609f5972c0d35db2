"""What a sweep refuses before it becomes a user, and what stops it when it has: it must never signal as another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.sweep import LEAST, NOBODYS, astray, unfit

UID = 71_234
IDS = (UID, UID, UID)
STATUS = f"""Name:\tpython3
Uid:\t{UID}\t{UID}\t{UID}\t{UID}
Gid:\t{UID}\t{UID}\t{UID}\t{UID}
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t000001ffffffffff
CapAmb:\t0000000000000000
"""
ids = st.sampled_from([0, 1, 1000, UID, UID + 1, 65_534])


@pytest.mark.parametrize("uid", [-1, 0, 1, LEAST - 1, *sorted(NOBODYS), 2**32])
def test_no_user_of_the_systems_is_swept(uid: int) -> None:
    """Root least of all: its signal would reach everything."""
    assert unfit(uid, (0, 0, 0)) == "it is no user that a deployment is given"
    assert astray(uid, (uid,) * 3, (uid,) * 3, (), STATUS.replace(str(UID), str(uid)))


@given(st.tuples(ids, ids, ids))
def test_only_root_sweeps(ours: tuple[int, int, int]) -> None:
    """A host that has one id of root's and one of its own would signal its own processes."""
    assert (unfit(UID, ours) == "") == (ours == (0, 0, 0))


def test_a_process_that_is_that_user_and_can_do_nothing_else_may_signal() -> None:
    """That is what all the looking is for."""
    assert astray(UID, IDS, IDS, (), STATUS) == ""


@given(st.tuples(ids, ids, ids), st.tuples(ids, ids, ids), st.lists(ids, max_size=2))
def test_one_other_id_is_enough_not_to(
    users: tuple[int, int, int], groups: tuple[int, int, int], more: list[int]
) -> None:
    """Real, effective and saved ones all decide who may be signalled (kill(2))."""
    assert (astray(UID, users, groups, more, STATUS) == "") == (users == groups == IDS and not more)


@pytest.mark.parametrize("name", ["CapInh", "CapPrm", "CapEff", "CapAmb"])
@pytest.mark.parametrize("bit", [0, 5, 63])
def test_a_capability_that_is_left_is_enough_not_to(name: str, bit: int) -> None:
    """With CAP_KILL, which is bit 5, the signal would reach everybody."""
    held = STATUS.replace(f"{name}:\t{0:016x}", f"{name}:\t{1 << bit:016x}")
    assert astray(UID, IDS, IDS, (), held) == "a capability is left"


@pytest.mark.parametrize(
    "status", ["", "Uid:\n", STATUS.replace(f"\t{UID}\nGid", "\t0\nGid"), STATUS.replace("CapEff", "Cap")]
)
def test_what_the_kernel_doesnt_say_isnt_so(status: str) -> None:
    """A /proc that isn't there, or says less."""
    assert astray(UID, IDS, IDS, (), status)
