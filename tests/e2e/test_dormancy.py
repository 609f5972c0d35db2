"""Dormancy with real processes: whatever wakes a deployment, and wherever the host is killed, its runs go on."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from waypost.host.datadir.directory import DataDir
from waypost.host.mail.spool import leave
from waypost.host.reading.offline import Offline
from waypost.host.root.slots import HOST, ONE
from waypost.model import events as ev
from waypost.testing.background import Background
from waypost.testing.host_process import HostProcess, waypost
from waypost.testing.patience import eventually
from waypost.testing.sleeping import mail, name_of, sleeping

pytestmark = [pytest.mark.e2e, pytest.mark.torture]

ADDRESS = "sleeper@example.com"
QUICK = ("--limit", "idle=0.3")
MakeHost = Callable[..., HostProcess]


@pytest.fixture
def host(hosts: MakeHost) -> MakeHost:
    """Makes hosts whose deployments soon fall asleep."""
    return lambda *files, options=QUICK: hosts(*files, options=options)


def letter(number: int, text: str, *, to: int | None = None) -> bytes:
    thread = "" if to is None else f"In-Reply-To: <m{to}@x>\r\n"
    return f"Message-ID: <m{number}@x>\r\nFrom: ann@example.com\r\n{thread}\r\n{text}\r\n".encode()


def test_a_mail_a_word_a_signal_and_a_timer_wake_it(host: MakeHost, flows: Path) -> None:
    """Each time it has slept before, and has no process in between; no step is run twice."""
    with host(flows / "sleeps.py") as one:
        one.wait_for("is dormant")
        run = one.send(ADDRESS, letter(1, "mail word signal 6"))
        one.wait_for("waits for the next mail")
        one.wait_for("is dormant")
        assert "sleeper is dormant" in one.verb("why", run).stdout
        one.send(ADDRESS, letter(2, "hello", to=1))
        one.wait_for("waits for boss@example.com")
        one.wait_for("is dormant")
        assert run in one.verb("approvals").stdout
        assert one.verb("approve", run).returncode == 0
        one.wait_for("waits for signal go")
        one.wait_for("is dormant")
        assert waypost("signal", run, "go", data=one.data, stdin=b"{}").returncode == 0
        one.wait_for("a timer is set")
        one.wait_for("is dormant")
        one.wait_for("the time is up")
        one.wait_for("completed")
        one.wait_for("is dormant")
    assert "exit" not in "".join(one.said)
    log = waypost("show", run, data=one.data).stdout
    assert log.count("step note begins") == log.count("step note is done") == 4
    assert waypost("fsck", data=one.data).returncode == 0


def test_operators_verbs_wake_it_and_questions_do_not(host: MakeHost, flows: Path) -> None:
    """Whoever looks on doesn't keep it from sleeping; whoever wants something of it needn't know that it sleeps."""
    with host(flows / "sleeps.py") as one:
        run = one.send(ADDRESS, letter(1, "mail"))
        one.wait_for("waits for the next mail")
        one.wait_for("is dormant")
        for question in (
            ("runs",),
            ("why", run),
            ("show", run),
            ("approvals",),
            ("queue", "hold"),
            ("grants", "show", "sleeper"),
        ):
            assert one.verb(*question).returncode == 0, question
        assert one.verb("recycle", "sleeper", "--reason", "it leaks").returncode == 0
        one.wait_for("is dormant")
        assert one.verb("cancel", run, "--reason", "enough").returncode == 0
        one.wait_for("cancelled")
        one.wait_for("is dormant")
        drained = one.verb("drain", "sleeper")
        assert drained.returncode == 0
        assert "starting" not in drained.stdout, "nobody has asked how it is woken for that"
        assert drained.stdout.count(" held") == 1, drained.stdout
        one.wait_for("is held")
    woken = [line for line in one.said if line.endswith("is starting")]
    assert len(woken) <= 6, "a question has woken it"


@pytest.mark.parametrize("moment", ["is dozing", "is dormant"])
def test_a_host_that_is_killed_while_it_falls_asleep_loses_nothing(host: MakeHost, flows: Path, moment: str) -> None:
    """The next one finds it as it is, asleep or not, and a mail goes on with its run."""
    one = host(flows / "sleeps.py").start()
    run = one.send(ADDRESS, letter(1, "mail"))
    one.wait_for("waits for the next mail")
    one.wait_for(moment)
    one.kill()
    again = host().start("mail for sleeper")
    assert again.send(ADDRESS, letter(2, "hello", to=1)) == run
    again.wait_for("completed")
    again.stop()
    assert waypost("fsck", data=one.data).returncode == 0


@pytest.mark.parametrize("moment", ["is starting", "mail 2 from", "is running", "resumed in", "step note begins"])
def test_a_host_that_is_killed_while_it_wakes_one_takes_the_mail_in_once(
    host: MakeHost, flows: Path, moment: str
) -> None:
    """Whoever wasn't answered sends it again; the run goes on once, and its step is done once."""
    one = host(flows / "sleeps.py").start()
    run = one.send(ADDRESS, letter(1, "mail"))
    one.wait_for("waits for the next mail")
    one.wait_for("is dormant")

    def kill() -> None:
        one.wait_for(moment)
        one.kill()

    killing = threading.Thread(target=kill)
    killing.start()
    answer = letter(2, "hello", to=1)
    waypost("send", ADDRESS, data=one.data, stdin=answer)
    killing.join()
    again = host().start("mail for sleeper")
    waypost("send", ADDRESS, data=one.data, stdin=answer)
    eventually(lambda: "completed" in again.verb("show", run).stdout, "the run is completed")
    shown = again.verb("show", run).stdout
    again.stop()
    assert shown.count("mail 2 from") == 1
    assert shown.count("step note is done") == 1
    assert waypost("fsck", data=one.data).returncode == 0


