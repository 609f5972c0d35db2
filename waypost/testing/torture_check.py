"""Were the promises kept? Read from the disk alone, after a torture has come to its end.

Every acknowledged mail is there, for the run that was said; each mail was consumed by exactly one event; each step that
is done is in the ledger, once; each acknowledged signal is in its run's log, once; who was cancelled was meant;
chains, flush numbers, hashes and signatures are whole; no commit breaks a rule; git has nothing to complain about.
Runs are read one at a time: memory is a few words for each mail.
"""

from collections import Counter
from collections.abc import Iterator

from msgspec import UNSET

from substrate.checking.fsck import Looked
from substrate.checking.fsck import fsck as rule_book
from substrate.checking.verify import verify
from substrate.errors import SubstrateError
from substrate.reader import Reader
from substrate.signing.keys import PublicKey
from waypost.model import events as ev
from waypost.model.ids import CallId, idempotency_key
from waypost.testing.stores import git, overfull
from waypost.testing.torture import Torture

_ALL = 1 << 40


def broken(world: Torture) -> list[str]:
    """Every promise that wasn't kept, in words; nothing as a rule."""
    key = PublicKey.load(world.data.public_key)
    found = list(world.tally.broken)
    for name in world.names:
        for part in (_proof, _git, _rules, _mails, _steered):
            try:
                found.extend(part(world, name, key))
            except SubstrateError as failure:
                found.append(f"{name}: {part.__name__}: {failure.message}")
    try:
        found.extend(_notes(world, key))
    except SubstrateError as failure:
        found.append(f"notes: {failure.message}")
    return found


def _proof(world: Torture, name: str, key: PublicKey) -> Iterator[str]:
    yield from (f"verify {name}: {fault}" for fault in verify(world.repository(name), key).faults)


def _git(world: Torture, name: str, _key: PublicKey) -> Iterator[str]:
    said = git(world.repository(name), "fsck", "--strict", "--full", "--no-progress", check=False)
    said += "".join(overfull(world.repository(name)))
    if said:
        yield f"git fsck {name}: {said}"


def _rules(world: Torture, name: str, key: PublicKey) -> Iterator[str]:
    for each in rule_book(world.repository(name), Looked(), key=key):
        yield f"rule {each.rule}: {each.commit[:12]} {each.path}: {each.value}"


def _mails(world: Torture, name: str, key: PublicKey) -> Iterator[str]:
    reader = Reader.open(world.repository(name), key)
    lines = list(reader.queue(consumed=True))
    places = Counter(line.entry.id for line in lines)
    yield from (f"mail {name} is in {count} places" for name, count in places.items() if count > 1)
    yield from (f"mail {line.entry.id} is still in {line.place}" for line in lines if line.place != "consumed")
    arrivals = {line.entry.arrival: (line.entry.id, line.entry.run) for line in lines}
    for sent in (each for each in world.tally.sent if each.deployment == name):
        identity, run = arrivals.get(sent.arrival, ("", ""))
        # A reply to a run that was cancelled before it was taken up has become another run's.
        if identity != f"<{sent.name}@x>" or (run != sent.run and sent.run not in world.tally.cancelled):
            yield f"{sent} was acknowledged; there is {arrivals.get(sent.arrival)}"
    events = Counter(
        event.mail.id
        for line in reader.runs(_ALL)
        for event in map(ev.decode, reader.log(line.run))
        if isinstance(event, ev.RunStarted | ev.SignalReceived) and event.mail is not UNSET
    )
    if events != places:
        yield f"mails and the events that they caused differ: {(events - places) or (places - events)}"


def _steered(world: Torture, name: str, key: PublicKey) -> Iterator[str]:
    """A signal is in its run's log once, and was read where the run was let go on; nobody else was cancelled."""
    reader = Reader.open(world.repository(name), key)
    words = dict(world.tally.signalled)
    for line in reader.runs(_ALL):
        if line.state == "cancelled" and line.run not in world.tally.cancelled:
            yield f"{line.run} was cancelled by nobody"
        if line.run in words:
            events = map(ev.decode, reader.log(line.run))
            ids = [each.signal for each in events if isinstance(each, ev.SignalReceived)]
            if ids.count(words[line.run]) != 1:
                yield f"{line.run} has signal {words[line.run]} {ids.count(words[line.run])} times"
            if line.state == "parked":
                yield f"{line.run} was signalled, and still waits"


def _notes(world: Torture, key: PublicKey) -> Iterator[str]:
    """A finished step is in the ledger once; what is in it more than once, or of nobody, is work done twice."""
    noted = Counter(key for key, _ in world.ledger)
    yield from (f"{each} is {count} times in the ledger" for each, count in noted.items() if count > 1)
    begun: set[str] = set()
    for name in world.names:
        yield from _of_one(world, name, key, noted, begun)
    yield from (f"{each} is in the ledger and in no log" for each in noted.keys() - begun)


def _of_one(world: Torture, name: str, key: PublicKey, noted: Counter[str], begun: set[str]) -> Iterator[str]:
    reader = Reader.open(world.repository(name), key)
    repository = reader.facts().repository
    for line in reader.runs(_ALL):
        start: ev.RunStarted | None = None
        for event in map(ev.decode, reader.log(line.run)):
            if isinstance(event, ev.RunStarted):
                start = event
            elif start is not None and isinstance(event, ev.StepStarted | ev.StepCompleted):
                step = idempotency_key(repository, start.origin, CallId(event.call))
                begun.add(step)
                if isinstance(event, ev.StepCompleted) and noted[step] != 1:
                    yield f"{line.run} {event.call} is done, and {noted[step]} times in the ledger"
            elif isinstance(event, ev.RunFailed | ev.StepFailed):
                yield f"{line.run} failed: {event.error.type}: {event.error.message}"
