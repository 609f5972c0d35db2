"""Recorded runs replay to the same end under today's code."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from waypost.testing.histories import DoesNotReplay, flow, folders, replay

HISTORIES = Path(__file__).parents[1] / "histories"


@pytest.fixture(autouse=True)
def _imports_as_before() -> Iterator[None]:
    """Flows are imported by their names; copies of them must not meet."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith("flow_"):
            del sys.modules[name]


@pytest.mark.parametrize("folder", folders(HISTORIES), ids=lambda folder: folder.name)
def test_a_recorded_run_replays_to_the_same_end(folder: Path) -> None:
    """Whoever has such a run in their repository must be able to go on with this release."""
    replay(folder)


def test_there_are_histories() -> None:
    """A wrong path would make the test above pass over nothing."""
    assert {folder.name for folder in folders(HISTORIES)} >= {
        "approval",
        "blocking",
        "cancelled",
        "child",
        "children",
        "concurrent",
        "retries",
        "signals",
    }


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("approval", "read_claim(mail: Mail)", "read_it(mail: Mail)", "step read_claim"),
        ("concurrent", "range(5)", "range(4)", "r1.5#1"),
        ("blocking", 'sleep("10m")', "pass", "a sleep or timeout"),
        ("retries", '"funds"', '"money"', "arguments"),
        ("children", '{"a", "b", "c"}', '{"a", "b"}', "child count "),
        ("children", 'fails("this")', 'note("this")', "child fails "),
        ("child", "line: Line, grace", "bill: Line, grace", "arguments for child pay"),
        ("child", "def pay(", "def paid(", "has no child pay any more"),
        ("child", "charge(line.amount)", "charge(line.amount + 1)", "child charge "),
        ("signals", 'signal("never"', 'signal("ever"', "signal"),
        ("cancelled", 'release("a seat")', 'release("two seats")', "arguments"),
    ],
)
def test_a_changed_flow_does_not_pass_for_the_old_one(
    tmp_path: Path, name: str, old: str, new: str, words: str
) -> None:
    """A test of the test: the comparison sees what it is there to see."""
    folder = tmp_path / name
    shutil.copytree(HISTORIES / name, folder)
    file = flow(folder)
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new).replace("await read_claim(", "await read_it("), encoding="utf-8")
    with pytest.raises(DoesNotReplay, match=words):
        replay(folder)
