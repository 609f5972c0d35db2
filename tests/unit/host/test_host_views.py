"""A run in words: every event has a line, every live run says what it waits on and what to run next."""

from dataclasses import replace
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.cli import words
from waypost.cli.explaining import run_words
from waypost.host.reading.explain import Situation, Told, read
from waypost.host.reading.narrate import Narrator, printable
from waypost.host.reading.run_why import shown, why
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId, run_id
from waypost.model.why import Sentence
from waypost.testing.samples import BEGAN, HASH
from waypost.testing.sayings import check_reason

RUN = run_id(3, b"12345678")
HERE = Situation(name="expenses", address="expenses@example.com", hosted=True, state="running", isolation="none")
GONE = Situation(name="expenses", address="expenses@example.com", hosted=False)
FIRST, SECOND, THIRD = CallId("r1#1"), CallId("r1#2"), CallId("r1#3")


def value(json: str) -> ev.Value:
    return ev.Value(inline=msgspec.Raw(json.encode()))


STARTED = BEGAN
STEP = ev.StepStarted(call=FIRST, step="read_claim", arguments=HASH)
DONE = ev.StepCompleted(call=FIRST, output=value('{"amount":"420.00","purpose":"Caf\\u00e9"}'))
ASKED = ev.MailQueued(call=SECOND, message_id="<r@w>", to=("boss@example.com",), ordinal=7, sha256=HASH)
APPROVAL = ev.SignalAwaited(
    call=THIRD, park="approval", seen=4, title="Pay 420?", who=("boss@example.com",), request="<r@w>", timeout_at=10**12
)
YES = ev.SignalReceived(
    call=THIRD, signal="cli:1", decision=ev.Decision(approved=True, by="ann", via="cli", text="fine\x1b[2J")
)
BROKE = ev.Fault(type="ValueError", message="no amount", step="read_claim", call="r1#1")
CANCEL = ev.CancelRequested(origin="supervisor-operator", reason="not needed", by="ann")
CHILD = run_id(4, b"12345678")
SPAWNED = ev.ChildSpawned(call=FIRST, child=CHILD, workflow="pay", arguments=HASH, seen=1)
RETURNED = ev.ChildCompleted(call=FIRST, outcome="completed", result=value('{"paid":true}'))
LET_GO = ev.ChildCancelRequested(call=FIRST)
PARENT = ev.Parent(run=run_id(2, b"12345678"), call=THIRD, workflow="pay", depth=1)
CHILD_STARTED = msgspec.structs.replace(STARTED, parent=PARENT)
EVERY: tuple[ev.AnyEvent, ...] = (
    STARTED,
    ev.RunResumed(generation=Generation(2), attempt=1),
    ev.RunInterrupted(generation=Generation(2), attempt=2, reason="ended by SIGSEGV"),
    ev.RunPaused(code="code-changed", detail="recorded a, now b"),
    ev.RunUnpaused(by="ann"),
    STEP,
    DONE,
    ev.StepFailed(call=FIRST, error=BROKE, final=False),
    ev.AttemptScheduled(call=FIRST, attempt=2, timer="r1#1/2"),
    ev.TimerSet(call=FIRST, timer="r1#1/2", delay=1.0, seen=1, fire_at=10**12),
    ev.TimerFired(call=FIRST, timer="r1#1/2"),
    ev.TimerCancelled(call=FIRST, timer="r1#1"),
    APPROVAL,
    YES,
    ev.SignalAwaitAbandoned(call=THIRD),
    ASKED,
    ev.MailSent(call=SECOND, ordinal=7),
    ev.MailFailed(call=SECOND, reason="no grant"),
    ev.CancelRequested(origin="supervisor-operator", reason="not needed", by="ann"),
    ev.CancelPropagated(call=FIRST),
    ev.RunCompleted(result=value("null")),
    ev.RunCancelled(error=BROKE),
    ev.RunFailed(error=BROKE),
    ev.Foreign(was="CancelRequested", about="drain"),
    SPAWNED,
    ev.ChildRefused(call=FIRST, workflow="pay", reason="no grant to start pay"),
    RETURNED,
    LET_GO,
    ev.CodeRested(seen=1),
)


def log(*events: ev.AnyEvent) -> list[bytes]:
    """Stored events, numbered as the substrate would."""
    return [
        ev.stored(event, seq=seq, at=f"2026-11-29T08:00:{seq:02d}.000Z", prev="")[1]
        for seq, event in enumerate(events, 1)
    ]


