"""The decision of a child's life, arrow by arrow: no process, no key, no descriptor."""

import signal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.describing import ExitReason
from actors.effects import Ask, ToSupervisor
from actors.logic.child.decision import PATIENCE, last_lines, newest
from actors.logic.child.outbox import Transmit
from actors.logic.child.states import (
    Broke,
    Doomed,
    Gone,
    Greeting,
    Heard,
    HungUp,
    Killed,
    Launching,
    Leaving,
    Log,
    Meet,
    Setup,
    Signal,
    Spawn,
    Talking,
    ToBroadcaster,
    ToDispatch,
)
from actors.messages import (
    BytesCame,
    ChannelViolated,
    ChildExited,
    ChildReady,
    Launch,
    Peers,
    ProcessEnded,
    ProgressCame,
    Send,
    Spawned,
    SpawnFailed,
    Stalled,
    Terminate,
    Woken,
    Written,
)
from ipc.messages import (
    BlobGet,
    Bundle,
    EventsCommitted,
    Progress,
    Ready,
    RunLive,
    RunLog,
    RunLogCredit,
    Shutdown,
    ToChild,
)
from substrate.messages import Done, Outcome, Withheld
from waypost.acting import Halt, Next, WakeAt
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.limits import Limits
from waypost.testing.childhood import (
    BUSY,
    CALL,
    CODE,
    DOOMED,
    GONE,
    GREETING,
    KILLED,
    LAUNCHING,
    LEAVING,
    MESSAGES,
    NEW,
    PID,
    RUN,
    STATES,
    TALKING,
    step,
)
from waypost.testing.listener import Listener

GENERATION = Generation(3)
KILL = Signal(signal.SIGKILL)
TERM = Signal(signal.SIGTERM)
PATIENT = WakeAt(PATIENCE, mono=105.0)
ENDED = ProcessEnded(9, signalled=True)
ALIVE = (GREETING, TALKING, BUSY, LEAVING, KILLED)


def exited(following: Next[Any]) -> ExitReason:
    """The reason in the one ChildExited of these effects, which are its last words."""
    told, *_, halt = following.effects
    assert halt == Halt()
    assert isinstance(told, ToSupervisor)
    assert isinstance(told.message, ChildExited)
    assert told.message.generation == GENERATION
    return told.message.reason


def name(value: object) -> str:
    return type(value).__name__


# --- birth ---------------------------------------------------------------------------------------------------------


def test_a_launch_spawns_and_the_outcome_is_a_message() -> None:
    """The decision never sees an exception of the world."""
    assert step(NEW, Launch()) == Next(Launching(), (Spawn(),))
    assert step(LAUNCHING, Spawned(PID)) == Next(Greeting(PID))


@pytest.mark.parametrize("state", [LAUNCHING, DOOMED], ids=name)
def test_a_spawn_that_fails_is_an_exit(state: Any) -> None:
    """The supervisor backs off and tries again, as after any exit."""
    following = step(state, SpawnFailed("can't start python: Permission denied"))
    assert following.state == Gone()
    assert exited(following).failure == "can't start python: Permission denied"


def test_a_child_that_is_not_wanted_any_more_is_killed_when_it_appears() -> None:
    """Terminate may overtake the news of the spawn; the process must not be left behind."""
    assert step(LAUNCHING, Terminate("stop")) == Next(Doomed())
    assert step(DOOMED, Spawned(PID)) == Next(Killed(PID), (KILL,))


def test_a_child_that_was_never_launched_ends_at_once() -> None:
    """There is nothing to wait for."""
    assert exited(step(NEW, Terminate("stop"))).failure == "not started: stop"


# --- hello ---------------------------------------------------------------------------------------------------------


def test_ready_is_told_with_the_pid_that_the_kernel_gave() -> None:
    """What the child believes its pid to be is another matter: it may live in a namespace."""
    following = step(GREETING, Heard(Ready(key=bytes(32), pid=1, code=CODE)))
    assert following.effects == (ToSupervisor(ChildReady(GENERATION, PID, CODE, "")),)
    assert isinstance(following.state, Talking)


