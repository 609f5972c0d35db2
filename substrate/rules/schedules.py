"""A schedule's file is what the deployed code declares, and moves by its ticks: each with its mail, or saying why not.

Of a commit: the file comes and goes with the record of what is deployed, and moves by one tick, by nothing else.
A mail that is a tick's comes with that tick, so none can pass for one. ``whole`` says what holds of files that are just
there.
"""

from collections.abc import Iterator, Mapping

from msgspec import UNSET

from substrate import layout
from substrate.rules.commit import Before, Commit, Sorted
from substrate.rules.runs import has
from substrate.rules.table import Broken, broken
from substrate.runlog import Tree
from substrate.ticking import Ticked, declared, decode
from waypost.model.errors import Invalid
from waypost.model.queue import Entry
from waypost.model.queue import decode as decode_entry
from waypost.model.schedule import Schedule, tick_id, tick_of
from waypost.model.times import unstamp

_A_TICK = b'"id":" tick:'
"""What no entry but a tick's has: a header's value is trimmed, so no other id begins with a blank and this word."""


def scheduled(before: Before, commit: Commit, made: Sorted) -> Iterator[Broken]:
    """What a commit does to schedules."""
    puts = {path: commit.puts[path] for path, place in made.others.items() if place.kind == "schedule"}
    gone = [path for path, place in made.gone_others.items() if place.kind == "schedule"]
    ticks = _ticks(made)
    record = made.single.get("deployed")
    if not puts and not gone and not ticks and record is None:
        return
    try:
        known = {
            layout.schedule_path(each.id): each
            for each in declared(before.read(layout.DEPLOYED) if record is None else record)
        }
    except Invalid as bad:
        yield broken("record", layout.DEPLOYED, bad.message)
        return
    for path, raw in puts.items():
        yield from _put(before, path, raw, known, ticks, deploys=record is not None)
    for path in gone:
        if record is None or path in known:
            yield broken("schedule", path, "it went, and the code that is deployed declares it")
    if record is not None:
        yield from (_missing(path) for path in known if path not in puts and not has(before, path))
    for entry in ticks.values():
        yield broken("schedule", layout.mail_path(entry.arrival), f"a mail {entry.id[1:]!r}, and no schedule ticked")


def whole_schedules(tree: Tree) -> Iterator[Broken]:
    """Every schedule that is deployed has its file, and there is no other. Raises Damaged."""
    try:
        known = {layout.schedule_path(each.id): each for each in declared(tree.read(layout.DEPLOYED))}
    except Invalid as bad:
        yield broken("record", layout.DEPLOYED, bad.message)
        return
    there = [f"{layout.SCHEDULES}/{name}" for name in tree.entries(layout.SCHEDULES)]
    for path in there:
        try:
            yield from _names(path, decode(tree.read(path) or b""), known)
        except Invalid as bad:
            yield broken("record", path, bad.message)
    yield from (_missing(path) for path in known if path not in there)


def _ticks(made: Sorted) -> dict[int, Entry]:
    """The entries of new mails that are ticks', by arrival."""
    found: dict[int, Entry] = {}
    for place, raw in made.entries.values():
        if place.number in made.mails and _A_TICK in raw:
            try:
                entry = decode_entry(raw)
            except (Invalid, ValueError):  # said by the rule about records
                continue
            if not entry.base64 and tick_of(entry.id) is not None:
                found[entry.arrival] = entry
    return found


def _put(
    before: Before, path: str, raw: bytes, known: Mapping[str, Schedule], ticks: dict[int, Entry], *, deploys: bool
) -> Iterator[Broken]:
    old_raw = before.read(path)
    try:
        new, old = decode(raw), None if old_raw is None else decode(old_raw)
    except Invalid as bad:
        yield broken("record", path, bad.message)
        return
    wrong = list(_names(path, new, known))
    if wrong:
        yield from wrong
        return
    if deploys:
        same = old is not None and (old.expression, old.tz) == (new.expression, new.tz)
        bare = Ticked(id=new.id, expression=new.expression, tz=new.tz, since=new.since)
        if same and new != old:
            yield broken("schedule", path, "it was changed by a deployment that declares it as before")
        elif not same and (new != bare or (old is not None and new.reached < old.reached)):
            yield broken("schedule", path, f"it begins with {raw.decode('utf-8', 'replace')}")
    elif old is None:
        yield broken("schedule", path, "it begins, and nothing is deployed")
    else:
        yield from _ticked(path, old, new, ticks)


def _names(path: str, ticked: Ticked, known: Mapping[str, Schedule]) -> Iterator[Broken]:
    schedule = known.get(path)
    if path != layout.schedule_path(ticked.id):
        yield broken("name", path, f"it says that it is {ticked.id}")
    elif schedule is None:
        yield broken("schedule", path, "the code that is deployed doesn't declare it")
    elif (ticked.expression, ticked.tz) != (schedule.expression, schedule.tz):
        yield broken("schedule", path, f"it is of {ticked.expression} in {ticked.tz}, declared is another one")


def _ticked(path: str, old: Ticked, new: Ticked, ticks: dict[int, Entry]) -> Iterator[Broken]:
    """One tick was dealt with; its mail, where it has one, is taken out of ``ticks``."""
    if new.since != old.since or new.last is UNSET or new.fate is UNSET:
        yield broken("schedule", path, f"since {old.since}, and now since {new.since}, last {new.last or 'never'}")
        return
    if new.fate in {"sent", "cancelled"}:
        yield from _sent(path, old, new, ticks)
        return
    waiting = (*old.waiting, new.last) if new.fate == "waiting" else old.waiting
    if (new.arrival, new.run, new.waiting) != (old.arrival, old.run, waiting):
        yield broken("schedule", path, f"its tick is {new.fate}, and its mail or what waits is another")
    if (new.reached < old.reached) != (new.fate == "set-back") or new.reached == old.reached:
        yield broken("schedule", path, f"{new.fate}: it went from {old.last or old.since} to {new.last}")


def _sent(path: str, old: Ticked, new: Ticked, ticks: dict[int, Entry]) -> Iterator[Broken]:
    head = bool(old.waiting) and new.last == old.last
    due = old.waiting[0] if head else new.last
    entry = None if new.arrival is UNSET else ticks.pop(new.arrival, None)
    if entry is None or entry.id != tick_id(new.id, unstamp(due or "")) or entry.run != new.run:
        yield broken("schedule", path, f"its tick of {due} has mail {new.arrival or 'none'}, which isn't that tick's")
    if new.waiting != (old.waiting[1:] if head else ()):
        yield broken("schedule", path, f"{len(old.waiting)} ticks waited, and now {len(new.waiting)} do")
    if not head and (old.waiting or new.reached <= old.reached):
        yield broken("schedule", path, f"sent: it went from {old.last or old.since} to {new.last}")


def _missing(path: str) -> Broken:
    return broken("schedule", path, "the code that is deployed declares it, and it has no file")
