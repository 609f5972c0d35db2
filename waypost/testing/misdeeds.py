"""How each bad commit of ``corruptions`` is made, where it takes more than a line."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec

from substrate import layout, runlog
from substrate import state as files
from substrate.operations.buckets import Watermark
from substrate.rules.commit import files as files_below
from substrate.signing.epoch import Epoch, Noted
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId, message_key
from waypost.model.queue import Outgoing, encode
from waypost.testing.corrupted import DEPLOYED, NULL, STAMP, Bad, World, completed, started
from waypost.testing.desk import ADDRESS, BOSS, REPOSITORY, call, message

DRAIN = files.Drain(to="rest", at=STAMP, by="ann")
LATCH = files.Latch(at=STAMP, detail="3 exits in 2 s")


def tail(world: World) -> str:
    """The path of the live run's newest event."""
    return layout.event_path(world.live, world.desk.index.known(world.live).seq)


def spoilt_seal(world: World) -> Bad:
    """A run that hasn't ended, sealed as if it had."""
    events = b"".join(raw + b"\n" for raw in runlog.events(world.store, world.live))
    return Bad(
        puts={
            layout.sealed_log_path(world.live): events,
            layout.sealed_grants_path(world.live): world.read(layout.grants_path(world.live)),
        },
        deletes=(tail(world),),
    )


def full_bucket(world: World) -> Bad:
    """A mail that is rejected into a bucket that is closed."""
    bad = world.moved("processing", "consumed", world.claimed, consumed=STAMP, rejected="x")
    puts = {
        path.replace(layout.bucket_dir(ADDRESS, 1), layout.bucket_dir(ADDRESS, 0)): raw
        for path, raw in bad.puts.items()
    }
    return replace(bad, puts=puts)


def outbox_path(world: World) -> str:
    """The path of the mail that waits to go out."""
    directory, name = next(runlog.leaves(world.store, layout.OUTBOX))
    return f"{directory}/{name}"


def crowd(_: World) -> Bad:
    """More schedules than a directory may hold."""
    return Bad(puts={layout.schedule_path(f"s{number}"): b"{}" for number in range(257)})


def twice(world: World) -> Bad:
    """A mail that is copied to processing and stays in the inbox."""
    bad = world.moved("inbox", "processing", world.inbox)
    return replace(bad, deletes=())


def folded_otherwise(world: World) -> Bad:
    """The tail is folded when it may be, and one event of it is of another day then."""
    known = world.desk.index.known(world.live)
    first, prev = known.folded + 1, known.prev
    tail = [layout.event_path(world.live, seq) for seq in range(first, known.seq + 1)]
    lines = [world.read(tail[0]).replace(b'"at":"2026', b'"at":"2025'), *map(world.read, tail[1:])]
    for seq in range(known.seq + 1, first + layout.FAN):
        lines.append(ev.stored(started(seq), seq=seq, at=known.changed, prev=prev)[1])
        prev = ev.digest(lines[-1])
    puts = {layout.segment_path(world.live, first): b"\n".join((*lines, b""))}
    return Bad(puts=puts, deletes=tuple(tail), author="workflow-process")


def segment(world: World) -> Bad:
    """A second segment, before there are events for it."""
    return Bad(puts={layout.segment_path(world.live, 65): b"{}\n"})


def mail_queued(world: World) -> Bad:
    """MailQueued with its bytes, and no entry in the outbox."""
    raw = b"a mail"
    sha256 = hashlib.sha256(raw).hexdigest()
    event = ev.MailQueued(call=call(90), message_id="<x@y>", to=(BOSS,), ordinal=world.state.outbox, sha256=sha256)
    path, stored = world.next(event)
    return Bad(puts={path: stored, layout.blob_path(world.live, sha256): raw})


def begun(world: World, run: RunId | None = None, *, claimed: bool = True, **changed: object) -> Bad:
    """The claimed mail starts its run, or another; with some of RunStarted changed. Or one that nobody has claimed."""
    place, arrival = ("processing", world.claimed) if claimed else ("inbox", world.inbox)
    _, entry = world.entry(place, arrival)
    run = run or entry.run
    grants = world.read(layout.grants_path(world.live))
    event = ev.RunStarted(
        mail=entry.mailed,
        definition="d" * 64,
        code=DEPLOYED.tree,
        python="3",
        waypost="0",
        generation=Generation(world.state.generation),
        grants=hashlib.sha256(grants).hexdigest(),
        origin=entry.key,
        after=entry.old,
    )
    event = msgspec.structs.replace(event, **changed)
    _, raw = ev.stored(event, seq=1, at=STAMP, prev=ev.genesis(REPOSITORY, run, grants))
    bad = world.moved(place, "consumed", arrival, consumed=STAMP, run=run)
    puts = {**bad.puts, layout.event_path(run, 1): raw, layout.grants_path(run): grants}
    return replace(bad, puts=puts)


def code(files: dict[str, bytes], tree: str) -> Bad:
    """These files in a tree of code."""
    return Bad(puts={layout.code_path(tree, path): data for path, data in files.items()})


