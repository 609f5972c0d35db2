"""The API over its real socket, on a host with real actors and a real child."""

import http.client
import json
import os
import platform
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue
from typing import Any, cast

import msgspec
import pykka
import pytest

from actors.messages import Stop
from waypost import __version__
from waypost.acting import Ref
from waypost.cli.client import Client, Said
from waypost.host.answers.records import (
    Answered,
    CancelAsked,
    DeploymentDraining,
    DeploymentFollowed,
    DeploymentRecycling,
    DeploymentResumed,
    DeploymentStatus,
    EventsPage,
    MailTaken,
    OpenApprovals,
    Problem,
    Runs,
    RunShown,
    Signalled,
    Status,
    Verified,
)
from waypost.host.answers.why import DeploymentWhy, Why, Whys
from waypost.host.api.reach import reached
from waypost.host.api.server import bind
from waypost.host.app import Config, Host
from waypost.host.clock import ClockActor
from waypost.host.code.describe import describe_all
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import HostError, HostRuns, InTheWay, NoHost, Taken
from waypost.host.messages import Deployments
from waypost.host.processes.users import user_name
from waypost.host.processes.wires import Wires
from waypost.model.limits import Limits
from waypost.shell import request
from waypost.testing.patience import eventually

WORKFLOW = '''
from waypost import Mail, Workflow, approve

asking = Workflow("asking", address="asking@example.com", mail_to=["boss@example.com"])

@asking.step
def size(mail: Mail) -> int:
    """Count."""
    return len(mail.text)

@asking.run
async def ask(mail: Mail) -> str:
    """Ask the boss."""
    found = await size(mail)
    verdict = await approve(f"{found} characters?", who="boss@example.com", deadline="3d")
    return f"{verdict.approved} by {verdict.by} via {verdict.via}: {verdict.text}"
'''
MAIL = b"From: ann@example.com\r\nTo: asking@example.com\r\nSubject: %s\r\nMessage-ID: <%s@x>\r\n\r\nhello\r\n"


