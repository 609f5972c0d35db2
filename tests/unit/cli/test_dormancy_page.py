"""What docs/dormancy.md tells people to write is what is understood."""

import re
from pathlib import Path

from waypost.cli.bounds import bounds
from waypost.host.root.slots import most
from waypost.model.limits import DEFAULT, Limits

PAGE = (Path(__file__).parents[3] / "docs" / "dormancy.md").read_text(encoding="utf-8")


def test_its_workflow_is_kept_warm() -> None:
    """As it stands there, with nothing left out."""
    (text,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {"__name__": "desk"}
    exec(compile(text, "desk.py", "exec"), names)
    declared = names["desk"].declared()  # type: ignore[attr-defined]  # a Workflow, as the page has it
    assert declared.warm is True


def test_its_command_sets_what_it_says() -> None:
    """By the names that the command knows."""
    (line,) = re.findall(r"^waypost run desk\.py (.*)$", PAGE, re.MULTILINE)
    limits = bounds(re.findall(r"--limit (\S+)", line))
    assert (limits.idle, limits.threads) == (600.0, 600)


def test_its_numbers_are_those_of_the_code() -> None:
    """A reader who counts on them shouldn't have to look."""
    assert f"(`idle`, {DEFAULT.idle:.0f})" in PAGE
    assert f"(`threads`, {DEFAULT.threads})" in PAGE
    assert f"room for {most(Limits())} that are awake" in PAGE
