"""What dispatch does when something is late, withheld, dead or broken."""

import pytest
from msgspec import structs

from actors.credentials import AskAgain
from actors.errors import LogUnreadable, OutOfTurn
from actors.logic.dispatch.decision import advance
from actors.logic.dispatch.state import Unopened
from actors.logic.dispatch.turn import Setup
from actors.messages import GenerationDown, GenerationUp, Woken
from ipc.messages import RunLive, RunLog, RunLogCredit
from substrate.messages import (
    Appended,
    BeginGeneration,
    Claim,
    Committed,
    Done,
    Durable,
    LogPage,
    Outcome,
    Pause,
    ReadLog,
    TakeUp,
    Unpause,
    Withheld,
)
from waypost.model import events as ev
from waypost.model.ids import Generation
from waypost.model.limits import Limits
from waypost.testing.dispatch_bench import CHILD, NOW, RUN, START, Bench, started, step

# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_a_keeper_that_has_more_before_anything_was_asked_for_changes_nothing():
    """The repository isn't open yet."""
    state = Unopened(Setup(start=START, limits=Limits()))
    assert advance(state, AskAgain(), NOW).state == state


def test_what_could_not_be_written_is_tried_again_by_one_wake_up():
    """A full disk ends by itself; until then there is one alarm, not one for each run."""
    bench = Bench()
    bench.up()
    bench.mail(1)
    bench.mail(2)
    bench.answer(Withheld("the disk is full"))
    bench.answer(Withheld("the disk is full"))
    assert bench.asked == []
    (wake,) = bench.wakes
    assert wake.mono == NOW.mono + bench.limits.backoff_first
    bench.tell(Woken(wake.message.token + 1))
    assert bench.asked == []
    bench.tell(wake.message)
    assert bench.asked == [Claim(1), Claim(2)]


def test_a_withheld_take_up_leaves_the_claim_where_it_is():
    """Putting it back would be one more write to a disk that takes none."""
    bench = Bench()
    bench.up()
    bench.mail(1)
    bench.answer()
    bench.answer(Withheld("the disk is full"))
    assert bench.asked == []
    bench.tell(bench.wakes[0].message)
    assert bench.asked == [TakeUp(arrival=1, start=START)]


def test_a_withheld_resume_is_tried_again():
    """The run waits with the disk, not for ever."""
    bench = started()
    bench.child(1, step("r1#2"))
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    bench.up()
    bench.answer(Withheld("the disk is full"))
    bench.tell(bench.wakes[0].message)
    assert len(bench.asked) == 1


def test_a_withheld_first_page_is_asked_for_again():
    """The child has been given nothing yet: there is nothing to undo, and the run is started as soon as it can be."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.answer()
    bench.answer()
    bench.flush()
    bench.answer(Withheld("the disk is full"))
    assert bench.asked == []
    assert bench.kinds() == ["GrantsUpdated"]
    bench.tell(bench.wakes[0].message)
    bench.settle()
    assert bench.kinds() == ["RunStart", "RunLog", "RunLive"]


def test_a_withheld_later_page_makes_the_actors_anew():
    """The child holds half a history: left there, the run would look like one that waits, and wait for ever."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.answer()
    bench.answer()
    bench.flush()
    bench.do(Pause(run=RUN, code="operator", detail=""))
    bench.do(Unpause(run=RUN, by="me"))
    first = ReadLog(run=RUN, after=0, limit=1)
    request = bench.requests.popleft()
    bench.tell(Outcome(request.correlation, bench.paper.submit(first)))
    page = bench.limits.page
    assert bench.asked == [ReadLog(run=RUN, after=1, limit=page, mails=page)]
    with pytest.raises(LogUnreadable, match="the disk is full"):
        bench.answer(Withheld("the disk is full"))


def test_a_claim_that_outlived_its_generation_is_put_to_use_or_back():
    """The answer comes when another child is up: what happens next follows from where the mail is now."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.tell(GenerationDown(Generation(1), unexpected=True))
    bench.do(BeginGeneration())
    bench.answer()
    assert bench.asked == []
    bench.tell(GenerationUp(Generation(2), CHILD))
    assert bench.asked == [TakeUp(arrival=1, start=START)]


def test_late_news_of_an_older_child_changes_nothing():
    """GenerationDown of a child that has a successor is about nobody here."""
    bench = started()
    bench.up()
    before = bench.state
    bench.tell(GenerationDown(Generation(1), unexpected=True))
    assert bench.state == before


def test_a_page_of_an_older_session_is_dropped():
    """An answer finds its session by its number; the next child reads for itself."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.answer()
    bench.answer()
    bench.flush()
    late = bench.requests.popleft()
    bench.up()
    bench.tell(Outcome(late.correlation, bench.paper.submit(late.what)))
    assert bench.kinds() == ["GrantsUpdated", "GrantsUpdated"]


@pytest.mark.parametrize("message", [Durable(1), Woken(1), GenerationUp(Generation(1), CHILD), RunLogCredit(run=RUN)])
def test_a_message_before_the_snapshot_is_an_error(message):
    """Nobody sends one: the host would be broken, and guessing would hide it."""
    with pytest.raises(OutOfTurn):
        advance(Unopened(Setup(start=START, limits=Limits())), message, NOW)


def test_a_second_snapshot_is_an_error_and_an_early_end_is_none():
    """A dispatch is subscribed once; a child that never came up is no news before that."""
    bench = Bench()
    with pytest.raises(OutOfTurn):
        bench.tell(bench.paper.snapshot())
    first = Unopened(Setup(start=START, limits=Limits()))
    assert advance(first, GenerationDown(Generation(1), unexpected=False), NOW).state == first


def test_a_log_that_does_not_fit_together_is_reported_and_never_guessed_at():
    """A page that is empty before its end would be read for ever; a gap would be handed on as history."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.answer()
    bench.answer()
    bench.flush()
    with pytest.raises(LogUnreadable):
        bench.answer(Done(9, LogPage(RUN, (), 3)))
    bench = started()
    bench.paper.submit(Pause(run=RUN, code="operator", detail=""))
    (news,) = bench.paper.taken()
    assert isinstance(news, Committed)
    (fact,) = news.facts
    assert isinstance(fact, Appended)
    gap = structs.replace(fact.events[0], event=ev.RunPaused(seq=7, code="operator"))
    with pytest.raises(LogUnreadable):
        bench.tell(structs.replace(news, facts=(structs.replace(fact, events=(gap,)),)))


def test_a_run_live_is_sent_once():
    """After it, the stream alone carries the run."""
    bench = started()
    bench.mail(2, to="<m1@x>")
    bench.settle()
    assert RunLive(run=RUN) not in bench.sent
    assert not any(isinstance(payload, RunLog) for payload in bench.sent)
