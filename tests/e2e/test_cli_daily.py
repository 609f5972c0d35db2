"""An operator's day beside a live host: approvals, a signal, a cancel, a drain, a fresh process."""

from pathlib import Path

import pytest

from waypost.testing.host_here import HostHere
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e

WORKFLOW = """
from waypost import Mail, Workflow, approve, signal, sleep

daily = Workflow("daily", address="daily@example.com", mail_to=["boss@example.com"])

@daily.run
async def main(mail: Mail) -> str:
    match mail.subject:
        case "ask":
            await approve("Pay?", who="boss@example.com", deadline="3d")
        case "signal":
            return await signal("paid", str)
        case _:
            await sleep("30d")
    return "done"
"""


def mail(subject: str) -> bytes:
    return f"From: ann@example.com\r\nSubject: {subject}\r\nMessage-ID: <{subject}@x>\r\n\r\nhello\r\n".encode()


def test_runs_are_signalled_cancelled_and_answered_while_their_process_comes_and_goes(tmp_path: Path) -> None:
    """Each verb says what it did and what is next; what was asked for holds across a drain and a fresh process."""
    data, file = tmp_path / "data", tmp_path / "daily.py"
    file.write_text(WORKFLOW)

    def done(*arguments: str, stdin: bytes = b"") -> str:
        ended = verb(*arguments, data=data, stdin=stdin)
        assert ended.status == 0, ended.err
        return ended.out

    with HostHere(file, data=data) as host:
        asking, signalled, sleeping = (host.send("daily@example.com", mail(one)) for one in ("ask", "signal", "sleep"))
        host.wait_for("a timer is set")
        assert f"{asking} r1#2  Pay?" in done("approvals")
        assert f'"run":"{asking}"' in done("approvals", "--json")
        assert "nothing executes any more" in done("drain", "daily")
        assert verb("recycle", "daily", "--reason", "while it is held", data=data).status != 0
        done("signal", signalled, "paid", "--id", "one", stdin=b'"in full"')
        done("signal", signalled, "paid", "--id", "one", stdin=b'"in full"')
        assert verb("signal", signalled, "paid", data=data, stdin=b"{").status != 0
        assert "goes on" in done("resume", "daily", "--yes")
        host.wait_for('completed: "in full"')
        assert "has a fresh process" in done("recycle", "daily", "--reason", "it leaks")
        assert f"{sleeping} is being cancelled" in done("cancel", sleeping, "--reason", "not needed")
        host.wait_for("cancelled")
        assert "nothing has changed" in done("cancel", sleeping, "--reason", "again")
        done("approve", asking)
        host.wait_for('completed: "done"')
        assert done("approvals") == "nothing is asked of anybody\n"
        done("drain", "daily")
        assert "no run is live" in verb("resume", "daily", data=data).out, "what was cancelled doesn't go on"
