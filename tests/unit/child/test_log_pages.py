"""What comes with a page of a run's log: the mails of its events, and no more than there is room for."""

from substrate.messages import Claim, LogPage, QueueMail, ReadLog, TakeUp, WorkflowProcess
from substrate.questions import answer
from waypost import Mail, Workflow, receive
from waypost.child import effects as fx
from waypost.child.drive import Drive
from waypost.child.loop import WorkflowLoop
from waypost.child.phase import Phase
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.limits import DEFAULT
from waypost.testing.desk import BOSS, Desk, call, message
from waypost.testing.memory_log import MemoryLog

CHILD = WorkflowProcess(Generation(1))
MINE, MORE = message("m1@x"), message("m2@x", answers="m1@x")
letters = Workflow("letters", address="letters@example.com", runs="message")


@letters.run
async def read_two(mail: Mail) -> str:
    """Two mails, and what is in their subjects."""
    return f"{mail.subject}, {(await receive()).subject}"


def a_run_with_three_mails(desk: Desk) -> RunId:
    """The first one, one that is read, and one that is a decision."""
    desk.begin()
    run = desk.start(MINE)
    desk.append(run, ev.SignalAwaited(call=call(1), park="input", seen=1))
    desk.must(Claim(arrival=desk.enqueue(MORE)))
    desk.must(TakeUp(arrival=2, wait=call(1)))
    desk.must(QueueMail(by=CHILD, run=run, call=call(2), to=(BOSS,), subject="Pay?", text="Pay?"))
    request = next(event.message_id for event in desk.events(run) if isinstance(event, ev.MailQueued))
    desk.append(run, ev.SignalAwaited(call=call(3), park="approval", seen=3, title="?", who=(BOSS,), request=request))
    desk.must(Claim(arrival=desk.enqueue(message("m3@x", answers="m1@x", sender=BOSS, text="yes"))))
    desk.must(TakeUp(arrival=3, wait=call(3), decision=ev.Decision(approved=True, by=BOSS, via="mail")))
    return run


def test_a_page_brings_the_mails_of_its_events_as_far_as_there_is_room() -> None:
    """The code can't go on without them: each that it has to ask for holds its run up once more."""
    desk = Desk()
    run = a_run_with_three_mails(desk)

    def brought(mails: int, after: int = 0) -> tuple[bytes, ...]:
        page = answer(desk.index, ReadLog(run=run, after=after, limit=2**20, mails=mails))
        assert isinstance(page, LogPage)
        assert len(page.events) == 6 - after
        return page.mails

    page = answer(desk.index, ReadLog(run=run, limit=2**20))
    assert isinstance(page, LogPage)
    weight = sum(map(len, page.events))
    assert brought(2**20) == (MINE, MORE)
    assert brought(2**20, after=1) == (MORE,)
    assert brought(weight + len(MINE)) == (MINE,)
    assert brought(0) == brought(weight) == page.mails == ()


def a_drive(log: MemoryLog, announced: int) -> Drive:
    """A run in a child that was told of a log of so many events."""
    return Drive(
        log.run,
        last_seq=announced,
        repository=log.repository,
        workflow=letters,
        limits=DEFAULT,
        program=WorkflowLoop.create,
    )


def kinds(drive: Drive) -> list[type[fx.Effect]]:
    """What it wants done now."""
    return [type(effect) for effect in drive.effects()]


def test_a_child_asks_for_no_mail_that_came_with_its_page() -> None:
    """A thousand runs that are resumed were a thousand questions, one after another."""
    log = MemoryLog()
    log.start(MINE)
    for mails, expected in (((MINE,), fx.Append), ((MORE,), fx.Fetch), ((), fx.Fetch)):
        drive = a_drive(log, 1)
        drive.page(log.events, mails)
        drive.live()
        assert kinds(drive) == [expected]


def test_a_page_that_is_all_of_the_log_gives_no_credit() -> None:
    """No page follows it; any other one is answered, or the host would wait for ever before the fifth."""
    log = MemoryLog()
    log.start(MINE)
    log.append([ev.SignalAwaited(call=CallId("r1#1"), park="input", seen=1)])
    whole, halves = a_drive(log, 2), a_drive(log, 2)
    whole.page(log.events, (MINE,))
    assert fx.Credit not in kinds(whole)
    for half in (log.events[:1], log.events[1:]):
        halves.page(half, (MINE,))
        assert fx.Credit in kinds(halves)


def test_a_log_that_grew_between_two_of_its_pages_is_taken_as_it_is() -> None:
    """What comes to a run while its pages are under way is in the last of them, and no fault of the host."""
    log = MemoryLog()
    log.start(MINE)
    drive = a_drive(log, 1)
    drive.page(log.events, (MINE,))
    log.append([ev.SignalAwaited(call=CallId("r1#1"), park="input", seen=1)])
    drive.page(log.events[1:])
    drive.live()
    assert (drive.phase, drive.seq) == (Phase.LIVE, 2)