def told(*events: ev.AnyEvent) -> Told:
    return read(RUN, log(*events))


def test_every_kind_of_event_has_its_line() -> None:
    """A new kind of event without words would end whoever watches."""
    assert {type(event) for event in EVERY} == set(get_args(ev.AnyEvent))
    for event in EVERY:
        assert Narrator().tell(event)


@pytest.mark.parametrize(
    ("attempt", "said"), [(0, ""), (1, ", after 1 unexpected exit"), (2, ", after 2 unexpected exits")]
)
def test_a_resumed_run_says_what_it_has_cost(attempt: int, said: str) -> None:
    """Whoever looks for the run that ends its child finds it here."""
    resumed = ev.RunResumed(generation=Generation(2), attempt=attempt)
    assert Narrator().tell(resumed) == f"resumed in generation 2{said}"


def test_a_failure_says_in_which_line_of_the_deployed_code_it_was_raised() -> None:
    """The traceback is in the log, as JSON and with the folders of a library; its author looks for one line."""
    tree = f"/data/code/{'0' * 64}/tree"
    passed = f'File "{tree}/flow.py", line 8, in main\n  File "{tree}/helpers/rates.py", line 18, in rate\n'
    error = msgspec.structs.replace(BROKE, traceback=f'{passed}  File "/usr/lib/decimal.py", line 3, in convert\n')
    assert Narrator().tell(ev.RunFailed(error=error)).endswith(f"{BROKE.message} (helpers/rates.py line 18)")


def test_a_step_that_failed_is_named_once() -> None:
    """By its line; the run that fails of it says of which."""
    error = msgspec.structs.replace(BROKE, step="pay")
    narrator = Narrator()
    narrator.tell(ev.StepStarted(call=CallId("r1#1"), step="pay", arguments="0" * 64))
    said = narrator.tell(ev.StepFailed(call=CallId("r1#1"), error=error, final=True))
    assert said == f"step pay failed: {BROKE.type}: {BROKE.message}"
    assert narrator.tell(ev.RunFailed(error=error)) == f"failed: step pay: {BROKE.type}: {BROKE.message}"


def test_an_error_without_a_message_is_its_name() -> None:
    """A MemoryError or a KeyboardInterrupt says nothing, and its line ended in a colon."""
    silent = ev.RunFailed(error=ev.Fault(type="MemoryError", message="", step="pay"))
    assert Narrator().tell(silent) == "failed: step pay: MemoryError"
    failed = ev.StepFailed(call=FIRST, error=ev.Fault(type="MemoryError", message=""), final=False)
    following = ev.AttemptScheduled(call=FIRST, attempt=2, timer="r1#1/2")
    pause = ev.TimerSet(call=FIRST, timer="r1#1/2", delay=1.0, seen=1, fire_at=10**12)
    answer = why(told(STARTED, STEP, failed, pause, following), HERE)
    assert answer.waits_for.endswith("the last one failed with MemoryError)")


def test_a_cancelled_run_says_who_wanted_it_and_how_it_went() -> None:
    """Somebody will ask why it didn't pay."""
    lines = told(
        STARTED,
        STEP,
        ev.CancelRequested(origin="supervisor-operator", reason="not needed", by="ann"),
        ev.CancelPropagated(call=FIRST),
        ev.RunCancelled(),
    ).lines
    assert [line.text for line in lines[2:]] == [
        "cancel was asked for by ann (supervisor-operator): not needed",
        "step read_claim was stopped: the run is being cancelled",
        "cancelled",
    ]


def test_signals_are_told_by_name_and_one_that_nobody_read_is_told_at_the_end() -> None:
    """What comes when a run ends must not get lost without a word."""
    lines = told(
        STARTED,
        ev.SignalReceived(signal="1", name="paid", payload=value('{"by": "ann"}')),
        ev.SignalReceived(signal="2", name="paid", payload=value("null")),
        ev.SignalAwaited(call=FIRST, park="signal", name="paid", seen=1),
        ev.SignalAwaited(call=SECOND, park="signal", name="shipped", seen=4),
        ev.SignalReceived(call=SECOND, signal="3", name="shipped", payload=value("7")),
        ev.RunCompleted(result=value("null")),
    ).lines
    assert [line.text for line in lines[1:]] == [
        'signal paid came, and is kept for whoever waits for it: {"by": "ann"}',
        "signal paid came, and is kept for whoever waits for it",
        "takes signal paid, which was kept for it",
        "waits for signal shipped",
        "signal shipped came: 7",
        "completed; signal paid was never read",
    ]


