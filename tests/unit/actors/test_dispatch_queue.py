"""Which mail is claimed, taken up, put back: arrow by arrow, over the substrate's real rules on paper."""

from actors.messages import GenerationDown
from ipc.messages import GrantsUpdated, RunStart
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Done,
    Enqueue,
    NoAnswer,
    Outcome,
    Pause,
    QueueMail,
    ReadLog,
    Refused,
    Reject,
    Release,
    ReleaseHeld,
    Supervisor,
    TakeUp,
    Unpause,
    WorkflowProcess,
)
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, Generation
from waypost.model.limits import DEFAULT
from waypost.testing.dispatch_bench import BOSS, HASH, RUN, START, Bench, receiving, started
from waypost.testing.paper import Paper

# --- a mail starts a run --------------------------------------------------------------------------------------------


def test_a_mail_waits_until_there_is_a_child():
    """A claim made before would go back with the next generation, and count as an attempt."""
    bench = Bench()
    bench.mail()
    assert bench.asked == []
    bench.up()
    assert bench.asked == [Claim(1)]


def test_a_mail_is_claimed_then_taken_up_with_what_run_started_records():
    """Two requests, the second only after the first: processing holds one mail of a run at most."""
    bench = Bench()
    bench.up()
    bench.mail()
    assert bench.answer() == Claim(1)
    assert bench.asked == [TakeUp(arrival=1, start=START)]


def test_run_start_goes_out_only_when_run_started_is_durable():
    """A workflow's code can touch the world: what started it must survive a power cut first."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.answer()
    bench.answer()
    assert bench.asked == []
    bench.flush()
    page = bench.limits.page
    assert bench.answer() == ReadLog(run=RUN, after=0, limit=page, mails=page)
    assert bench.kinds() == ["GrantsUpdated", "RunStart", "RunLog", "RunLive"]


def test_run_start_names_the_hash_of_the_grants_before_it():
    """The child compares the two; what the host sent must be what the log says."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.settle()
    grants, start = bench.sent[:2]
    assert isinstance(grants, GrantsUpdated)
    assert isinstance(start, RunStart)
    assert ev.digest(grants.grants) == grants.sha256 == start.grants
    assert (start.last_seq, start.definition, start.repository) == (1, HASH, "0123456789abcdef")


def test_the_answer_may_come_before_its_facts():
    """Done at a position that the stream hasn't reached yet: nothing is asked for twice."""
    bench = Bench()
    bench.up()
    bench.mail()
    request = bench.requests.popleft()
    bench.tell(Outcome(request.correlation, bench.paper.submit(request.what)))
    assert bench.asked == []
    bench.stream()
    assert bench.asked == [TakeUp(arrival=1, start=START)]


def test_a_second_mail_of_a_thread_waits_for_the_first_to_start_the_run():
    """FIFO per run: the run of the second is begun by the first."""
    bench = Bench()
    bench.up()
    bench.mail(1)
    bench.mail(2, to="<m1@x>")
    assert bench.asked == [Claim(1)]
    bench.settle()
    assert [item.queued.entry.arrival for item in bench.paper.index.queue.values()] == [2]


def test_other_runs_pass_a_run_that_is_busy():
    """Each run has its own errand."""
    bench = Bench()
    bench.up()
    bench.mail(1)
    bench.mail(2)
    assert bench.asked == [Claim(1), Claim(2)]


# --- a mail answers a wait ------------------------------------------------------------------------------------------


def test_a_mail_for_an_open_receive_is_taken_up_there_and_the_child_hears_of_it():
    """Consume and effect are one commit; the child is told by the stream, at Committed."""
    bench = started()
    bench.mail(2, to="<m1@x>")
    bench.answer()
    assert bench.asked == [TakeUp(arrival=2, wait=CallId("r1#1"))]
    bench.answer()
    assert bench.kinds() == ["EventsCommitted"]


