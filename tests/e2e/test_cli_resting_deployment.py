"""A data directory with two deployments, and a host that runs one of them: the other is there, and says so."""

import os
from pathlib import Path

import pytest

from waypost.testing.host_here import HostHere
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e

WORKFLOW = """
from waypost import Mail, Workflow, approve

{name} = Workflow("{name}", address="{name}@example.com", mail_to=["boss@example.com"])

@{name}.run
async def ask(mail: Mail) -> str:
    await approve("Yes?", who="boss@example.com", deadline="3d")
    return "done"
"""


def mail(name: str) -> bytes:
    return f"From: ann@example.com\r\nSubject: {name}\r\nMessage-ID: <{name}@x>\r\n\r\nhello\r\n".encode()


def test_what_the_host_does_not_run_is_shown_and_its_mail_kept(tmp_path: Path) -> None:
    """A run that vanished from the lists, or a mail sent back because another file was named: nobody expects it."""
    data = tmp_path / "data"
    first, second = (tmp_path / f"{name}.py" for name in ("first", "second"))
    for file in (first, second):
        file.write_text(WORKFLOW.format(name=file.stem))
    with HostHere(first, data=data) as before:
        resting = before.send("first@example.com", mail("one"))
        before.wait_for("waits for boss@example.com")
    with HostHere(second, data=data) as host:
        hosted = host.send("second@example.com", mail("two"))
        host.wait_for("waits for boss@example.com")
        listed = verb("runs", data=data).out
        assert resting in listed
        assert hosted in listed
        assert verb("show", resting, data=data).status == 0
        assert "the one that runs here doesn't" in " ".join(verb("why", resting, data=data).out.split())
        refused = verb("approve", resting, data=data)
        assert (refused.status != 0, "doesn't run first" in refused.err) == (True, True)
        assert "`waypost run` runs all that is deployed" in refused.err
        for words in ("resume first", "reset first", "drain first", "recycle first --reason x"):
            refused = verb(*words.split(), data=data)
            assert (refused.status != 0, "doesn't run first" in refused.err) == (True, True), words
            assert "`waypost why first` says why" in refused.err, words
        sent = verb("send", "first@example.com", data=data, stdin=mail("three"))
        assert (sent.status, "no host runs first" in sent.out) == (0, True)
        assert verb("send", "nobody@example.com", data=data, stdin=mail("four")).status == os.EX_NOUSER
        objects = data / "repos" / "first.git" / "objects"
        aside = objects.rename(objects.with_name("aside"))
        unread = verb("send", "nobody@example.com", data=data, stdin=mail("five"))
        aside.rename(objects)
        assert (unread.status, "first can't be read" in unread.err) == (os.EX_TEMPFAIL, True)
    with HostHere(first, data=data) as after:
        after.wait_for("mail 2 from ann@example.com")