def test_child_runs_are_told_in_the_parents_timeline_and_whose_child_it_is_in_the_childs() -> None:
    """Each leads to the other, by an id that can be pasted."""
    failed = ev.ChildCompleted(call=FIRST, outcome="failed", error=BROKE)
    cancelled = ev.ChildCompleted(call=FIRST, outcome="cancelled", error=ev.Fault(type="RunCancelled", message="late"))
    refused = ev.ChildRefused(call=SECOND, workflow="ask", reason="no grant to start ask")
    lines = told(STARTED, SPAWNED, RETURNED, refused, SPAWNED, failed, SPAWNED, LET_GO, cancelled).lines
    name = f"child pay, {CHILD},"
    assert [line.text for line in lines[1:]] == [
        f"{name} is started",
        f'{name} has completed: {{"paid": true}}',
        "child ask may not be started: no grant to start ask",
        f"{name} is started",
        f"{name} has failed: step read_claim: ValueError: no amount",
        f"{name} is started",
        f"{name} is no longer awaited, and told to end",
        f"{name} was cancelled: late",
    ]
    child = told(CHILD_STARTED)
    assert child.lines[0].text == f"started as child pay of {PARENT.run}, by its call r1#3"
    assert (shown(child, HERE).parent, shown(child, HERE).child) == (PARENT.run, "pay")
    assert (why(child, HERE).parent, why(told(STARTED), HERE).parent) == (PARENT.run, "")
    assert next(words.show(shown(child, HERE))) == f"{RUN}  expenses  running  child pay of {PARENT.run}"
    assert next(run_words(why(child, HERE))) == f"{RUN}  expenses  running  child pay of {PARENT.run}"


def test_a_run_that_waits_for_a_child_leads_to_it_and_says_how_it_is() -> None:
    """What holds up the child is said by the child, and one on hold needs somebody."""
    for state in ("", "parked (approval)", "on hold: `waypost why expenses/5`"):
        answer = why(told(STARTED, SPAWNED), HERE, children={CHILD: state} if state else {})
        check_reason(answer)
        shown_as = f"pay, as {CHILD}" + (f", which is {state}" if state else "")
        assert answer.waits_for == f"its child run ({shown_as}) to end"
        assert answer.command == f"waypost why {CHILD}"
        assert answer.since == "2026-11-29T08:00:02.000Z"


def test_a_timeline_reads_like_a_story() -> None:
    """Calls are called by the name of what they do."""
    assert [line.text for line in told(STARTED, STEP, DONE, ASKED, APPROVAL, YES).lines] == [
        "started by mail 12 from ann@example.com",
        "step read_claim begins",
        'step read_claim is done: {"amount": "420.00", "purpose": "Café"}',
        "mail to boss@example.com is on its way",
        "waits for boss@example.com to decide: Pay 420?, until 2001-09-09 01:46:40 UTC",
        "approved by ann (cli): fine\N{REPLACEMENT CHARACTER}[2J",
    ]


@given(st.text(max_size=2000), st.integers(2, 50))
def test_what_is_shown_is_one_printable_line_within_its_limit(text: str, limit: int) -> None:
    """Mail is written by strangers: no control sequence of theirs may reach a terminal."""
    line = printable(text, limit)
    assert line.isprintable()
    assert len(line) <= limit


@pytest.mark.parametrize(
    ("events", "state", "kind", "command"),
    [
        ((STARTED,), "running", "child", "waypost recycle expenses --reason stuck"),
        ((STARTED, STEP), "running", "step", ""),
        ((STARTED, STEP, DONE, ASKED, APPROVAL), "parked", "approval", f"waypost approve {RUN}"),
        (
            (STARTED, ev.SignalAwaited(call=FIRST, park="input", seen=1)),
            "parked",
            "mail",
            "waypost send expenses@example.com < ",
        ),
        (
            (STARTED, ev.RunPaused(code="code-changed", detail="a, b")),
            "paused",
            "code",
            "waypost deploy FILE",
        ),
        ((STARTED, ev.RunPaused(code="operator")), "paused", "operator", f"waypost resume {RUN}"),
        (
            (STARTED, ev.SignalAwaited(call=FIRST, park="signal", name="it's paid", seen=1)),
            "parked",
            "signal",
            f"waypost signal {RUN} 'it'\"'\"'s paid' < payload.json",
        ),
        ((STARTED, STEP, CANCEL), "cancelling", "cancel", ""),
        ((STARTED, SPAWNED), "parked", "child-run", f"waypost why {CHILD}"),
    ],
)
def test_a_live_run_says_what_it_waits_on_and_what_to_do(
    events: tuple[ev.AnyEvent, ...], state: str, kind: str, command: str
) -> None:
    """Stuck is impossible to hide."""
    answer = why(told(*events), HERE)
    assert (answer.state, answer.waiting[0].kind) == (state, kind)
    assert answer.waiting[0].command.startswith(command)
    assert answer.waiting[0].since == f"2026-11-29T08:00:{len(events):02d}.000Z"
    assert answer.on.isolation == "none"
    assert (answer.command, answer.since) == (answer.waiting[0].command, answer.waiting[0].since)


