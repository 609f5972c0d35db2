"""Seeded corruptions: at least one bad commit for every rule of the book, against one repository that has everything.

Each is what a bug, or somebody with the host's key, could write on top of it; it must be refused by the writer's check
and found by ``fsck``, by the rule that it names.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from substrate import layout, runlog
from substrate import state as files
from substrate.operations.buckets import Watermark
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation
from waypost.model.queue import Outgoing, encode
from waypost.testing.corrupted import NULL, STAMP, Bad, World, completed, started
from waypost.testing.desk import ADDRESS, BOSS, REPOSITORY, call, message

Make = Callable[[World], Bad]


@dataclass(frozen=True, slots=True)
class Corruption:
    """What is done, and the rule that says no to it."""

    name: str
    rule: str
    make: Make

    @property
    def seen(self) -> bool:
        """Whether the tree alone shows it."""
        return self.name not in HISTORY


def _tail(world: World) -> str:
    """The path of the live run's newest event."""
    return layout.event_path(world.live, world.desk.index.known(world.live).seq)


def _spoilt_seal(world: World) -> Bad:
    """A run that hasn't ended, sealed as if it had."""
    events = b"".join(raw + b"\n" for raw in runlog.events(world.store, world.live))
    return Bad(
        puts={
            layout.sealed_log_path(world.live): events,
            layout.sealed_grants_path(world.live): world.read(layout.grants_path(world.live)),
        },
        deletes=(_tail(world),),
    )


def _full_bucket(world: World) -> Bad:
    """A mail that is rejected into a bucket that is closed."""
    bad = world.moved("processing", "consumed", world.claimed, consumed=STAMP, rejected="x")
    puts = {
        path.replace(layout.bucket_dir(ADDRESS, 1), layout.bucket_dir(ADDRESS, 0)): raw
        for path, raw in bad.puts.items()
    }
    return replace(bad, puts=puts)


def _outbox_path(world: World) -> str:
    directory, name = next(runlog.leaves(world.store, layout.OUTBOX))
    return f"{directory}/{name}"


def _crowd(_: World) -> Bad:
    """More schedules than a directory may hold."""
    return Bad(puts={layout.schedule_path(f"s{number}"): b"{}" for number in range(257)})


def _twice(world: World) -> Bad:
    """A mail that is copied to processing and stays in the inbox."""
    bad = world.moved("inbox", "processing", world.inbox)
    return replace(bad, deletes=())


def _segment(world: World) -> Bad:
    """A second segment, before there are events for it."""
    return Bad(puts={layout.segment_path(world.live, 65): b"{}\n"})


def _mail_queued(world: World) -> Bad:
    raw = b"a mail"
    sha256 = hashlib.sha256(raw).hexdigest()
    event = ev.MailQueued(call=call(90), message_id="<x@y>", to=(BOSS,), ordinal=world.state.outbox, sha256=sha256)
    path, stored = world.next(event)
    return Bad(puts={path: stored, layout.blob_path(world.live, sha256): raw})


def _begun(world: World, **changed: object) -> Bad:
    """The claimed mail starts its run; with some of RunStarted changed."""
    _, entry = world.entry("processing", world.claimed)
    grants = world.read(layout.grants_path(world.live))
    event = ev.RunStarted(
        mail=entry.mailed,
        definition="d" * 64,
        code="c" * 64,
        python="3",
        waypost="0",
        generation=Generation(world.state.generation),
        grants=hashlib.sha256(grants).hexdigest(),
        origin=entry.key,
        after=entry.old,
    )
    event = msgspec.structs.replace(event, **changed)
    _, raw = ev.stored(event, seq=1, at=STAMP, prev=ev.genesis(REPOSITORY, entry.run, grants))
    bad = world.moved("processing", "consumed", world.claimed, consumed=STAMP)
    puts = {**bad.puts, layout.event_path(entry.run, 1): raw, layout.grants_path(entry.run): grants}
    return replace(bad, puts=puts)


def _renamed(bad: Bad, old: str, new: str) -> Bad:
    """The same bytes under other names."""
    return replace(bad, puts={path.replace(old, new): raw for path, raw in bad.puts.items()})


