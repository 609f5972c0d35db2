"""Cancel and signal as a user has them: real processes, each verb durable, whether a child is up or not."""

import json
from pathlib import Path
from typing import Any

import pytest

from waypost.testing.background import Background
from waypost.testing.host_process import HostProcess
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e


def mail(subject: str) -> bytes:
    return f"From: ann@example.com\r\nSubject: {subject}\r\nMessage-ID: <{subject}@x>\r\n\r\nhello\r\n".encode()


class Place:
    """A folder with the workflow, its data and its ledger."""

    def __init__(self, folder: Path, flows: Path) -> None:
        self.file, self.data, self.ledger = flows / "steered.py", folder / "data", folder / "ledger"
        self.ledger.touch()

    def host(self, *options: str) -> HostProcess:
        """A host, not started yet."""
        return HostProcess(
            self.file, data=self.data, env={"LEDGER": str(self.ledger)}, options=("--isolation", "none", *options)
        )

    def begin(self, host: HostProcess, subject: str, until: str) -> str:
        """Send a mail that starts a run; wait for a line of it."""
        run = host.send("steered@example.com", mail(subject))
        host.wait_for(until)
        return run

    def end(self, run: str) -> dict[str, object]:
        """The last event of its log."""
        last: dict[str, object] = json.loads(verb("log", run, data=self.data).out.splitlines()[-1])
        return last

    def ended(self, host: HostProcess, run: str) -> None:
        """Wait for its end."""
        while self.end(run)["type"] != "RunCancelled":
            host.wait_for("steered run_")


@pytest.fixture
def place(tmp_path: Path, flows: Path) -> Place:
    """Where a test's host lives."""
    return Place(tmp_path, flows)


def cancelled(place: Place, host: HostProcess, subject: str, until: str) -> None:
    """A run is cancelled at a point of its way; who repeats that changes nothing."""
    run = place.begin(host, subject, until)
    said = verb("cancel", run, "--reason", "not needed", data=place.data)
    assert (said.status, f"{run} is being cancelled" in said.out) == (0, True), said
    place.ended(host, run)
    again = verb("cancel", run, "--reason", "really", data=place.data)
    assert (again.status, "nothing has changed" in again.out) == (0, True), again
    assert place.ledger.read_text().splitlines()[-1] == f"cleaned up {subject}"


@pytest.mark.torture
def test_a_run_is_cancelled_or_signalled_by_a_verb(place: Place) -> None:
    """Parked, in a thread, before it waits; and what can't be is said in words, with its exit status."""
    with place.host() as host:
        cancelled(place, host, "sleep", "a timer is set")
        cancelled(place, host, "thread", "step thread begins")
        run = place.begin(host, "signal", "waits for signal go")
        early = verb("signal", run, "paid", "--id", "order-7", data=place.data, stdin=b'{ "amount": 420 }\n')
        assert early.status == 0, early
        again = verb("signal", run, "paid", "--id", "order-7", data=place.data, stdin=b'{"amount":420}')
        assert (again.status, "nothing has changed" in again.out) == (0, True), again
        other = verb("signal", run, "paid", "--id", "order-7", data=place.data, stdin=b'{"amount": 1}')
        assert (other.status, "with another payload" in other.err) == (1, True), other
        assert verb("signal", run, "go", data=place.data, stdin=b"null").status == 0
        host.wait_for('completed: "paid 420"')
        late = verb("signal", run, "paid", data=place.data, stdin=b"1")
        assert (late.status, "nobody would read" in late.err) == (1, True), late
        assert verb("signal", run, "paid", data=place.data, stdin=b"{").status == 65
        assert verb("signal", run, "", data=place.data, stdin=b"1").status == 64
        assert verb("cancel", run, "--reason", "x", data=place.data).status == 1
        assert verb("cancel", run, "--reason", " ", data=place.data).status == 64
        assert verb("cancel", "run_99", "--reason", "x", data=place.data).status == 64
        assert json.loads(verb("runs", "--json", data=place.data).out)["runs"][1]["state"] == "cancelled"
    assert verb("cancel", run, "--reason", "x", data=place.data).status == 69


def following(place: Place) -> Background:
    """Who looks on at the approvals."""
    return Background("approvals", "--follow", "--json", data=place.data)


def told(sink: Background) -> dict[str, Any]:
    """What it is told next."""
    line: dict[str, Any] = json.loads(sink.next())
    return line


