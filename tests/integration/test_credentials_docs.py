"""docs/credentials.md: its workflow and its file are good, and its commands do what the page says."""

import os
import re
from pathlib import Path

import pytest

from waypost.host.code.describe import describe
from waypost.host.credentials.file import parse
from waypost.testing.host_process import HostProcess
from waypost.testing.verbs import verb

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "credentials.md").read_text(encoding="utf-8")
(CODE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(LISTED,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
VERBS = [line.split("   ")[0].split() for line in re.findall(r"^waypost (.*)$", PAGE, re.MULTILINE)]


def test_the_workflow_and_the_file_of_the_page_are_taken_as_they_are(tmp_path: Path) -> None:
    """They are copied first and read afterwards."""
    file = tmp_path / "tickets.py"
    file.write_text(CODE)
    described = describe(file, timeout=30, environment=os.environ)
    assert described.spec.secrets == (("open_ticket", "tracker"), ("summary", "models"))
    configured = parse(LISTED.encode(), "credentials.toml")
    assert list(configured.credentials) == ["tracker", "models", "db"]
    assert [source.id for source in configured.sources_of("tickets")] == ["main"]


@pytest.mark.torture
def test_the_commands_of_the_page_do_what_it_says(tmp_path: Path) -> None:
    """From a file that only names places to a step that has the value, and after a rotation the new one."""
    data, secrets, file = tmp_path / "data", tmp_path / "secrets", tmp_path / "tickets.py"
    file.write_text(CODE)
    data.mkdir()
    secrets.mkdir()
    secrets.joinpath("tracker").write_text("planted-tracker\n")
    program = tmp_path / "pass"
    program.write_text("#!/bin/sh\necho planted-$2\n")
    program.chmod(0o700)
    listed = LISTED.replace("/srv/secrets", str(secrets))
    data.joinpath("credentials.toml").write_text(listed)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "DB_PASSWORD": "planted-db"}
    mail = b"From: ann@example.com\r\nSubject: It broke\r\nMessage-ID: <%d@x>\r\n\r\nhello\r\n"
    with HostProcess(file, data=data, env=env) as host:
        checked, granted, also, shown, reloaded = VERBS
        tried = host.verb(*checked)
        assert (tried.returncode, "tried: what the host has loaded" in tried.stderr) == (0, True)
        for words in (granted, also):
            assert host.verb(*words).returncode == 0, host.verb(*words).stderr
        host.send("tickets@example.com", mail % 1)
        assert "a token of 15 l" in host.wait_for("completed")
        said = verb(*shown, data=data).out
        assert re.search(r"tracker +file +ok .*tickets", said)
        assert re.search(r"models +command +ok .*tickets", said)
        secrets.joinpath("tracker").write_text("planted-rotated-tracker\n")
        assert "tickets: delivered" in host.verb(*reloaded).stdout
        host.send("tickets@example.com", mail % 2)
        assert "a token of 23 l" in host.wait_for("completed")
