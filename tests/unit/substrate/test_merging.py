"""Which packs are merged: the table, and what holds for any row of packs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from substrate.packs.merging import FAN, LEVELS, Pack, choose, level, weight
from waypost.model.limits import DEFAULT

LIMITS = replace(DEFAULT, merge_objects=100_000, merge_bytes=64 * 1024 * 1024)
PACKS = st.lists(st.tuples(st.integers(1, 120_000), st.integers(40, 70_000_000)), max_size=60)


def packs(*objects: int) -> list[Pack]:
    """Packs of these numbers of objects, of 100 bytes each."""
    return [Pack(f"{number:040x}", count, count * 100) for number, count in enumerate(objects)]


@pytest.mark.parametrize(
    ("objects", "chosen"),
    [
        ((), ()),
        ((10, 10, 10), ()),
        ((10, 10, 10, 10), (10, 10, 10, 10)),
        ((4096,) * 3, ()),
        ((4096,) * 4, (4096,) * 4),
        ((30_000,) * 9, ()),
        ((100_000, 8, 8, 90_000, 8, 8, 8), (8, 8, 8, 8, 8)),
        ((7, 4096, 4096, 4096, 4096), (7, 4096, 4096, 4096, 4096)),
        ((20_000,) * 7, (20_000,) * 5),
    ],
)
def test_four_packs_of_a_level_are_merged(objects: tuple[int, ...], chosen: tuple[int, ...]) -> None:
    """With what is lighter, never past a full pack; packs of a quarter and more are left alone."""
    assert tuple(pack.objects for pack in choose(packs(*objects), LIMITS)) == chosen


def test_the_bytes_count_as_well_as_the_objects() -> None:
    """Few objects may be large: four packs of 15 MB are merged, of 20 MB none."""
    assert len(choose([Pack(f"{n:040x}", 10, 15_000_000) for n in range(4)], LIMITS)) == FAN
    assert choose([Pack(f"{n:040x}", 10, 20_000_000) for n in range(4)], LIMITS) == ()


@given(PACKS)
def test_merging_ends_with_few_packs_none_over_its_bound(sizes: list[tuple[int, int]]) -> None:
    """At rest at most three packs are on a level; a merge leaves fewer packs and never makes one that is too large."""
    left = [Pack(f"{number:040x}", *size) for number, size in enumerate(sizes)]
    for turn in range(len(left) + 1):
        chosen = choose(left, LIMITS)
        if not chosen:
            break
        assert len(chosen) >= 2
        made = Pack(f"{turn + 1000:040x}", sum(p.objects for p in chosen), sum(p.size for p in chosen))
        assert weight(made, LIMITS) <= 1
        left = [pack for pack in left if pack not in chosen] + [made]
    else:
        pytest.fail("merging never ended")
    for below in range(LEVELS):
        assert sum(level(pack, LIMITS) == below for pack in left) < FAN


def test_an_object_is_copied_a_few_times_only() -> None:
    """Three hundred full journals: each object is copied about twice on its way to a pack that is left alone."""
    left: list[Pack] = []
    copied = 0
    for number in range(300):
        left.append(Pack(f"{number:040x}", 4096, 800_000))
        while chosen := choose(left, LIMITS):
            total = sum(pack.objects for pack in chosen)
            copied += total
            left = [pack for pack in left if pack not in chosen]
            left.append(Pack(f"{copied:040x}", total, sum(pack.size for pack in chosen)))
    assert copied <= 2.1 * 300 * 4096
    assert len(left) <= 300 * 4096 / 25_000 + 3 * 2