def test_whoever_looks_on_sees_it_all_across_its_sleep_and_other_code_is_taken_in_it(
    host: MakeHost, flows: Path, tmp_path: Path
) -> None:
    """`tail`, `approvals --follow` and `deploy`, of a deployment that nobody has open."""
    file = tmp_path / "sleeps.py"
    file.write_bytes((flows / "sleeps.py").read_bytes())
    with host(file) as one:
        run = one.send(ADDRESS, letter(1, "mail word"))
        one.wait_for("waits for the next mail")
        one.wait_for("is dormant")
        with (
            Background("approvals", "--follow", data=one.data) as asked,
            Background("tail", run, data=one.data) as tail,
        ):
            tail.wait_for("waits for the next mail")
            one.send(ADDRESS, letter(2, "hello", to=1))
            asked.wait_for(f"{run} r1#4  Go on?")
            one.wait_for("waits for boss@example.com")
            one.wait_for("is dormant")
            file.write_bytes(file.read_bytes() + b"\n# the same with a comment\n")
            assert waypost("deploy", str(file), data=one.data).returncode == 0
            one.wait_for("is dormant")
            assert one.verb("approve", run).returncode == 0
            assert tail.wait() == 0
            assert tail.said[-1].endswith('completed: "done"')
            why = asked.wait_for(f"{run} r1#4  no longer asks: ").rsplit(maxsplit=1)[1]
            assert why in {"answered", "gone"}, "gone: the deployment was read anew before its event came"


def threads(pid: int) -> int:
    """Of a process, by proc(5)."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("Threads:")))


def begun(data: DataDir, name: str) -> str:
    """When the newest run of a deployment began, as its first event says."""
    offline = Offline(data)
    page = offline.page(name, offline.runs(name, 1)[0].run, 0)
    assert page is not None
    return ev.decode(page.events[0]).at


def test_many_that_are_woken_at_once_all_run_in_order_within_the_thread_budget(host: MakeHost, tmp_path: Path) -> None:
    """Three may be awake at once; the others wait in a row, and who has nothing to do gives way at once.

    Each run begins when that of the mail before it has: three processes come up side by side, and any may be first.
    """
    count = 24
    for _ in sleeping(tmp_path / "data", count):
        pass
    names = [name_of(number) for number in range(count)]
    spools = DataDir(tmp_path / "data")
    for number, name in enumerate(names):
        leave(spools.spool(name), mail(number, name))
    room = HOST + 3 * ONE
    options = ("--limit", f"threads={room}")
    one = host(options=options).start("mail for d0000")
    most, began = 0, set[str]()
    while began != {*names}:
        line = one.wait_for("started by mail")
        most = max(most, threads(one.pid))
        began.add(line.split()[1])
    one.stop()
    assert most <= room, "more threads than there may be"
    assert names == sorted(names, key=lambda name: begun(spools, name)), "out of turn"
