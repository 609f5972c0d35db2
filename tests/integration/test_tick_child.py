"""What a workflow is given of the clock, by a real child: and that its code runs though its zone is no more."""

import hashlib
from pathlib import Path

import msgspec
import pytest

from waypost.model import events as ev
from waypost.model.schedule import tick_id
from waypost.model.times import unstamp
from waypost.testing.host_process import HostProcess
from waypost.testing.memory_log import MemoryLog
from waypost.testing.samples import BEGAN
from waypost.testing.scripted_host import ScriptedHost
from waypost.testing.verbs import verb

FLOW = """
from waypost import Mail, Tick, Workflow

flow = Workflow("digest", address="digest@example.com")

@flow.step
def told(mail: Mail) -> Mail:
    return mail

@flow.cron("0 9 * * *", tz="{tz}", name="morning")
@flow.run
async def digest(mail: Mail) -> Tick | None:
    assert await told(mail) == mail
    return mail.tick
"""
RAW = b"From: digest@example.com\r\nMessage-ID: <1@x>\r\nSubject: morning\r\n\r\n"


def test_a_child_is_told_which_tick_it_was_whatever_has_become_of_the_zone(tmp_path: Path) -> None:
    """Deployed code goes on when a zone goes from the database; and a replay is given the same tick."""
    file = tmp_path / "tc_digest.py"
    file.write_text(FLOW.format(tz="US/Pacific-New"))
    log, sha256 = MemoryLog(), hashlib.sha256(RAW).hexdigest()
    log.blobs[sha256] = RAW
    mail = ev.Mailed(arrival=1, id=tick_id("morning", unstamp("2026-11-30T08:00:00Z")), sha256=sha256)
    log.append([msgspec.structs.replace(BEGAN, mail=mail, grants=log.grants)])
    with ScriptedHost(file, log) as host:
        host.drive()
        host.to_the_end()
    end = log.events[-1]
    assert isinstance(end, ev.RunCompleted), host.output.decode()
    assert end.result.inline == msgspec.Raw(b'{"schedule":"morning","due":"2026-11-30T08:00:00Z"}')


@pytest.mark.torture
def test_a_host_says_of_its_schedules_what_the_repository_says(tmp_path: Path) -> None:
    """Asked while it runs, and read from the disk after it: the same ticks, and another word for how it is."""
    file, data = tmp_path / "tc_digest.py", tmp_path / "data"
    file.write_text(FLOW.format(tz="Europe/Berlin"))
    with HostProcess(file, data=data):
        live = verb("schedule", "list", data=data).out.splitlines()
        ahead = verb("schedule", "next", "digest", "--count", "3", data=data).out.splitlines()
    after = verb("schedule", "list", data=data).out.splitlines()
    assert live[1].split()[:2] == ["digest/morning", "due"]
    assert after[1].split()[:2] == ["digest/morning", "stopped"]
    assert live[1].split()[2:] == after[1].split()[2:]
    assert len(ahead) == 4