class Running:
    """A host in this process, its client, and the lines that it says."""

    def __init__(self, folder: Path, workflow: str = WORKFLOW, data: Path | None = None) -> None:
        file = folder / "asking.py"
        file.write_text(workflow)
        self.lines: SimpleQueue[str] = SimpleQueue()
        described = describe_all([file], timeout=30, environment=os.environ)
        self.host = Host.start(
            Config(
                data=data or folder / "data",
                described=described,
                command=("test",),
                environment=dict(os.environ),
                limits=Limits(mail=100_000, bodies=120_000, kill_grace=1.0),
                say=lambda _at, text: self.lines.put(text),
            )
        )
        self.client = Client(self.host.data.socket)

    def wait_for(self, text: str) -> str:
        """The next line that holds the text."""
        while True:
            line = self.lines.get(timeout=30)
            print(line)  # noqa: T201 - shown where a test fails
            if text in line:
                return line

    def send(self, name: str, size: int = 0) -> MailTaken:
        """Have a mail accepted, with ``size`` bytes more of text."""
        raw = MAIL % (name.encode(), name.encode()) + b"x" * size
        return self.client.post(MailTaken, "mail", "asking@example.com", body=raw, content_type="message/rfc822")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A host of its own for each test: no thread of it may be left behind."""
    made = Running(tmp_path)
    yield made
    made.host.close()


def test_a_mail_runs_to_its_park_and_an_operators_answer_ends_it(running: Running) -> None:
    """The whole way, and every reading door beside it."""
    taken = running.send("first")
    assert (taken.outcome, taken.deployment) == ("enqueued", "asking")
    running.wait_for("waits for boss@example.com")
    why = running.client.get(Why, "runs", taken.run, "why")
    assert (why.state, why.on.isolation, why.on.state) == ("parked", "none", "running")
    assert (why.command, why.alternative) == (f"waypost approve {taken.run}", f"waypost reject {taken.run}")
    assert running.client.get(DeploymentWhy, "deployments", "asking", "why") == why.on
    assert running.client.get(Whys, "why") == Whys(hosted=True, deployments=(why.on,))
    status_names_signer_isolation_and_deployments(running)
    body = json.dumps({"approved": True, "comment": "fine"}).encode()
    answered = running.client.post(Answered, "runs", taken.run, "answer", body=body)
    assert answered.approved
    with pytest.raises(Said) as second:  # two operators, one approval
        running.client.post(Answered, "runs", taken.run, "answer", body=b'{"approved": false}')
    assert second.value.code in {"already-decided", "ended", "terminal"}
    assert answered.by == user_name(os.geteuid()), "who decided is the kernel's word, never the request's"
    running.wait_for("completed")
    shown = running.client.get(RunShown, "runs", taken.run)
    assert shown.state == "completed"
    assert shown.lines[-1].text.endswith(f'"True by {answered.by} via cli: fine"') or "sent" in shown.lines[-1].text
    page = running.client.get(EventsPage, "runs", taken.run, "events", after=2)
    events = [json.loads(bytes(raw)) for raw in page.events]
    assert [event["seq"] for event in events] == list(range(3, page.last + 1))
    first = json.loads(bytes(running.client.get(EventsPage, "runs", taken.run, "events", after=0).events[0]))
    ran_by = (first["type"], first["python"], first["waypost"])
    assert ran_by == ("RunStarted", platform.python_version(), __version__), "years later somebody asks"
    assert taken.run in [row.run for row in running.client.get(Runs, "runs").runs]
    assert all(each.sound and each.pinned for each in running.client.get(Verified, "verify").deployments)


def test_a_deployment_is_recycled_and_drained_and_goes_on(running: Running) -> None:
    """A parked run is at rest: it goes on where it was, by whatever process there is; who looks on hears of it all."""
    run = running.send("first").run
    running.wait_for("waits for boss@example.com")
    client = running.client

    def until(state: str, after: int) -> DeploymentStatus:
        mark = ""
        while True:
            followed = client.get(DeploymentFollowed, "deployments", "asking", known=mark)
            mark, status = followed.mark, followed.status
            if status.state == state and status.generation > after:
                return status

    begun = client.post(DeploymentRecycling, "deployments", "asking", "recycle", body=b'{"reason": "leaks"}')
    fresh = until("running", begun.generation)
    assert fresh.renewed is not None
    assert (fresh.renewed.origin, fresh.renewed.after) == ("operator", begun.generation)
    assert fresh.renewed.reason == f"{user_name(os.geteuid())}: leaks", "who wanted it is the kernel's word, too"
    client.post(DeploymentDraining, "deployments", "asking", "drain")
    until("held", 0)
    client.post(DeploymentResumed, "deployments", "asking", "resume")
    until("running", fresh.generation)
    client.post(Answered, "runs", run, "answer", body=b'{"approved": true}')
    running.wait_for("completed")


def test_the_runs_of_a_stopped_deployment_are_read_as_without_a_host(running: Running) -> None:
    """Who has to find out why it stopped must see what it was at; only what is written is withheld."""
    run = running.send("first").run
    running.wait_for("waits for boss@example.com")
    (deployed,) = request(running.host.root, Deployments(), timeout=30)
    request(deployed.supervisor, Stop(), timeout=30)
    client = running.client
    assert [row.run for row in client.get(Runs, "runs").runs] == [run]
    assert client.get(RunShown, "runs", run).state == "parked"
    assert client.get(EventsPage, "runs", run, "events", after=0).last >= 1
    assert [each.run for each in client.get(OpenApprovals, "approvals").approvals] == [run]
    why = client.get(Why, "runs", run, "why")
    assert (why.state, why.on.state, why.command) == ("parked", "stopped", "waypost run")
    with pytest.raises(HostError) as withheld:
        running.send("second")
    assert withheld.value.code == "withheld"


def wishes_that_can_not_be_read(running: Running) -> None:
    """Nor one for a deployment that isn't there; by a code each time."""
    for path, body, code in (
        (("none", "drain"), b"", "no-such-deployment"),
        (("none", "recycle"), b"{}", "no-such-deployment"),
        (("asking", "recycle"), b"leaks", "usage"),
        (("asking", "drain"), b'{"end": 1}', "usage"),
        (("asking", "recycle"), json.dumps({"reason": "x" * 501}).encode(), "too-large"),
    ):
        with pytest.raises(Said) as said:
            running.client.post(DeploymentDraining, "deployments", *path, body=body)
        assert said.value.code == code
    with pytest.raises(Said) as said:
        running.client.get(DeploymentFollowed, "deployments", "none")
    assert said.value.code == "no-such-deployment"
    assert running.client.get(DeploymentFollowed, "deployments", "asking").status.state in {"starting", "running"}


