"""Draining and recycling with real processes: what executes comes to rest, and nothing is done twice or lost."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from waypost.host.exits import Exit
from waypost.testing.background import Background
from waypost.testing.host_process import HostProcess

pytestmark = [pytest.mark.e2e, pytest.mark.torture]

ADDRESS = "slow@example.com"
QUICK = ("--limit", "drain_stop=0.3", "--limit", "drain=0.3", "--limit", "kill_grace=0.2")
MakeHost = Callable[..., HostProcess]


@pytest.fixture
def host(hosts: MakeHost, flows: Path, books: Path) -> MakeHost:
    """Makes hosts of a workflow whose bodies wait at their gates."""
    return lambda *options: hosts(flows / "takes_its_time.py", env={"BOOKS": str(books)}, options=options)


def mail(number: int, text: str, *, to: int | None = None) -> bytes:
    thread = "" if to is None else f"In-Reply-To: <m{to}@x>\r\n"
    return f"Message-ID: <m{number}@x>\r\nFrom: ann@example.com\r\n{thread}\r\n{text}\r\n".encode()


def open_gate(books: Path, gate: str) -> None:
    """Let the body that waits there go on; returns when it does."""
    (books / gate).write_bytes(b"")


def bodies(books: Path) -> list[list[str]]:
    return [line.split() for line in (books / "bodies").read_text(encoding="utf-8").splitlines()]


def looking_on(host: HostProcess, *arguments: str) -> Background:
    """A verb that looks on, as at a terminal."""
    return Background(*arguments, data=host.data, together=True)


def test_a_recycle_waits_for_what_executes_and_the_next_process_goes_on(host: MakeHost, books: Path) -> None:
    """Same code, same run, another process; the finished step isn't run again, and mail is accepted throughout."""
    with host() as one:
        run = one.send(ADDRESS, mail(1, "north"))
        one.wait_for("step work begins")
        with looking_on(one, "recycle", "slow", "--reason", "it leaks") as looking:
            looking.wait_for(run)
            second = one.verb("recycle", "slow")
            assert second.returncode == 1
            assert "one thing at a time" in second.stderr
            other = one.send(ADDRESS, mail(2, "south"))
            open_gate(books, "north")
            assert "generation 2 after 1" in looking.wait_for("fresh process: generation")
            assert looking.wait() == 0
        one.wait_for(f"{other[:10]}", "step work begins")  # it was accepted, and begun by the new process only
        open_gate(books, "south")
        (first, again) = bodies(books)
        assert first[1] != again[1]
        one.send(ADDRESS, mail(3, "thanks", to=1))
        one.wait_for(run[:10], "completed", "north, then thanks")
        assert len(bodies(books)) == 2
        assert "counted" not in "".join(one.verb("show", run).stdout)


def test_a_drain_shows_what_it_waits_for_and_ends_held_until_it_is_resumed(host: MakeHost, books: Path) -> None:
    """Parked runs stay live, new mail waits, no process is left; a host that starts again finds it held."""
    with host() as one:
        run = one.send(ADDRESS, mail(1, "north"))
        one.wait_for("step work begins")
        with looking_on(one, "drain", "slow") as looking:
            assert "step work, since " in looking.wait_for(run)
            looking.signal(signal.SIGINT)
            assert looking.wait() == 0
        assert "goes on draining" in looking.said[-1]
        with looking_on(one, "drain", "slow") as again:
            again.wait_for(run)
            open_gate(books, "north")
            assert again.wait() == 0
        assert "drained and held" in "".join(again.said)
        one.send(ADDRESS, mail(2, "thanks", to=1))
        assert "waypost resume slow" in one.verb("why", run).stdout
        assert one.verb("drain", "slow").returncode == 0, "a second one has nothing to do"
    after = host().start(ready="slow is held")
    try:
        refused = after.verb("recycle", "slow")
        assert refused.returncode == 1
        assert after.verb("resume", "slow", "--yes").returncode == 0
        after.wait_for(run[:10], "completed", "north, then thanks")
    finally:
        after.stop()
    assert len(bodies(books)) == 1


def test_who_looks_on_at_a_recycle_is_told_when_the_host_is_killed_meanwhile(host: MakeHost, books: Path) -> None:
    """It isn't recorded before it is done, so it is forgotten then, and an operator has to know, with the command."""
    arguments = ("recycle", "slow", "--reason", "it leaks")
    one = host().start()
    one.send(ADDRESS, mail(1, "north"))
    one.wait_for("step work begins")
    with looking_on(one, *arguments) as looking:
        looking.wait_for("is draining")
        one.kill()
        looking.wait_for("slow: the host has ended, and what was begun is forgotten")
        line = looking.wait_for("once more")
        assert "waypost " + " ".join(arguments[:2]) in line
        assert looking.wait() == Exit.NO_HOST


def test_a_host_that_is_told_to_end_lets_a_step_finish(host: MakeHost, books: Path) -> None:
    """SIGTERM begins nothing new and cancels nothing; the next start has nothing to do over."""
    one = host().start()
    run = one.send(ADDRESS, mail(1, "north"))
    one.wait_for("step work begins")
    os.kill(one.pid, signal.SIGTERM)
    one.wait_for("slow is draining", "step work")
    open_gate(books, "north")
    one.wait_for("step work is done")
    assert one.wait() == 0
    with host() as after:
        after.send(ADDRESS, mail(2, "thanks", to=1))
        after.wait_for(run[:10], "completed")
    assert len(bodies(books)) == 1


