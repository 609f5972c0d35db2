"""``waypost queue`` as its users meet it: what is on hold is seen, let in or rejected, with and without a host."""

import json
from pathlib import Path

import pytest

from waypost.testing.host_here import HostHere
from waypost.testing.host_process import HostProcess
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e

ADDRESS = "counting@example.com"


def mail(text: str) -> bytes:
    return f"From: ann@example.com\r\nSubject: {text}\r\nMessage-ID: <one@x>\r\n\r\n{text}\r\n".encode()


def test_a_mail_on_hold_is_seen_and_let_in_or_rejected(tmp_path: Path, counting: Path) -> None:
    """An accepted mail that starts nothing would be as good as lost if nobody could see it and act."""
    data = tmp_path / "data"
    with HostHere(counting, data=data) as host:
        assert verb("queue", "hold", data=data).out == "nothing is on hold\n"
        host.send(ADDRESS, mail("first"))
        host.wait_for("completed")
        for text in ("second", "third"):
            sent = verb("send", ADDRESS, data=data, stdin=mail(text))
            assert (sent.status, "put on hold" in sent.out) == (0, True)
        listed = verb("queue", "hold", data=data).out
        assert "id-clash with counting/1" in listed
        assert [line.split()[0] for line in listed.splitlines()] == ["mail", "counting/2", "counting/3"]

        assert "counting/2 is let in" in verb("queue", "release", "2", data=data).out
        host.wait_for("completed: 7")
        assert "counting/3 is rejected" in verb("queue", "reject", "counting/3", data=data).out
        for name in ("3", "2", "other/3", "counting/x", "²"):
            refused = verb("queue", "release", name, data=data)
            assert (refused.status, "`waypost queue hold`" in refused.err) == (1, True)
        rejected = verb("queue", "rejected", data=data).out
        assert "counting/3" in rejected
        shelf = data / "out" / "new"
        notices = (list(shelf.iterdir()) for _ in range(100) if verb("queue", "hold", data=data).status == 0)
        (notice,) = next(filter(None, notices))
        assert b"Subject: Not processed: third" in notice.read_bytes()

    assert verb("queue", "rejected", data=data).out == rejected
    assert verb("queue", "hold", data=data).out == "nothing is on hold\n"
    answer = json.loads(verb("queue", "rejected", "--json", data=data).out)
    assert (answer["counted"], [each["subject"] for each in answer["mails"]]) == (1, ["third"])
    assert verb("queue", "release", "2", data=data).status == 69
    assert verb("queue", data=data).status == 64


@pytest.mark.torture
def test_what_is_on_hold_and_who_was_told_survive_a_host_that_is_killed(tmp_path: Path, counting: Path) -> None:
    """Accepted means durable, on hold as well; and one rejection has one notice, whoever dies meanwhile."""
    data = tmp_path / "data"
    with HostProcess(counting, data=data) as host:
        host.send(ADDRESS, mail("first"))
        host.wait_for("completed")
        assert verb("send", ADDRESS, data=data, stdin=mail("second")).status == 0
        host.kill()
    held = verb("queue", "hold", data=data).out
    assert "counting/2" in held
    with HostProcess(counting, data=data) as host:
        assert verb("queue", "hold", data=data).out == held
        again = verb("send", ADDRESS, data=data, stdin=mail("second"))
        assert ("already there, on hold" in again.out, "`waypost queue hold`" in again.err) == (True, True)
        assert verb("queue", "reject", "2", data=data).status == 0
        host.kill()
    rejected = verb("queue", "rejected", data=data).out
    assert "counting/2" in rejected
    with HostProcess(counting, data=data) as host:
        assert verb("queue", "reject", "2", data=data).status == 1
        shelf = data / "out" / "new"
        notices = (list(shelf.iterdir()) for _ in range(100) if verb("queue", "rejected", data=data).out == rejected)
        assert len(next(filter(None, notices))) == 1
    with HostProcess(counting, data=data):
        assert len(list(shelf.iterdir())) == 1