def a_redelivered_mail(running: Running) -> None:
    """The sender never saw the first answer; there must be one run all the same."""
    first, second = running.send("twice"), running.send("twice")
    assert (second.outcome, second.run, second.arrival) == ("already-present", first.run, first.arrival)


def another_mail_under_the_same_id(running: Running) -> None:
    """Its sender is told that it is safe, so somebody must be able to see it."""
    first = running.send("one")
    other = MAIL % (b"other", b"one")
    taken = running.client.post(MailTaken, "mail", "asking@example.com", body=other, content_type="message/rfc822")
    assert (taken.outcome, taken.place, taken.arrival) == ("on-hold", "hold", first.arrival + 1)


def test_a_sink_is_told_what_opens_and_closes_until_the_host_ends(running: Running) -> None:
    """A line for each; what is open when it comes first. An open connection doesn't hold up the host's end."""
    first = running.send("first")
    running.wait_for("waits for boss@example.com")
    lines = running.client.follow("approvals", "follow")
    (told,) = running.client.get(OpenApprovals, "approvals").approvals
    assert msgspec.json.decode(next(lines)) == {"announced": msgspec.json.decode(msgspec.json.encode(told))}
    assert (told.run, told.title, told.address) == (first.run, "6 characters?", "asking@example.com")
    assert msgspec.json.decode(next(lines)) == {"listed": "asking"}
    running.client.post(Answered, "runs", first.run, "answer", body=b'{"approved":true}')
    gone = {"deployment": "asking", "run": first.run, "call": told.call, "why": "answered"}
    assert msgspec.json.decode(next(lines)) == {"withdrawn": gone}
    second = running.send("second")
    assert msgspec.json.decode(next(lines))["announced"]["run"] == second.run
    asked = running.client.post(CancelAsked, "runs", second.run, "cancel", body=b'{"reason":"not needed"}')
    assert (asked.fresh, asked.origin) == (True, "supervisor-operator")
    assert msgspec.json.decode(next(lines))["withdrawn"]["why"] == "abandoned"
    running.host.close()
    assert list(lines) == []


SIGNALLED = '''
import asyncio
from waypost import Mail, Workflow, signal

asking = Workflow("asking", address="asking@example.com")

@asking.step
def undo(what: str) -> str:
    """Clean up."""
    return what

@asking.run
async def ask(mail: Mail) -> int:
    """Wait for two numbers."""
    try:
        return sum([await signal("go", int), await signal("paid/net", int)])
    except asyncio.CancelledError:
        await undo("all of it")
        raise
'''


