"""``verify`` on real repositories: sound ones, clones, and each kind of tampering by itself."""

import hashlib
from pathlib import Path

import msgspec
import pytest

from substrate import SigningKey, layout, verify
from substrate.errors import NotARepository
from substrate.messages import Append, Appended, MailDelivered, PutBlob, QueueMail, WorkflowProcess
from substrate.operations import Change
from substrate.operations.sealing import seal_run
from substrate.reader import Reader
from substrate.storage.store import Store
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId
from waypost.testing.desk import BOSS, REPOSITORY, Desk, call, first_files, message
from waypost.testing.stores import AT, git

BLOB = b'"' + b"v" * 70_000 + b'"'
KEY = SigningKey.generate()
NULL = ev.Value(inline=msgspec.Raw(b"null"))


class Told:
    """A repository with one run's story in it, still open."""

    def __init__(self, path: Path, *, steps: int = 40) -> None:
        self.path = path
        self.store = Store.create(path, repository_id=REPOSITORY, key=KEY, first=first_files(), at=AT)
        desk = self.desk = Desk(self.store)
        by = desk.begin()
        self.run = run = desk.start(message("m1@x"))
        begun = desk.events(run)[0]
        assert isinstance(begun, ev.RunStarted)
        self.started = begun
        self.sha256 = hashlib.sha256(BLOB).hexdigest()
        desk.must(PutBlob(by=by, run=run, sha256=self.sha256, data=BLOB))
        desk.append(run, started(1), ev.StepCompleted(call=call(1), output=ev.Value(blob=self.sha256)))
        desk.must(QueueMail(by=by, run=run, call=call(2), to=(BOSS,), subject="s", text="t"))
        self.store.flush()
        for number in range(3, 3 + steps):
            desk.append(run, started(number), ev.StepCompleted(call=call(number), output=NULL))
            if number % 3 == 0:
                self.store.flush()
        self.store.flush()

    def tamper(self, path: str, data: bytes | None, *, author: str = "supervisor") -> None:
        """A commit as only somebody with the host's key could make it."""
        puts, deletes = ({}, (path,)) if data is None else ({path: data}, ())
        self.store.commit(
            author=f"{author} <{author}@deployment.waypost>", subject="tamper", puts=puts, deletes=deletes, at=AT
        )
        self.store.close()


def started(number: int) -> ev.StepStarted:
    return ev.StepStarted(call=call(number), step="s", arguments="0" * 64)


def faults(path: Path) -> str:
    return "\n".join(map(str, verify(path, KEY.public).faults))


def test_a_sound_history_is_proved_to_its_last_flush(tmp_path: Path) -> None:
    """What `waypost verify` says: who signed, how much was read, how far the proof reaches and that it ends there."""
    told = Told(tmp_path / "r.git")
    for sealed in (False, True):
        if sealed:
            told.store.close()
        report = verify(told.path, KEY.public)
        assert report.faults == ()
        assert report.sound
        assert (report.runs, report.events, report.repository) == (1, 84, REPOSITORY)
        assert (report.first_flush, report.last_flush) == (1, report.flushes)
        assert report.last_flush == told.store.flush_number
        assert report.last_hash == told.store.flush_hash
        assert (report.signer, report.pinned) == (KEY.public.fingerprint, True)
        assert report.reach == f"complete up to flush {report.flushes}; a longer history may have existed"


def test_without_a_key_the_signer_is_named_but_not_pinned(tmp_path: Path) -> None:
    """A history that somebody else signed from end to end looks as good; so the report may not claim more."""
    told = Told(tmp_path / "r.git")
    told.store.close()
    report = verify(told.path)
    assert report.sound
    assert not report.pinned
    assert "signer not pinned" in report.reach
    assert "not signed by" in "\n".join(map(str, verify(told.path, SigningKey.generate().public).faults))


@pytest.mark.parametrize("bare", ["--bare", "--no-checkout"])
def test_a_clone_is_as_good_as_the_original(tmp_path: Path, bare: str) -> None:
    """Anyone with a clone can verify offline."""
    told = Told(tmp_path / "r.git")
    told.store.close()
    git(tmp_path, "clone", "-q", bare, str(told.path), str(tmp_path / "clone"))
    report = verify(tmp_path / "clone", KEY.public)
    assert report.sound
    assert report.events == 84