def test_a_mail_waits_for_the_next_receive_and_goes_to_it_when_it_opens():
    """Level-triggered: what opens the way is the wait, not the mail's arrival."""
    bench = started()
    bench.mail(2, to="<m1@x>")
    bench.mail(3, to="<m1@x>")
    bench.settle()
    assert [item.queued.entry.arrival for item in bench.paper.index.queue.values()] == [3]
    bench.child(1, receiving("r1#2", seen=3))
    assert bench.asked == [Claim(3)]


def test_an_approval_is_answered_by_the_host_from_the_mail():
    """The decision is the host's reading of the mail; the child gets it as an event."""
    bench = started()
    bench.do(
        QueueMail(by=WorkflowProcess(Generation(1)), run=RUN, call=CallId("r1#2"), to=(BOSS,), subject="?", text="?")
    )
    state = bench.paper.index.known(RUN).run
    assert isinstance(state, fold.Driven)
    (request,) = state.ledger.sent
    asks = ev.SignalAwaited(call=CallId("r1#3"), park="approval", seen=3, title="?", who=(BOSS,), request=request)
    bench.child(1, asks)
    bench.mail(2, to=request, sender=BOSS, text="yes, of course")
    bench.answer()
    decision = ev.Decision(approved=True, by=BOSS, text="of course", via="mail")
    assert bench.asked == [TakeUp(arrival=2, wait=CallId("r1#3"), decision=decision)]
    bench.settle()
    assert not bench.paper.index.queue


def test_a_mail_that_no_wait_accepts_holds_up_nothing_behind_it():
    """A word that is no answer stays queued; the answer behind it passes."""
    bench = started()
    bench.do(
        QueueMail(by=WorkflowProcess(Generation(1)), run=RUN, call=CallId("r1#2"), to=(BOSS,), subject="?", text="?")
    )
    state = bench.paper.index.known(RUN).run
    assert isinstance(state, fold.Driven)
    (request,) = state.ledger.sent
    asks = ev.SignalAwaited(call=CallId("r1#3"), park="approval", seen=3, title="?", who=(BOSS,), request=request)
    bench.child(1, ev.SignalAwaitAbandoned(call=CallId("r1#1")), asks)
    bench.mail(2, to=request, sender=BOSS, text="why?")
    bench.mail(3, to=request, sender=BOSS, text="ok")
    assert bench.answer() == NoAnswer(2, CallId("r1#3"))
    assert bench.asked == [Claim(3)]


def test_a_claim_goes_back_when_its_wait_was_closed_meanwhile():
    """A deadline came first: the mail isn't left in processing, and isn't claimed again for nothing."""
    bench = started()
    bench.mail(2, to="<m1@x>")
    bench.answer()
    bench.paper.submit(
        Append(by=WorkflowProcess(Generation(1)), run=RUN, events=(ev.SignalAwaitAbandoned(call=CallId("r1#1")),))
    )
    bench.answer()
    assert bench.answer() == Release(2)
    assert bench.asked == []


def test_a_refusal_is_not_asked_for_again_until_the_run_has_moved():
    """No loop of claims and releases on one and the same state, and no mail forgotten when it changes."""
    bench = started()
    bench.mail(2, to="<m1@x>")
    bench.answer()
    bench.answer(Refused("who", "for a reason that dispatch can't see"))
    bench.settle()
    assert bench.asked == []
    assert 2 in bench.paper.index.queue
    bench.child(1, ev.StepStarted(call=CallId("r1#5"), step="pay", arguments=HASH))
    assert bench.asked == [Claim(2)]


def test_a_refused_release_is_not_repeated():
    """If the mail isn't in processing after all, the stream will say where it is."""
    bench = started()
    bench.mail(2, to="<m1@x>")
    bench.answer()
    bench.answer(Refused("wait-closed", "."))
    bench.answer(Refused("not-claimed", "."))
    assert bench.asked == []


def test_a_mail_for_a_paused_run_waits_until_it_goes_on():
    """While a run is paused nothing is taken up (storage §4)."""
    bench = started()
    bench.do(Pause(run=RUN, code="operator", detail=""))
    bench.mail(2, to="<m1@x>")
    assert bench.asked == []
    bench.do(Unpause(run=RUN, by="me"))
    assert bench.asked == [Claim(2)]