def test_a_run_is_signalled_and_another_cancelled(tmp_path: Path) -> None:
    """A signal that comes first is kept, one that comes twice is one, and a cancelled run cleans up before its end."""
    running = Running(tmp_path, SIGNALLED)
    try:
        first, second = running.send("first").run, running.send("second").run

        def signal(name: str, raw: bytes, identity: str) -> Signalled:
            return running.client.post(Signalled, "runs", first, "signals", name, body=raw, id=identity)

        running.wait_for("waits for signal go")
        assert signal("paid/net", b" 2 ", "s1").outcome == "kept"
        assert signal("paid/net", b"2", "s1").outcome == "already-present"
        with pytest.raises(Said, match="with another payload"):
            signal("paid/net", b"3", "s1")
        with pytest.raises(Said, match="no JSON"):
            signal("go", b"{", "s2")
        assert signal("go", b"1", "s2").outcome == "received"
        running.wait_for("completed: 3")
        assert signal("go", b"1", "s2").outcome == "already-present"
        with pytest.raises(Said, match="nobody would read"):
            signal("go", b"1", "s3")

        def cancel(reason: bytes) -> CancelAsked:
            return running.client.post(CancelAsked, "runs", second, "cancel", body=b'{"reason":"%s"}' % reason)

        with pytest.raises(Said, match="a reason is some text"):
            cancel(b" ")
        assert cancel(b"not needed").fresh
        running.wait_for("step undo is done")
        running.wait_for("cancelled")
        assert not cancel(b"really").fresh
    finally:
        running.host.close()


def test_a_run_may_be_named_by_its_beginning(running: Running) -> None:
    """People type what fits a line; what fits several runs is refused with them."""
    taken = running.send("short")
    assert running.client.get(RunShown, "runs", taken.run[:8]).run == taken.run
    running.send("another")
    with pytest.raises(Said) as refused:
        running.client.get(RunShown, "runs", "run")
    assert refused.value.code == "ambiguous-run"
    for text in ("run_99", "nonsense", "run_1_0000000000000000", "%2e%2e", "run_1_\0"):
        with pytest.raises(Said) as refused:
            running.client.get(RunShown, "runs", text)
        assert refused.value.code == "no-such-run"


UNACCEPTABLE = [
    ("asking@example.com", b"", "malformed"),
    ("asking@example.com", b"this is no mail", "malformed"),
    ("asking@example.com", b"Subject: x\r\n\r\n" + b"x" * 100_000, "too-large"),
    ("nobody@example.com", b"Subject: x\r\n\r\nhello", "no-such-address"),
    ("no address", b"Subject: x\r\n\r\nhello", "no-such-address"),
    ("a/b@example.com", b"Subject: x\r\n\r\nhello", "no-such-address"),
    ("a@example.com\r\nX: y", b"Subject: x\r\n\r\nhello", "usage"),
]


def what_cannot_be_accepted(running: Running) -> None:
    """Nothing is stored, and the sender is told what to do."""
    for address, raw, code in UNACCEPTABLE:
        with pytest.raises(Said) as refused:
            running.client.post(MailTaken, "mail", address, body=raw, content_type="message/rfc822")
        assert (address, refused.value.code) == (address, code)
        assert refused.value.hint or code == "usage"
    assert running.client.get(Runs, "runs").runs == ()


WRONG = [
    ("GET", "/", None, 404),
    ("GET", "/v2/runs", None, 404),
    ("DELETE", "/v1/runs", None, 405),
    ("POST", "/v1/runs/run_1/answer", b"{", 400),
    ("POST", "/v1/runs/run_1/answer", b'{"approved": "yes"}', 400),
    ("POST", "/v1/runs/run_1/answer", b'{"approved": true, "by": "boss"}', 400),
    ("POST", "/v1/runs/run_1/answer", b" " * 70_000, 413),
    ("POST", "/v1/runs/run_1/answer", b'{"approved": true, "comment": "%s"}' % (b"x" * 16_385), 413),
    ("GET", "/v1/runs/run_1/events?after=x", None, 400),
    ("GET", "/v1/runs?limit=-1", None, 400),
]


