"""What may befall deployments that sleep or fall asleep, with real processes: none is lost, each keeps to itself."""

import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest

from waypost.host.code.materialise import clear
from waypost.host.datadir.directory import DataDir
from waypost.host.mail.spool import leave
from waypost.testing.background import Background
from waypost.testing.boxed import NOBODY, reachable_by
from waypost.testing.host_process import HostProcess, waypost
from waypost.testing.own_pids import in_own_pids
from waypost.testing.patience import eventually
from waypost.testing.sleeping import mail, name_of, sleeping

pytestmark = [pytest.mark.e2e, pytest.mark.torture]

ONE, OTHER = name_of(0), name_of(1)
QUICK = ("--limit", "idle=0.3")
CRASHES = """
import os
import signal

from waypost import Mail, Workflow, receive

flow = Workflow("flow", address="flow@example.com")


def crash(status: int) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


os._exit = crash  # which is how its process leaves


@flow.run
async def rest(mail: Mail) -> str:
    return (await receive()).text
"""
POLICIES = """
from waypost import Mail, Workflow

flow = Workflow("flow", address="flow@example.com")


@flow.cron("MINUTES * * * *", name="none", catch_up="none")
@flow.cron("MINUTES * * * *", name="latest", catch_up="latest")
@flow.cron("MINUTES * * * *", name="all", catch_up=100, overlap="queue")
@flow.run
async def tick(mail: Mail) -> str:
    assert mail.tick is not None
    return f"{mail.tick.schedule} {mail.tick.due.isoformat()}"
"""
_TICK = re.compile(r"completed: \"(\w+) (\S+)\"")
MakeHost = Callable[..., HostProcess]


@pytest.fixture
def host(hosts: MakeHost) -> MakeHost:
    """Makes hosts whose deployments soon fall asleep."""
    return lambda *files, options=QUICK: hosts(*files, options=options)


def letter(number: int, to: int | None = None) -> bytes:
    """For `sleeps.py`: wait for one mail; or that mail."""
    thread = "" if to is None else f"In-Reply-To: <m{to}@x>\r\n"
    return f"Message-ID: <m{number}@x>\r\nFrom: ann@example.com\r\n{thread}\r\nmail\r\n".encode()


def two_asleep(tmp_path: Path) -> DataDir:
    """A data directory with two deployments that sleep."""
    for _ in sleeping(tmp_path / "data", 2):
        pass
    return DataDir(tmp_path / "data")


def open_in(folder: Path, pid: int) -> set[str]:
    """What a process has open, or mapped, of a folder."""
    found = {line.split(maxsplit=5)[-1] for line in Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()}
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            found.add(str(link.readlink()))
    return {name for name in found if name.startswith(f"{folder.resolve()}/")}


def test_twenty_that_have_fallen_asleep_leave_no_file_open(host: MakeHost, tmp_path: Path) -> None:
    """A host with thousands of them may have a thousand descriptors."""
    for _ in sleeping(tmp_path / "data", 20):
        pass
    data, names = DataDir(tmp_path / "data"), [name_of(number) for number in range(20)]
    for number, name in enumerate(names):
        leave(data.spool(name), mail(number, name))
    one, begun, asleep = host().start("mail for d0000"), set[str](), set[str]()
    while asleep != {*names}:
        line = one.wait_for("")
        words = line.split()
        if "started by mail" in line:
            begun.add(words[1])
        elif line.endswith("is dormant") and words[1] in begun:
            asleep.add(words[1])
    eventually(lambda: not open_in(data.repo("").parent, one.pid), "all is closed")
    one.stop()