def test_a_mail_whose_run_ended_meanwhile_starts_a_new_run():
    """Nobody's reply is lost because a run was quicker."""
    bench = started()
    bench.do(Pause(run=RUN, code="operator", detail=""))
    bench.mail(2, to="<m1@x>")
    bench.do(Append(by=Supervisor(), run=RUN, events=(ev.RunFailed(error=ev.Fault(type="X", message="x")),)))
    bench.answer()
    assert bench.asked == [TakeUp(arrival=2, start=START, reroute=True)]
    bench.settle()
    (live,) = bench.paper.live()
    assert live != RUN


def test_a_mail_behind_a_rejected_first_mail_starts_the_run_itself():
    """Its run never began, so it can't be re-routed either: what the substrate says corrects what was assumed."""
    bench = Bench()
    bench.mail(1)
    bench.mail(2, to="<m1@x>")
    bench.paper.submit(Claim(1))
    bench.do(Reject(1, "poison"))
    bench.up()
    bench.settle()
    assert not bench.paper.index.queue
    assert list(bench.paper.live()) == [RUN]


def test_after_a_restart_a_mail_behind_a_rejected_first_mail_still_starts_the_run():
    """By the queue alone it looks like a reply to a run that has ended; the substrate's refusal corrects that."""
    paper = Paper()
    for raw in (b"Message-ID: <m1@x>\r\n\r\n", b"Message-ID: <m2@x>\r\nIn-Reply-To: <m1@x>\r\n\r\n"):
        paper.submit(Enqueue(raw))
    paper.submit(Claim(1))
    paper.submit(Reject(1, "poison"))
    bench = Bench(paper=paper)
    bench.up()
    assert bench.answer() == Claim(2)
    assert bench.answer() == TakeUp(arrival=2, start=START, reroute=True)
    assert bench.asked == [TakeUp(arrival=2, start=START)]
    bench.settle()
    assert not paper.index.queue
    assert list(paper.live()) == [RUN]


def test_a_mail_that_goes_on_hold_leaves_its_run_to_the_next():
    """A mail that three hosts died with is an operator's; the reply behind it doesn't wait for that."""
    bench = Bench()
    bench.up()
    bench.mail(1)
    for _ in range(DEFAULT.attempts):
        assert bench.answer() == Claim(1)
        bench.tell(GenerationDown(Generation(bench.paper.index.state.generation), unexpected=False))
        bench.up()
        assert bench.answer() == TakeUp(arrival=1, start=START)  # too late: it was put back
    assert 1 in bench.paper.index.on_hold
    assert bench.asked == []
    bench.mail(2, to="<m1@x>")
    bench.settle()
    assert not bench.paper.index.queue


def test_after_a_restart_a_mail_that_no_longer_starts_its_run_is_rerouted():
    """Released from hold as a run's first mail, passed by an older one: its run has ended, and it must not wait on."""
    paper = Paper()
    for raw in (b"Message-ID: <m1@x>\r\n\r\n", b"Message-ID: <m2@x>\r\nIn-Reply-To: <m1@x>\r\n\r\n"):
        paper.submit(Enqueue(raw))
    for _ in range(DEFAULT.attempts):
        paper.submit(Claim(1))
        paper.submit(Claim(2))
        paper.submit(BeginGeneration())
    assert isinstance(paper.submit(ReleaseHeld(2)), Done)
    assert isinstance(paper.submit(ReleaseHeld(1)), Done)
    paper.submit(Claim(1))
    assert paper.submit(TakeUp(arrival=1, start=START)) == Done(paper.position, RUN)
    end = ev.RunFailed(error=ev.Fault(type="X", message="x"))
    assert isinstance(paper.submit(Append(by=Supervisor(), run=RUN, events=(end,))), Done)
    bench = Bench(paper=paper)
    bench.up()
    assert bench.answer() == Claim(2)
    assert bench.answer() == TakeUp(arrival=2, start=START)
    assert bench.asked == [TakeUp(arrival=2, start=START, reroute=True)]
    bench.settle()
    assert not paper.index.queue
    (live,) = paper.live()
    assert live != RUN