@pytest.mark.parametrize("how", ["--depth=3", "--filter=blob:none"])
def test_a_clone_without_some_of_the_history_is_refused_in_words(tmp_path: Path, how: str) -> None:
    """Nothing is wrong with it, and nothing can be proved by it: it was asked for without what would prove it."""
    told = Told(tmp_path / "r.git", steps=4)
    told.store.close()
    git(told.path, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--bare", how, told.path.as_uri(), str(tmp_path / "clone"))
    with pytest.raises(NotARepository, match=r"this clone is (shallow|partial), it has only"):
        verify(tmp_path / "clone", KEY.public)


def test_what_is_not_sound_claims_no_reach_beyond_the_first_fault(tmp_path: Path) -> None:
    """Whoever reads one line of the report must not take it for a proof; up to where it holds is still said."""
    told = Told(tmp_path / "r.git")
    flushes = told.store.flush_number
    told.tamper(layout.mail_path(1), message("other@x"))
    assert verify(told.path, KEY.public).reach == (
        f"nothing is proved; by itself the row of flushes is whole up to flush {flushes}"
    )
    somebody = ("-c", "user.name=x", "-c", "user.email=x@x")
    alone = git(told.path, *somebody, "commit-tree", "log^{tree}", "-m", "x").strip()
    git(told.path, "update-ref", "refs/heads/log", alone)
    assert verify(told.path, KEY.public).reach == "nothing is proved"


@pytest.mark.parametrize("case", ["event", "mail", "grants", "blob", "segment", "event gone", "gap", "stranger"])
def test_every_kind_of_tampering_is_found_and_named(tmp_path: Path, case: str) -> None:
    """Even by somebody who holds the host's key: the chain, the hashes and what is written once give it away."""
    told = Told(tmp_path / "r.git")
    run = told.run
    match case:
        case "event":
            path, words = layout.event_path(run, 84), "chain: prev"
            told.tamper(layout.event_path(run, 83), (told.store.read(layout.event_path(run, 83)) or b"") + b" ")
        case "mail":
            path, words = layout.mail_path(1), "hash: its bytes aren't those"
            told.tamper(path, message("other@x"))
        case "grants":
            path, words = layout.grants_path(run), "hash: RunStarted names"
            told.tamper(path, b'{"mail":["mallory@evil.example"],"secrets":[]}')
        case "blob":
            path, words = layout.blob_path(run, told.sha256), "hash: its bytes have the hash"
            told.tamper(path, b"1")
        case "segment":
            path, words = layout.segment_path(run, 1), "changed"
            raw = told.store.read(path) or b""
            told.tamper(path, raw.replace(b'"step":"s"', b'"step":"t"', 1))
        case "event gone":
            path, words = layout.event_path(run, 84), "a record was taken away"
            told.tamper(path, None)
        case "gap":
            path, words = layout.event_path(run, 71), "seq 71, and 70 comes next"
            told.tamper(layout.event_path(run, 70), None)
        case "stranger":
            path, words = "", "its author is no principal"
            told.tamper(layout.STATE, b"{}", author="mallory")
        case _:
            raise AssertionError(case)
    found = faults(told.path)
    assert words in found
    assert path.rpartition("/")[0] in found


def test_a_commit_that_the_host_has_not_signed_is_found(tmp_path: Path) -> None:
    """Somebody with git and the disk, without the key."""
    told = Told(tmp_path / "r.git", steps=2)
    told.store.close()
    git(tmp_path, "clone", "-q", "--bare", str(told.path), str(tmp_path / "clone"))
    tree = git(tmp_path / "clone", "rev-parse", "log^{tree}").strip()
    forged = git(
        tmp_path / "clone", "-c", "user.name=m", "-c", "user.email=m@x", "commit-tree", tree, "-p", "log", "-m", "hi"
    ).strip()
    git(tmp_path / "clone", "update-ref", "refs/heads/log", forged)
    found = faults(tmp_path / "clone")
    assert "the head of no flush" in found
    assert "its author is no principal" in found
    assert "its committer is not this signer" in found


def test_a_history_with_a_flush_left_out_is_found(tmp_path: Path) -> None:
    """Numbers count up by one: a row that was cut in the middle and joined again has a gap, and its hash is wrong."""
    told = Told(tmp_path / "r.git", steps=6)
    told.store.close()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--bare", str(told.path), str(clone))
    heads = git(clone, "log", "--format=%H", "--grep=^Flush: ", "log").split()
    git(clone, "replace", "--graft", heads[0], heads[2])
    grafted = git(clone, "rev-parse", f"refs/replace/{heads[0]}").strip()
    git(clone, "update-ref", "refs/heads/log", grafted)
    git(clone, "pack-refs", "--all")
    found = faults(clone)
    assert "stands where flush" in found
    assert "not signed by" in found


def test_a_damaged_object_ends_the_check_in_words(tmp_path: Path) -> None:
    """A broken disk is reported, with what could be read up to there; it is no crash."""
    told = Told(tmp_path / "r.git", steps=2)
    told.store.close()
    pack = max((told.path / "objects/pack").glob("*.pack"), key=lambda file: file.stat().st_size)
    pack.chmod(0o644)
    raw = bytearray(pack.read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    pack.write_bytes(bytes(raw))
    report = verify(told.path, KEY.public)
    assert not report.sound


def test_a_folder_that_is_no_repository_is_refused(tmp_path: Path) -> None:
    """There is nothing to say about it."""
    with pytest.raises(NotARepository):
        verify(tmp_path)


def finished(told: Told) -> RunId:
    """The run has ended, and its mail is out."""
    told.desk.must(MailDelivered(1))
    told.desk.append(told.run, ev.RunCompleted(result=NULL))
    told.store.flush()
    return told.run


def test_a_sealed_run_reads_like_a_live_one(tmp_path: Path) -> None:
    """Whoever reads sees the same before, while (a large value goes ahead) and after; and it is proved as before."""
    told = Told(tmp_path / "r.git", steps=50)
    desk, run = told.desk, finished(told)
    raws = list(Reader.open(told.path, KEY.public).log(run))
    desk.fold_away()
    assert list(Reader.open(told.path, KEY.public).log(run)) == raws  # what isn't flushed isn't shown
    told.store.flush()
    reader = Reader.open(told.path, KEY.public)
    assert told.store.entries(layout.run_dir(run)) == ()
    assert list(reader.log(run)) == raws
    assert list(reader.log(run, after=3)) == raws[3:]
    page = reader.page(run, after=len(raws) - 1, limit=1)
    assert (page.last, page.events) == (len(raws), (raws[-1],))
    assert hashlib.sha256(page.grants).hexdigest() == told.started.grants
    assert reader.run(run).seq == len(raws)
    assert reader.blob(run, told.sha256) == BLOB
    assert [(line.state, line.subject, line.seq) for line in reader.runs()] == [("completed", "about m1@x", len(raws))]
    desk.reopen(told.store)
    assert desk.index.standing(run) == "ended"
    by = WorkflowProcess(Generation(1))
    assert desk.code(Append(by=by, run=run, events=(started(9),))) == "terminal"
    told.store.close()
    report = verify(told.path, KEY.public)
    assert report.faults == ()
    assert report.events == len(raws)


SEALED = {
    "event": "chain: prev",
    "grants": "hash: RunStarted names",
    "grants gone": "missing: a run without its grants",
    "blob": "hash: its bytes have the hash",
    "both": "both live and sealed",
    "log gone": "a run without an event",
    "open": "has not ended",
}


@pytest.mark.parametrize("case", SEALED)
def test_tampering_with_a_sealed_run_is_found_and_named(tmp_path: Path, case: str) -> None:
    """Chain, genesis, grants and values are checked as those of a live run, and that nothing could have followed."""
    told = Told(tmp_path / "r.git", steps=2)
    run = finished(told)
    told.desk.fold_away()
    path: str = layout.sealed_log_path(run)
    raw = told.store.read(path) or b""
    data: bytes | None
    match case:
        case "event":
            data = raw.replace(b'"step":"s"', b'"step":"t"', 1)
        case "grants":
            path, data = layout.sealed_grants_path(run), b"{}"
        case "grants gone":
            path, data = layout.sealed_grants_path(run), None
        case "blob":
            path, data = layout.sealed_blob_path(run, told.sha256), b"1"
        case "both":
            path, data = layout.event_path(run, 1), raw.partition(b"\n")[0]
        case "log gone":
            data = None
        case "open":
            data = raw[: raw[:-1].rindex(b"\n") + 1]
        case _:
            raise AssertionError(case)
    told.tamper(path, data)
    assert SEALED[case] in faults(told.path)


@pytest.mark.parametrize("case", ["log", "no log", "grants", "blob", "blob elsewhere"])
def test_a_seal_that_does_not_keep_the_bytes_is_found(tmp_path: Path, case: str) -> None:
    """The chain can't tell that its last events were left out: so the commit that seals is compared with its parent."""
    told = Told(tmp_path / "r.git", steps=2)
    run = finished(told)
    told.desk.append(told.desk.start(message("m2@x")), ev.RunFailed(error=ev.Fault(type="X", message="")))
    change = seal_run(told.desk.index, run)
    assert isinstance(change, Change)
    puts, blob = dict(change.puts), layout.sealed_blob_path(run, told.sha256)
    match case:
        case "log":
            raw = puts[layout.sealed_log_path(run)]
            puts[layout.sealed_log_path(run)] = raw[: raw[:-1].rindex(b"\n") + 1]
        case "no log":
            del puts[layout.sealed_log_path(run)]
        case "grants":
            puts[layout.sealed_grants_path(run)] += b" "
        case "blob":
            del puts[blob]
        case _:
            other = told.desk.changes[-1].facts[0]
            assert isinstance(other, Appended)
            puts[layout.sealed_blob_path(other.run, told.sha256)] = puts.pop(blob)
    told.store.commit(
        author="supervisor <supervisor@deployment.waypost>",
        subject=change.subject,
        puts=puts,
        deletes=change.deletes,
        at=AT,
    )
    told.store.close()
    found = faults(told.path)
    words = {"log": "the sealed log isn't the log", "no log": "a record was taken away"}
    assert words.get(case, "not in the sealed run as it was") in found
