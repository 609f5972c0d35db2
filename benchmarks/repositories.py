"""Big repositories, made quickly: parked runs, one long run, many commits. Real files by the real rules' own encoders.

What is made is what a host would have left: each run's mail, its consumed entry, its grants, and a log that is chained
from its genesis. Only the commits are wholesale, 64 runs in each; nobody reads history to open a repository.

    python -m benchmarks.repositories FOLDER [--parked N] [--events N] [--commits N]
"""

import argparse
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from substrate import layout
from substrate import state as files
from substrate.operations.buckets import BUCKET_ENTRIES, Watermark
from substrate.operations.grants import encode_grants, grants
from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId, run_id
from waypost.model.limits import DEFAULT, MIB, Limits
from waypost.model.mail import scan
from waypost.model.queue import Entry, encode
from waypost.model.times import stamp
from waypost.model.values import digest

DEPLOYMENT, ADDRESS, REPOSITORY = "bench", "bench@example.com", "0123456789abcdef"
AT = 1_800_000_000_000
DAY = 86_400_000
AUTHOR = "supervisor <supervisor@deployment.waypost>"
NULL = ev.Value(inline=msgspec.Raw(b"null"))
PORTION = layout.FAN
"""Runs to a commit."""
WHOLESALE = msgspec.structs.replace(DEFAULT, seal_objects=32_768, seal_bytes=32 * MIB)
FILLER = "x" * 120


def create(path: Path, key: SigningKey, limits: Limits = WHOLESALE) -> Store:
    """An empty repository, open."""
    first = {
        layout.FORMAT: files.encode(
            files.Format(format=files.VERSION, repository=REPOSITORY, epoch=1, deployment=DEPLOYMENT, address=ADDRESS)
        ),
        layout.STATE: files.encode(files.State()),
    }
    return Store.create(path, repository_id=REPOSITORY, key=key, first=first, at=AT, limits=limits)


def parked(store: Store, count: int, until: Callable[[int], tuple[int, ...]] | None = None) -> list[RunId]:
    """Runs 1 to ``count`` of an empty repository: each did a step and waits for a mail, every other one for 30 days.

    With ``until`` each sleeps instead: until all of these instants (Unix ms), by the run's ordinal, 60 at most.
    """
    runs: list[RunId] = []
    for begin in range(1, count + 1, PORTION):
        last = min(begin + PORTION - 1, count)
        puts: dict[str, bytes] = {}
        for ordinal in range(begin, last + 1):
            run = run_id(ordinal, ordinal.to_bytes(8))
            entry, raw = _mail(ordinal, run)
            grant = encode_grants(grants(entry.sender, ()))
            bucket = ordinal // BUCKET_ENTRIES
            puts[layout.mail_path(ordinal)] = raw
            puts[layout.consumed_path(ADDRESS, bucket, entry.key)] = encode(entry)
            puts[layout.grants_path(run)] = grant
            events = _parking(entry, grant, ordinal) if until is None else _sleeping(entry, grant, until(ordinal))
            puts |= _files(run, grant, events)
            runs.append(run)
        bucket = last // BUCKET_ENTRIES
        if bucket:
            closed = tuple(stamp(AT) for _ in range(bucket))
            puts[layout.watermark_path(ADDRESS)] = msgspec.json.encode(Watermark(closed=closed))
        state = files.State(
            generation=1, run=last + 1, arrival=last + 1, bucket=bucket, bucket_entries=last % BUCKET_ENTRIES,
            bucket_opened=stamp(AT),
        )  # fmt: skip
        puts[layout.STATE] = files.encode(state)
        _commit(store, f"park runs up to {last}", puts)
    store.seal()
    return runs


def long_run(store: Store, ordinal: int, events: int, *, definition: str = "d" * 64, code: str = "c" * 64) -> RunId:
    """One more run, parked after so many events: calls of a step ``tick()`` one after the other, then ``receive()``."""
    run = run_id(ordinal, ordinal.to_bytes(8))
    entry, raw = _mail(ordinal, run)
    grant = encode_grants(grants(entry.sender, ()))
    held: dict[str, bytes] = {
        layout.mail_path(ordinal): raw,
        layout.grants_path(run): grant,
        layout.STATE: files.encode(files.State(generation=1, run=ordinal + 1, arrival=ordinal + 1)),
    }
    block: list[bytes] = []
    begin = 1
    for seq, line in enumerate(_chained(run, grant, _long(_started(entry, grant, definition, code), events)), 1):
        block.append(line)
        if len(block) == layout.FAN and seq < events:
            held[layout.segment_path(run, begin)] = b"".join(each + b"\n" for each in block)
            block, begin = [], seq + 1
        if len(held) >= PORTION:
            _commit(store, f"grow {run} to {seq}", held)
            held = {}
    held |= {layout.event_path(run, begin + at): line for at, line in enumerate(block)}
    _commit(store, f"grow {run} to {events}", held)
    store.seal()
    return run


