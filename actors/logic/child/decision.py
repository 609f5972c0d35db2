"""The life of one child: launched, greeted, served, asked to leave, killed, gone.

A ``ChildExited`` leaves here exactly once, after the operating system has said that the process ended. Whatever the
child does wrong leads down one road: its supervisor is told, its whole process group is killed. Pure.

What the child says arrives as ``Heard``, already verified and typed (``actors.logic.child.ears``).
"""

import signal
from dataclasses import replace
from typing import assert_never

from actors.describing import ExitReason
from actors.draining import RecycleRequested, Weigh
from actors.effects import Ask, ToSupervisor
from actors.errors import RuleBroken
from actors.logic.child import states as st
from actors.logic.child.frames import MISSES, Unfinished, watched
from actors.logic.child.outbox import Item, Transmit, pump, push, written
from actors.logic.child.pace import Pace, charge, release
from actors.logic.child.requests import Given, answer, commits, fetch, take
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
from ipc.messages import FromChild, Progress, Ready, RecycleRequest, RunLogCredit, Shutdown, ToChild
from substrate.messages import Done, Outcome, Refused, Withheld
from waypost.acting import Halt, Next, WakeAt
from waypost.model.errors import Invalid
from waypost.model.ids import call_id, parse_run_id
from waypost.model.times import Now

_LINES = 20
_LINE = 500
_REASON = 1000


_ALONE = "its way to the host was shut, and it went on without; it was killed"
KILL = st.Signal(signal.SIGKILL)
TERM = st.Signal(signal.SIGTERM)
PATIENCE = Woken(1)
"""A wake-up: it means "still here? then SIGKILL"."""
PACE = Woken(2)
"""A wake-up: answers that were held back may leave."""
LOOK = Woken(3)
"""A wake-up: is what has begun whole by now? Its ears say so (``Unfinished``)."""


# --- the decision --------------------------------------------------------------------------------------------------


def advance(  # noqa: PLR0911 - one return per state
    setup: st.Setup, state: st.State, message: st.Message, now: Now
) -> Next[st.State]:
    """Decide what a message leads to."""
    if isinstance(message, Peers):
        return Next(state, (st.Meet(message),))
    match state:
        case st.New():
            return _new(setup, state, message)
        case st.Launching():
            return _launching(setup, state, message)
        case st.Doomed():
            return _doomed(setup, state, message)
        case st.Greeting():
            return _greeting(setup, state, message, now)
        case st.Talking():
            return _talking(setup, state, message, now)
        case st.Leaving():
            return _leaving(setup, state, message)
        case st.Killed():
            return _killed(setup, state, message)
        case st.Gone():
            return Next(state)  # late news of a finished child is harmless
        case _:
            assert_never(state)


def _new(setup: st.Setup, state: st.New, message: st.Message) -> Next[st.State]:
    match message:
        case Launch():
            return Next(st.Launching(), (st.Spawn(),))
        case Terminate():
            return _never_was(setup, f"not started: {message.reason}")
        case _:
            return Next(state)  # nobody can mean this child yet


def _launching(setup: st.Setup, state: st.Launching, message: st.Message) -> Next[st.State]:
    match message:
        case Spawned():
            return Next(st.Greeting(message.pid))
        case SpawnFailed():
            return _never_was(setup, message.reason)
        case Terminate():
            return Next(st.Doomed())
        case _:
            return Next(state)


def _doomed(setup: st.Setup, state: st.Doomed, message: st.Message) -> Next[st.State]:
    match message:
        case Spawned():
            return Next(st.Killed(message.pid), (KILL,))
        case SpawnFailed():
            return _never_was(setup, message.reason)
        case _:
            return Next(state)


def _greeting(setup: st.Setup, state: st.Greeting, message: st.Message, now: Now) -> Next[st.State]:
    match message:
        case st.Heard(Ready() as ready):
            return _greeted(setup, state, ready)
        case st.Heard():
            return _violated(setup, state, "it spoke before it was ready")
        case _:
            return _alive(setup, state, message, now)


def _greeted(setup: st.Setup, state: st.Greeting, ready: Ready) -> Next[st.State]:
    match ready:
        case Ready(error=str() as error):
            hello = ChildReady(setup.generation, state.pid, "", error)
        case Ready(code=str() as code):
            hello = ChildReady(setup.generation, state.pid, code, "")
        case _:
            return _violated(setup, state, "its `ready` names neither code nor an error")
    return Next(st.Talking(state.pid, state.tail, watch=state.watch), (ToSupervisor(hello),))


