"""The child's runtime against the host's own requests: values that are over the quota together are kept in turn."""

import asyncio
from queue import SimpleQueue
from threading import Thread

from actors.logic.child.requests import Requests, answer, take
from ipc.messages import (
    AppendRequest,
    BlobChunk,
    BlobGet,
    BlobPut,
    EventsCommitted,
    GrantsUpdated,
    Message,
    RunLive,
    RunLog,
    RunStart,
)
from substrate.messages import Done
from waypost import Mail, Workflow
from waypost.child.bodies import Bodies
from waypost.child.mailbox import Arrived, ChannelClosed, Mailbox
from waypost.child.runtime import Runtime
from waypost.child.wire import Wire
from waypost.model import events as ev
from waypost.model.ids import Generation
from waypost.model.limits import Limits
from waypost.testing.memory_log import GRANTED, MemoryLog
from waypost.testing.patience import PATIENCE

MAIL = b"From: ann@example.com\r\nMessage-ID: <1@x>\r\nSubject: 7\r\n\r\nplease\r\n"
LIMITS = Limits(inline=100, unreferenced_blobs=2500)

flow = Workflow("orders", address="orders@example.com")


@flow.step
def large(fill: str) -> str:
    """A value of 1002 bytes."""
    return fill * 1000


@flow.run
async def order(mail: Mail) -> int:
    """Five values at once, two of them the same; only two fit beside each other."""
    return len("".join(await asyncio.gather(*map(large, "abcdb"))))


class Host(Wire):
    """In the wire's place: each request goes over the host's requests, and is answered at once from a log in memory."""

    def __init__(self, log: MemoryLog, mailbox: Mailbox) -> None:
        super().__init__(-1, -1, control_sender=None, events_sender=None)  # type: ignore[arg-type]  # nothing is sealed
        self.log, self.mailbox, self.requests = log, mailbox, Requests()

    def send(self, message: Message) -> None:
        """Serve the child. The run's end ends it."""
        if isinstance(message, BlobGet):
            data = self.log.blobs[message.sha256]
            self.mailbox.put(Arrived(BlobChunk(id=message.id, offset=0, size=len(data), data=data)))
        if not isinstance(message, AppendRequest | BlobPut):
            return
        given = take(self.requests, message, generation=Generation(1), limits=LIMITS)
        if isinstance(message, BlobPut):
            self.log.blobs[message.sha256] = message.data
        else:
            raw = self.log.append(map(ev.decode, message.events))
            self.mailbox.put(Arrived(EventsCommitted(run=self.log.run, events=raw)))
        said = list(given.say)
        self.requests = given.requests
        for submitted in given.submit:
            answered = answer(self.requests, submitted.correlation, Done(0))
            self.requests = answered.requests
            said += answered.say
        for each in said:
            self.mailbox.put(Arrived(each))  # type: ignore[arg-type]  # no blob is asked for
        if self.log.ended:
            self.mailbox.put(ChannelClosed(""))


def test_values_over_the_quota_together_are_kept_in_turn() -> None:
    """Each of them is allowed, so the run must not fail for having them at the same time."""
    log, mailbox = MemoryLog(), SimpleQueue()  # type: ignore[var-annotated]  # Mailbox is one of notes
    log.start(MAIL)
    host = Host(log, mailbox)
    bodies = Bodies(mailbox, LIMITS)
    runtime = Runtime(flow, wire=host, bodies=bodies, mailbox=mailbox, limits=LIMITS)
    serving = Thread(target=runtime.serve, daemon=True)
    serving.start()
    for message in (
        GrantsUpdated(grants=GRANTED, sha256=ev.digest(GRANTED)),
        RunStart(run=log.run, definition="0" * 64, last_seq=1, grants=ev.digest(GRANTED), repository=log.repository),
        RunLog(run=log.run, events=log.raw),
        RunLive(run=log.run),
    ):
        mailbox.put(Arrived(message))
    serving.join(PATIENCE)
    mailbox.put(ChannelClosed(""))
    bodies.close()
    assert not serving.is_alive(), [ev.kind(event) for event in log.events]
    end = log.events[-1]
    assert isinstance(end, ev.RunCompleted), end
    assert bytes(end.result.inline) == b"5000"  # type: ignore[arg-type]  # small
    assert not host.requests.held
