"""docs/schedules.md: its workflow can be deployed, and its commands say what the page promises."""

import json
import re
import shlex
from pathlib import Path

import msgspec
import pytest

from waypost.model.schedule import Schedule
from waypost.testing.verbs import Done, verb

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "schedules.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^waypost (.*)$", PAGE, re.MULTILINE)


def said(command: str, data: Path) -> Done:
    """What a command of the page says."""
    words = shlex.split(command)
    return verb(*words) if "--expression" in words else verb(*words, data=data)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory in which the workflow of the page is deployed."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "digest.py").write_text(code)
    done = verb("deploy", str(tmp_path / "digest.py"), data=tmp_path / "data")
    assert done.status == 0
    assert "due by morning, 0 9 * * MON-FRI Europe/Berlin: 20" in done.out
    return tmp_path / "data"


def test_the_page_is_true_without_a_host(data: Path) -> None:
    """It is copied first and read afterwards."""
    tried, listed, following, in_json = COMMANDS
    assert said(tried, data).out.count("30 2 * * * Europe/Berlin") == 3
    answer = said(listed, data)
    assert answer.status == 0
    heading, *rows = answer.out.splitlines()
    assert heading.split() == [
        *("schedule", "state", "next,", "UTC", "there", "last,", "UTC", "expression", "zone", "settings"),
    ]
    assert {row.split()[0] for row in rows[:2]} == {"digest/morning", "digest/monthly"}
    assert "0 9 * * MON-FRI" in answer.out
    assert "catch_up=none, overlap=queue" in answer.out
    assert "waits for a host" in answer.out
    assert f"next: waypost run --data {data}" in answer.out
    ticks = re.findall(
        r"^[0-9-]{10} [0-9:]{5}  (?:[0-9-]{10} [0-9:+]{11}| {22})  digest/", said(following, data).out, re.MULTILINE
    )
    assert len(ticks) == 5
    shown = json.loads(said(in_json, data).out)
    assert sorted(row["schedule"] for row in shown["schedules"]) == ["monthly", "morning"]
    assert all(len(row["next"]) == 2 and row["last"] == "" for row in shown["schedules"])
    assert re.fullmatch(r"20[0-9]{2}[a-z]", shown["zones"])


@pytest.mark.torture
def test_a_deploy_with_a_schedule_that_can_not_be_changes_nothing(data: Path, tmp_path: Path) -> None:
    """The words are the author's to read, and what was deployed stays so."""
    file = tmp_path / "digest.py"
    for old, new, says in (
        ("Europe/Berlin", "Europe/Berlim", "there is no time zone 'Europe/Berlim'"),
        ("0 0 1 * *", "0 0 31 2 *", "its day-of-month can't be, or never comes: '31'"),
    ):
        whole = file.read_text()
        file.write_text(whole.replace(old, new))
        refused = verb("deploy", str(file), data=data)
        file.write_text(whole)
        assert refused.status == 65
        assert says in refused.err
    assert "0 0 1 * *" in verb("schedule", "list", data=data).out


def test_the_page_names_every_default() -> None:
    """A default that the page has otherwise is found out in October."""
    for name in ("gap", "repeat", "catch_up", "overlap"):
        default = next(each.default for each in msgspec.structs.fields(Schedule) if each.name == name)
        assert f'| `{name}` | `"{default}"`: ' in PAGE