def _talking(setup: st.Setup, state: st.Talking, message: st.Message, now: Now) -> Next[st.State]:
    match message:
        case st.Heard():
            return _heard(setup, state, message.message)
        case Outcome():
            return _answered(setup, state, message, now)
        case Woken() if message == PACE:
            return _released(setup, state, now)
        case Send():
            return _pumped(setup, _pushed(setup, state, message.payloads))
        case Written():
            return _pumped(setup, replace(state, outbox=written(state.outbox)))
        case _:
            return _alive(setup, state, message, now)


def _leaving(setup: st.Setup, state: st.Leaving, message: st.Message) -> Next[st.State]:
    match message:
        case Woken() if message == PATIENCE:
            return _kill(state)
        case st.Broke() | Stalled():
            return _kill(state)  # its end has been asked for: nothing new to tell
        case Terminate():
            return Next(state, (TERM,))
        case _:
            return _ending(setup, state, message)


def _killed(setup: st.Setup, state: st.Killed, message: st.Message) -> Next[st.State]:
    return _ending(setup, state, message)


# --- what several states share -------------------------------------------------------------------------------------


def _alive(  # noqa: PLR0911 - one return per message
    setup: st.Setup, state: st.Greeting | st.Talking, message: st.Message, now: Now
) -> Next[st.State]:
    match message:
        case st.Broke():
            return _violated(setup, state, message.reason)
        case Stalled():
            return _violated(setup, state, f"it left {message.unsent} bytes unread")
        case Unfinished():
            return _unfinished(setup, state, message, now)
        case st.HungUp():
            # Mostly the first sign of an exit. A process that lives on without a channel is of no use.
            return Next(st.Leaving(state.pid, state.tail, _ALONE), (_patience(setup, now),))
        case Terminate():
            farewell = Transmit(Shutdown(reason=message.reason[:_REASON]))
            return Next(st.Leaving(state.pid, state.tail), (farewell, TERM, _patience(setup, now)))
        case Weigh():
            return Next(state, (st.Weighing(state.pid, message.memory),))
        case _:
            return _ending(setup, state, message)


def _unfinished(setup: st.Setup, state: st.Greeting | st.Talking, found: Unfinished, now: Now) -> Next[st.State]:
    watch, look = watched(state.watch, found)
    if watch is not None and watch.misses >= MISSES:
        (channel, _, size), *_more = watch.frames
        return _violated(setup, state, f"it began a frame on its {channel} channel, and went no further ({size} bytes)")
    wake = (WakeAt(LOOK, mono=now.mono + setup.limits.frame_look),) if look else ()
    return Next(replace(state, watch=watch), wake)


def _ending(setup: st.Setup, state: st.Alive, message: st.Message) -> Next[st.State]:
    match message:
        case ProcessEnded():
            reason = _reason(state, message)
            noted = st.Log(f"-- generation {setup.generation}: {reason} --\n".encode())
            return Next(st.Gone(), (ToSupervisor(ChildExited(setup.generation, reason)), noted, Halt()))
        case BytesCame("stdout"):
            return Next(state, _logged(message.data))
        case BytesCame("stderr"):
            return Next(replace(state, tail=newest(state.tail + message.data)), _logged(message.data))
        case _:
            return Next(state)  # too late to matter, or not for a child that is about to end


def _logged(data: bytes) -> tuple[st.Log, ...]:
    return (st.Log(data),) if data else ()  # the end of stdout is not the end of a child


def _never_was(setup: st.Setup, why: str) -> Next[st.State]:
    return Next(st.Gone(), (ToSupervisor(ChildExited(setup.generation, ExitReason(blame="host", failure=why))), Halt()))


def _violated(setup: st.Setup, state: st.Greeting | st.Talking, reason: str) -> Next[st.State]:
    told = ToSupervisor(ChannelViolated(setup.generation, reason))
    return Next(st.Killed(state.pid, state.tail), (told, KILL))


def _kill(state: st.Talking | st.Leaving, why: str = "") -> Next[st.State]:
    fault = state.fault if isinstance(state, st.Leaving) else ""
    return Next(st.Killed(state.pid, state.tail, why, fault), (KILL,))


def _patience(setup: st.Setup, now: Now) -> WakeAt:
    return WakeAt(PATIENCE, mono=now.mono + setup.limits.kill_grace)


# --- requests and what is sent -------------------------------------------------------------------------------------


def _heard(setup: st.Setup, state: st.Talking, message: FromChild | Progress) -> Next[st.State]:
    match message:
        case Ready():
            return _violated(setup, state, "it was ready twice")
        case RunLogCredit():
            return Next(state, (st.ToDispatch(message),))
        case Progress():
            return _progress(setup, state, message)
        case RecycleRequest(reason=reason):
            return Next(state, (ToSupervisor(RecycleRequested(setup.generation, reason)),))
        case _:
            try:
                given = take(
                    state.requests,
                    message,
                    generation=setup.generation,
                    limits=setup.limits,
                    late=len(state.pace.late),
                )
            except RuleBroken as broken:
                return _violated(setup, state, broken.reason)
            return _served(setup, state, given)


