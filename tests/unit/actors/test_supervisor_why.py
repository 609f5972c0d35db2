"""Why a deployment is as it is: each state of its supervisor says so in a sentence, and names what helps."""

from dataclasses import replace
from typing import Any

import pytest

from actors.credentials import Barred
from actors.describing import ExitReason
from actors.draining import Executing, Recycle
from actors.logic.supervisor.down import down
from actors.logic.supervisor.effects import Announce
from actors.logic.supervisor.states import (
    BackingOff,
    CrashLooping,
    Down,
    Held,
    Opening,
    Preparing,
    Retiring,
    Running,
    Stopped,
    Unmanned,
)
from actors.logic.supervisor.why import sentence
from actors.logic.supervisor.words import alike, describe
from actors.messages import ChildExited, ChildReady, Woken
from substrate.effects import SpaceShort
from substrate.messages import Done, Outcome
from waypost.acting import Asked
from waypost.model.ids import Generation, RunId
from waypost.model.times import Now
from waypost.model.why import beside, command, operands
from waypost.testing.sayings import check, parse
from waypost.testing.supervision import (
    BACKING_OFF,
    BOOKS,
    BRINK,
    COUNTED,
    CRASH_LOOPING,
    DOWN,
    DRAINING_TO_REST,
    EARLY,
    FAILED,
    HELD,
    LIMITS,
    MESSAGES,
    NOW,
    OPENING,
    RETIRING,
    RUNNING,
    SETUP,
    SNAPSHOT,
    STARTING,
    STARTING_TO_END,
    STATES,
    TOKEN,
    step,
)

STARTED_BADLY = ExitReason(status=3)
FULL = replace(RUNNING, books=replace(BOOKS, scarce="no space"))
BARRED = replace(RUNNING, books=replace(BOOKS, barred=Barred(BOOKS.generation, "no credential", since=1)))
NEEDY = (CrashLooping, Held, Unmanned, Down)


def named(state: Any) -> str:
    return type(state).__name__


@pytest.mark.parametrize("state", STATES, ids=named)
def test_every_state_has_its_sentence(state: Any) -> None:
    """What it waits for, and what follows; the commands in it are real ones."""
    check(sentence(SETUP, replace(state, books=replace(state.books, entered=NOW.wall))))
    assert describe(SETUP, state).why == sentence(SETUP, state)


@pytest.mark.parametrize(
    ("state", "line"),
    [
        (CRASH_LOOPING, "waypost reset orders"),
        (HELD, "waypost resume orders"),
        (FAILED, "waypost resume orders"),
        (DOWN, "waypost fsck orders"),
        (replace(RUNNING, broken="SyntaxError"), "waypost deploy orders.py"),
    ],
    ids=named,
)
def test_where_somebody_is_needed_the_command_is_named(state: Any, line: str) -> None:
    """Whoever reads it at night runs what it says."""
    found = sentence(SETUP, state)
    assert (found.command, found.needed) == (line, True)


@pytest.mark.parametrize(
    ("executing", "resting", "who"),
    [
        ((), 0, ""),
        ((), 1, " (1 that rests)"),
        ((), 2, " (2 that rest)"),
        ((Executing(RunId("run_1"), "pay", since=""),), 0, " (run_1 (pay))"),
        ((Executing(RunId("run_1"), "pay", since=""),), 2, " (run_1 (pay), and 2 that rest)"),
    ],
)
def test_who_has_not_ended_yet_is_named_or_counted(executing: tuple[Executing, ...], resting: int, who: str) -> None:
    """Often all that are left wait for somebody: then nobody is named."""
    found = sentence(SETUP, Retiring(BOOKS, 77, 0.0, 0, executing=executing, resting=resting))
    assert found.waits_for == f"every run to end{who}"


def test_a_drain_to_the_end_says_that_the_code_does_not_load() -> None:
    """It waited for its runs to end, which none of them could."""
    drained = step(STARTING_TO_END, ChildReady(Generation(3), 77, "", "no module named x"))
    assert isinstance(drained.state, Retiring)
    found = sentence(SETUP, drained.state)
    assert found.waits_for == "code that can be loaded (no module named x), as it waits for every run to end"
    assert (found.command, found.alternative) == ("waypost deploy orders.py", "waypost resume orders")
    shown = describe(SETUP, drained.state)
    assert (shown.state, shown.code) == ("draining", "broken-code")
    assert shown.reason.endswith("its code can't be loaded: no module named x")


