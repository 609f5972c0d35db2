"""A deployment's child: a durable generation, a child of it, its end, and what follows: a pause, or the latch.

A child that ends unasked is charged once, when its process is gone, however it was found out. Those that end too often
latch the deployment: it is made durable that no host starts another one, before anybody is told so. Pure.
"""

from dataclasses import replace
from typing import TypeAlias

from actors.describing import Exited, ExitReason
from actors.draining import Renewed
from actors.exits import ExitCounted
from actors.logic.supervisor import states as st
from actors.logic.supervisor.books import Books, Setup
from actors.logic.supervisor.crashes import NONE, charge, excuse, loop, pause
from actors.logic.supervisor.effects import Effect, Hire, Pass, TellChild, TellDispatch, Up
from actors.messages import (
    ChannelViolated,
    ChildExited,
    ChildReady,
    GenerationDown,
    Launch,
    Role,
    Start,
    Terminate,
    Woken,
)
from substrate.messages import BeginGeneration, Done, Latch, LatchDeployment, Outcome, Refused, Withheld
from waypost.acting import Next, WakeAt
from waypost.model.ids import Generation
from waypost.model.times import Now

Internal: TypeAlias = Start | ChildReady | ChildExited | ChannelViolated | ExitCounted | Woken | Outcome


def settled(setup: Setup, state: st.State, now: Now) -> st.State:
    """The state as time alone makes it: after a stable time of running, earlier exits are forgotten.

    Also while it is drained: that may take as long as it likes, and its child may end as any other.
    """
    if not isinstance(state, st.Running | st.Draining | st.Retiring) or state.books.crashes == NONE:
        return state
    stable = now.mono - state.since >= setup.limits.stable_after
    return replace(state, books=replace(state.books, crashes=NONE)) if stable else state


def raise_child(books: Books) -> Next[st.State]:
    """Begin a generation; its child follows once that is durable.

    The first one of a crew finds the claims of one that has ended over them, every other one only those that outlived
    a child: these are no mail's fault.
    """
    books = books.numbered()
    return Next(st.Raising(books, books.last), (_begin(books),))


def raising(setup: Setup, state: st.Raising, message: Internal, now: Now) -> Next[st.State]:
    """The generation is durable, or couldn't be written: then a little later."""
    match message:
        case Outcome(state.raised, Done(value=generation)):
            return Next(*_launch(setup, state.books, generation, now))
        case Outcome(state.raised, Refused(why=why) | Withheld(reason=why)):
            return _not_raised(setup, state.books, why, now)
        case _:
            return Next(state)


def backing_off(setup: Setup, state: st.BackingOff, message: Internal, now: Now) -> Next[st.State]:
    """The generation of the child that is to come has begun meanwhile, or can't yet; or the pause is over."""
    match message:
        case Outcome(state.raised, Done(value=generation)):
            return Next(replace(state, next=generation))
        case Outcome(state.raised, Refused(why=why) | Withheld(reason=why)):
            return _not_raised(setup, state.books, why, now)
        case Woken(state.wake):
            books = _renewed(state, now)
            if state.next is not None:
                return Next(*_launch(setup, books, state.next, now))
            return raise_child(books) if state.raised is None else Next(st.Raising(books, state.raised))
        case Woken(state.launch) if state.next is not None:
            starts, effects = _launch(setup, _renewed(state, now), state.next, now)
            return Next(st.Preparing(starts.books, starts.deadline, state.wake, state.until, state.reason), effects)
        case _:
            return Next(state)


def preparing(setup: Setup, state: st.Preparing, message: Internal, now: Now) -> Next[st.State]:
    """The child is ready before the pause is over, and waits; or the pause is over. What else it does it may always."""
    plain = st.Starting(state.books, state.deadline)
    match message:
        case ChildReady(of) if of == state.books.generation:
            return Next(replace(state, books=_readied(state.books, now), hello=message))
        case Woken(state.wake):
            return Next(plain) if state.hello is None else _greeted(setup, state.books, state.hello, now)
        case _:
            following = starting(setup, plain, message, now)
            return Next(state) if following.state == plain else following