def _answered(setup: st.Setup, state: st.Talking, outcome: Outcome, now: Now) -> Next[st.State]:
    match outcome.result:
        case Withheld() if outcome.correlation not in state.requests.open:
            return Next(state)
        case Withheld(reason):
            # Its request can't be answered either way; the next generation asks again.
            return _kill(state, f"the repository could not take its writes: {reason}")
        case Done() | Refused() as result:
            given = answer(state.requests, outcome.correlation, result)
            if not commits(state.requests, outcome.correlation, result):
                return _served(setup, state, given)
            pace, say = charge(state.pace, given.say, now.mono, setup.limits)
            first = () if state.pace.late else _wake(pace)
            following = _served(setup, replace(state, pace=pace), replace(given, say=say))
            return Next(following.state, (*following.effects, *first))
        case _:
            assert_never(outcome.result)


def _released(setup: st.Setup, state: st.Talking, now: Now) -> Next[st.State]:
    pace, say = release(state.pace, now.mono)
    following = _pumped(setup, _pushed(setup, replace(state, pace=pace), say))
    return Next(following.state, (*following.effects, *_wake(pace)))


def _wake(pace: Pace) -> tuple[WakeAt, ...]:
    """Come back when the first of the answers that are held back may leave."""
    return (WakeAt(PACE, mono=pace.late[0].due),) if pace.late else ()


def _served(setup: st.Setup, state: st.Talking, given: Given) -> Next[st.State]:
    return _pumped(setup, _pushed(setup, replace(state, requests=given.requests), given.say), given.submit)


def _pushed(setup: st.Setup, state: st.Talking, items: tuple[Item | ToChild, ...]) -> st.Talking:
    return replace(state, outbox=push(state.outbox, items, page=setup.limits.page)) if items else state


def _pumped(setup: st.Setup, state: st.Talking, submit: tuple[Ask, ...] = ()) -> Next[st.State]:
    """Let leave what may leave, and ask for the next blob once there is room for it."""
    outbox, leaving = pump(state.outbox, chunk=setup.limits.chunk, page=setup.limits.page)
    if outbox.light > setup.limits.unsent:
        return _violated(setup, state, f"it left {outbox.light} bytes unread")
    requests = state.requests
    if not outbox.blobs:
        following = fetch(requests, generation=setup.generation)
        requests, submit = following.requests, (*submit, *following.submit)
    return Next(replace(state, requests=requests, outbox=outbox), (*submit, *leaving))


def _progress(setup: st.Setup, state: st.Talking, progress: Progress) -> Next[st.State]:
    try:
        came = ProgressCame(parse_run_id(progress.run), call_id(progress.call), progress.seq, progress.text)
    except Invalid as bad:
        return _violated(setup, state, bad.message)
    return Next(state, (st.ToBroadcaster(came),))


# --- why it ended --------------------------------------------------------------------------------------------------


def _reason(state: st.Alive, ended: ProcessEnded) -> ExitReason:
    why = state.why if isinstance(state, st.Killed) else ""
    fault = state.fault if isinstance(state, st.Killed) else ""
    reason = ExitReason(blame="host" if why else "child", failure=why or fault, stderr=last_lines(state.tail))
    if ended.status is None:
        return replace(reason, failure=why or "ended; its exit status went to somebody else")
    if ended.signalled:
        # SIGKILL is what the kernel's killer sends; where we have sent one, it was ours.
        starved = ended.starved and ended.status == signal.SIGKILL and not isinstance(state, st.Killed)
        return replace(reason, signal=_name(ended.status), starved=starved)
    return replace(reason, status=ended.status)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def newest(written: bytes) -> bytes:
    """What is kept of it for the reason of an exit: the last lines, and of a long one its beginning.

    Else one line without an end would take all others along, and those say more.
    """
    lines = written.splitlines(keepends=True)[-_LINES:]
    return b"".join(map(_beginning, lines))


def _beginning(line: bytes) -> bytes:
    """A line as far as it may be shown, each of its characters having four bytes at most; and its end."""
    if len(line) <= 4 * _LINE:
        return line
    return line[: 4 * _LINE] + (line[-1:] if line.endswith((b"\n", b"\r")) else b"")


def last_lines(tail: bytes) -> tuple[str, ...]:
    """The last lines of what a child wrote, safe to show: no control characters reach a terminal."""
    lines = (line.decode(errors="replace") for line in tail.splitlines()[-_LINES:])
    return tuple("".join(char if char.isprintable() else "?" for char in line[:_LINE]) for line in lines)