def test_a_file_that_does_not_load_is_told_as_such() -> None:
    """The channel stands; only the code is missing."""
    following = step(GREETING, Heard(Ready(key=bytes(32), pid=PID, error="SyntaxError")))
    assert following.effects == (ToSupervisor(ChildReady(GENERATION, PID, "", "SyntaxError")),)


@pytest.mark.parametrize(
    ("state", "label"),
    [
        (GREETING, "heard request"),
        (GREETING, "heard credit"),
        (GREETING, "heard progress"),
        (GREETING, "heard ready, empty"),
        (GREETING, "bad frame"),
        (GREETING, "stalled"),
        (TALKING, "heard ready"),
        (TALKING, "heard nonsense"),
        (TALKING, "bad frame"),
        (TALKING, "stalled"),
        (BUSY, "heard ready"),
    ],
)
def test_any_violation_is_told_and_kills_the_whole_group(state: Any, label: str) -> None:
    """There is no second chance: what speaks like this isn't our runtime any more (design §8)."""
    following = step(state, MESSAGES[label])
    assert isinstance(following.state, Killed)
    told, kill = following.effects
    assert isinstance(told.message, ChannelViolated)
    assert told.message.generation == GENERATION
    assert told.message.reason
    assert kill == KILL


@pytest.mark.parametrize("run", ["", "../..", "run_1_zz"])
def test_progress_of_a_run_that_can_not_be_is_a_violation(run: str) -> None:
    """Names that a child makes up go nowhere."""
    assert isinstance(step(TALKING, Heard(Progress(run=run, call=CALL, seq=1, text=""))).state, Killed)


# --- talk ----------------------------------------------------------------------------------------------------------


def test_credit_goes_to_dispatch_and_progress_to_the_broadcaster() -> None:
    """Each where it belongs, and nowhere else."""
    credit = RunLogCredit(run=RUN)
    assert step(TALKING, Heard(credit)) == Next(TALKING, (ToDispatch(credit),))
    came = ProgressCame(RunId(RUN), CallId(CALL), 1, "half")
    assert step(TALKING, MESSAGES["heard progress"]) == Next(TALKING, (ToBroadcaster(came),))


def test_what_is_sent_leaves_in_order() -> None:
    """The order on the one channel is the delivery: pages, live, what is committed after."""
    payloads: tuple[ToChild, ...] = (
        RunLog(run=RUN, events=(b"1",)),
        RunLive(run=RUN),
        EventsCommitted(run=RUN, events=(b"2",)),
    )
    state: Any = TALKING
    left: list[Any] = []
    for payload in payloads:
        following = step(state, Send(payload))
        state, left = following.state, [*left, *following.effects]
    assert left == [Transmit(payloads[0], report=True), Transmit(payloads[1]), Transmit(payloads[2])]


def test_what_is_sent_at_once_travels_in_one_frame() -> None:
    """A run's start is four messages, and a signature, its check and a write cost more than any of them."""
    payloads: tuple[ToChild, ...] = (RunLog(run=RUN, events=(b"1",)), RunLive(run=RUN))
    assert step(TALKING, Send(payloads[0], payloads[1:])).effects == (Transmit(Bundle(messages=payloads), report=True),)


def test_a_third_page_waits_until_one_has_left() -> None:
    """And everything behind it waits, too: nothing overtakes a page of its run's log."""
    pages = [RunLog(run=RUN, events=(b"%d" % number,)) for number in range(3)]
    state: Any = TALKING
    left: list[Any] = []
    payloads: tuple[ToChild, ...] = (*pages, RunLive(run=RUN))
    for payload in payloads:
        following = step(state, Send(payload))
        state, left = following.state, [*left, *following.effects]
    assert [effect.payload for effect in left] == pages[:2]
    together = Bundle(messages=(pages[2], RunLive(run=RUN)))
    assert step(state, Written()).effects == (Transmit(together, report=True),)