def test_a_run_that_stays_between_two_steps_tells_of_its_process() -> None:
    """A step that never lets go of the interpreter, or a stopped process, holds up all runs at once."""
    stuck = why(told(STARTED), HERE)
    assert "its process is stuck, and a fresh one helps" in stuck.then
    for elsewhere in (GONE, replace(HERE, state="backing-off"), replace(HERE, state="draining")):
        (*_, wait) = why(told(STARTED), elsewhere).waiting
        assert (wait.kind, wait.command) == ("child", "")
        assert "stuck" not in wait.then


def test_a_cancelled_run_says_so_and_that_nothing_follows() -> None:
    """In the same words as its timeline."""
    answer = why(told(STARTED, STEP, CANCEL, ev.RunCancelled(code="past-grace", detail="too slow")), HERE)
    assert (answer.state, answer.waiting) == ("cancelled", ())
    asked = "cancel was asked for by ann (supervisor-operator): not needed"
    assert answer.waits_for == f"nothing, as it was cancelled: too slow; {asked}"
    assert answer.then == "nothing follows"


def test_a_deadline_is_said_and_so_is_that_there_is_none() -> None:
    """Design §3.7: a deadline, or an explicit "none"."""
    (wait,) = why(told(STARTED, STEP, DONE, ASKED, APPROVAL), HERE).waiting
    assert wait.until == "2001-09-09T01:46:40.000Z"
    (wait,) = why(told(STARTED, ev.SignalAwaited(call=FIRST, park="input", seen=1)), HERE).waiting
    assert wait.until is None


def test_without_a_host_the_next_command_starts_one() -> None:
    """A step that is under way in nobody's process will not end by waiting."""
    answer = why(told(STARTED, STEP), GONE)
    assert [each.kind for each in answer.waiting] == ["operator", "step"]
    assert (answer.command, answer.needed, answer.on.state) == ("waypost run", True, "no host")
    assert "no host runs it" in answer.waits_for


def test_a_finished_run_waits_on_nothing_and_says_so() -> None:
    """An empty list alone could also be a bug."""
    answer = why(told(STARTED, ev.RunFailed(error=BROKE)), HERE)
    assert answer.waiting == ()
    assert answer.waits_for == "nothing, as it has failed: step read_claim: ValueError: no amount"
    assert (answer.then, answer.command) == ("nothing follows", f"waypost show {RUN}")


def test_the_timeline_of_a_run_that_failed_ends_with_its_traceback() -> None:
    """It was in one line of JSON, in which each line end was two characters."""
    where = f"/srv/data/code/{'0a' * 32}/tree/claims/read.py"
    trace = f'Traceback:\n  File "{where}", line 7, in read\n\x1b[2Jno amount'
    fault = ev.Fault(type="ValueError", message="no amount", traceback=trace)
    *_, first, second, last = words.show(shown(told(STARTED, ev.RunFailed(error=fault)), HERE))
    assert (first, second) == ("    Traceback:", '      File "claims/read.py", line 7, in read')
    assert last == "    \N{REPLACEMENT CHARACTER}[2Jno amount"
    assert shown(told(STARTED, ev.RunCompleted(result=value("null"))), HERE).traceback == ""


def test_with_several_open_approvals_the_command_names_the_call() -> None:
    """`waypost approve RUN` alone would be refused."""
    second = msgspec.structs.replace(APPROVAL, call=CallId("r1#4"))
    answer = why(told(STARTED, STEP, DONE, ASKED, APPROVAL, second), HERE)
    assert [
        f"--call '{w.call}'" in w.command and w.command[:-6] in w.alternative.replace("reject", "approve")
        for w in answer.waiting
    ] == [True, True]


