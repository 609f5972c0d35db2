"""What the README, and our own messages, tell people to do can be done."""

import os
import re
from pathlib import Path

import pytest

from waypost.cli.command import app
from waypost.cli.verbs import GROUPS
from waypost.host.code.describe import describe
from waypost.testing.sayings import parse

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PACKAGES = ("actors", "ipc", "substrate", "waypost")
PAGES = [page for page in (ROOT / "docs").glob("*.md") if page.stem not in {"design", "storage", "decisions"}]
"""Those that are ours to keep: the contract is as it was agreed."""
VERBS = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
VERBS |= {group.name for group in app.registered_groups if group.name}


def test_the_workflow_in_the_readme_can_be_deployed(tmp_path: Path) -> None:
    """It is the first thing that a newcomer copies."""
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "expenses.py").write_text(code)
    described = describe(tmp_path / "expenses.py", timeout=30, environment=os.environ)
    assert described.spec.name == "expenses"


def test_the_table_of_verbs_is_the_one_of_the_help() -> None:
    """One order in which to look for a verb; and each page that is named beside them is there."""
    rows = re.findall(r"^\| [a-z, ]+ \| (`.*`) \| (`.*`) \|$", README, re.MULTILINE)
    assert [tuple(re.findall(r"`([a-z-]+)`", verbs)) for verbs, _ in rows] == list(GROUPS.values())
    pages = re.findall(r"`(?:docs/)?([a-z-]+\.md)`", README)
    assert {page for page in pages if not (ROOT / "docs" / page).exists()} == set()


@pytest.mark.parametrize("mark", ["run", "test"])
def test_each_of_the_two_commands_is_one_line(mark: str) -> None:
    """They are pasted; and the checks read the second one from here."""
    (block,) = re.findall(rf"<!-- {mark} -->\n+```\n(.*?)```", README, re.DOTALL)
    assert len(block.splitlines()) == 1


def test_every_command_that_is_named_to_people_exists() -> None:
    """A hint that leads to "no such command" is worse than none."""
    named = set(re.findall(r"^(?:or: )?waypost ([a-z]+(?:-[a-z]+)*)", README, re.MULTILINE))
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            named |= set(re.findall(r"`waypost ([a-z]+(?:-[a-z]+)*)", file.read_text(encoding="utf-8")))
    assert len(named) > 5
    assert named - VERBS == set()


def test_every_command_of_the_pages_is_taken_by_the_command_line() -> None:
    """An option that has another name now, or is gone, is found here and not by whoever pastes it."""
    blocks = (
        re.findall(r"^```\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL) for page in PAGES
    )
    lines = re.findall(r"^(?:\$ )?(waypost .*)", "\n".join(line for block in blocks for line in block), re.MULTILINE)
    assert len(lines) > 20
    for line in lines:
        parse(re.split(r"\s{2,}|\s[<>|]\s", line)[0])  # without its explanation, and what the shell does with it


def test_every_file_that_a_page_names_is_there() -> None:
    """A map that leads to a file that was renamed is found by the first newcomer, and by nobody before."""
    folders = (*PACKAGES, "tests", "examples")
    files = {f"/{file.relative_to(ROOT)}" for folder in folders for file in (ROOT / folder).rglob("*.py")}
    named = re.findall(r"[a-z0-9_/]+\.py\b", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    for page in PAGES:  # a workflow of a user's has no folder there
        named += re.findall(r"[a-z0-9_]+(?:/[a-z0-9_]+)+\.py\b", page.read_text(encoding="utf-8"))
    assert [name for name in named if not any(file.endswith(f"/{name}") for file in files)] == []