def test_the_next_value_is_fetched_when_the_one_before_has_left() -> None:
    """Each may weigh 64 MiB, and one is enough in memory; whoever asked for it waits, and for nothing else."""
    setup = Setup(generation=GENERATION, limits=Limits(chunk=300, page=400))
    value = b"v" * 900
    asked: Any = TALKING
    for number in (1, 2):
        following = step(asked, Heard(BlobGet(id=number, run=RUN, sha256="a" * 64)), setup=setup)
        asked = following.state
        assert [type(effect) for effect in following.effects] == ([Ask] if number == 1 else [])
    given = step(asked, Outcome(1, Done(0, value)), setup=setup)
    assert [len(effect.payload.data) for effect in given.effects] == [300, 300]  # the third part waits for one to leave
    last = step(given.state, Written(), setup=setup)
    assert [type(effect) for effect in last.effects] == [Ask, Transmit]
    assert last.effects[1].payload.data == value[600:]


def test_a_child_that_leaves_its_own_events_unread_is_ended() -> None:
    """Pages wait at the host's own pace, what is committed doesn't: 4 MiB of it is a child that doesn't read."""
    setup = Setup(generation=GENERATION, limits=Limits(unsent=4096))
    state: Any = TALKING
    for _ in range(3):
        state = step(state, Send(RunLog(run=RUN, events=(b"x" * 9000,))), setup=setup).state
    state = step(state, Send(EventsCommitted(run=RUN, events=(b"x" * 3000,))), setup=setup).state
    assert isinstance(state, Talking)
    state = step(state, Send(EventsCommitted(run=RUN, events=(b"x" * 3000,))), setup=setup).state
    assert isinstance(state, Killed)


def test_a_write_that_is_withheld_ends_the_generation() -> None:
    """The child waits for an answer that can't be given; its next generation asks again from the log."""
    following = step(BUSY, Outcome(1, Withheld("no space")))
    assert following.effects == (KILL,)
    reason = exited(step(following.state, ENDED))
    assert "no space" in str(reason)
    assert step(TALKING, Outcome(1, Withheld("no space"))) == Next(TALKING)


@pytest.mark.parametrize("state", STATES, ids=name)
def test_new_peers_are_met_in_every_state(state: Any) -> None:
    """A broadcaster may be replaced at any time."""
    listener = Listener()
    listener.stop()
    peers = Peers(listener.ref, listener.ref, listener.ref)
    assert step(state, peers) == Next(state, (Meet(peers),))


# --- output --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ALIVE, ids=name)
def test_output_is_logged_in_every_living_state_and_stderr_is_kept_for_the_reason(state: Any) -> None:
    """The last words matter most when the child is on its way out."""
    after = step(state, BytesCame("stderr", b"first\nlast\n"))
    assert after.effects == (Log(b"first\nlast\n"),)
    assert exited(step(after.state, ENDED)).stderr == ("first", "last")
    assert step(state, BytesCame("stdout", b"x")) == Next(state, (Log(b"x"),))
    assert step(state, BytesCame("stdout", b"")) == Next(state)


def test_the_last_lines_are_few_short_and_harmless() -> None:
    """They are shown on terminals, and a child chooses what is in them."""
    lines = last_lines(b"\n".join(b"line %d" % number for number in range(50)))
    assert lines[0] == "line 30"
    assert lines[-1] == "line 49"
    assert last_lines(b"\x1b[31mred\x07\xff") == ("?[31mred?\ufffd",)
    assert len(last_lines(b"x" * 10_000)[0]) == 500


@given(st.lists(st.binary(min_size=1, max_size=9).map(lambda piece: piece * 400), max_size=30), st.integers(1, 5000))
def test_what_is_kept_of_what_a_child_writes_is_what_is_shown_of_all_of_it(pieces: list[bytes], size: int) -> None:
    """In whatever pieces it comes; and one line that never ends takes no other along, nor all of the memory."""
    written, tail = b"\n".join(pieces), b""
    for at in range(0, len(written), size):
        tail = newest(tail + written[at : at + size])
        assert len(tail) <= 20 * 2001
    assert last_lines(tail) == last_lines(written)


