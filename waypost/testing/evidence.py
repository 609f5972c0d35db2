"""What a host left behind, read from the disk alone, and what must be true of it whatever was killed on the way.

The readers are the product's own, over the repository as it lies there; ``git`` is asked, too. Each check raises
AssertionError with the run, the call and the two things that don't agree.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from msgspec import UNSET

from substrate.checking.history import back_to_the_start
from substrate.checking.looking import look
from substrate.checking.verify import verify
from substrate.packs.objects import Kind, parse_commit
from substrate.reader import QueueLine, Reader
from substrate.signing.keys import PublicKey
from waypost.host.answers.records import Answer, Answered, MailTaken, Problem
from waypost.host.datadir.directory import DataDir
from waypost.model import events as ev
from waypost.model.ids import CallId, RunId, idempotency_key
from waypost.testing.stores import fsck


@dataclass(frozen=True, slots=True)
class Story:
    """One run's log."""

    run: RunId
    repository: str
    events: tuple[ev.AnyEvent, ...]

    @property
    def start(self) -> ev.RunStarted:
        """Its first event."""
        first = self.events[0]
        assert isinstance(first, ev.RunStarted), first
        return first

    @property
    def mail(self) -> str:
        """Message-ID of the mail that started it: its name in every play of one scenario."""
        return self.start.mail.id

    def key(self, call: str) -> str:
        """The idempotency key of a call."""
        return idempotency_key(self.repository, self.start.origin, CallId(call))

    @property
    def outcomes(self) -> dict[str, object]:
        """By call, what it came to; under ``""`` how the run ended. Attempts and times take no part."""
        found: dict[str, object] = {}
        for event in self.events:
            match event:
                case ev.StepCompleted():
                    found[event.call] = _text(event.output)
                case ev.StepFailed(final=True):
                    found[event.call] = (event.error.type, event.error.message)
                case ev.SignalReceived():
                    decision = event.decision
                    word = event.name or "mail"
                    found[event.call or word] = word if decision is UNSET else (decision.approved, decision.via)
                case ev.TimerFired() if event.timer == event.call:
                    found[event.call] = "time"
                case ev.MailSent():
                    found[event.call] = "sent"
                case ev.RunCompleted():
                    found[""] = _text(event.result)
                case ev.RunFailed():
                    found[""] = (event.error.type, event.error.message)
                case _:
                    pass
        return found


def _text(value: ev.Value) -> str:
    """A value's JSON, or the name of its blob."""
    return str(value.blob) if value.inline is UNSET else bytes(value.inline).decode()


@dataclass(frozen=True, slots=True)
class Evidence:
    """A deployment's repository at rest. ``generation`` is the newest that was begun."""

    generation: int
    stories: dict[str, Story]
    """By the Message-ID of the mail that started the run."""
    queue: tuple[QueueLine, ...]

    @classmethod
    def read(cls, repository: Path, key: PublicKey) -> "Evidence":
        """Read it as recovery would, changing nothing."""
        reader = Reader.open(repository, key)
        known = reader.facts()
        stories = [
            Story(line.run, known.repository, tuple(map(ev.decode, reader.log(line.run))))
            for line in reader.runs()
            if line.seq
        ]
        by_mail = {story.mail: story for story in stories}
        assert len(by_mail) == len(stories), f"two runs of one mail: {[(s.mail, s.run) for s in stories]}"
        return cls(known.generation, by_mail, tuple(reader.queue(consumed=True)))

    @property
    def outcomes(self) -> dict[str, dict[str, object]]:
        """By mail, then by call."""
        return {mail: story.outcomes for mail, story in self.stories.items()}


def subjects(repository: Path, key: PublicKey) -> list[str]:
    """What each commit says, from the first one on, those in journals among them."""
    found = look(repository, key)
    steps = back_to_the_start(found.objects, found.tip, lambda _commit: ())
    commits = (parse_commit(found.objects.object(Kind.COMMIT, step.oid)) for step in steps)
    return [commit.message.decode().partition("\n")[0] for commit in commits]


@dataclass(frozen=True, slots=True)
class Body:
    """A step's body began: in which process, and when (Unix ms)."""

    key: str
    step: str
    pid: int
    at: int


