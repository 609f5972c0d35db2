"""What ``why RUN`` says: over what its deployment does, which process has it, what bars it, what holds that still."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from actors.credentials import Barred
from actors.logic.supervisor import states
from actors.logic.supervisor.words import describe
from waypost.host.answers.why import Why
from waypost.host.reading.explain import Situation, read
from waypost.host.reading.run_why import why
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId, run_id
from waypost.testing.samples import BEGAN, HASH, log_of
from waypost.testing.sayings import check_reason
from waypost.testing.supervision import BOOKS, RUNNING, SETUP, STATES

RUN = run_id(3, b"12345678")
HERE = BOOKS.generation
LOGS: dict[str, tuple[ev.AnyEvent, ...]] = {
    "queued": (),
    "code": (BEGAN,),
    "step": (BEGAN, ev.StepStarted(call=CallId("r1#1"), step="check", arguments=HASH)),
    "parked": (BEGAN, ev.SignalAwaited(call=CallId("r1#1"), park="signal", seen=1, name="paid")),
}
BARS = {
    "lacks": Barred(HERE, "step pay lacks bank", (("pay", "bank"),)),
    "file": Barred(HERE, "grants/pay.json can't be read", file="grants/pay.json"),
    "unlisted": Barred(HERE, "the credential bank isn't listed", unlisted=True),
    "passing": Barred(HERE, "the credential bank: its command failed"),
    "reading": Barred(HERE, "still read", reading=True),
    "another process": Barred(Generation(HERE - 1), "old"),
}
HOLDS = {"stopped": (7,), "traced": (8,)}


@st.composite
def stories(draw: st.DrawFn) -> tuple[str, states.State, str, str, int, Situation]:
    """A run, its deployment, what bars that, what holds its process, and how far the run is behind that one."""
    log = draw(st.sampled_from(sorted(LOGS)))
    state = draw(st.just(RUNNING) | st.sampled_from(STATES))
    bar, hold = draw(st.sampled_from(("", *BARS))), draw(st.sampled_from(("", "", *HOLDS)))
    given_in = draw(st.integers(1, HERE))
    scarce, broken = draw(st.sampled_from(("", "", "no space"))), draw(st.sampled_from(("", "", "SyntaxError")))
    state = replace(state, books=replace(state.books, barred=BARS.get(bar), scarce=scarce))
    if isinstance(state, states.Running):
        state = replace(state, broken=broken)
    found = describe(SETUP, state)
    situation = Situation(
        name="orders",
        address="orders@x",
        hosted=True,
        state=found.state,
        code=found.code,
        reason=found.reason,
        since=found.since,
        generation=found.generation,
        why=found.why,
        stopped=HOLDS["stopped"] if hold == "stopped" else (),
        traced=HOLDS["traced"] if hold == "traced" else (),
    )
    return log, state, bar, hold, given_in, situation


def told(log: str, given_in: int, situation: Situation) -> Why:
    """The answer for a run that began in generation 1 and was last given to this one."""
    events = LOGS[log]
    if events and given_in > 1:
        events = (BEGAN, ev.RunResumed(generation=Generation(given_in)), *events[1:])
    return why(read(RunId(RUN), log_of(*events)), situation)


@given(stories())
def test_what_is_at_work_is_said_to_be_and_what_bars_is_said_first(
    story: tuple[str, states.State, str, str, int, Situation],
) -> None:
    """A run that this process was never given is at no work, whatever it did in the last one."""
    log, state, bar, hold, given_in, situation = story
    answer = told(log, given_in, situation)
    for each in answer.waiting:
        check_reason(each)
    first, own = answer.waiting[0], answer.waiting[-1]
    has_it = bool(LOGS[log]) and given_in >= situation.generation
    manned = situation.state in {"running", "draining"}
    assert ("at work" in own.waits_for) == (log == "step" and has_it and manned and not hold)
    if hold:
        assert first.kind == "operator"
        assert first.command == ("kill -CONT 7" if hold == "stopped" else "waypost recycle orders --reason debugger")
        assert ("which had begun" in own.waits_for) == (log == "step" and not (has_it and manned))
        return
    if log == "parked" or not isinstance(state, states.Running):
        return
    hindered = bool(situation.code) or (situation.why is not None and situation.why.needed)
    assert (first.kind == "deployment") == (hindered and not has_it)
    if bar in BARS and bar != "another process" and situation.code == "barred" and not has_it:
        assert BARS[bar].why in first.waits_for
