"""What a run's log says of threads: the mails that belong to the run, for whoever files it away."""

import pytest

from substrate import runlog
from substrate.errors import Damaged
from substrate.messages import Answer, QueueMail, WorkflowProcess
from substrate.operations.sealing import thread_of
from substrate.routing import Thread
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId, message_key
from waypost.testing.desk import BOSS, Desk, call, message

RUN = RunId("run_1_0000000000000001")


def test_the_mails_it_was_given_and_those_it_sent_belong_to_a_run() -> None:
    """A reply to any of them finds it; an answer that an operator typed came with no mail, and adds none."""
    desk = Desk()
    desk.begin()
    run = desk.start(message("m1@x"))
    child = WorkflowProcess(Generation(1))
    desk.must(QueueMail(by=child, run=run, call=call(1), to=(BOSS,), subject="s", text="t"))
    request = desk.index.outbox[1].outgoing.message_id
    desk.append(run, ev.SignalAwaited(call=call(2), park="approval", seen=2, who=(BOSS,), request=request))
    desk.must(Answer(run=run, call=None, decision=ev.Decision(approved=True, by="root", via="cli")))
    found = thread_of(run, runlog.events(desk.index, run))
    assert found == Thread(run, None, (message_key(b"<m1@x>"), message_key(request.encode())))


@pytest.mark.parametrize("raw", [b'{"seq":1,"type":"RunStarted"}', b"MailQueued", b'{"seq":3,"type":"SignalReceived"'])
def test_an_event_that_cannot_be_read_is_damage_and_names_its_run(raw: bytes) -> None:
    """To pass over it would lose a thread without a word: the next reply would start a run that follows nothing."""
    with pytest.raises(Damaged, match=f"{RUN}'s log"):
        thread_of(RUN, [raw])
