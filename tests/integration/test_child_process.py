"""The real child process against a scripted host: start, drive, crash, resume, mismatch, large values, its end."""

import hashlib
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import UNSET

from ipc.messages import AppendResponse, EventsCommitted, GrantsUpdated, RunLive, RunStart
from waypost.model import events as ev
from waypost.model.declaration import Description, NotDescribed, read
from waypost.model.grants import encode_snapshot, granted, snapshot
from waypost.testing.memory_log import MemoryLog
from waypost.testing.scripted_host import ScriptedHost

MAIL = b"From: ann@example.com\r\nMessage-ID: <1@x>\r\nSubject: 7\r\n\r\nplease\r\n"

HEAD = """
import asyncio, os, sys, time
from waypost import *

flow = Workflow("orders", address="orders@example.com", mail_to=["boss@example.com"])

@flow.step
def read(mail: Mail) -> int:
    print("body of read", idempotency_key(), flush=True)
    progress("reading " + mail.subject)
    recycle("it has read enough")
    return int(mail.subject)

@flow.step
async def triple(x: int) -> int:
    await asyncio.sleep(0)
    return 3 * x

@flow.step(retries=2)
def shaky(x: int) -> int:
    raise ValueError("no")

@flow.step
def hangs() -> None:
    print("hanging", idempotency_key(), flush=True)
    time.sleep(600)

@flow.step
def large(size: int) -> str:
    return "x" * size

@flow.step
def leaves() -> None:
    sys.exit(3)

@flow.step
def environment() -> list[str]:
    return sorted(name for name in os.environ)

@flow.step
def dumpable() -> int:
    import ctypes
    return ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)  # PR_GET_DUMPABLE

@flow.step
def descriptors() -> list[str]:
    import subprocess
    seen = subprocess.run(["ls", "/proc/self/fd"], capture_output=True, text=True, close_fds=False).stdout.split()
    return [fd for fd in seen if fd in {"3", "4", "5"}]
"""

Start = Callable[..., ScriptedHost]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Write a workflow and prepare its host; the test enters it."""

    def do(run: str, head: str = HEAD) -> ScriptedHost:
        file = tmp_path / "flow_under_test.py"
        file.write_text(head + textwrap.dedent(run), encoding="utf-8")
        log = MemoryLog()
        log.start(MAIL)
        return ScriptedHost(file, log)

    return do


def result(host: ScriptedHost) -> object:
    """What the run came to."""
    last = host.log.events[-1]
    if isinstance(last, ev.RunCompleted):
        named = last.result.blob
        return json.loads(bytes(last.result.inline) if named is UNSET else host.log.blobs[named])  # type: ignore[arg-type]  # one of the two is set
    assert isinstance(last, ev.RunFailed)
    return f"{last.error.type}: {last.error.message}"


def test_a_run_goes_to_its_end(start: Start) -> None:
    """Mail in, sync and async step, result out, over real descriptors and frames."""
    with start("""
        @flow.run
        async def order(mail):
            return await triple(await read(mail))
    """) as host:
        host.drive()
        host.until_ended()
        assert result(host) == 21
        assert host.kinds() == ["RunStarted", *["StepStarted", "StepCompleted"] * 2, "RunCompleted"]
        host.until(lambda: bool(host.progress and host.recycles))
        assert host.progress[0].text == "reading 7"
        assert host.recycles == ["it has read enough"]
        assert host.ready is not None
        assert host.ready.code == hashlib.sha256(host.file.read_bytes()).hexdigest()
        assert host.ready.pid == host.pid


def test_a_def_workflow_goes_to_its_end(start: Start) -> None:
    """One thread, plain calls."""
    with start("""
        @flow.run
        def order(mail):
            number = read(mail)
            verdict = approve("Pay?", who="boss@example.com")
            return [number, triple(number), verdict.approved]
    """) as host:
        host.drive()
        host.until_parked()
        host.commit(host.log.decide(approved=True))
        host.until_ended()
        assert result(host) == [7, 21, True]


def test_a_def_workflow_waits_for_a_thread_where_none_is_to_be_had(start: Start) -> None:
    """It ended its process, and with it all other runs: three times, and nothing ran any more."""
    source = """
        import threading
        starts, refused = threading.Thread.start, []

        def start(thread):
            if thread.name.startswith("waypost-run") and not refused:
                refused.append(thread.name)
                raise RuntimeError("can't start new thread")
            starts(thread)

        threading.Thread.start = start

        @flow.run
        def order(mail):
            return triple(read(mail))
    """
    with start(source) as host:
        host.drive()
        host.until_ended()
        assert result(host) == 21
        assert b"no thread is to be had for run_" in host.output


def test_a_child_that_can_not_even_listen_waits_for_a_thread(start: Start) -> None:
    """A passing want of the machine's isn't the code's fault: it counted as a crash, and three of them latched."""
    source = """
        import threading
        starts, refused = threading.Thread.start, []

        def start(thread):
            if thread.name == "waypost-frames" and not refused:
                refused.append(thread.name)
                raise RuntimeError("can't start new thread")
            starts(thread)

        threading.Thread.start = start

        @flow.run
        def order(mail):
            return 1
    """
    with start(source) as host:
        host.drive()
        host.until_ended()
        assert result(host) == 1
        assert b"no thread is to be had to listen to the host" in host.output


