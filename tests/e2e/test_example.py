"""The example does what the README says, by itself, with the command that users have."""

import json
import subprocess
import sys
from email import message_from_bytes
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "expenses.py"


def test_the_example_shows_itself_from_mail_to_verified_history(tmp_path: Path) -> None:
    """Three claims, three payments, five mails, one sound history that plain git reads."""
    data = tmp_path / "data"
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), str(data)], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    ledger = [json.loads(line) for line in (tmp_path / "books" / "ledger.jsonl").read_text().splitlines()]
    assert [entry["amount"] for entry in ledger] == ["18.40", "412.00", "260.00"]
    assert len({entry["key"] for entry in ledger}) == 3
    out = [message_from_bytes(path.read_bytes()) for path in (data / "out" / "new").iterdir()]
    assert sorted(mail["Subject"] for mail in out if mail["Subject"].startswith("Paid")) == [
        "Paid: 18.40",
        "Paid: 260.00",
        "Paid: 412.00",
    ]
    assert sum(mail["To"] == "boss@example.com" for mail in out) == 2
    assert "approved by boss@example.com (mail)" in done.stdout
    assert "(cli): enjoy Zurich" in done.stdout
    assert "expenses: sound" in done.stdout
    assert "take up mail 3 at r1#3 of run_2" in done.stdout


def test_the_workflow_is_short() -> None:
    """What a newcomer reads first must fit a screen or two."""
    text = EXAMPLE.read_text()
    assert len([line for line in text.splitlines() if line.strip()]) <= 60
