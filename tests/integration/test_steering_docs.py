"""docs/steering.md: its workflow can be deployed, and does what the page says when its commands are given."""

import os
import re
from pathlib import Path

import pytest

from waypost.host.code.describe import describe
from waypost.testing.host_process import HostProcess
from waypost.testing.verbs import verb

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "steering.md").read_text(encoding="utf-8")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The workflow of the page."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    made = tmp_path / "orders.py"
    made.write_text(code)
    return made


def test_the_workflow_of_the_page_can_be_deployed(file: Path) -> None:
    """It is copied first and read afterwards."""
    described = describe(file, timeout=30, environment=os.environ)
    assert described.spec.steps == ("reserve", "release", "pack")


@pytest.mark.torture
def test_the_commands_of_the_page_do_what_it_says(file: Path) -> None:
    """A signal, an approval, a cancel."""
    signal, cancel, approvals = re.findall(r"^(waypost .*)$", PAGE, re.MULTILINE)[:3]
    data = file.parent / "data"
    mail = b"From: ann@example.com\r\nSubject: %s\r\nMessage-ID: <%s@x>\r\n\r\nhello\r\n"
    with HostProcess(file, data=data) as host:
        small, large = (host.send("orders@example.com", mail % (name, name)) for name in (b"small", b"large"))
        host.wait_for("waits for signal paid")
        words = signal.replace("RUN", small).split()[1:]
        payload = signal.split("payload.json")[1].strip().encode()
        assert verb(*words[: words.index("<")], data=data, stdin=payload).status == 0
        host.wait_for('completed: "small: 420"')
        assert verb("signal", large, "paid", data=data, stdin=b'{"amount": 900}').status == 0
        host.wait_for("Ship it?")
        while large not in (listed := verb(*approvals.split()[1:2], data=data).out):
            pass
        assert "Ship it?" in listed
        reason = re.findall(r'"(.*)"', cancel)[0]
        assert verb("cancel", large, "--reason", reason, data=data).status == 0
        host.wait_for("step release is done")
        host.wait_for("cancelled")