def wrong_requests(running: Running) -> None:
    """Programs read the code, people the message; nobody ever reads a traceback."""
    for method, path, body, status in WRONG:
        with reached(running.host.data.socket) as name, socket.socket(socket.AF_UNIX) as plain:
            plain.connect(name)
            connection = http.client.HTTPConnection("waypost")
            connection.sock = plain
            connection.request(method, path, body)
            response = connection.getresponse()
            assert (method, path, response.status) == (method, path, status)
            assert msgspec.json.decode(response.read(), type=Problem).message


def what_is_no_http(running: Running) -> None:
    """Whoever meets the socket with the wrong program learns what it is."""
    with reached(running.host.data.socket) as name, socket.socket(socket.AF_UNIX) as plain:
        plain.connect(name)
        plain.sendall(b"EHLO example.com\r\n\r\n")
        answer = http.client.HTTPResponse(plain)
        answer.begin()
        assert answer.status == 400
        assert msgspec.json.decode(answer.read(), type=Problem).code == "usage"


def answered(plain: socket.socket) -> int:
    """The status of an answer, read whole: it may come in pieces, and another one follows on this connection."""
    with http.client.HTTPResponse(plain) as answer:
        answer.begin()
        answer.read()
        return answer.status


def test_one_connection_too_many_waits_for_a_place_and_the_others_go_on(running: Running) -> None:
    """It isn't turned away: an operator who sends two hundred mails at once expects that all are accepted."""
    asks = b"GET /v1/status HTTP/1.1\r\nhost: waypost\r\n\r\n"
    with ExitStack() as all_of_them:
        connected = [all_of_them.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(64 + 1)]
        *served, last = connected
        for each in served:
            with reached(running.host.data.socket) as name:
                each.connect(name)
            each.sendall(asks)
            assert answered(each) == 200
        with reached(running.host.data.socket) as name:
            last.connect(name)
        last.sendall(asks)
        served[0].sendall(asks)
        assert answered(served[0]) == 200
        served[0].close()
        assert answered(last) == 200


def test_mails_that_come_at_once_share_a_room_and_the_one_that_does_not_fit_is_withheld(running: Running) -> None:
    """Sixty-four mails of the largest size would be two gigabytes; whoever is withheld comes again."""
    raw = MAIL % (b"big", b"big") + b"x" * 90_000
    with reached(running.host.data.socket) as name, socket.socket(socket.AF_UNIX) as slow:
        slow.connect(name)
        head = f"POST /v1/mail/asking@example.com HTTP/1.1\r\nhost: waypost\r\ncontent-length: {len(raw)}\r\n\r\n"
        slow.sendall(head.encode() + raw[:-1])

        def refused() -> bool:
            try:
                running.send("second", size=50_000)
            except Said as said:
                return said.code == "withheld" and "memory" in said.message
            return False  # the host hasn't read what the slow one sent

        eventually(refused, "a mail beside a large one that is on its way is withheld")
        slow.sendall(raw[-1:])
        answer = http.client.HTTPResponse(slow)
        answer.begin()
        assert answer.status == 202
        answer.read()
    assert running.send("third", size=50_000).outcome == "enqueued"


def status_names_signer_isolation_and_deployments(running: Running) -> None:
    """What a monitoring script asks for."""
    status = running.client.get(Status, "status")
    assert status.isolation == "none"
    assert status.signer.startswith("SHA256:")
    assert [(each.name, each.state) for each in status.deployments] == [("asking", "running")]
    assert status.deployments[0].pid is not None


def a_socket_that_is_private(running: Running) -> None:
    """Whoever can connect can approve."""
    mode = running.host.data.socket.stat().st_mode
    assert (stat.S_ISSOCK(mode), stat.S_IMODE(mode)) == (True, 0o600)
    assert stat.S_IMODE(running.host.data.path.stat().st_mode) == 0o700


def a_second_host(running: Running) -> None:
    """One host for each data directory; the first one isn't disturbed."""
    with pytest.raises(HostRuns, match=f"pid {os.getpid()}"):
        Host.start(running.host.config)
    assert running.client.get(Status, "status").pid == os.getpid()