def _blob(world: World, data: bytes, name: str, *, number: int = 40) -> Bad:
    """A step that returns a value, which is filed under this name."""
    path, raw = world.next(completed(number, ev.Value(blob=name)))
    return Bad(puts={path: raw, layout.blob_path(world.live, name): data}, author="workflow-process")


def _notice(world: World, **changed: object) -> Bad:
    """A notice for the outbox, with some of its entry changed."""
    entry = Outgoing(
        ordinal=world.state.outbox,
        message_id="<n@x>",
        to=(BOSS,),
        sha256=hashlib.sha256(b"hello").hexdigest(),
        about=1,
        message="hello",
    )
    entry = msgspec.structs.replace(entry, **changed)
    path = layout.outbox_path(world.state.outbox, Outgoing.key.fget(entry))  # type: ignore[attr-defined]
    return Bad(puts={path: encode(entry), **world.counts(outbox=world.state.outbox + 1)})


def _watermark(first: int, closed: tuple[str, ...]) -> Bad:
    mark = Watermark(first=first, closed=closed)
    return Bad(puts={layout.watermark_path(ADDRESS): msgspec.json.encode(mark)})


def _format(**changed: object) -> Bad:
    known = files.Format(format=1, repository=REPOSITORY, epoch=1, deployment="expenses", address=ADDRESS)
    return Bad(puts={layout.FORMAT: files.encode(msgspec.structs.replace(known, **changed))})


def _with_key(world: World) -> Bad:
    path, raw = world.next(started(50))
    return Bad(puts={path: raw[:-1] + b',"extra":1}'})


def _shifted(world: World) -> Bad:
    """The next event, filed one further."""
    path, raw = world.next(started(50))
    seq = int(path[-15:-5])
    return Bad(puts={layout.event_path(world.live, seq + 1): raw}, author="workflow-process")


def _gap(world: World) -> Bad:
    """The event after the next one."""
    path, raw = world.next(started(50), seq=int(world.next(started(50))[0][-15:-5]) + 1)
    return Bad(puts={layout.event_path(world.live, int(path[-15:-5]) + 1): raw}, author="workflow-process")


def _renamed_genesis(world: World) -> Bad:
    """A run whose chain begins with the grants of another."""
    bad = _begun(world)
    path = next(each for each in bad.puts if each.endswith("/events/0000000001.json"))
    event = ev.decode(bad.puts[path])
    _, raw = ev.stored(event, seq=1, at=STAMP, prev="0" * 64)
    return replace(bad, puts={**bad.puts, path: raw})


def _reworded(world: World) -> Bad:
    path = world.consumed(1)
    return Bad(puts={path: world.read(path).replace(b'"rejected":"test"', b'"rejected":"other"')})


def _resegmented(world: World) -> Bad:
    path = layout.segment_path(world.live, 1)
    return Bad(puts={path: world.read(path).replace(b'"step":"s"', b'"step":"t"')})


def _long_tail(world: World) -> Bad:
    """More events than the tail may have, none of them folded."""
    known = world.desk.index.known(world.live)
    puts: dict[str, bytes] = {}
    seq, prev = known.seq, known.prev
    for number in range(100, 140):
        for event in (started(number), completed(number)):
            _, raw = ev.stored(event, seq=seq + 1, at=known.changed, prev=prev)
            seq, prev = seq + 1, ev.digest(raw)
            puts[layout.event_path(world.live, seq)] = raw
    return Bad(puts=puts, author="workflow-process")


def _after_the_end(world: World) -> Bad:
    """The run ends, and goes on in the same commit."""
    path, end = world.next(ev.RunCompleted(result=NULL))
    seq = int(path[-15:-5]) + 1
    _, raw = ev.stored(started(50), seq=seq, at=STAMP, prev=ev.digest(end))
    return Bad(puts={path: end, layout.event_path(world.live, seq): raw}, author="workflow-process")


def _big() -> ev.StepCompleted:
    return completed(40, ev.Value(inline=msgspec.Raw(b'"' + b"x" * 1_100_000 + b'"')))


