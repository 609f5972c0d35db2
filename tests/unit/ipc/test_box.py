"""The record of a child's confinement: what is written is read, and what nobody wrote is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipc.box import KINDS, MODES, Box, Entry, covering, is_below, parse
from ipc.errors import BadBox
from ipc.view import mounted

paths = st.text(st.characters(exclude_characters="\n\t\0", exclude_categories=["Cs"]), max_size=12).map("/{}".format)
entries = st.builds(Entry, st.sampled_from(KINDS), paths, paths)
numbers = st.integers(0, 2**63)
boxes = st.builds(
    Box,
    mode=st.sampled_from(MODES),
    entries=st.lists(entries, max_size=4).map(tuple),
    uid=numbers,
    network=st.booleans(),
    memory=numbers,
    processes=numbers,
    files=numbers,
)


@given(boxes)
def test_what_is_written_is_read(box: Box) -> None:
    """Host and child mean the same box, whatever the paths are called."""
    assert parse(box.text()) == box


@pytest.mark.parametrize(
    "text",
    [
        "",
        "uid 3",
        "mode chroot",
        "mode none\nmode none",
        "mode none\nuid 1\nuid 2",
        "mode none\nuid -1",
        "mode none\nuid ²",
        "mode none\nro /usr",
        "mode none\nro usr\t/usr",
        "mode none\nspeed 3",
        "mode none\n",
    ],
)
def test_what_no_host_wrote_is_refused(text: str) -> None:
    """A child that understood half of it would run in half a box."""
    with pytest.raises(BadBox):
        parse(text)


@pytest.mark.parametrize("path", ["/a\nmode none", "/a\tb", "/a\0"])
def test_a_path_can_not_say_anything_else(path: str) -> None:
    """A folder's name must not add a line."""
    for entry in (Entry("ro", path, "/x"), Entry("ro", "/x", path)):
        with pytest.raises(BadBox):
            Box(entries=(entry,)).text()


def test_a_path_lies_in_the_deepest_entry() -> None:
    """A neighbour whose name begins alike is none that it lies in."""
    shelves = (Entry("ro", "/a", "/a"), Entry("veil", "/a/b"), Entry("rw", "/a/b", "/z"), Entry("ro", "/ab", "/ab"))
    assert covering(shelves, "/a/c") == shelves[0]
    assert covering(shelves, "/a/b/c") == shelves[2]
    assert covering(shelves, "/a/bc") == shelves[0]
    assert covering(shelves, "/c") is None
    assert is_below("/a", "/")


def test_mount_points_are_read_with_the_flags_they_must_keep() -> None:
    """A remount that forgot one would be refused by the kernel, or open what was closed."""
    table = (
        "21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        "22 21 0:5 / /a\\040b\\134 ro,nosuid,nodev,noexec,noatime,nodiratime - tmpfs none rw\n"
    )
    assert list(mounted(table)) == [("/", 1 << 21), ("/a b\\", 1 | 2 | 4 | 8 | 1024 | 2048)]