def starting(setup: Setup, state: st.Starting, message: Internal, now: Now) -> Next[st.State]:
    """The child says hello, or ends, or is too late. It was given no run, so none is charged."""
    generation = state.books.generation
    nobody = ExitCounted(generation=generation, runs=())
    match message:
        case ChildReady(of) if of == generation:
            return _greeted(setup, _readied(state.books, now), message, now)
        case ChildExited(of, reason) if of == generation:
            return _exited(setup, state.books, str(reason), reason, nobody, now)
        case ChannelViolated(of, why) if of == generation:
            return Next(st.Evicting(state.books, why, nobody))
        case Woken(state.deadline):
            why = f"not ready within {setup.limits.ready_deadline:g} s"
            return Next(st.Evicting(state.books, why, nobody), (TellChild(Terminate(why)),))
        case _:
            return Next(state)


def running(setup: Setup, state: st.Running, message: Internal, now: Now) -> Next[st.State]:
    """The child ends, or breaks the protocol: dispatch is told, and then says against whom that counts."""
    generation = state.books.generation
    match message:
        case ChildExited(of, reason) if of == generation:
            following = _exited(setup, state.books, str(reason), reason, None, now)
            gone = TellDispatch(GenerationDown(generation, unexpected=reason.blame == "child", reason=str(reason)))
            return Next(following.state, (gone, *following.effects))
        case ChannelViolated(of, why) if of == generation:
            return Next(
                st.Evicting(state.books, why), (TellDispatch(GenerationDown(generation, unexpected=True, reason=why)),)
            )
        case _:
            return Next(state)


def leaving(setup: Setup, state: st.Evicting | st.Dismissing, message: Internal, now: Now) -> Next[st.State]:
    """The child that had to go is gone."""
    match message:
        case ChildExited(of, reason) if of == state.books.generation:
            if isinstance(state, st.Evicting):
                return _exited(setup, state.books, state.reason, replace(reason, blame="child"), state.counted, now)
            return Next(st.Unmanned(state.books, state.reason, state.message))
        case ExitCounted() if isinstance(state, st.Evicting) and message.generation == state.books.generation:
            return Next(replace(state, counted=message))
        case _:
            return Next(state)


def counting(setup: Setup, state: st.Counting, message: Internal, now: Now) -> Next[st.State]:
    """It is durable against whom the exit counts."""
    match message:
        case ExitCounted() if message.generation == state.books.generation:
            return _charged(setup, state, message, now)
        case _:
            return Next(state)


def latching(setup: Setup, state: st.Latching, message: Internal, now: Now) -> Next[st.State]:
    """The latch is durable; or some runs have failed, and others are left; or it couldn't be written yet."""
    match message:
        case Outcome(state.latched, Done(value=Latch() as latch)):
            return Next(st.CrashLooping(state.books, latch))
        case Outcome(state.latched, Done()):
            return _latch(setup, state.books, state.detail)
        case Outcome(state.latched, Refused() | Withheld()):
            books = state.books.numbered()
            wake = WakeAt(Woken(books.last), mono=now.mono + setup.limits.backoff_first)
            return Next(st.Latching(books, books.last, state.detail), (wake,))
        case Woken(state.latched):
            return _latch(setup, state.books, state.detail)
        case _:
            return Next(state)


def _exited(
    setup: Setup, books: Books, why: str, reason: ExitReason, counted: ExitCounted | None, now: Now
) -> Next[st.State]:
    """The child is gone, unasked; where it was the host's doing, nobody is charged."""
    life = now.mono - books.launched
    books = replace(books, exited=Exited(books.generation, now.wall, why, reason))
    if reason.blame == "host":
        state, wake = _back_off(setup, replace(books, crashes=excuse(books.crashes, life)), why, now, since=now.mono)
        return Next(state, (wake,))
    left = st.Counting(books, why, life)
    return Next(left) if counted is None else _charged(setup, left, counted, now)