def _timers(world: World) -> Bad:
    """One turn of a child that sets more timers than it may; folded as an append would fold them."""
    known = world.desk.index.known(world.live)
    raws = [raw for _, raw in runlog.tail(world.store, world.live, known)]
    gone = tuple(path for path, _ in runlog.tail(world.store, world.live, known))
    seq, prev = known.seq, known.prev
    for number in range(1001):
        timer = CallId(f"r1#{1000 + number}")
        event = ev.TimerSet(call=timer, timer=timer, delay=1.0, seen=1, fire_at=1)
        _, raw = ev.stored(event, seq=seq + 1, at=known.changed, prev=prev)
        seq, prev = seq + 1, ev.digest(raw)
        raws.append(raw)
    puts: dict[str, bytes] = {}
    first = known.folded + 1
    while len(raws) > layout.FAN:
        block, raws = raws[: layout.FAN], raws[layout.FAN :]
        puts[layout.segment_path(world.live, first)] = b"".join(raw + b"\n" for raw in block)
        first += layout.FAN
    puts.update((layout.event_path(world.live, first + at), raw) for at, raw in enumerate(raws))
    return Bad(puts=puts, deletes=tuple(path for path in gone if path not in puts), author="workflow-process")


def _missing_value(world: World) -> Bad:
    bad = _blob(world, b"x", hashlib.sha256(b"x").hexdigest())
    return replace(bad, puts={path: raw for path, raw in bad.puts.items() if "/events/" in path})


def _stray(world: World) -> Bad:
    name = hashlib.sha256(b"x").hexdigest()
    return Bad(puts={layout.blob_path(world.live, name): b"x"})


def _huge(world: World) -> Bad:
    data = bytes(64 * 1024 * 1024 + 1)
    return _blob(world, data, hashlib.sha256(data).hexdigest())


def _added(world: World) -> Bad:
    name = hashlib.sha256(b"x").hexdigest()
    return Bad(puts={layout.sealed_blob_path(world.sealed, name): b"x"})


def _unlisted(world: World) -> Bad:
    arrival = world.state.arrival
    return Bad(puts={layout.mail_path(arrival): message("f@x"), **world.counts(arrival=arrival + 1)})


def _unconsumed(world: World) -> Bad:
    """The run begins, and its mail stays claimed."""
    bad = _begun(world)
    puts = {path: raw for path, raw in bad.puts.items() if not path.startswith((layout.QUEUE, "state/"))}
    return replace(bad, puts=puts, deletes=())


def _not_given(world: World) -> Bad:
    """The run lives, and it is still the generation's before."""
    path, raw = world.next(started(50), world.idle)
    return Bad(puts={path: raw}, author="workflow-process")