def test_what_is_asked_wrongly_is_refused_in_words_and_changes_nothing(running: Running) -> None:
    """One host for all of it, which goes on as if nobody had asked; whose mail was taken already is told so."""
    wishes_that_can_not_be_read(running)
    what_cannot_be_accepted(running)
    wrong_requests(running)
    what_is_no_http(running)
    a_socket_that_is_private(running)
    a_second_host(running)
    a_redelivered_mail(running)
    another_mail_under_the_same_id(running)


SPY = '''
import http.client, json, socket
from waypost import Mail, Workflow

asking = Workflow("asking", address="asking@example.com")

@asking.step
def spy(mail: Mail) -> str:
    """What an agent would try: approve its own request."""
    plain = socket.socket(socket.AF_UNIX)
    plain.connect({path!r})
    connection = http.client.HTTPConnection("waypost")
    connection.sock = plain
    connection.request("POST", "/v1/runs/run_1/answer")
    response = connection.getresponse()
    return f"{{response.status}} {{json.loads(response.read())['code']}}"

@asking.run
async def ask(mail: Mail) -> str:
    """Report."""
    return await spy(mail)
'''


def test_the_hosts_own_children_are_refused(tmp_path: Path) -> None:
    """An agent must not approve what it asked for."""
    made = Running(tmp_path, SPY.format(path=str(tmp_path / "data" / "host.sock")))
    try:
        made.send("spy")
        assert '"403 peer-refused"' in made.wait_for("spy is done")
    finally:
        made.host.close()


def test_a_long_path_is_no_obstacle(tmp_path: Path) -> None:
    """A socket's own path has 107 bytes; people's folders have more."""
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    made = Running(tmp_path, data=deep / "data")
    try:
        assert made.send("deep").outcome == "enqueued"
    finally:
        made.host.close()
    with pytest.raises(NoHost):
        made.client.get(Status, "status")
    assert not made.host.data.socket.exists()


def test_a_stale_socket_is_replaced_and_another_file_is_not(tmp_path: Path) -> None:
    """The lock is held: a socket that lies here is nobody's. Anything else is somebody's."""
    bind(tmp_path / "host.sock").close()
    bind(tmp_path / "host.sock").close()
    (tmp_path / "host.sock").unlink()
    (tmp_path / "host.sock").write_text("mine")
    with pytest.raises(InTheWay):
        bind(tmp_path / "host.sock")
    assert (tmp_path / "host.sock").read_text() == "mine"


def test_an_address_belongs_to_its_deployment_also_while_that_one_rests(tmp_path: Path) -> None:
    """Mail for the old one must not reach another under its address."""
    made = Running(tmp_path)
    made.send("old")
    made.host.close()
    with pytest.raises(Taken, match=r"asking@example\.com"):
        Running(tmp_path, WORKFLOW.replace('"asking"', '"other"'))
    assert DataDir(tmp_path / "data").deployments() == ("asking",)


@pytest.mark.parametrize("part", ["clock", "wires"])
def test_a_host_without_its_clock_or_its_wires_gives_up(
    tmp_path: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would look like a host, and never fire a timer or serve a child again."""
    made: list[Wires] = []

    class KnownWires(Wires):
        def start(self, parent: Ref | None = None) -> Wires:
            made.append(self)
            return super().start(parent)

    monkeypatch.setattr("waypost.host.app.Wires", KnownWires)
    ends: SimpleQueue[HostError] = SimpleQueue()
    config = Config(data=tmp_path / "data", described=(), command=("test",), environment={}, give_up=ends.put)
    with Host.start(config):
        if part == "clock":
            (clock,) = pykka.ActorRegistry.get_by_class(ClockActor)
            clock.tell("nonsense")
        else:
            (wires,) = made
            cast("Any", wires).post("nonsense")
        assert f"the {part} failed" in ends.get(timeout=30).message
