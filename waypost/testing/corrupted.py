"""A clean repository that has each kind of file, and a bad commit on top of it (see ``corruptions``)."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pygit2

from substrate import layout, runlog
from substrate import state as files
from substrate.files.folder import REF
from substrate.messages import Claim, Deploy, MailDelivered, PutBlob, QueueMail, Reject, SpawnChild, TakeUp
from substrate.operations.buckets import BUCKET_AGE
from substrate.rules import Commit
from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.model import events as ev
from waypost.model.code import deployed
from waypost.model.code import encode as encode_deployed
from waypost.model.declaration import Declared
from waypost.model.ids import RunId, message_key
from waypost.model.queue import Entry, decode, encode
from waypost.model.schedule import schedule
from waypost.testing.desk import ADDRESS, BOSS, REPOSITORY, STARTED, Desk, call, first_files, message
from waypost.testing.stores import AT

VALUE = b'"' + b"v" * 70_000 + b'"'
NULL = ev.Value(inline=msgspec.Raw(b"null"))
CODE = {"flow.py": b"x = 1\n", "data/two words.txt": b"data\n", ".gitignore": b"*.pyc\n"}
DAILY = schedule("0 9 * * *", tz="Europe/Berlin", name="daily")
DEPLOYED = deployed(
    CODE, root="", module="flow", declared=Declared(name="expenses", address=ADDRESS, schedules=(DAILY,))
)
STAMP = "2026-11-29T08:00:00.000Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bad:
    """A commit that breaks a rule."""

    puts: Mapping[str, bytes] = field(default_factory=dict)
    deletes: tuple[str, ...] = ()
    author: str = "supervisor"

    @property
    def commit(self) -> Commit:
        """As the rules see it."""
        return Commit(author=self.author, puts=self.puts, deletes=self.deletes)

    def write(self, repository: Path) -> None:
        """Put it on top of a repository's branch, with libgit2: no rule of ours has a say in that."""
        git = pygit2.Repository(str(repository))
        tip = git.references[REF].target
        index = pygit2.Index()
        tree = git[tip].peel(pygit2.Tree)
        index.read_tree(tree)
        for path in self.deletes:
            index.remove(path)
        for path, data in self.puts.items():
            index.add(pygit2.IndexEntry(path, git.create_blob(data), pygit2.enums.FileMode.BLOB))
        who = pygit2.Signature(self.author, f"{self.author}@deployment.waypost", AT // 1000, 0)
        git.create_commit(REF, who, who, "a bad commit\n", index.write_tree(git), [tip])


class World:
    """A clean repository on disk: runs live and sealed, with values and segments; mail in every place of the queue."""

    def __init__(self, path: Path, key: SigningKey) -> None:
        self.path = path
        self.store = Store.create(path, repository_id=REPOSITORY, key=key, first=first_files(), at=AT)
        self.desk = desk = Desk(self.store)
        desk.begin()
        self.idle = desk.start(message("m0@x"))
        by = desk.begin()  # which isn't given that run
        self.sealed = desk.start(message("m1@x"))
        self.sha256 = hashlib.sha256(VALUE).hexdigest()
        for run in (self.sealed, desk.start(message("m2@x"))):
            desk.must(PutBlob(by=by, run=run, sha256=self.sha256, data=VALUE))
            desk.append(run, started(1), ev.StepCompleted(call=call(1), output=ev.Value(blob=self.sha256)))
            desk.must(QueueMail(by=by, run=run, call=call(2), to=(BOSS,), subject="s", text="t"))
            self.live = run
        desk.must(MailDelivered(1))
        desk.append(self.sealed, ev.RunCompleted(result=NULL))
        while desk.fold_away() is not None:
            pass
        self.ended = desk.start(message("ended@x"))  # and not sealed, though it might be
        desk.append(self.ended, ev.RunCompleted(result=NULL))
        desk.append(self.live, *[each for n in range(3, 40) for each in (started(n), completed(n))])
        desk.append(self.live, started(40))
        self.inbox = desk.enqueue(message("inbox@x"))
        self.held = desk.enqueue(message("inbox@x", text="another"))
        self.claimed = desk.enqueue(message("claimed@x"))
        desk.must(Claim(self.claimed))
        self.parent = desk.start(message("parent@x"))
        for number in (1, 2):
            desk.must(SpawnChild(by=by, run=self.parent, call=call(number), workflow="pay", input=b"1", seen=0))
        self.child, self.unborn = (
            desk.index.queue[arrival].queued.entry.run for arrival in list(desk.index.queue)[-2:]
        )
        (born,) = desk.index.queued_for(self.child)
        desk.must(Claim(born))
        desk.must(TakeUp(arrival=born, start=STARTED))
        for name in ("old", "new"):  # the second one closes the bucket of the first
            arrival = desk.enqueue(message(f"{name}@x"))
            desk.must(Claim(arrival))
            desk.must(Reject(arrival, "test"))
            desk.wall += BUCKET_AGE
        desk.must(Deploy(record=DEPLOYED, files=CODE))
        self.store.seal()

    def read(self, path: str) -> bytes:
        """A file's bytes."""
        return runlog.stored(self.store, path)

    @property
    def state(self) -> files.State:
        """The counts."""
        return self.desk.index.state

    def counts(self, **changed: object) -> dict[str, bytes]:
        """The file of counts, with some of them changed."""
        return {layout.STATE: files.encode(msgspec.structs.replace(self.state, **changed))}

    def next(self, event: ev.AnyEvent, run: RunId | None = None, **changed: object) -> tuple[str, bytes]:
        """An event as it would follow in the live run, or another: its place and its bytes."""
        run = run or self.live
        known = self.desk.index.known(run)
        seq = known.seq + 1
        values = {"seq": seq, "at": known.changed, "prev": known.prev, **changed}
        _, raw = ev.stored(event, seq=values["seq"], at=values["at"], prev=values["prev"])  # type: ignore[arg-type]
        return layout.event_path(run, seq), raw

    def append(self, event: ev.AnyEvent, *, author: str = "workflow-process", **changed: object) -> Bad:
        """A commit of this event alone."""
        path, raw = self.next(event, None, **changed)
        return Bad(puts={path: raw}, author=author)

    def entry(self, place: str, arrival: int) -> tuple[str, Entry]:
        """A mail's entry in a place of the queue."""
        for directory, name in runlog.leaves(self.store, layout.queue_dir(ADDRESS, place)):
            found = decode(self.read(f"{directory}/{name}"))
            if found.arrival == arrival:
                return f"{directory}/{name}", found
        raise AssertionError(f"mail {arrival} is not in {place}")

    def consumed(self, bucket: int) -> str:
        """The path of a consumed entry of this bucket."""
        root = layout.bucket_dir(ADDRESS, bucket)
        first = self.store.entries(root)[0]
        return f"{root}/{first}/{self.store.entries(f'{root}/{first}')[0]}"

    def skipped(self, name: str) -> Bad:
        """A new mail whose arrival is one too high."""
        return self.fresh(name, self.state.arrival + 1)

    def fresh(self, name: str, arrival: int | None = None, **changed: object) -> Bad:
        """A new mail as it would be enqueued, with some of its entry changed."""
        raw = message(name)
        arrival = arrival or self.state.arrival
        entry = Entry(
            arrival=arrival,
            id=f"<{name}>",
            address=ADDRESS,
            run=self.live,
            starts=False,
            received=STAMP,
            sha256=hashlib.sha256(raw).hexdigest(),
            bare="0" * 64,
        )
        entry = msgspec.structs.replace(entry, **changed)
        path = layout.inbox_path(ADDRESS, arrival, message_key(f"<{name}>".encode()))
        return Bad(
            puts={path: encode(entry), layout.mail_path(arrival): raw, **self.counts(arrival=self.state.arrival + 1)}
        )

    def moved(self, origin: str, place: str, arrival: int, *, claim: int = 1, **changed: object) -> Bad:
        """A mail that goes from place to place, with some of its entry changed; ``claim`` is the number in its name."""
        old, entry = self.entry(origin, arrival)
        entry = msgspec.structs.replace(entry, **changed)
        match place:
            case "inbox":
                path = layout.inbox_path(ADDRESS, arrival, entry.key)
            case "hold":
                path = layout.hold_path(ADDRESS, arrival, entry.key)
            case "processing":
                path = layout.processing_path(ADDRESS, arrival, entry.key, claim)
            case _:
                path = layout.consumed_path(ADDRESS, self.state.bucket, entry.key)
        more = self.counts(bucket_entries=self.state.bucket_entries + 1) if place == "consumed" else {}
        return Bad(puts={path: encode(entry), **more}, deletes=(old,))


def started(number: int, **changed: object) -> ev.StepStarted:
    """A step begins."""
    return msgspec.structs.replace(ev.StepStarted(call=call(number), step="s", arguments="0" * 64), **changed)


def completed(number: int, value: ev.Value = NULL) -> ev.StepCompleted:
    """A step returns."""
    return ev.StepCompleted(call=call(number), output=value)


def recorded(**changed: object) -> Bad:
    """Another record of what is deployed."""
    return Bad(puts={layout.DEPLOYED: encode_deployed(msgspec.structs.replace(DEPLOYED, **changed))})