def _charged(setup: Setup, state: st.Counting, counted: ExitCounted, now: Now) -> Next[st.State]:
    """Wait for the next child; or it was one too many."""
    before, after = state.books.crashes, charge(state.books.crashes, state.life, counted)
    books = replace(state.books, crashes=after)
    often = loop(after, setup.limits) if len(after.ages) > len(before.ages) else ""
    if often:
        return _latch(setup, books, f"{often}, the last one: {state.reason}")
    exited = books.launched + state.life
    following, wake = _back_off(setup, books, state.reason, now, since=exited)
    books = following.books.numbered()
    begun = replace(following, books=books, raised=books.last)
    early, launch = _early(begun, pause(books.crashes, setup.limits), exited)
    return Next(early, (wake, _begin(books), *launch))


def _latch(setup: Setup, books: Books, detail: str) -> Next[st.State]:
    books = books.numbered()
    latch = LatchDeployment(detail=detail, fail=setup.spec.on_crash_loop == "fail")
    return Next(st.Latching(books, books.last, detail), (Pass(books.last, latch),))


def _early(state: st.BackingOff, pause_: float, exited: float) -> tuple[st.BackingOff, tuple[Effect, ...]]:
    """Have the child launched before the end of the pause, by what the last one took to start; never in its first half.

    What the pause is for is as it was: that a run isn't given to one process after the other.
    """
    head = min(state.books.readied, pause_ / 2)
    if not head:
        return state, ()
    books = state.books.numbered()
    wake = WakeAt(Woken(books.last), mono=exited + pause_ - head)
    return replace(state, books=books, launch=books.last), (wake,)


def _renewed(state: st.BackingOff, now: Now) -> Books:
    return replace(state.books, renewed=Renewed("crash", state.reason, now.wall, state.books.generation))


def _begin(books: Books) -> Pass:
    return Pass(books.last, BeginGeneration(blame=books.raised != books.incarnation))


def _launch(setup: Setup, books: Books, generation: Generation, now: Now) -> tuple[st.Starting, tuple[Effect, ...]]:
    books = replace(books.numbered(), raised=books.incarnation, generation=generation, launched=now.mono)
    wake = WakeAt(Woken(books.last), mono=now.mono + setup.limits.ready_deadline)
    return st.Starting(books, books.last), (Hire(Role.CHILD, generation), TellChild(Launch()), wake)


def _readied(books: Books, now: Now) -> Books:
    return replace(books, readied=now.mono - books.launched)


def _greeted(setup: Setup, books: Books, hello: ChildReady, now: Now) -> Next[st.State]:
    """It is ready, and nothing else is waited for: dispatch may have it, if it runs what was deployed."""
    if hello.error or hello.code == setup.spec.code:
        return Next(st.Running(books, hello.pid, now.mono, hello.error), (Up(books.generation, hello.error),))
    why = "its folder of code isn't what was deployed, and couldn't be made anew; start the host again"
    return Next(st.Dismissing(books, "code-changed", why), (TellChild(Terminate("its code was changed")),))


def _not_raised(setup: Setup, books: Books, why: str, now: Now) -> Next[st.State]:
    books = replace(books, crashes=excuse(books.crashes))
    state, wake = _back_off(setup, books, f"no new generation could be begun: {why}", now, since=now.mono)
    return Next(state, (wake,))


def _back_off(setup: Setup, books: Books, reason: str, now: Now, *, since: float) -> tuple[st.BackingOff, WakeAt]:
    """Pause, from ``since`` on (monotonic seconds): what is written meanwhile makes it no longer."""
    over = max(now.mono, since + pause(books.crashes, setup.limits))
    books = books.numbered()
    state = st.BackingOff(books, books.last, now.wall + round((over - now.mono) * 1000), reason)
    return state, WakeAt(Woken(books.last), mono=over)
