"""Were the promises kept? Read from the disk alone, after a torture has come to its end.

Every acknowledged mail is there, for the run that was said; each mail was consumed by exactly one event; each step that
is done is in the ledger, once; chains, flush numbers, hashes and signatures are whole; no commit breaks a rule; git has
nothing to complain about. Runs are read one at a time: memory is a few words for each mail.
"""

from collections import Counter
from collections.abc import Iterator

from msgspec import UNSET

from substrate.errors import SubstrateError
from substrate.fsck import Looked
from substrate.fsck import fsck as rule_book
from substrate.keys import PublicKey
from substrate.reader import Reader
from substrate.verify import verify
from waypost.model import events as ev
from waypost.model.ids import CallId, idempotency_key
from waypost.testing.stores import git, overfull
from waypost.testing.torture import Torture

_ALL = 1 << 40


def broken(world: Torture) -> list[str]:
    """Every promise that wasn't kept, in words; nothing as a rule."""
    key = PublicKey.load(world.data.public_key)
    found = list(world.tally.broken)
    for part in (_proof, _git, _rules, _mails, _notes):
        try:
            found.extend(part(world, key))
        except SubstrateError as failure:
            found.append(f"{part.__name__}: {failure.message}")
    return found


def _proof(world: Torture, key: PublicKey) -> Iterator[str]:
    yield from (f"verify: {fault}" for fault in verify(world.repository, key).faults)


def _git(world: Torture, _key: PublicKey) -> Iterator[str]:
    said = git(world.repository, "fsck", "--strict", "--full", "--no-progress", check=False)
    said += "".join(overfull(world.repository))
    if said:
        yield f"git fsck: {said}"


def _rules(world: Torture, key: PublicKey) -> Iterator[str]:
    for each in rule_book(world.repository, Looked(), key=key):
        yield f"rule {each.rule}: {each.commit[:12]} {each.path}: {each.value}"


def _mails(world: Torture, key: PublicKey) -> Iterator[str]:
    reader = Reader.open(world.repository, key)
    lines = list(reader.queue(consumed=True))
    places = Counter(line.entry.id for line in lines)
    yield from (f"mail {name} is in {count} places" for name, count in places.items() if count > 1)
    yield from (f"mail {line.entry.id} is still in {line.place}" for line in lines if line.place != "consumed")
    arrivals = {line.entry.arrival: (line.entry.id, line.entry.run) for line in lines}
    for sent in world.tally.sent:
        if arrivals.get(sent.arrival) != (f"<{sent.name}@x>", sent.run):
            yield f"{sent} was acknowledged; there is {arrivals.get(sent.arrival)}"
    events = Counter(
        event.mail.id
        for line in reader.runs(_ALL)
        for event in map(ev.decode, reader.log(line.run))
        if isinstance(event, ev.RunStarted | ev.SignalReceived) and event.mail is not UNSET
    )
    if events != places:
        yield f"mails and the events that they caused differ: {(events - places) or (places - events)}"


def _notes(world: Torture, key: PublicKey) -> Iterator[str]:
    """A finished step is in the ledger once; what is in it more than once, or of nobody, is work done twice."""
    reader = Reader.open(world.repository, key)
    repository = reader.facts().repository
    noted = Counter(key for key, _ in world.ledger)
    yield from (f"{each} is {count} times in the ledger" for each, count in noted.items() if count > 1)
    begun: set[str] = set()
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
    yield from (f"{each} is in the ledger and in no log" for each in noted.keys() - begun)