def renamed(bad: Bad, old: str, new: str) -> Bad:
    """The same bytes under other names."""
    return replace(bad, puts={path.replace(old, new): raw for path, raw in bad.puts.items()})


def blob(world: World, data: bytes, name: str, *, number: int = 40) -> Bad:
    """A step that returns a value, which is filed under this name."""
    path, raw = world.next(completed(number, ev.Value(blob=name)))
    return Bad(puts={path: raw, layout.blob_path(world.live, name): data}, author="workflow-process")


def notice(world: World, **changed: object) -> Bad:
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


def watermark(first: int, closed: tuple[str, ...]) -> Bad:
    """A watermark that says this."""
    mark = Watermark(first=first, closed=closed)
    return Bad(puts={layout.watermark_path(ADDRESS): msgspec.json.encode(mark)})


def reformatted(**changed: object) -> Bad:
    """Another format.json."""
    known = files.Format(format=1, repository=REPOSITORY, epoch=1, deployment="expenses", address=ADDRESS)
    return Bad(puts={layout.FORMAT: files.encode(msgspec.structs.replace(known, **changed))})


def with_key(world: World) -> Bad:
    """An event with a key that no event has."""
    path, raw = world.next(started(50))
    return Bad(puts={path: raw[:-1] + b',"extra":1}'})


def shifted(world: World) -> Bad:
    """The next event, filed one further."""
    path, raw = world.next(started(50))
    seq = int(path[-15:-5])
    return Bad(puts={layout.event_path(world.live, seq + 1): raw}, author="workflow-process")


def gap(world: World) -> Bad:
    """The event after the next one."""
    path, raw = world.next(started(50), seq=int(world.next(started(50))[0][-15:-5]) + 1)
    return Bad(puts={layout.event_path(world.live, int(path[-15:-5]) + 1): raw}, author="workflow-process")


def renamed_genesis(world: World) -> Bad:
    """A run whose chain begins with the grants of another."""
    bad = begun(world)
    path = next(each for each in bad.puts if each.endswith("/events/0000000001.json"))
    event = ev.decode(bad.puts[path])
    _, raw = ev.stored(event, seq=1, at=STAMP, prev="0" * 64)
    return replace(bad, puts={**bad.puts, path: raw})


def reworded(world: World) -> Bad:
    """A consumed entry that says another reason."""
    path = world.consumed(1)
    return Bad(puts={path: world.read(path).replace(b'"rejected":"test"', b'"rejected":"other"')})


def resegmented(world: World) -> Bad:
    """A segment that says another step."""
    path = layout.segment_path(world.live, 1)
    return Bad(puts={path: world.read(path).replace(b'"step":"s"', b'"step":"t"')})


def long_tail(world: World) -> Bad:
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


def after_the_end(world: World) -> Bad:
    """The run ends, and goes on in the same commit."""
    path, end = world.next(ev.RunCompleted(result=NULL))
    seq = int(path[-15:-5]) + 1
    _, raw = ev.stored(started(50), seq=seq, at=STAMP, prev=ev.digest(end))
    return Bad(puts={path: end, layout.event_path(world.live, seq): raw}, author="workflow-process")


def big() -> ev.StepCompleted:
    """A result that is over a MiB inside of its event."""
    return completed(40, ev.Value(inline=msgspec.Raw(b'"' + b"x" * 1_100_000 + b'"')))


def timers(world: World) -> Bad:
    """One turn of a child that sets more timers than it may; folded as an append would fold them."""
    timers = [CallId(f"r1#{1000 + number}") for number in range(1001)]
    return folded(world, [ev.TimerSet(call=each, timer=each, delay=1.0, seen=1, fire_at=1) for each in timers])


def folded(world: World, events: Sequence[ev.AnyEvent]) -> Bad:
    """These events in the live run, 64 to a segment."""
    known = world.desk.index.known(world.live)
    tail = runlog.tail(world.store, world.live, known)
    raws = [raw for _, raw in tail]
    seq, prev = known.seq, known.prev
    for event in events:
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
    gone = tuple(path for path, _ in tail if path not in puts)
    return Bad(puts=puts, deletes=gone, author="workflow-process")


def missing_value(world: World) -> Bad:
    """An event that names a value which isn't there."""
    bad = blob(world, b"x", hashlib.sha256(b"x").hexdigest())
    return replace(bad, puts={path: raw for path, raw in bad.puts.items() if "/events/" in path})


def stray(world: World) -> Bad:
    """A value that no event names."""
    name = hashlib.sha256(b"x").hexdigest()
    return Bad(puts={layout.blob_path(world.live, name): b"x"})


def huge(world: World) -> Bad:
    """A value that is over 64 MiB."""
    data = bytes(64 * 1024 * 1024 + 1)
    return blob(world, data, hashlib.sha256(data).hexdigest())


def added(world: World) -> Bad:
    """A value beside those of a sealed run."""
    name = hashlib.sha256(b"x").hexdigest()
    return Bad(puts={layout.sealed_blob_path(world.sealed, name): b"x"})