def test_a_recycle_that_fails_in_a_drain_names_what_goes_on_with_the_drain() -> None:
    """A resume starts a process, too, but ends the drain: whoever does as told must not find it in service again."""
    stopped = Stopped(RETIRING.books, FAILED.reason)
    found = sentence(SETUP, stopped)
    assert (found.command, found.alternative) == ("waypost run", "waypost resume orders")
    assert "calls the drain off" in found.then
    assert "calls its drain off" in describe(SETUP, stopped).reason
    assert "drain" not in describe(SETUP, FAILED).reason


@pytest.mark.parametrize("state", [s for s in STATES if not isinstance(s, (*NEEDY, Stopped))], ids=named)
def test_nobody_is_called_for_what_goes_on_by_itself(state: Any) -> None:
    """But an end that leads to one of those says already what will be needed."""
    then = getattr(getattr(state, "then", None), "message", "")
    assert sentence(SETUP, state).needed == bool(then or named(state) == "Dismissing")


@pytest.mark.parametrize(
    "code",
    ["damaged", "rolled-back", "storage-failed", "newer-format", "unreadable", "code-changed", "host-fault", "novel"],
)
def test_each_reason_to_be_down_says_what_to_do(code: str) -> None:
    """Also one that this page doesn't know yet."""
    found = down("orders", code, "flush 7 is missing", "", mailed=False)
    check(found)
    assert "flush 7 is missing" in found.waits_for


def test_since_is_when_it_came_into_its_state_and_until_is_counted_from_there() -> None:
    """A process that doesn't get ready says when it will be given up."""
    raised = step(OPENING, Outcome(10, Done(0, SNAPSHOT)), now=Now(5_000, 1.0))
    started = step(raised.state, Outcome(raised.state.raised, Done(1, Generation(4))), now=Now(60_000, 2.0))
    found = sentence(SETUP, started.state)
    assert found.since == "1970-01-01T00:01:00.000Z"
    assert found.until == "1970-01-01T00:01:30.000Z"
    ready = step(started.state, ChildReady(Generation(4), 7, SETUP.spec.code, ""), now=Now(61_000, 3.0)).state
    assert isinstance(ready, Running)
    assert sentence(SETUP, ready).since == "1970-01-01T00:01:01.000Z"
    assert describe(SETUP, ready).since == "1970-01-01T00:01:01.000Z"
    same = step(ready, Asked(4, Recycle("leaks")), now=Now(70_000, 9.0)).state
    assert sentence(SETUP, same).since == "1970-01-01T00:01:10.000Z"


def test_a_pause_says_how_many_more_ends_there_may_be() -> None:
    """The last one latches it: that is said before."""
    assert "after 3 more ends like this" in sentence(SETUP, BACKING_OFF).then
    brink = BackingOff(replace(BOOKS, crashes=replace(BRINK.books.crashes)), 10, 1_001_000, "exit status 1")
    assert "after one more end like this, none is" in sentence(SETUP, brink).then
    assert sentence(SETUP, brink).until == "1970-01-01T00:16:41.000Z"


def test_an_exit_leads_through_sentences_that_say_the_reason() -> None:
    """From the end of the process to the pause."""
    counting = step(RUNNING, ChildExited(Generation(3), STARTED_BADLY)).state
    assert "exit status 3" in sentence(SETUP, counting).waits_for
    pause = step(counting, COUNTED).state
    assert "exit status 3" in sentence(SETUP, pause).waits_for


def test_a_pause_has_one_beginning_also_with_the_next_child_on_the_way() -> None:
    """Since when it waits isn't since when a process was launched for it."""
    pause = replace(EARLY, books=replace(EARLY.books, entered=NOW.wall - 2000))
    prepared = step(pause, Woken(TOKEN)).state
    assert isinstance(prepared, Preparing)
    assert sentence(SETUP, prepared).since == sentence(SETUP, pause).since != ""


def test_a_full_disk_is_said_while_what_runs_goes_on() -> None:
    """Mail is withheld then, and whoever asks why is told; also where it is waited for before it opens."""
    found = sentence(SETUP, replace(RUNNING, books=replace(BOOKS, scarce="8 bytes are left")))
    assert found.waits_for.startswith("space on its disk (8 bytes are left)")
    found = sentence(SETUP, Opening(BOOKS, 10, reason="no space"))
    assert found.waits_for == "space on its disk (no space)"


def test_since_when_it_is_held_is_what_its_repository_says() -> None:
    """A repository that was held before doesn't say since when: better nothing than the start of the host."""
    assert sentence(SETUP, replace(HELD, books=replace(BOOKS, entered=9))).since == ""
    held = replace(SNAPSHOT, held="drain", held_at="2026-11-29T08:00:00.000Z")
    opened = step(OPENING, Outcome(10, Done(0, held)), now=Now(7_000, 1.0)).state
    assert sentence(SETUP, opened).since == held.held_at
    assert describe(SETUP, opened).since == held.held_at
    unknown = step(OPENING, Outcome(10, Done(0, replace(held, held_at="")))).state
    assert sentence(SETUP, unknown).since == ""