def test_a_shown_run_has_its_whole_timeline() -> None:
    """Nothing is left out, and the head of it says who began."""
    answer = shown(told(STARTED, STEP, DONE), HERE)
    assert (answer.sender, answer.seq, len(answer.lines)) == ("ann@example.com", 3, 3)
    assert answer.started == "2026-11-29T08:00:01.000Z"
    assert shown(read(RunId(RUN), []), HERE).state == "queued"


@pytest.mark.parametrize(
    ("failure", "isolation", "told"),
    [
        ("PermissionError: [Errno 13] Permission denied: '/srv/x'", "namespace", True),
        ("OSError: [Errno 30] Read-only file system: '/srv/x'", "namespace: no network", True),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/srv/x'", "namespace", True),
        ("PermissionError: [Errno 13] Permission denied: '/srv/x'", "", True),
        ("PermissionError: [Errno 13] Permission denied: '/srv/x'", "none", False),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'x'", "namespace", False),
        ("ValueError: no amount", "namespace", False),
    ],
)
def test_a_step_that_failed_at_a_path_that_is_shut_is_told_how_to_open_it(
    failure: str, isolation: str, *, told: bool
) -> None:
    """In a namespace most of the machine doesn't exist: what the step says of it misleads."""
    kind, _, message = failure.partition(": ")
    fault = ev.Fault(type=kind, message=message, step="pay", call=FIRST)
    here = replace(HERE, isolation=isolation)
    ended = why(read(RUN, log(STARTED, STEP, ev.RunFailed(error=fault))), here)
    assert ("`waypost run --reads PATH`" in ended.then) == told
    tried = (
        ev.StepFailed(call=FIRST, error=fault, final=False),
        ev.TimerSet(call=FIRST, timer="r1#1/2", delay=1.0, seen=3, fire_at=2 * 10**12),
        ev.AttemptScheduled(call=FIRST, attempt=2, timer="r1#1/2"),
    )
    retried = why(read(RUN, log(STARTED, STEP, *tried)), here)
    assert [each.kind for each in retried.waiting] == ["retry"]
    assert ("`waypost run --writes PATH`" in retried.then) == told
    check_reason(retried)


@pytest.mark.parametrize(
    ("here", "said"),
    [
        (HERE, "step read_claim, which is at work"),
        (replace(HERE, state="starting"), "step read_claim, which had begun"),
        (replace(HERE, generation=99), "step read_claim, which had begun"),
        (GONE, "step read_claim, which had begun"),
    ],
)
def test_a_step_is_at_work_only_where_there_is_a_process(here: Situation, said: str) -> None:
    """Else somebody would wait for what nobody does."""
    assert why(told(STARTED, STEP), here).waiting[-1].waits_for == said


@pytest.mark.parametrize("opened", [(), (STEP,)])
def test_a_run_that_a_fresh_process_was_not_given_waits_for_what_keeps_it_back(opened: tuple[ev.AnyEvent, ...]) -> None:
    """Its process isn't stuck in its code, of which it has nothing yet: a fresh one would change nothing."""
    lacks = Sentence(waits_for="an operator: the secret db isn't listed", then="it goes on", needed=True)
    barred = replace(HERE, generation=99, code="barred", why=lacks)
    first, own = why(told(STARTED, *opened), barred).waiting
    assert first.waits_for == "its deployment, which is barred and waits for an operator: the secret db isn't listed"
    assert not own.command
    (given,) = why(told(STARTED, *opened), replace(barred, generation=1)).waiting
    assert given.kind == own.kind


@pytest.mark.parametrize("here", [HERE, replace(HERE, state="held")])
def test_of_a_cancelled_run_no_step_is_promised_to_be_run_again(here: Situation) -> None:
    """What was at work when its end was asked for is told to stop; only a step of its clean-up is run again."""
    (step,) = (each for each in why(told(STARTED, STEP, CANCEL), here).waiting if each.kind == "step")
    assert step.then.startswith("unless the cancel ends it, ")
    check_reason(why(told(STARTED, STEP, CANCEL), here))


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("2026-11-29T08:00:02.000Z", "2026-11-29T08:00:33.000Z"),
        ("2026-11-29T08:00:04.000Z", None),
        ("", None),
    ],
)
def test_a_cancel_is_over_after_its_grace_where_its_code_was_told_at_once(since: str, until: str | None) -> None:
    """A process that came later was told later: its time runs from then."""
    answer = why(told(STARTED, STEP, CANCEL), replace(HERE, since=since))
    assert (answer.waiting[0].kind, answer.until) == ("cancel", until)
    assert "30 s after its code was told so" in answer.then
