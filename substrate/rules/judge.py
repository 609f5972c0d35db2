"""One commit, all rules: what it breaks, and each run that it touches as it is after it.

Only what the commit touches is looked at. A plain append, which is most of what is ever written, goes a short way.
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import UNSET

from substrate import layout
from substrate.access import AUTHORS
from substrate.errors import Damaged
from substrate.rules.children import kin, spawned
from substrate.rules.code import begun_on, coded
from substrate.rules.commit import Before, Commit, Ground, OfRun, Sorted, sort
from substrate.rules.counts import counted, formatted, marked, state_after
from substrate.rules.grants import granted
from substrate.rules.logs import CHILD, Log, extended, follows_only
from substrate.rules.outbox import Told, outgoing
from substrate.rules.plain import plain_append
from substrate.rules.queue import Caused, mail
from substrate.rules.runs import beside_log, crowded, has, sealing
from substrate.rules.schedules import scheduled
from substrate.rules.table import Broken, broken
from substrate.runlog import ABSENT, Known
from substrate.state import State
from waypost.model import events as ev
from waypost.model.ids import RunId, run_ordinal


class Verdict(msgspec.Struct, frozen=True):
    """What a commit breaks, and the runs whose logs it extends, after it."""

    broken: tuple[Broken, ...]
    known: dict[RunId, Known]
    state: State


def judge(before: Before, commit: Commit, ground: Ground) -> Verdict:
    """Hold a commit against the rule book. Raises Damaged where what it builds on can't be read."""
    plain = plain_append(before, commit, ground)
    if plain is not None:
        return Verdict((), {plain[0]: plain[1]}, before.state)
    return judge_all(before, commit, ground)


def judge_all(before: Before, commit: Commit, ground: Ground) -> Verdict:
    """The same without the short way for plain appends. Raises Damaged."""
    made = sort(before, commit)
    found = made.found
    after = state_after(before, made, found)
    logs = [_of_run(before, commit, run, part, ground, found) for run, part in made.runs.items()]
    found += _authored(commit, made, logs)
    found += kin(before, commit, made, logs, ground)
    caused: list[Caused] = []
    told: list[Told] = []
    for each in logs:
        _effects(after, each, caused, told, found)
        found += _set_aside(commit, each)
    for cause in caused:
        if isinstance(cause.event, ev.RunStarted):
            found += begun_on(before, made, cause.run, cause.event)
    found += mail(before, made, after, caused, ground)
    found += outgoing(before, made, after, told)
    found += counted(before, made, after)
    found += marked(before, made, after, ground)
    found += formatted(before, made, after)
    found += coded(before, commit, made)
    found += scheduled(before, commit, made)
    found += granted(before, commit, made)
    found += _others(before, made, ground)
    return Verdict(tuple(found), {each.run: each.known for each in logs}, after)


def _of_run(before: Before, commit: Commit, run: RunId, part: OfRun, ground: Ground, found: list[Broken]) -> Log:
    try:
        if part.sealed_log is not None or part.sealed_grants is not None or part.sealed_blobs or _of_sealed(part):
            found += sealing(before, run, part, ground)
            return Log(run, before.known(run))
        log = extended(before, commit, run, part, ground, found)
        found += beside_log(before, log, part, ground)
    except Damaged as damage:
        found.append(broken("record", damage.file, damage.why))
        return Log(run, ABSENT)
    return log


def _of_sealed(part: OfRun) -> bool:
    return any(place.kind.startswith("sealed") for place in part.gone.values())


def _effects(after: State, log: Log, caused: list[Caused], told: list[Told], found: list[Broken]) -> None:
    """What a run's new events say of the queue, the outbox and the counts."""
    for event in log.events:
        match event:
            case ev.RunStarted():
                caused.append(Caused(log.run, event, isinstance(log.events[-1], ev.RunCancelled)))
                if not run_ordinal(log.run) < after.run:
                    found.append(broken("ordinals", layout.run_dir(log.run), f"{after.run} is the next run"))
            case ev.SignalReceived() if event.mail is not UNSET:
                caused.append(Caused(log.run, event))
            case ev.MailQueued() | ev.MailSent():
                told.append(Told(log.run, event))
            case ev.MailFailed() if event.ordinal is not UNSET:
                told.append(Told(log.run, event))
            case _:
                pass
        if (
            isinstance(event, ev.RunStarted | ev.RunResumed | ev.RunInterrupted)
            and event.generation != after.generation
        ):
            words = f"{ev.kind(event)} of generation {event.generation}, {after.generation} is at work"
            found.append(broken("generation", layout.event_path(log.run, event.seq), words))


def _set_aside(commit: Commit, log: Log) -> Iterator[Broken]:
    """What an exit of the child leads to comes with the count of it; an administrator may bring it from elsewhere."""
    if commit.author != "supervisor" or any(isinstance(event, ev.RunInterrupted) for event in log.events):
        return
    for event in log.events:
        match event:
            case ev.StepFailed(code="child-crashed") | ev.RunPaused(code="poison"):
                where = layout.event_path(log.run, event.seq)
                yield broken("exits", where, f"{ev.kind(event)} {event.code}, and no exit is counted with it")
            case _:
                pass


def _authored(commit: Commit, made: Sorted, logs: Iterable[Log]) -> Iterator[Broken]:
    """A child's commit is events and values of one run, and what follows for other runs; everything else is the host's.

    What may follow are events of the run's parent and its children, and the end of a child that is only queued.
    """
    if commit.author not in AUTHORS:
        yield broken("author", "", f"{commit.author!r} is no principal that writes")
        return
    if commit.author != CHILD:
        return
    own = [log.run for log in logs if not follows_only(log)]
    if len(own) > 1:
        yield broken("fence", "", f"a child's commit touches {len(own)} runs")
    unbegun = {place.key for place, raw in made.entries.values() if place.kind == "consumed" and spawned(raw)}
    moved = {path: place for path, (place, _) in made.entries.items()} | made.gone_entries
    other = next((path for path, place in moved.items() if place.key not in unbegun), "")
    other = other or next(iter((*made.outbox, *made.gone_outbox, *made.others, *made.gone_others)), "")
    single = made.single.keys() - ({"state", "watermark"} if unbegun else set())
    if other or single or made.mails:
        yield broken("author", other or next(iter(sorted(single)), "mail"), f"{CHILD} may not write it")
    for log in logs:
        part = made.of(log.run)
        begun = follows_only(log) and isinstance(log.events[0], ev.RunStarted)
        if (part.grants is not None and not begun) or part.sealed_log or part.sealed_grants or part.sealed_blobs:
            yield broken("author", layout.run_dir(log.run), f"{CHILD} may write events and values only")


def _others(before: Before, made: Sorted, ground: Ground) -> Iterator[Broken]:
    """Mail stays for ever; so do the single files; the rest is bounded."""
    for path, place in made.gone_others.items():
        if place.kind in {"mail", "format", "state", "watermark", "epoch", "signer", "deployed"}:
            yield broken("write-once" if place.kind == "mail" else "missing", path, "it was taken away")
    for arrival, raw in made.mails.items():
        path = layout.mail_path(arrival)
        if len(raw) > ground.limits.mail:
            yield broken("value-size", path, f"{len(raw)} bytes")
        if has(before, path) and before.read(path) != raw:
            yield broken("write-once", path, "a mail's bytes were changed")
        if not any(place.number == arrival for place, _ in made.entries.values()):
            yield broken("mail", path, "a mail without an entry in the queue")
    yield from crowded(before, (path for path, place in made.others.items() if place.kind != "code"))