def shape(event: ev.AnyEvent) -> tuple[object, ...]:
    """An event without what depends on the moment."""
    return (ev.kind(event), ev.call_of(event), getattr(event, "attempt", None), getattr(event, "step", None))


@pytest.mark.parametrize(("kind", "step"), [("async def", 9), ("def", 12)])
def test_killed_at_any_event_it_comes_to_the_same_end(
    start: Start, monkeypatch: pytest.MonkeyPatch, kind: str, step: int
) -> None:
    """The whole point: calls keep their identities, completed steps don't run again, the result is the same."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)  # what is killed takes its figures along
    wait = "await " if kind == "async def" else ""
    source = f"""
        @flow.run
        {kind} order(mail):
            number = {wait}read(mail)
            try:
                {wait}shaky(number)
            except StepError as failure:
                number += len(failure.reason)
            {wait}sleep("1h")
            verdict = {wait}approve("Pay?", who="boss@example.com", deadline="3d")
            {wait}send(to="ann@example.com", subject="paid", text="well", reply_to=mail)
            return [number, verdict.text]
    """
    with start(source) as whole:
        whole.drive()
        whole.to_the_end()
    expected = [shape(e) for e in whole.log.events]
    assert result(whole) == [9, "fine"]

    for moment in range(2, len(expected), step):
        with start(source) as host:
            host.drive()
            host.to_the_end(events=moment)
        host.log.resume()
        with ScriptedHost(host.file, host.log) as again:
            again.drive()
            again.to_the_end()
        assert [shape(e) for e in host.log.events if not isinstance(e, ev.RunResumed)] == expected
        assert result(again) == [9, "fine"]


def test_a_step_under_way_at_a_kill_runs_again_under_the_same_key(start: Start) -> None:
    """What it does outside can be made once by its key."""
    with start("""
        @flow.run
        async def order(mail):
            await hangs()
    """) as host:
        host.drive()
        host.until(lambda: host.output.endswith(b"\n"))
    host.log.resume()
    with ScriptedHost(host.file, host.log) as again:
        again.drive()
        again.until(lambda: again.output.endswith(b"\n"))
    assert bytes(host.output) == bytes(again.output)
    assert host.kinds() == ["RunStarted", "StepStarted", "RunResumed"]


def test_a_large_value_travels_in_parts(start: Start) -> None:
    """Over the inline limit, and over one part, in both directions; the event holds a hash."""
    source = """
        @flow.run
        async def order(mail):
            value = await large(700_000)
            await sleep(1)
            return value
    """
    with start(source) as host:
        host.drive()
        host.until_parked()
    host.log.resume()
    with ScriptedHost(host.file, host.log) as again:
        again.drive()
        again.to_the_end()
        assert result(again) == "x" * 700_000


def test_changed_code_pauses_the_run_and_leaves_it_alone(start: Start) -> None:
    """Both sides of the difference are in the request."""
    with start("""
        @flow.run
        async def order(mail):
            await read(mail)
            await sleep(1)
    """) as host:
        host.drive()
        host.until_parked()
    log = host.log
    with start("""
        @flow.run
        async def order(mail):
            await large(3)
            await sleep(1)
    """) as changed:
        changed.log = log
        log.resume()
        changed.drive()
        changed.until(lambda: bool(changed.pauses))
        assert "the log has step read" in changed.pauses[0]
        assert "the code now does step large" in changed.pauses[0]
        changed.send(EventsCommitted(run=log.run, events=log.raw[-1:]))  # a late frame of a run that was left
        assert changed.shut_down() == 0


def test_an_exit_in_a_step_is_a_failed_step(start: Start) -> None:
    """The child has other runs to care for."""
    with start("""
        @flow.run
        async def order(mail):
            try:
                await leaves()
            except StepError as failure:
                return failure.type
    """) as host:
        host.drive()
        host.until_ended()
        assert result(host) == "SystemExit"


def test_user_code_sees_no_secret_and_passes_no_descriptor_on(start: Start) -> None:
    """The key came by a pipe that is closed; a step's own processes can't speak to the host."""
    with start("""
        @flow.run
        async def order(mail):
            return [await descriptors(), await environment()]
    """) as host:
        host.drive()
        host.until_ended()
        found = result(host)
        assert isinstance(found, list)
        inherited, names = found
        assert "5" not in inherited
        sockets = [fd for fd in inherited if fd in {"3", "4"}]
        assert len(sockets) <= 1, "ls itself opens the folder as 3"
        assert not [name for name in names if "SECRET" in name or name.startswith("WAYPOST")]


def test_nobody_of_the_same_user_may_look_into_a_child(start: Start) -> None:
    """Its memory has the key of its channel: no core file, no debugger, no reading through /proc."""
    with start("""
        @flow.run
        async def order(mail):
            return await dumpable()
    """) as host:
        host.drive()
        host.until_ended()
        assert result(host) == 0


def test_a_file_that_does_not_load_is_said_in_ready_and_the_child_stays(start: Start) -> None:
    """The host pauses its runs; a child that dies again and again would tell nobody."""
    with start("import nothing_of_that_name\n", head="") as host:
        host.until(lambda: host.ready is not None)
        assert host.ready is not None
        assert "line 1: ModuleNotFoundError" in str(host.ready.error)
        assert host.shut_down() == 0


def test_a_file_that_has_changed_since_it_was_deployed_is_named_and_not_run(start: Start) -> None:
    """What runs is what was hashed; the host is told what lies there now, and decides."""
    host = start("""
        print("imported")

        @flow.run
        async def order(mail): ...
    """)
    host.sha256 = "0" * 64
    with host:
        host.until(lambda: host.ready is not None)
        assert host.ready is not None
        assert host.ready.code == hashlib.sha256(host.file.read_bytes()).hexdigest()
        assert host.shut_down() == 0
        assert b"imported" not in host.output


def test_a_second_start_of_a_run_is_ignored(start: Start) -> None:
    """And so are frames for runs that this child doesn't have."""
    with start("""
        @flow.run
        async def order(mail):
            return await read(mail)
    """) as host:
        host.drive()
        again = RunStart(
            run=host.log.run, definition="0" * 64, last_seq=1, grants="0" * 64, repository=host.log.repository
        )
        host.send(again)
        host.send(RunLive(run="run_9_0000000000000000"))
        host.until_ended()
        assert result(host) == 7