CORRUPTIONS: tuple[Corruption, ...] = (
    # --- names and records ---
    Corruption("a file of no layout", "path", lambda _: Bad(puts={"notes/todo.txt": b"x"})),
    Corruption(
        "an event in another spelling of its place",
        "path",
        lambda w: Bad(puts={_tail(w).replace("/events/", "/events/0"): b"{}"}),
    ),
    Corruption("a directory without a bound", "bounded", _crowd),
    Corruption("an event that is no event", "record", lambda w: Bad(puts={w.next(started(50))[0]: b"{}"})),
    Corruption("an event with a key of its own", "record", _with_key),
    Corruption("a state that is none", "record", lambda _: Bad(puts={layout.STATE: b"[]"})),
    Corruption("a watermark that is none", "record", lambda _: Bad(puts={layout.watermark_path(ADDRESS): b"[]"})),
    Corruption("an entry that is none", "record", lambda w: Bad(puts={w.entry("inbox", w.inbox)[0]: b"{}"})),
    Corruption("an outbox entry that is none", "record", lambda w: Bad(puts={_outbox_path(w): b"{}"})),
    Corruption("an event under another seq", "name", _shifted),
    Corruption("an entry under another arrival", "name", lambda w: w.fresh("f@x", arrival=2)),
    Corruption("an entry under another id", "name", lambda w: w.fresh("f@x", id="<other@x>")),
    Corruption("an entry for another address", "name", lambda w: w.fresh("f@x", address="other@example.com")),
    Corruption("a consumed mark in the inbox", "name", lambda w: w.fresh("f@x", consumed=STAMP)),
    Corruption("a notice under another ordinal", "name", lambda w: _notice(w, ordinal=1)),
    Corruption("no counts", "missing", lambda _: Bad(deletes=(layout.STATE,))),
    Corruption("a mail is gone", "write-once", lambda _: Bad(deletes=(layout.mail_path(1),))),
    Corruption("a mail is changed", "write-once", lambda _: Bad(puts={layout.mail_path(1): b"x"})),
    Corruption("grants are changed", "write-once", lambda w: Bad(puts={layout.grants_path(w.live): b"{}"})),
    Corruption("grants are gone", "write-once", lambda w: Bad(deletes=(layout.grants_path(w.live),))),
    Corruption("a value is gone", "write-once", lambda w: Bad(deletes=(layout.blob_path(w.live, w.sha256),))),
    Corruption("a consumed entry is changed", "write-once", _reworded),
    # --- logs ---
    Corruption("a gap", "sequence", _gap),
    Corruption("a broken chain", "chain", lambda w: w.append(started(50), prev="0" * 64)),
    Corruption("a chain of another run", "chain", _renamed_genesis),
    Corruption("an event is changed", "append-only", lambda w: Bad(puts={_tail(w): w.next(started(50))[1]})),
    Corruption("an event is gone", "append-only", lambda w: Bad(deletes=(_tail(w),))),
    Corruption("a segment is changed", "append-only", _resegmented),
    Corruption("a segment is gone", "append-only", lambda w: Bad(deletes=(layout.segment_path(w.live, 1),))),
    Corruption("a folded event is back", "append-only", lambda w: Bad(puts={layout.event_path(w.live, 3): b"{}"})),
    Corruption("a short segment", "tail", _segment),
    Corruption("a tail over its bound", "tail", _long_tail),
    Corruption("an event after the end", "terminal", _after_the_end),
    Corruption("a step that is under way begins again", "legal", lambda w: w.append(started(40))),
    Corruption("a step that never began returns", "legal", lambda w: w.append(completed(77))),
    Corruption("an event over a MiB", "event-size", lambda w: w.append(_big())),
    Corruption("a thousand timers and one", "open-calls", _timers),
    # --- values ---
    Corruption("a value under another hash", "hash", lambda w: _blob(w, b"x", "ab" * 32)),
    Corruption("a notice with other bytes", "hash", lambda w: _notice(w, message="other")),
    Corruption("a run with other grants", "hash", lambda w: _begun(w, grants="0" * 64)),
    Corruption("a value that isn't there", "named", _missing_value),
    Corruption("a value that nothing names", "unnamed", _stray),
    Corruption("a value over 64 MiB", "value-size", _huge),
    # --- sealing ---
    Corruption("a run is sealed that hasn't ended", "seal", _spoilt_seal),
    Corruption("a sealed log is changed", "sealed", lambda w: Bad(puts={layout.sealed_log_path(w.sealed): b"x\n"})),
    Corruption("a sealed log is gone", "sealed", lambda w: Bad(deletes=(layout.sealed_log_path(w.sealed),))),
    Corruption(
        "a sealed value is gone", "sealed", lambda w: Bad(deletes=(layout.sealed_blob_path(w.sealed, w.sha256),))
    ),
    Corruption("a sealed run gets a value", "sealed", _added),
    # --- the queue ---
    Corruption("a mail is copied", "one-place", _twice),
    Corruption("a taken id comes again", "one-place", lambda w: w.fresh("inbox@x")),
    Corruption("a consumed id comes again", "one-place", lambda w: w.fresh("new@x")),
    Corruption("an id of a closed bucket comes again", "one-place", lambda w: w.fresh("old@x")),
    Corruption("a mail vanishes", "lost", lambda w: Bad(deletes=(w.entry("inbox", w.inbox)[0],))),
    Corruption("a mail on hold vanishes", "lost", lambda w: Bad(deletes=(w.entry("hold", w.held)[0],))),
    Corruption("a claim changes the entry", "move", lambda w: w.moved("inbox", "processing", w.inbox, sender="x")),
    Corruption("a mail changes its sender", "move", lambda w: w.moved("processing", "inbox", w.claimed, sender="x")),
    Corruption("a claim is counted twice", "move", lambda w: w.moved("inbox", "processing", w.inbox, attempt=2)),
    Corruption(
        "a mail is consumed without a claim",
        "move",
        lambda w: w.moved("inbox", "consumed", w.inbox, consumed=STAMP, rejected="x"),
    ),
    Corruption("a new mail with attempts", "move", lambda w: w.fresh("f@x", attempt=2)),
    Corruption("a mail's bytes are others", "mail", lambda w: w.fresh("f@x", sha256="0" * 64)),
    Corruption("a mail without an entry", "mail", _unlisted),
    Corruption(
        "consumed without an event", "effect", lambda w: w.moved("processing", "consumed", w.claimed, consumed=STAMP)
    ),
    Corruption("a run begins with a mail that isn't consumed", "effect", _unconsumed),
    Corruption("a run of another origin", "effect", lambda w: _begun(w, origin="0" * 64)),
    Corruption("a consumed entry leaves alone", "bucket", lambda w: Bad(deletes=(w.consumed(1),))),
    Corruption("a consumed entry goes to a closed bucket", "bucket", _full_bucket),
    Corruption("the bucket's count is wrong", "bucket", lambda w: Bad(puts=w.counts(bucket_entries=9))),
    Corruption("a closing time is changed", "watermark", lambda _: _watermark(0, ("2020-01-01T00:00:00.000Z",))),
    Corruption("the open bucket is dropped", "watermark", lambda _: _watermark(2, ())),
    # --- the outbox ---
    Corruption("a mail goes out without its event", "outbox", lambda w: Bad(deletes=(_outbox_path(w),))),
    Corruption("MailQueued without its entry", "outbox", _mail_queued),
    Corruption(
        "MailSent without its entry",
        "outbox",
        lambda w: w.append(ev.MailSent(call=call(2), ordinal=2), author="supervisor"),
    ),
    # --- counts ---
    Corruption("an ordinal goes back", "ordinals", lambda w: Bad(puts=w.counts(arrival=1))),
    Corruption("an ordinal is skipped", "ordinals", lambda w: Bad(puts=w.counts(outbox=w.state.outbox + 1))),
    Corruption("the generation goes back", "ordinals", lambda w: Bad(puts=w.counts(generation=0))),
    Corruption("a generation is skipped", "generation", lambda w: Bad(puts=w.counts(generation=9))),
    Corruption(
        "a run is resumed by a generation to come",
        "generation",
        lambda w: w.append(ev.RunResumed(generation=Generation(9)), author="supervisor"),
    ),
    Corruption("another repository id", "format", lambda _: _format(repository="another")),
    Corruption("an epoch without its record", "record", lambda _: _format(epoch=2)),
    Corruption("another deployment", "format", lambda _: _format(deployment="other")),
    Corruption("held without an epoch", "format", lambda w: Bad(puts=w.counts(held="restore"))),
    Corruption("another address", "format", lambda _: _format(address="x@example.com")),
    # --- who ---
    Corruption("a commit by nobody we know", "author", lambda w: w.append(started(50), author="reader")),
    Corruption(
        "a child fires its own timer", "author", lambda w: w.append(ev.TimerFired(call=call(40), timer=call(40)))
    ),
    Corruption("the host completes a step", "author", lambda w: w.append(completed(40), author="supervisor")),
    Corruption(
        "a child moves mail",
        "author",
        lambda w: replace(w.moved("inbox", "processing", w.inbox), author="workflow-process"),
    ),
    Corruption("a child writes to a run it wasn't given", "fence", _not_given),
)

HISTORY = {
    "a consumed entry is changed",
    "an event is gone",
    "a mail vanishes",
    "a mail on hold vanishes",
    "a claim changes the entry",
    "a mail changes its sender",
    "a claim is counted twice",
    "a mail is consumed without a claim",
    "a new mail with attempts",
    "a mail without an entry",
    "a run of another origin",
    "a closing time is changed",
    "an ordinal is skipped",
    "a generation is skipped",
    "another deployment",
    "a commit by nobody we know",
    "the host completes a step",
    "a child moves mail",
    "a child writes to a run it wasn't given",
}
"""What only the commit shows: the tree after it is one that there could be."""