def test_a_command_takes_further_options_where_it_reads_a_file() -> None:
    """Who asked with --data is told what works with it."""
    plain = command("approve", "run_1_00", "--call", "r1#3")
    assert plain == "waypost approve run_1_00 --call 'r1#3'"
    assert beside(plain, "--data", "/a b") == "waypost approve run_1_00 --call 'r1#3' --data '/a b'"
    fed = command("signal", "run_1_00", "a < b", stdin="payload.json")
    assert beside(fed, "--data", "d") == "waypost signal run_1_00 'a < b' --data d < payload.json"
    assert beside(command("why", "a < b'"), "--data", "d").endswith("--data d")
    assert beside(command("why", "a -- b"), "--data", "d") == "waypost why 'a -- b' --data d"
    assert beside("", "--data", "d") == ""
    assert beside(plain) == plain
    dashed = command("signal", *operands("run_1_00", "-go"), stdin="payload.json")
    assert beside(dashed, "--data", "d") == "waypost signal --data d -- run_1_00 -go < payload.json"
    assert parse(dashed) == parse(fed) == ("signal",)
    assert parse("waypost queue release orders/3") == ("queue", "release")


@pytest.mark.parametrize("line", ["waypost dance", "waypost approve", "waypost reset orders --now", "rm -rf x"])
def test_the_parser_of_these_tests_refuses_what_the_command_line_would(line: str) -> None:
    """Else they would prove nothing."""
    with pytest.raises(Exception, match=r"\S"):
        parse(line)


def test_drains_say_what_for() -> None:
    """With the command that calls them off, where there is one."""
    assert sentence(SETUP, DRAINING_TO_REST).command == "waypost resume orders"
    assert sentence(SETUP, STARTING).until == ""
    assert LIMITS.drain


def test_the_repositorys_writer_says_when_space_is_short_and_when_that_is_over() -> None:
    """What an earlier writer says late doesn't count; and whoever looks on is told of both."""
    short = step(RUNNING, SpaceShort("the disk is full: 8 bytes are left", 1))
    assert short.effects[-1] == Announce(describe(SETUP, short.state))
    assert "the disk is full" in sentence(SETUP, short.state).waits_for
    assert not step(RUNNING, SpaceShort("the disk is full", 0)).state.books.scarce
    assert sentence(SETUP, step(short.state, SpaceShort("", 1)).state) == sentence(SETUP, RUNNING)


def test_what_bars_the_runs_of_this_child_is_said_until_it_is_over() -> None:
    """What dispatch said of an earlier child doesn't count."""
    generation = RUNNING.books.generation
    barred = step(RUNNING, Barred(generation, "the credential github: its command failed"))
    assert "github" in sentence(SETUP, barred.state).waits_for
    assert step(RUNNING, Barred(Generation(generation - 1), "x")).state == RUNNING
    assert sentence(SETUP, step(barred.state, Barred(generation, "")).state) == sentence(SETUP, RUNNING)


def test_what_only_passes_through_changes_nothing_that_is_said() -> None:
    """Else whoever looks on would miss it; and a mail would cost two descriptions."""
    for before in STATES:
        for after in (*STATES, step(before, MESSAGES["Asked Forward"]).state):
            assert not alike(before, after) or describe(SETUP, before) == describe(SETUP, after)
    assert alike(RUNNING, step(RUNNING, MESSAGES["Asked Forward"]).state)
    assert alike(RUNNING, replace(RUNNING, look=9)), "a look at whether there is anything to do is told to nobody"
    assert not alike(RUNNING, replace(RUNNING, books=replace(BOOKS, scarce="8 bytes")))
    assert not alike(RUNNING, replace(RUNNING, broken="SyntaxError"))


@pytest.mark.parametrize(
    ("state", "code", "reason"),
    [
        (RUNNING, "", ""),
        (FULL, "disk-full", "no space"),
        (BARRED, "barred", "no credential"),
        (replace(FULL, broken="SyntaxError"), "broken-code", "SyntaxError"),
        (replace(BARRED, broken="SyntaxError"), "broken-code", "SyntaxError"),
    ],
    ids=["nothing", "a full disk", "a credential", "code on a full disk", "code beside a credential"],
)
def test_the_code_of_what_hinders_one_that_runs_is_that_of_its_sentence(state: Running, code: str, reason: str) -> None:
    """A list sorts by the one, and a person reads the other."""
    told = describe(SETUP, state)
    assert (told.state, told.code, told.reason) == ("running", code, reason)
    assert reason in told.why.waits_for
