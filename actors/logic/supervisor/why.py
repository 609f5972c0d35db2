"""Why a deployment is as it is: one sentence for each state of its supervisor (``waypost.model.why``). Pure.

What needs somebody names the command that lets it go on; what goes on by itself says until when that takes at most,
where there is a bound.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import assert_never

from actors.credentials import Barred
from actors.draining import Executing
from actors.logic.supervisor import states as st
from actors.logic.supervisor.books import Leaving, Renewing, Resting, Setup
from actors.logic.supervisor.crashes import left
from actors.logic.supervisor.down import down, recycle_failed
from actors.logic.supervisor.sleep import Asleep, Audit, Auditing, Dormant, Dozing, LettingGo
from waypost.model.grants import RUN
from waypost.model.times import plainly, stamp
from waypost.model.why import Sentence, command

_LACKS: Mapping[st.Lack, tuple[str, str]] = {
    "full": ("space on its disk", "free some"),
    "too-many-files": (
        "files that its host may open",
        "allow it more, by `ulimit -n` of the shell or LimitNOFILE= of systemd, or have it host fewer deployments",
    ),
}


def sentence(setup: Setup, state: st.State) -> Sentence:
    """The sentence for this state; with it, whatever the state is, that a drain goes on, where one isn't over."""
    said, also = _sentence(setup, state), drained(state)
    return replace(said, then=f"{said.then}; {also}") if also else said


def drained(state: st.State) -> str:
    """That a drain goes on, in words, where the state doesn't say it by itself; empty where there is none."""
    drain = state.books.drain
    if drain is None or isinstance(state, st.Draining | st.Retiring | st.Shelving | st.Held | st.Lifting):
        return ""
    begins = "no run begins" if drain.to == "end" else "nothing begins"
    return f"it is being drained, by {drain.by} since {plainly(drain.at)}: {begins}"


def _sentence(setup: Setup, state: st.State) -> Sentence:  # noqa: C901, PLR0911, PLR0912 - one return per group of states
    """The sentence for this state."""
    match state:
        case st.Idle() | st.Opening() | st.Raising() | st.Starting():
            return _starting(setup, state)
        case st.Running():
            return _running(setup, state)
        case st.Draining() | st.Retiring() | st.Shelving():
            return _draining(setup, state)
        case st.Superseding() | st.Bereft() | st.Replacing() | st.Succeeding():
            return _recycling(setup, state)
        case st.Evicting() | st.Counting() | st.BackingOff() | st.Preparing():
            return _backing_off(setup, state)
        case st.Latching() | st.CrashLooping() | st.Resetting():
            return _latched(setup, state)
        case st.Held() | st.Lifting():
            return _held(setup, state)
        case Dozing() | LettingGo() | Auditing():
            return _falling_asleep(setup, state)
        case Dormant(deadline=deadline):
            return asleep(deadline, _since(state))
        case st.Ending():
            return _ending(setup, state)
        case st.Stopped():
            return _stopped(setup, state)
        case st.Dismissing() | st.Unmanned() | st.Down():
            manned = not isinstance(state, st.Down)
            return down(setup.spec.name, state.reason, state.message, _since(state), mailed=manned)
        case _:
            assert_never(state)


# --- up ------------------------------------------------------------------------------------------------------------


def _starting(setup: Setup, state: st.Idle | st.Opening | st.Raising | st.Starting) -> Sentence:
    since, next_ = _since(state), "a process is started"
    match state:
        case st.Idle():
            return Sentence(waits_for="its turn, as the host is starting", since=since, then="its repository is opened")
        case st.Opening(reason=reason) if reason:
            what, mend = _LACKS[state.lacks]
            again = f"it goes on by itself, as it is tried every moment: {mend}"
            return Sentence(waits_for=f"{what} ({reason})", since=since, then=again)
        case st.Opening():
            what = "its repository to be opened and what a crash left to be put in order"
            return Sentence(waits_for=what, since=since, then=f"mail is taken in, and {next_}")
        case st.Raising():
            what = "its disk to record that another process begins"
            return Sentence(waits_for=what, since=since, then=next_)
        case st.Starting():
            what = f"its process, of generation {state.books.generation}, to load its code and say that it is ready"
            late = "its runs go on; a process that isn't ready by then is ended, and another one follows"
            return Sentence(waits_for=what, since=since, until=_later(state, setup.limits.ready_deadline), then=late)
        case _:
            assert_never(state)


def _running(setup: Setup, state: st.Running) -> Sentence:
    since = _since(state)
    if state.broken:
        return Sentence(
            waits_for=f"code that can be loaded ({state.broken})",
            since=since,
            then="its runs go on; one that should go on meanwhile is paused, until `waypost resume RUN`",
            command=command("deploy", _file(setup)),
            needed=True,
        )
    if state.books.scarce:
        then = "it takes in mail and begins runs again, by itself: free some; what has begun goes on meanwhile"
        return Sentence(waits_for=f"space on its disk ({state.books.scarce})", since=since, then=then)
    barred = state.books.barred
    if barred is not None and barred.generation == state.books.generation:
        return _barred(setup.spec.name, barred)
    if state.books.line == "waits":
        what = "its turn, as mail has woken others before it, whose runs begin before its own"
        return Sentence(waits_for=what, since=since, then="its mail is taken up; who is slow isn't waited for long")
    return Sentence(waits_for="mail, timers and answers", since=since, then="each starts a run, or lets its run go on")


