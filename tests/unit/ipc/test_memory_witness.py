"""What the kernel says of a want of memory is read where it stands, in either version, and guessed at nowhere."""

from pathlib import Path

import pytest

from ipc.memory import Witness

V2 = "0::/user.slice/box\n"
V1 = "9:name=systemd:/\n4:cpu,memory:/box\n0::/\n"
EVENTS = "low 0\nhigh 0\nmax 3\noom 2\noom_kill {}\noom_group_kill 0\n"
CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"


def kernel(folder: Path, groups: str, file: str, text: str) -> tuple[Path, Path]:
    """A /proc with process 7, and a file of counts."""
    (folder / "proc" / "7").mkdir(parents=True)
    (folder / "proc" / "7" / "cgroup").write_text(groups)
    path = folder / "groups" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return folder, path


def witness(folder: Path) -> Witness | None:
    """Of process 7."""
    return Witness.of(7, proc=folder / "proc", groups=folder / "groups")


@pytest.mark.parametrize(
    ("groups", "file", "text"),
    [(V2, "user.slice/box/memory.events", EVENTS), (V1, "memory/box/memory.oom_control", CONTROL)],
    ids=["version 2", "version 1"],
)
def test_a_count_that_rises_is_seen(tmp_path: Path, groups: str, file: str, text: str) -> None:
    """Each version of control groups has it in a place of its own."""
    folder, path = kernel(tmp_path, groups, file, text.format(4))
    found = witness(folder)
    assert found == Witness(path, 4)
    assert not found.saw()
    path.write_text(text.format(5))
    assert found.saw()
    path.unlink()
    assert not found.saw()


@pytest.mark.parametrize("text", ["", "oom_kill many\n", "oom_kill\n", "\xff"])
def test_where_there_is_no_count_nothing_is_said(tmp_path: Path, text: str) -> None:
    """A wrong word about memory would send people looking in the wrong place."""
    folder, _ = kernel(tmp_path, V2, "user.slice/box/memory.events", text)
    assert witness(folder) is None


def test_a_process_that_is_gone_has_no_witness(tmp_path: Path) -> None:
    """It may have ended before anybody looked."""
    assert witness(tmp_path) is None