@pytest.mark.torture
def test_a_sink_is_told_again_after_every_kill_of_the_host(place: Place) -> None:
    """What is open when it comes, what opens and closes then; and without a host the same list, from the disk."""
    host = place.host().start()
    try:
        run, call = place.begin(host, "approval", "waits for boss@example.com"), ""
        for _ in range(2):
            with following(place) as sink:
                asked = told(sink)["announced"]
                assert (asked["run"], asked["title"], asked["snapshot"]) == (run, "Pay?", {"amount": 420})
                assert (asked["address"], asked["who"]) == ("steered@example.com", ["boss@example.com"])
                assert told(sink) == {"listed": "steered"}
                call = asked["call"]
                host.kill()
                assert sink.wait() == 69
            listed = json.loads(verb("approvals", "--json", data=place.data).out)["approvals"]
            assert listed == [asked]
            host = place.host().start()
        with following(place) as sink:
            assert [*told(sink), *told(sink)] == ["announced", "listed"]
            assert f"waypost approve {run} --call" in verb("approvals", data=place.data).out
            assert verb("reject", run, data=place.data).status == 0
            assert told(sink) == {"withdrawn": {"deployment": "steered", "run": run, "call": call, "why": "answered"}}
            host.stop()
            assert sink.wait() == 69
    finally:
        host.stop()


@pytest.mark.torture
def test_runs_are_cancelled_wherever_they_are(place: Place) -> None:
    """At an approval, in a coroutine of a step, by themselves; and the history is sound."""
    with place.host() as host:
        cancelled(place, host, "approval", "waits for boss@example.com")
        cancelled(place, host, "endless", "step endless begins")
        run = place.begin(host, "itself", "cancel was asked for (self): nothing to do")
        place.ended(host, run)
    assert verb("fsck", data=place.data).status == 0
    assert verb("verify", data=place.data).status == 0


@pytest.mark.torture
def test_what_outlives_its_grace_is_ended_by_the_host(place: Place) -> None:
    """A step in a thread that never looks: the run is over in time, and the timeline says why."""
    with place.host("--limit", "cancel_grace=0.5") as host:
        run = place.begin(host, "deaf", "step deaf begins")
        verb("cancel", run, "--reason", "not needed", data=place.data)
        assert "waits for its code to clean up" in verb("why", run, data=place.data).out
        host.wait_for("cancelled: its code had not ended 0.5 s after it was told")
        assert place.end(run)["code"] == "past-grace"
        host.wait_for("is running (generation 2)")
        run = place.begin(host, "thread", "step thread begins")
        assert json.loads(verb("log", run, data=place.data).out.splitlines()[0])["generation"] == 2


@pytest.mark.torture
def test_a_parked_run_is_woken_to_be_cancelled_by_a_child_that_never_had_it(place: Place) -> None:
    """Parked runs rest in the log alone after a start; this one is replayed up to the cancellation."""
    host = place.host().start()
    run = place.begin(host, "sleep", "a timer is set")
    host.kill()
    with place.host() as again:
        assert verb("cancel", run, "--reason", "not needed", data=place.data).status == 0
        place.ended(again, run)
    kinds = [json.loads(line)["type"] for line in verb("log", run, data=place.data).out.splitlines()]
    assert kinds[2:5] == ["CancelRequested", "RunResumed", "TimerCancelled"]
    assert place.ledger.read_text() == "cleaned up sleep\n"


@pytest.mark.torture
@pytest.mark.parametrize("kill", ["host", "neither"])
def test_a_cancel_and_a_signal_survive_a_kill(place: Place, kill: str) -> None:
    """What was answered with 0 is there for the next host, which goes on from it."""
    host = place.host().start()
    sleeper = place.begin(host, "sleep", "a timer is set")
    waiter = place.begin(host, "signal", "waits for signal go")
    assert verb("signal", waiter, "paid", data=place.data, stdin=b'{"amount":1}').status == 0
    assert verb("signal", waiter, "go", data=place.data, stdin=b"1").status == 0
    assert verb("cancel", sleeper, "--reason", "not needed", data=place.data).status == 0
    if kill == "host":
        host.kill()
        host = place.host().start(ready=None)
    with_end = {sleeper: "RunCancelled", waiter: "RunCompleted"}
    try:
        if kill == "host":
            host.wait_for(" is running")
        while any(place.end(run)["type"] != kind for run, kind in with_end.items()):
            host.wait_for("steered run_")
    finally:
        host.stop()
    assert place.ledger.read_text().splitlines().count("cleaned up sleep") >= 1