def unlisted(world: World) -> Bad:
    """A mail that is in no place of the queue."""
    arrival = world.state.arrival
    return Bad(puts={layout.mail_path(arrival): message("f@x"), **world.counts(arrival=arrival + 1)})


def unconsumed(world: World) -> Bad:
    """The run begins, and its mail stays claimed."""
    bad = begun(world)
    puts = {path: raw for path, raw in bad.puts.items() if not path.startswith((layout.QUEUE, "state/"))}
    return replace(bad, puts=puts, deletes=())


def not_given(world: World) -> Bad:
    """The run lives, and it is still the generation's before."""
    path, raw = world.next(started(50), world.idle)
    return Bad(puts={path: raw}, author="workflow-process")


def two_runs(world: World) -> Bad:
    """A child that writes to the run that it was given, and to another in the same commit."""
    one, raw = world.next(started(50))
    other, more = world.next(started(50), world.idle)
    return Bad(puts={one: raw, other: more}, author="workflow-process")


def kept_folded(world: World) -> Bad:
    """Events are folded, and one of them stays in its own file, too."""
    bad = timers(world)
    return replace(bad, deletes=bad.deletes[1:])


def swapped_outbox(world: World) -> Bad:
    """An outbox entry that is sent to somebody else."""
    path = outbox_path(world)
    return Bad(puts={path: world.read(path).replace(BOSS.encode(), b"eve@example.com")})


def unreadable_outbox(world: World) -> Bad:
    """MailQueued with an entry that names another call."""
    bad = mail_queued(world)
    entry = Outgoing(
        ordinal=world.state.outbox, run=world.live, call=call(91), message_id="<x@y>", to=(BOSS,), sha256="0" * 64
    )
    path = layout.outbox_path(world.state.outbox, entry.key)
    return replace(bad, puts={**bad.puts, path: encode(entry), **world.counts(outbox=world.state.outbox + 1)})


def two_places(world: World) -> Bad:
    """A claim that comes back to the inbox, and goes on hold."""
    back = world.moved("processing", "inbox", world.claimed, attempt=1)
    held = world.moved("processing", "hold", world.claimed, held=STAMP, why="poison")
    return replace(back, puts={**back.puts, **held.puts})


def sealed_and_written(world: World) -> Bad:
    """A run that is sealed and goes on in the same commit."""
    bad = spoilt_seal(world)
    path, raw = world.next(started(50))
    return replace(bad, puts={**bad.puts, path: raw})


def ended_and_spoilt(world: World, spoil: Callable[[bytes], bytes], *, keep: bool = False) -> Bad:
    """The run that may be sealed next, sealed with another log, or with a file left behind."""
    run = world.ended
    log = spoil(b"".join(raw + b"\n" for raw in runlog.events(world.store, run)))
    gone = tuple(files_below(world.store, layout.run_dir(run)))
    grants = world.read(layout.grants_path(run))
    return Bad(
        puts={layout.sealed_log_path(run): log, layout.sealed_grants_path(run): grants if not keep else grants + b" "},
        deletes=gone[1:] if keep else gone,
    )


def renamed_epoch(**changed: object) -> Bad:
    """An epoch whose record doesn't say what the format says."""
    noted = Noted(repository=REPOSITORY, epoch=1, flush=1, hash="0" * 64, head="0" * 40)
    record = msgspec.structs.replace(Epoch(epoch=2, why="restore", at=STAMP, after=noted), **changed)
    bad = reformatted(epoch=2)
    return replace(bad, puts={**bad.puts, layout.EPOCH: msgspec.json.encode(record)})


def misfiled(world: World) -> Bad:
    """A new mail whose entry says another arrival than its name."""
    bad = world.fresh("f@x")
    arrival = world.state.arrival
    return replace(
        bad,
        puts={
            path: raw.replace(b'"arrival":%d' % arrival, b'"arrival":2')
            for path, raw in bad.puts.items()
            if "state/" not in path
        }
        | world.counts(arrival=arrival + 1),
    )


def bare(world: World, ending: str) -> Bad:
    """The claimed mail starts its run, but for a file of it with this ending."""
    bad = begun(world)
    return replace(bad, puts={path: raw for path, raw in bad.puts.items() if not path.endswith(ending)})


def other_mail(world: World) -> Bad:
    """The claimed mail is consumed, and the run begins with other bytes."""
    _, entry = world.entry("processing", world.claimed)
    return begun(world, mail=msgspec.structs.replace(entry.mailed, sha256="0" * 64))


def from_nowhere(world: World) -> Bad:
    """A new mail that is claimed already."""
    bad, key = world.fresh("f@x"), message_key(b"<f@x>")
    arrival = world.state.arrival
    return renamed(bad, layout.inbox_path(ADDRESS, arrival, key), layout.processing_path(ADDRESS, arrival, key, 1))


def unlogged(world: World) -> Bad:
    """The run that may be sealed next: its grants are sealed, and its log goes."""
    bad = ended_and_spoilt(world, lambda log: log)
    return replace(bad, puts={path: raw for path, raw in bad.puts.items() if not path.endswith("events.jsonl")})