def test_a_line_without_an_end_hides_no_reason() -> None:
    """What goes wrong is said in the lines before it, as a rule."""
    tail = b""
    for piece in (b"Traceback\nOSError: the ledger is locked\nrow ", *[b"0" * 60_000] * 5):
        tail = newest(tail + piece)
    assert last_lines(tail)[:2] == ("Traceback", "OSError: the ledger is locked")


# --- the end -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [GREETING, TALKING, BUSY], ids=name)
def test_terminate_goes_down_the_ladder(state: Any) -> None:
    """A frame, SIGTERM, patience, SIGKILL to the group."""
    following = step(state, Terminate("stop"))
    assert following == Next(Leaving(PID), (Transmit(Shutdown(reason="stop")), TERM, PATIENT))
    assert step(following.state, Woken(1)) == Next(Killed(PID), (KILL,))


@pytest.mark.parametrize("state", [GREETING, TALKING], ids=name)
def test_a_closed_channel_is_no_violation_but_no_life_either(state: Any) -> None:
    """Mostly it is the first sign of an exit, which then says why; a process that lives on is killed."""
    following = step(state, HungUp())
    assert following.effects == (PATIENT,)
    assert exited(step(following.state, ProcessEnded(1, signalled=False))).status == 1
    killed = step(following.state, PATIENCE)
    assert killed.effects == (KILL,)
    reason = exited(step(killed.state, ENDED))
    assert (reason.blame, str(reason)) == (
        "child",
        "its way to the host was shut, and it went on without; it was killed",
    )


def test_what_a_leaving_child_says_does_not_count() -> None:
    """It was told that nothing more will be accepted."""
    for label in ("heard request", "heard credit", "heard progress", "done"):
        assert step(LEAVING, MESSAGES[label]) == Next(LEAVING)
    assert step(LEAVING, Broke("bad")) == Next(Killed(PID), (KILL,))
    assert step(LEAVING, Stalled(9)) == Next(Killed(PID), (KILL,))
    assert step(LEAVING, Terminate("again")) == Next(LEAVING, (TERM,))


@pytest.mark.parametrize("state", ALIVE, ids=name)
@pytest.mark.parametrize(
    ("ended", "words"),
    [
        (ProcessEnded(0, signalled=False), "exit status 0"),
        (ProcessEnded(3, signalled=False, starved=True), "exit status 3"),
        (ProcessEnded(70, signalled=False), "exit status 70 (EX_SOFTWARE)"),
        (ProcessEnded(15, signalled=True, starved=True), "ended by SIGTERM"),
        (ProcessEnded(9, signalled=True), "ended by SIGKILL"),
        (ProcessEnded(63, signalled=True), "ended by signal 63"),
        (ProcessEnded(None, signalled=False), "ended; its exit status went to somebody else"),
    ],
)
def test_an_exit_is_reported_once_with_its_reason(state: Any, ended: ProcessEnded, words: str) -> None:
    """In whatever state it comes, and then the actor is done."""
    following = step(state, ended)
    assert following.state == Gone()
    assert str(exited(following)) == words


@pytest.mark.parametrize("state", ALIVE, ids=name)
def test_out_of_memory_is_said_where_the_kernel_counts_it_and_we_have_not_killed(state: Any) -> None:
    """Its killer sends SIGKILL; and one of ours would be taken for that, had somebody else run out at that moment."""
    starved = exited(step(state, ProcessEnded(9, signalled=True, starved=True)))
    assert starved.starved != isinstance(state, Killed)
    assert ("out of memory" in str(starved)) == starved.starved


@pytest.mark.parametrize("state", ALIVE, ids=name)
def test_the_end_is_noted_among_the_childs_own_words(state: Any) -> None:
    """Whoever reads its log sees where one child ended and the next began."""
    effects = step(state, ProcessEnded(3, signalled=False)).effects
    assert Log(b"-- generation 3: exit status 3 --\n") in effects


@pytest.mark.parametrize("label", MESSAGES)
def test_a_finished_child_stays_finished(label: str) -> None:
    """Late news is harmless."""
    assert step(GONE, MESSAGES[label]) == Next(GONE)