def _barred(name: str, barred: Barred) -> Sentence:
    """Its process is there and runs nothing new: what its steps may do, or read, isn't settled."""
    since, fails = stamp(barred.since), "a run that a mail begins meanwhile fails, and says so"
    if barred.lacks:
        step, handle = barred.lacks[0]
        where = () if step == RUN else (step,)
        return Sentence(
            waits_for=f"an operator: {barred.why}",
            since=since,
            then=f"{fails}; what has begun goes on",
            command=command("grants", "set", name, *where, "--secret", handle),
            needed=True,
        )
    if barred.file:
        return Sentence(
            waits_for=f"an operator: {barred.why}",
            since=since,
            then=f"{fails}, until something is granted to that step, which writes {barred.file} anew",
            command=command("grants", "show", name),
            needed=True,
        )
    if barred.unlisted:
        return Sentence(
            waits_for=f"an operator: {barred.why}",
            since=since,
            then=f"{fails}; what has begun waits for it",
            command=command("credentials", "reload"),
            needed=True,
        )
    again = "it is tried again, later and later, and by itself; what has begun loses nothing"
    return Sentence(
        waits_for=f"what its steps may do and read: {barred.why}",
        since=since,
        then="its mail is taken up and what has begun goes on; what can't be read is tried again"
        if barred.reading
        else again,
        command=command("credentials", "check"),
    )


# --- planned -------------------------------------------------------------------------------------------------------


def _draining(setup: Setup, state: st.Draining | st.Retiring | st.Shelving) -> Sentence:
    name, drain = setup.spec.name, state.books.drain
    wanted = drain is not None and not (isinstance(state, st.Draining) and not isinstance(state.goal, Resting))
    since = drain.at if wanted and drain is not None else _since(state)
    held = f"it is held: mail is accepted, and nothing runs until `waypost resume {name}`"
    off = command("resume", name)
    match state:
        case st.Shelving():
            return Sentence(waits_for="its disk to record that it is held", since=since, then=held)
        case st.Retiring(resting=resting):
            parked = f"{resting} that rest{'s' if resting == 1 else ''}" if resting else ""
            rest = ", and ".join(filter(None, (_named(state.executing, state.more), parked)))
            what = f"every run to end ({rest})" if rest else "every run to end"
            if state.broken:
                what = f"code that can be loaded ({state.broken}), as it waits for {what}"
                deploy = command("deploy", _file(setup))
                return Sentence(waits_for=what, since=since, then=held, command=deploy, alternative=off, needed=True)
            return Sentence(waits_for=what, since=since, then=f"{held}; that command also calls it off", command=off)
        case st.Draining():
            what = f"what executes to come to rest ({_named(state.executing or (), state.more)})".removesuffix(" ()")
            until = "" if state.over is None else stamp(state.over)
        case _:
            assert_never(state)
    match state.goal:
        case Renewing():
            then = f"a fresh process follows ({state.goal.origin}: {state.goal.reason})"
            return Sentence(waits_for=what, since=since, until=until, then=then)
        case Resting():
            return Sentence(waits_for=what, since=since, then=f"{held}; that command also calls it off", command=off)
        case Leaving():
            then = "it is stopped, and the next host goes on where it was"
            return Sentence(waits_for=what, since=since, until=until, then=then)
        case _:
            assert_never(state.goal)


def _recycling(setup: Setup, state: st.Superseding | st.Bereft | st.Replacing | st.Succeeding) -> Sentence:
    since, limits = _since(state), setup.limits
    why = f"({state.goal.origin}: {state.goal.reason})"
    match state:
        case st.Superseding() | st.Bereft():
            what = f"its disk to record that a fresh process begins {why}"
            return Sentence(waits_for=what, since=since, then="the fresh process is started")
        case st.Replacing():
            until = _later(state, limits.kill_grace)
            then = "the fresh process is started; one that hasn't ended by then is killed"
            return Sentence(waits_for=f"its old process to end {why}", since=since, until=until, then=then)
        case st.Succeeding():
            what = f"its fresh process, of generation {state.books.generation}, to say that it is ready {why}"
            then = "its runs go on; if it isn't ready by then, the deployment is stopped, and says why"
            return Sentence(waits_for=what, since=since, until=_later(state, limits.ready_deadline), then=then)
        case _:
            assert_never(state)


# --- its process ends ----------------------------------------------------------------------------------------------


