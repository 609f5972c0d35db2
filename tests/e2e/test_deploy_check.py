"""`waypost deploy --check`: which live runs would be paused, asked beside the host that runs them; nothing changes."""

import json
from pathlib import Path

import pytest

from waypost.host.exits import Exit
from waypost.testing.host_here import HostHere
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e

FLOW = """
from waypost import Mail, Workflow, receive

asking = Workflow("asking", address="asking@example.com")


@asking.step
def noted(text: str) -> str:
    return text


@asking.run
async def ask(mail: Mail) -> str:
    try:
        if "long" in mail.subject:
            await noted("long")
        return (await receive()).text
    finally:
        await noted("end")
"""
NAMES = ("one", "long two", "three")


def mail(name: str) -> bytes:
    return f"From: ann@example.com\r\nSubject: {name}\r\n\r\nhello\r\n".encode()


@pytest.mark.parametrize("codes", ["two", pytest.param("all", marks=pytest.mark.torture)])
def test_the_runs_that_other_code_would_pause_are_named_before_it_is_deployed(tmp_path: Path, codes: str) -> None:
    """Each with the difference; the code that runs fits all of them, and one that doesn't load says so."""
    file, new = tmp_path / "asking.py", tmp_path / "new" / "asking.py"
    new.parent.mkdir()
    file.write_text(FLOW)
    with HostHere(file, data=tmp_path / "data") as host:
        _, second, _ = [host.send("asking@example.com", mail(name)) for name in NAMES]
        for _ in NAMES:
            host.wait_for("waits for the next mail")

        def checked(source: str, *options: str, status: Exit) -> str:
            new.write_text(source)
            done = verb("deploy", "--check", str(new), *options, data=tmp_path / "data")
            assert done.status == status, done.err
            return done.out + done.err

        assert "asking: 3 live runs: 3 would go on, 0 would be paused" in checked(FLOW + "\n\n\n", status=Exit.OK)
        other = FLOW.replace('noted("long")', 'noted("longer")')
        said = checked(other, status=Exit.REFUSED)
        assert f"{second} would be paused (code-changed): at r1#1 the log has step noted" in said
        assert "2 would go on, 1 would be paused" in said
        if codes == "all":
            answer = json.loads(checked(other, "--json", status=Exit.REFUSED))
            assert (answer["fit"], [each["run"] for each in answer["paused"]], answer["untried"]) == (2, [second], [])
            assert "boom" in checked("raise RuntimeError('boom')\n", status=Exit.MALFORMED)
            assert "0 live runs" in checked(FLOW.replace('"asking"', '"another"'), status=Exit.OK)
            assert "its host runs it already" in verb("deploy", str(file), data=tmp_path / "data").out
