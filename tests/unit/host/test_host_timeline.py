"""The live timeline: one line for what was seen, none twice, and nothing of a stranger's in it but text."""

from actors.describing import Description, Exited, ExitReason
from actors.messages import Kin, Seen, SeenProgress, SeenQueued, StateChanged
from substrate.messages import Recorded
from waypost.host.watching.timeline import Narrate, Say, TimelineActor, Watching, advance, short
from waypost.model import events as ev
from waypost.model.ids import CallId, Deployment, Generation, RunId, run_id
from waypost.model.times import Now
from waypost.testing.clock import ManualClock

NOW = Now(wall=1_795_939_200_000, mono=1.0)
AT = "2026-11-29T08:00:00.000Z"
RUN = run_id(3, b"12345678")
HERE = Deployment("expenses")
STARTED = ev.StepStarted(call=CallId("r1#1"), step="pay", arguments="0" * 64, seq=2, at="2026-11-29T07:00:00.000Z")
DONE = ev.StepCompleted(call=CallId("r1#1"), output=ev.Value(blob="1" * 64), seq=3, at="2026-11-29T07:00:01.000Z")
ENDED = ev.RunFailed(error=ev.Fault(type="E", message="m"), seq=5, at="2026-11-29T07:00:03.000Z")
QUEUED = ev.MailQueued(
    call=CallId("r1#2"),
    message_id="<1@x>",
    to=("ann@example.com",),
    ordinal=1,
    sha256="2" * 64,
    seq=4,
    at="2026-11-29T07:00:02.000Z",
)
SENT = ev.MailSent(call=CallId("r1#2"), ordinal=1, seq=6, at="2026-11-29T07:00:04.000Z")


def changed(state: str, reason: str = "", generation: int = 1, exited: Exited | None = None) -> StateChanged:
    return StateChanged(
        Description(
            name=HERE,
            address="expenses@example.com",
            state=state,
            reason=reason,
            generation=Generation(generation),
            pid=None,
            until=None,
            isolation="none",
            exited=exited,
        )
    )


def test_the_end_of_a_child_is_told_with_its_last_words() -> None:
    """A traceback's last line says what it was, to somebody who only watches."""
    exited = Exited(Generation(1), NOW.wall, "exit status 1", ExitReason(status=1, stderr=("Traceback", "KeyError: 7")))
    gone = advance(Watching(), changed("backing-off", "exit status 1", exited=exited), NOW)
    assert gone.effects == (Say(AT, "expenses is backing-off: exit status 1; at last it wrote: KeyError: 7"),)
    back = advance(gone.state, changed("running", exited=exited), NOW)
    assert back.effects == (Say(AT, "expenses is running (generation 1)"),)


def test_each_thing_that_is_seen_has_its_line() -> None:
    """Text of strangers is shortened and made printable."""
    queued = SeenQueued(HERE, RUN, 7, "ann@example.com", "hi\x1b[2J\nthere")
    assert advance(Watching(), queued, NOW).effects == (
        Say(AT, f"expenses {short(RUN)}  mail 7 from ann@example.com: hi\N{REPLACEMENT CHARACTER}[2J there"),
    )
    nobodys = SeenQueued(HERE, RUN, 8, "", "Schedule morning")
    assert advance(Watching(), nobodys, NOW).effects == (Say(AT, f"expenses {short(RUN)}  mail 8: Schedule morning"),)
    progress = SeenProgress(HERE, RUN, CallId("r1#1"), "half way")
    assert advance(Watching(), progress, NOW).effects == (Say(AT, f"expenses {short(RUN)}  … half way"),)
    seen = Seen(HERE, RUN, Recorded(STARTED, b""))
    assert advance(Watching(), seen, NOW).effects == (Narrate(HERE, RUN, STARTED),)


def test_a_state_is_said_once() -> None:
    """A generation that rises without another state is no news; a reason is."""
    first = advance(Watching(), changed("starting"), NOW)
    assert first.effects == (Say(AT, "expenses is starting"),)
    assert advance(first.state, changed("starting", generation=2), NOW).effects == ()
    second = advance(first.state, changed("backing-off", "ended by SIGKILL"), NOW)
    assert second.effects == (Say(AT, "expenses is backing-off: ended by SIGKILL"),)
    assert advance(second.state, changed("running", generation=3), NOW).effects == (
        Say(AT, "expenses is running (generation 3)"),
    )


def test_a_run_is_told_from_its_first_event_to_its_last() -> None:
    """Calls by the names of their steps, each at the time of its event."""
    said: list[tuple[str, str]] = []
    timeline = TimelineActor.start(lambda at, text: said.append((at, text)), clock=ManualClock())
    for event in (STARTED, DONE, QUEUED, ENDED, SENT):
        timeline.tell(Seen(HERE, RUN, Recorded(event, b"")))
    timeline.stop(timeout=5)
    head = f"expenses {short(RUN)}  "
    assert said == [
        (STARTED.at, f"{head}step pay begins"),
        (DONE.at, f"{head}step pay is done: a value of its own file, 111111111111…"),
        (QUEUED.at, f"{head}mail to ann@example.com is on its way"),
        (ENDED.at, f"{head}failed: E: m"),
        (SENT.at, f"{head}mail to ann@example.com was sent"),
    ]


def test_a_child_run_that_was_spawned_before_this_host_is_named() -> None:
    """As the line before the restart did."""
    said: list[str] = []
    timeline = TimelineActor.start(lambda _at, text: said.append(text), clock=ManualClock())
    child = Kin(RunId("run_2_0000000000000002"), "pay")
    why = ev.Fault(type="E", message="m")
    over = ev.ChildCompleted(seq=3, at=AT, call=CallId("r1#1"), outcome="cancelled", error=why)
    timeline.tell(Seen(HERE, RUN, Recorded(over, b""), child))
    timeline.stop(timeout=5)
    assert said == [f"expenses {short(RUN)}  child pay, run_2_0000000000000002, was cancelled: m"]