def _backing_off(setup: Setup, state: st.Evicting | st.Counting | st.BackingOff | st.Preparing) -> Sentence:
    since = _since(state)
    match state:
        case st.Evicting():
            until = _later(state, setup.limits.kill_grace)
            what = f"its process to end, as it has to ({state.reason})"
            return Sentence(waits_for=what, since=since, until=until, then="another one follows, after a pause")
        case st.Counting():
            what = f"its disk to record against which runs the end of its process counts ({state.reason})"
            return Sentence(waits_for=what, since=since, then="another process follows, after a pause")
        case st.BackingOff() | st.Preparing():
            more = left(state.books.crashes, setup.limits)
            ends = "one more end" if more == 1 else f"{more} more ends"
            exited = state.books.exited
            excused = exited is not None and exited.reason.blame == "host"  # that may go on for as long as it takes
            last = "" if excused else f"; after {ends} like this, none is"
            then = f"another process is started, and its runs go on{last}"
            return Sentence(
                waits_for=f"the end of a pause, as its last process ended ({state.reason})",
                since=since,
                until=stamp(state.until),
                then=then,
            )
        case _:
            assert_never(state)


def _latched(setup: Setup, state: st.Latching | st.CrashLooping | st.Resetting) -> Sentence:
    name, since = setup.spec.name, _since(state)
    match state:
        case st.Latching():
            what = f"its disk to record that no process follows any more ({state.detail})"
            then = f"mail is accepted, and nothing runs until `waypost reset {name}`"
            return Sentence(waits_for=what, since=since, then=then)
        case st.CrashLooping(latch=latch):
            return Sentence(
                waits_for=f"somebody to mend what ends its process, and to reset it ({latch.detail})",
                since=latch.at,
                then="it has a process again, and goes on where it was; mail is accepted meanwhile",
                command=command("reset", name),
                needed=True,
            )
        case st.Resetting():
            what = "its disk to record that it was reset"
            return Sentence(waits_for=what, since=since, then="a process is started")
        case _:
            assert_never(state)


def _held(setup: Setup, state: st.Held | st.Lifting) -> Sentence:
    if isinstance(state, st.Lifting):
        what = "its disk to record that it goes on"
        return Sentence(waits_for=what, since=_since(state), then="everything is begun anew, and its runs go on")
    return Sentence(
        waits_for=f"somebody to let it go on (held after {state.why})",
        since=state.books.held,
        then="it says what would go out, asks, and goes on where it was; mail is accepted meanwhile",
        command=command("resume", setup.spec.name),
        needed=True,
    )


# --- down ----------------------------------------------------------------------------------------------------------


def _falling_asleep(setup: Setup, state: st.State) -> Sentence:
    return Sentence(
        waits_for="nothing: there is nothing to do, so its process and all that belongs to it end",
        since=_since(state),
        until=_later(state, setup.limits.stop_deadline * len(st.WHOLE)),
        then="it is dormant, unless something comes meanwhile",
    )


def _ending(setup: Setup, state: st.Ending) -> Sentence:
    since, until = _since(state), _later(state, setup.limits.stop_deadline * len(st.WHOLE))
    what = "its parts to end, one after the other"
    match state.then:
        case st.Again(reason=reason):
            then = f"all of them are made anew, from what is on disk ({reason})"
            return Sentence(waits_for=what, since=since, until=until, then=then)
        case st.Over(reason=reason):
            failed = recycle_failed(setup.spec.name, reason, since, state.books.drain)
            then = failed.then if reason else "it is stopped; nothing is lost"
            return Sentence(waits_for=what, since=since, until=until, then=then)
        case st.Lost(reason=reason, message=message):
            return down(setup.spec.name, reason, message, since, mailed=False)
        case Audit() | Asleep():  # that has a sentence of its own
            return _falling_asleep(setup, state)
        case _:
            assert_never(state.then)


def _stopped(setup: Setup, state: st.Stopped) -> Sentence:
    if state.reason:
        return recycle_failed(setup.spec.name, state.reason, _since(state), state.books.drain)
    return Sentence(
        waits_for="a host, as this one ends, or puts other code in its place",
        since=_since(state),
        then="it goes on where it was",
        command=command("run"),
        needed=True,
    )


def asleep(deadline: int | None, since: str) -> Sentence:
    """The sentence of a deployment that sleeps until ``deadline`` (Unix ms), or until something comes."""
    return Sentence(
        waits_for="mail, answers and signals" + ("" if deadline is None else ", or its next timer"),
        since=since,
        until="" if deadline is None else stamp(deadline),
        then="it is woken within a moment, and goes on; until then it has no process",
    )


# --- small things --------------------------------------------------------------------------------------------------


def _since(state: st.State) -> str:
    return stamp(state.books.entered) if state.books.entered else ""


def _later(state: st.State, seconds: float) -> str:
    return stamp(state.books.entered + round(seconds * 1000)) if state.books.entered else ""


def _named(executing: tuple[Executing, ...], more: int) -> str:
    named = [f"{each.run} ({each.step})" for each in executing[:2]]
    others = len(executing) - len(named) + more
    return ", ".join(named) + (f" and {others} more" if others else "")


def _file(setup: Setup) -> str:
    """As it was given to the host; what was read from the repository has no file."""
    return "FILE" if setup.spec.file == setup.spec.name else setup.spec.file