def test_at_the_limit_the_child_is_ended_and_no_attempt_is_counted(host: MakeHost, books: Path) -> None:
    """The step in flight is run again by the next start, under the same key."""
    one = host(*QUICK).start()
    run = one.send(ADDRESS, mail(1, "north"))
    one.wait_for("step work begins")
    os.kill(one.pid, signal.SIGTERM)
    assert one.wait() == 0
    with host() as after:
        after.wait_for(run[:10], "resumed in generation 2")
        open_gate(books, "north")
        after.wait_for(run[:10], "waits for the next mail")
        assert "unexpected" not in after.verb("show", run).stdout
    keys = {line[0] for line in bodies(books)}
    assert len(keys) == 1
    assert len(bodies(books)) == 2


def test_a_second_signal_ends_the_host_at_once(host: MakeHost, books: Path) -> None:
    """Whoever asks twice means it: the children die with it, and the next start goes on."""
    one = host().start()
    run = one.send(ADDRESS, mail(1, "north"))
    one.wait_for("step work begins")
    os.kill(one.pid, signal.SIGTERM)
    one.wait_for("slow is draining", "step work")
    os.kill(one.pid, signal.SIGTERM)
    assert one.wait() == 1
    with host() as after:
        after.wait_for(run[:10], "resumed in generation 2")
        assert "unexpected" not in after.verb("show", run).stdout
        open_gate(books, "north")
        after.wait_for(run[:10], "waits for the next mail")


def test_a_child_that_is_killed_while_it_drains_is_counted_once_and_the_recycle_goes_on(
    host: MakeHost, books: Path
) -> None:
    """A crash during a recycle is not lost, and not counted twice."""
    with host("--limit", "backoff_first=0.1") as one:
        run = one.send(ADDRESS, mail(1, "north"))
        one.wait_for("step work begins")
        with looking_on(one, "recycle", "slow", "--reason", "it leaks") as looking:
            looking.wait_for(run)
            ((_, pid),) = bodies(books)
            os.kill(int(pid), signal.SIGKILL)
            assert "generation 2 after 1" in looking.wait_for("fresh process")
            assert looking.wait() == 0
        one.wait_for(run[:10], "resumed in generation 2, after 1 unexpected exit")
        open_gate(books, "north")
        one.wait_for(run[:10], "waits for the next mail")
        assert one.verb("show", run).stdout.count("ended unexpectedly") == 1


def test_a_process_is_replaced_at_its_age_again_and_again(host: MakeHost, books: Path) -> None:
    """A bound that an operator sets; the run is driven by one after the other and done once."""
    with host("--limit", "recycle_age=0.5") as one:
        run = one.send(ADDRESS, mail(1, "north"))
        one.wait_for("step work begins")
        one.wait_for("slow is draining", "max-uptime")
        open_gate(books, "north")
        for _ in range(2):  # whichever they are: some may have gone before the mail came
            one.wait_for("slow is running (generation ")
    with host() as after:  # half a second may be too little to be woken in, on a machine that has much to do
        after.send(ADDRESS, mail(2, "thanks", to=1))
        after.wait_for(run[:10], "completed")
    assert len(bodies(books)) == 1


def test_a_process_that_has_grown_is_replaced(host: MakeHost) -> None:
    """Its whole group is weighed by the kernel's count."""
    with host("--limit", "recycle_memory=1000", "--limit", "recycle_look=0.1") as one:
        one.wait_for("slow is recycling", "max-memory")
        one.wait_for("slow is running (generation 2)")


def test_a_deployment_is_taken_out_of_service_when_its_runs_have_ended(host: MakeHost, books: Path) -> None:
    """Who waits for mail gets it, nothing new begins, what may be cut short is cancelled at the limit."""
    with host("--limit", "drain_end=0.5", "--limit", "drain_look=0.1") as one:
        waits = one.send(ADDRESS, mail(1, "north"))
        one.wait_for("step work begins")
        watches = one.send(ADDRESS, mail(2, "watch"))
        one.wait_for(watches[:10], "step watch begins")
        with looking_on(one, "drain", "slow", "--end") as looking:
            looking.wait_for(waits)
            new = one.send(ADDRESS, mail(3, "south"))
            one.wait_for(watches[:10], "cancel was asked for", "supervisor-drain")
            one.wait_for(watches[:10], "cancelled")
            open_gate(books, "north")
            one.wait_for(waits[:10], "waits for the next mail")
            looking.wait_for("one of its runs rests")
            one.send(ADDRESS, mail(4, "thanks", to=1))
            assert looking.wait() == 0
        assert "drained and held" in "".join(looking.said)
        states = {line.split()[0]: line.split()[2] for line in one.verb("runs").stdout.splitlines() if "run_" in line}
        assert (states[waits], states[watches], states[new]) == ("completed", "cancelled", "queued")
    assert len(bodies(books)) == 1