@pytest.mark.skipif(os.geteuid() != 0 or not reachable_by(NOBODY), reason="needs another user")
@in_own_pids
def test_a_host_starts_with_those_that_sleep_where_each_has_a_user_of_its_own() -> None:
    """Nobody else may list the folder of all code; it was taken for closed, and no such host came up again."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    folder.chmod(0o755)
    for _ in sleeping(folder / "data", 1):
        pass
    for shut in (folder / "data" / "code").rglob("*"):  # as in a copy that is its owner's alone
        shut.chmod(0o700 if shut.is_dir() else 0o400)
    one = HostProcess(data=folder / "data", options=("--isolation", "uid", *QUICK))
    try:
        one.start("mail for d0000")
        leave(DataDir(folder / "data").spool(ONE), mail(1, ONE))
        one.wait_for(ONE, "started by mail")
    finally:
        one.stop()
        clear(folder)


def test_what_is_damaged_while_it_sleeps_is_one_deployments_and_keeps_its_mail(host: MakeHost, tmp_path: Path) -> None:
    """It shows at the first mail: its neighbours go on, `why` and `fsck` say what it is, and a repaired one has it."""
    data = two_asleep(tmp_path)
    one = host().start("mail for d0000")
    packs = sorted(data.repo(ONE).glob("objects/pack/*.pack"))
    whole = {pack: pack.read_bytes() for pack in packs}
    for pack in packs:
        pack.chmod(0o600)
        pack.write_bytes(whole[pack][:40] + bytes(len(whole[pack]) - 40))
    there = leave(data.spool(ONE), mail(1, ONE))
    one.wait_for(f"{ONE} is down")
    assert one.verb("send", f"{ONE}@example.com", stdin=mail(2, ONE)).returncode == 75
    assert one.send(f"{OTHER}@example.com", mail(3, OTHER))
    one.wait_for(OTHER, "started by mail")
    why = one.verb("why", ONE).stdout
    assert "damaged" in why
    assert waypost("fsck", ONE, data=data.path).returncode == 1
    assert there.exists()
    one.stop()
    for pack in packs:
        pack.write_bytes(whole[pack])
    with host() as again:
        again.wait_for(ONE, "started by mail")
        eventually(lambda: not there.exists(), "its mail is taken in")
    assert waypost("fsck", data=data.path).returncode == 0


def test_a_repository_in_the_place_of_one_that_sleeps_is_not_run_under_its_name(host: MakeHost, tmp_path: Path) -> None:
    """Another one's history, whole and signed by this very host: at a start, and while the host runs."""
    data = two_asleep(tmp_path)
    aside = tmp_path / "aside"
    data.repo(ONE).rename(aside)
    shutil.copytree(data.repo(OTHER), data.repo(ONE))
    one = host().start("mail for d0001")
    assert "says that it is 'd0001'" in one.complaints
    assert one.verb("send", f"{ONE}@example.com", stdin=mail(1, ONE)).returncode != 0
    assert one.send(f"{OTHER}@example.com", mail(2, OTHER))
    one.wait_for(OTHER, "started by mail")
    one.stop()
    assert f"{ONE} run_" not in "".join(one.said), "nothing was run under that name"
    shutil.rmtree(data.repo(ONE))
    aside.rename(data.repo(ONE))
    again = host().start("mail for d0000")
    data.repo(ONE).rename(aside)
    shutil.copytree(data.repo(OTHER), data.repo(ONE))
    assert again.verb("send", f"{ONE}@example.com", stdin=mail(3, ONE)).returncode == 75
    again.wait_for(f"{ONE} is down")
    assert "put its newer repository back" in again.verb("why", ONE).stdout, "how far it got is noted outside, too"
    assert again.send(f"{OTHER}@example.com", mail(4, OTHER))
    again.stop()


def test_a_process_that_crashes_while_it_is_let_go_is_no_crash(host: MakeHost, tmp_path: Path) -> None:
    """It was to end; however often, it sleeps, it isn't latched, and its mail is taken in."""
    file = tmp_path / "flow.py"
    file.write_text(CRASHES)
    with host(file) as one:
        for number in range(5):
            one.wait_for("is dormant")
            one.send("flow@example.com", mail(number, "flow"))
            one.wait_for("waits for the next mail")
        one.wait_for("is dormant")
        assert "exit" not in "".join(one.said)


def test_a_disk_that_is_full_while_one_falls_asleep_takes_nothing_from_it(
    tmp_path: Path, flows: Path, unmeasured: None
) -> None:
    """Whether it sleeps or not: mail is withheld as long as that lasts, and taken in afterwards."""
    full, data = tmp_path / "full", tmp_path / "data"
    words = (str(flows / "sleeps.py"), "--print", "--limits", '{"idle": 1.0}', "--full-while", str(full))
    host = (sys.executable, "-P", "-X", "utf8", "-m", "waypost.testing.host")
    with Background(*words, data=data, command=host) as one:
        one.wait_for("is dormant")
        assert waypost("send", "sleeper@example.com", data=data, stdin=letter(1)).returncode == 0
        one.wait_for("waits for the next mail")
        full.touch()
        one.wait_for("is dormant")
        full.unlink()
        assert waypost("send", "sleeper@example.com", data=data, stdin=letter(2, to=1)).returncode == 0
        one.wait_for("completed")
        one.signal(signal.SIGTERM)
        assert one.wait() == 0
    assert waypost("fsck", data=data).returncode == 0


def minute_of(line: str) -> tuple[str, int]:
    """The schedule and the minute of a run that has completed, as its code says."""
    found = _TICK.search(line)
    assert found is not None, line
    return found[1], round(datetime.fromisoformat(found[2]).timestamp()) // 60


@pytest.mark.timeout(600)  # the clock ticks once a minute
def test_a_host_that_is_stopped_over_several_ticks_catches_up_as_each_schedule_says(
    host: MakeHost, tmp_path: Path
) -> None:
    """SIGSTOP, and SIGCONT: as for a laptop that was asleep. Its deployment sleeps, too; no tick has two runs."""
    file, first = tmp_path / "flow.py", int(time.time()) // 60 + 2
    file.write_text(POLICIES.replace("MINUTES", f"{first % 60},{(first + 1) % 60}"))
    one, pause = host(file).start("is dormant"), threading.Event()
    os.kill(one.pid, signal.SIGSTOP)
    while time.time() < (first + 2) * 60 + 5:  # what is up to a minute late isn't missed
        pause.wait(1.0)
    os.kill(one.pid, signal.SIGCONT)
    ticked = {minute_of(one.wait_for("completed: ")) for _ in range(3)}
    one.wait_for("is dormant")
    one.stop()
    assert ticked == {("latest", first + 1), ("all", first), ("all", first + 1)}
    assert sum("completed: " in line for line in one.said) == 3