def commits(store: Store, run: RunId, count: int) -> None:
    """So many commits of one small file each, flushed in batches: history that nobody needs in order to open it."""
    for number in range(count):
        _commit(store, f"commit {number} beside {run}", {layout.schedule_path("tick"): b'{"tick":%d}' % number})
    store.seal()


def _commit(store: Store, subject: str, puts: dict[str, bytes]) -> None:
    store.commit(author=AUTHOR, subject=subject, puts=puts, at=AT)
    if store.pending >= DEFAULT.flush_operations:
        store.flush()
        if store.wants_seal(0.0):
            store.seal()


def _mail(ordinal: int, run: RunId) -> tuple[Entry, bytes]:
    raw = (
        f"From: claire@example.com\r\nTo: {ADDRESS}\r\nSubject: claim {ordinal}\r\n"
        f"Message-ID: <{ordinal}@example.com>\r\n\r\n{ordinal} coffee\r\n"
    ).encode()
    gist = scan(raw)
    entry = Entry(
        arrival=ordinal, id=f"<{ordinal}@example.com>", address=ADDRESS, run=run, starts=True, received=stamp(AT),
        sender=gist.sender, sha256=gist.sha256, bare=gist.bare_sha256, consumed=stamp(AT),
    )  # fmt: skip
    return entry, raw


def _started(entry: Entry, grant: bytes, definition: str = "d" * 64, code: str = "c" * 64) -> ev.RunStarted:
    return ev.RunStarted(
        mail=entry.mailed, definition=definition, code=code, python="3.11.7", waypost="0.1.0",
        generation=Generation(1), grants=hashlib.sha256(grant).hexdigest(), origin=entry.key,
    )  # fmt: skip


def _parking(entry: Entry, grant: bytes, ordinal: int) -> Iterator[ev.AnyEvent]:
    yield _started(entry, grant)
    yield ev.StepStarted(call=CallId("r1#1"), step="read_claim", arguments="a" * 64)
    yield ev.StepCompleted(call=CallId("r1#1"), output=ev.Value(inline=msgspec.Raw(b'"%s"' % FILLER.encode())))
    timeout = msgspec.UNSET if ordinal % 2 else 30 * DAY / 1000
    until = msgspec.UNSET if ordinal % 2 else AT + 30 * DAY
    yield ev.SignalAwaited(call=CallId("r1#2"), park="input", seen=3, timeout=timeout, timeout_at=until)


def _sleeping(entry: Entry, grant: bytes, until: tuple[int, ...]) -> Iterator[ev.AnyEvent]:
    yield _started(entry, grant)
    for number, at in enumerate(until, 1):
        call = CallId(f"r1#{number}")
        yield ev.TimerSet(call=call, timer=call, delay=(at - AT) / 1000, fire_at=at, seen=1)


def _long(started: ev.RunStarted, events: int) -> Iterator[ev.AnyEvent]:
    yield started
    nothing = digest({})
    steps = (events - 2) // 2
    for number in range(1, steps + 1):
        yield ev.StepStarted(call=CallId(f"r1#{number}"), step="tick", arguments=nothing)
        yield ev.StepCompleted(call=CallId(f"r1#{number}"), output=NULL)
    yield ev.SignalAwaited(call=CallId(f"r1#{steps + 1}"), park="input", seen=2 * steps + 1)


def _chained(run: RunId, grant: bytes, events: Iterable[ev.AnyEvent]) -> Iterator[bytes]:
    prev = ev.genesis(REPOSITORY, run, grant)
    for seq, event in enumerate(events, 1):
        _, raw = ev.stored(event, seq=seq, at=stamp(AT), prev=prev)
        prev = ev.digest(raw)
        yield raw


def _files(run: RunId, grant: bytes, events: Iterable[ev.AnyEvent]) -> dict[str, bytes]:
    return {layout.event_path(run, seq): raw for seq, raw in enumerate(_chained(run, grant, events), 1)}


def main() -> None:
    """Make one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--parked", type=int, default=0)
    parser.add_argument("--events", type=int, default=0)
    parser.add_argument("--commits", type=int, default=0)
    options = parser.parse_args()
    begun = time.perf_counter()
    options.folder.mkdir(parents=True, exist_ok=True)
    key = SigningKey.load_or_create(options.folder / "key")
    store = create(options.folder / "repo.git", key)
    runs = parked(store, options.parked) if options.parked else []
    if options.events:
        runs.append(long_run(store, len(runs) + 1, options.events))
    if options.commits:
        commits(store, runs[-1], options.commits)
    store.close()
    print(f"{len(runs)} runs in {time.perf_counter() - begun:.1f} s: {options.folder}")


if __name__ == "__main__":
    main()
