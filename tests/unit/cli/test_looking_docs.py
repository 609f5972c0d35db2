"""docs/looking.md and docs/metrics.md: each command in them is one, and each field and heading in them is there."""

import re
from pathlib import Path

import pytest

from waypost.cli.top import HEADINGS, lines
from waypost.host.answers.top import Top, TopRow
from waypost.testing.sayings import parse

DOCS = Path(__file__).resolve().parents[3] / "docs"
LOOKING = (DOCS / "looking.md").read_text(encoding="utf-8")
COMMANDS = [
    re.split(r"\s{3,}", line)[0]
    for page in (LOOKING, (DOCS / "metrics.md").read_text(encoding="utf-8"))
    for block in re.findall(r"```\n(.*?)```", page, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("waypost ")
]


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_the_pages_is_one(command: str) -> None:
    """It is pasted as it stands there."""
    assert parse(command)


def test_the_fields_of_a_record_are_those_that_the_page_names() -> None:
    """Programs are written by it."""
    (told,) = re.findall(r"these stay: (.*?)What isn't", LOOKING, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", told)) == set(TopRow.__struct_fields__)


def test_the_table_of_the_page_is_as_it_is_shown() -> None:
    """Its headings, in 80 columns."""
    (heading,) = lines(Top(at="2026-11-29T08:00:00.000Z", observed=True, deployments=()), 80)
    assert heading.endswith("0 deployments: none; 0 live runs, 0 mails")
    (shown,) = re.findall(r"^deployment +gen.*$", LOOKING, re.MULTILINE)
    assert re.split(r" +", shown) == " ".join(HEADINGS).split()
    assert all(len(line) <= 80 for line in LOOKING.split("```")[3].splitlines())