def test_sigterm_ends_the_child_at_once(start: Start) -> None:
    """All that counts is in the log."""
    with start("""
        @flow.run
        async def order(mail):
            await hangs()
    """) as host:
        host.drive()
        host.until(lambda: host.output.endswith(b"\n"))
        assert host.terminate() == 0


def another_run(host: ScriptedHost) -> RunStart:
    """The start of a run under grants that were never brought: who sent it skipped the barrier (storage §5)."""
    run = "run_9_0000000000000009"
    return RunStart(run=run, definition="0" * 64, last_seq=1, grants="0" * 64, repository=host.log.repository)


def altered() -> GrantsUpdated:
    """Grants of a step that were changed on their way, and the hash of the whole with them."""
    raw = encode_snapshot(snapshot({"pay": granted(secrets=["ledger"])})).replace(b"ledger", b"github")
    return GrantsUpdated(grants=raw, sha256=hashlib.sha256(raw).hexdigest())


@pytest.mark.parametrize(
    ("break_rule", "words"),
    [
        (lambda host: host.send_raw(b"\0\0\0\x05hello"), "control down"),
        *(
            pytest.param(break_rule, words, marks=pytest.mark.torture)
            for break_rule, words in (
                (lambda host: host.send(AppendResponse(id=99)), "isn't under way"),
                (lambda host: host.send(EventsCommitted(run=host.log.run, events=(b"{}",))), "not an event"),
                (lambda host: host.send(another_run(host)), "grants that this child wasn't told of"),
                (lambda host: host.send(GrantsUpdated(grants=b'{"steps":[]}', sha256="0" * 64)), "aren't those of"),
            )
        ),
        (lambda host: host.send(EventsCommitted(run=host.log.run, events=host.log.raw[:1])), "came after"),
        (lambda host: host.send(altered()), "the grants of step 'pay' aren't those of"),
    ],
)
def test_a_host_that_breaks_a_rule_ends_the_child(
    start: Start, break_rule: Callable[[ScriptedHost], None], words: str
) -> None:
    """It can't go on with a log that it can't trust; the exit code says protocol."""
    with start("""
        @flow.run
        async def order(mail):
            await sleep(1)
    """) as host:
        host.drive()
        host.until_parked()
        break_rule(host)
        assert host.wait_for_exit() == 76
        assert words in host.output.decode()


def describe(file: Path) -> tuple[int, bytes]:
    """What --describe says."""
    done = subprocess.run(
        [sys.executable, "-P", "-X", "utf8", "-m", "waypost.child", "--describe", str(file)],
        capture_output=True,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    return done.returncode, done.stdout


def test_describe_prints_one_object_whatever_the_file_prints(tmp_path: Path) -> None:
    """The host reads it without importing the file."""
    file = tmp_path / "flow.py"
    file.write_text(HEAD + "print('noise')\n@flow.run\nasync def order(mail): ...\n", encoding="utf-8")
    code, out = describe(file)
    answer = read(out)
    assert code == 0
    assert isinstance(answer, Description)
    assert (answer.workflow.name, answer.module, answer.root) == ("orders", "flow", str(tmp_path))
    assert answer.definition == answer.workflow.digest()
    assert [step.name for step in answer.workflow.steps][:3] == ["read", "triple", "shaky"]


def test_describe_says_why_a_file_cannot_be_used(tmp_path: Path) -> None:
    """In the same way for every reason."""
    code, out = describe(tmp_path / "nothing.py")
    answer = read(out)
    assert code == 65
    assert isinstance(answer, NotDescribed)
    assert answer.code == "missing"