def bodies(file: Path) -> list[Body]:
    """Read a book of bodies, one ``KEY STEP PID MS`` a line."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return [Body(key, step, int(pid), int(at)) for key, step, pid, at in map(str.split, lines)]


# --- checks --------------------------------------------------------------------------------------------------------


def check_repository(data: DataDir, deployment: str, key: PublicKey) -> None:
    """Git finds nothing to complain about, and our own verification neither."""
    repository = data.repo(deployment)
    assert fsck(repository) == ""
    report = verify(repository, key)
    assert report.sound, "\n".join(map(str, report.faults))
    assert report.pinned


def check_consumed_once(evidence: Evidence) -> None:
    """Every mail was taken up, each by exactly one event, and none of them lies anywhere else."""
    places = Counter(line.entry.id for line in evidence.queue)
    assert max(places.values()) == 1, f"a mail lies in two places: {places}"
    assert {line.place for line in evidence.queue} == {"consumed"}, [(q.entry.id, q.place) for q in evidence.queue]
    events = Counter(
        event.mail.id
        for story in evidence.stories.values()
        for event in story.events
        if isinstance(event, ev.RunStarted | ev.SignalReceived) and event.mail is not UNSET
    )
    assert events == places, f"mails and the events that they caused differ: {places} and {events}"


def check_mail_out(evidence: Evidence, delivered: list[tuple[str, str, str]]) -> None:
    """What the log queued is what was delivered, each once, and nothing else."""
    queued = [
        event.message_id
        for story in evidence.stories.values()
        for event in story.events
        if isinstance(event, ev.MailQueued)
    ]
    assert sorted(queued) == sorted(message_id for message_id, _, _ in delivered)
    assert len(set(queued)) == len(queued), f"one Message-ID was queued twice: {queued}"


def check_acknowledged(evidence: Evidence, answers: Iterable[Answer]) -> None:
    """Every acknowledgement that anybody got is borne out: that mail is here, for that run; that wait was answered."""
    arrivals = {line.entry.arrival: line.entry.run for line in evidence.queue}
    answered = {
        (story.run, event.call)
        for story in evidence.stories.values()
        for event in story.events
        if isinstance(event, ev.SignalReceived)
    }
    for answer in answers:
        match answer:
            case MailTaken():
                assert arrivals.get(answer.arrival) == answer.run, f"{answer} was acknowledged; there is {arrivals}"
            case Answered():
                assert (answer.run, answer.call) in answered, f"{answer} was acknowledged; there is {answered}"
            case Problem(code="already-decided"):
                pass  # the first answer's acknowledgement got lost; which one counts is in the outcomes
            case _:
                raise AssertionError(f"an acknowledgement of another kind: {answer}")


def check_bodies(evidence: Evidence, book: list[Body]) -> None:
    """No finished step ran again; what ran had its StepStarted; a repeat had the same key, in another process."""
    known: dict[str, list[ev.AnyEvent]] = {}
    for story in evidence.stories.values():
        for event in story.events:
            if isinstance(event, ev.StepStarted | ev.StepCompleted | ev.StepFailed):
                known.setdefault(story.key(event.call), []).append(event)
    for key in {body.key for body in book}:
        _check_step(known.get(key, []), [body for body in book if body.key == key])


def _check_step(events: list[ev.AnyEvent], ran: list[Body]) -> None:
    starts = [event for event in events if isinstance(event, ev.StepStarted)]
    ends = [event for event in events if isinstance(event, ev.StepCompleted | ev.StepFailed)]
    assert starts, f"a body ran without a StepStarted: {ran}"
    assert {body.step for body in ran} == {start.step for start in starts}, f"one key, two steps: {ran}"
    completed = [end for end in ends if isinstance(end, ev.StepCompleted)]
    assert len(completed) <= 1, f"completed twice: {completed}"
    tries_of = Counter(body.pid for body in ran)
    assert max(tries_of.values()) <= len(starts), f"one process ran a try twice: {ran}, {starts}"
    # Both by the machine's wall clock, one after the other: a body that began after its step was recorded as done would
    # be a finished step that ran again.
    late = [body for body in ran if completed and body.at > milliseconds(completed[0].at)]
    assert not late, f"ran again after it was done at {completed[0].at}: {late}"


def milliseconds(at: str) -> int:
    """An event's time as Unix ms."""
    from datetime import datetime

    return round(datetime.fromisoformat(at).timestamp() * 1000)
