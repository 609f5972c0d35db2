"""Repositories that the reference system wrote itself become ours: nothing lost, nothing made up."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from substrate import Reader, layout, runlog, verify
from substrate.reference import runs
from substrate.reference.errors import Leaving
from substrate.reference.source import Source
from substrate.signing.keys import PublicKey
from substrate.storage.readview import ReadView, open_readonly
from waypost.host.keeping.importing import Imported, Order, carry_out, dry_run
from waypost.model import events as ev
from waypost.model.ids import Deployment, RunId
from waypost.testing.stores import fsck, git
from waypost.testing.verbs import verb

SAMPLES = Path(__file__).parent.parent / "interop"
ADDRESSES = {
    "direct-run_alpha": "run_alpha@bench.example",
    "e2e-batch": "run_dep@bench.example",
    "e2e-crashloop": "run_dep@bench.example",
    "e2e-longlived": "run_dep@bench.example",
}
Sample = Callable[[str], Path]


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    """Unpacks a bundle, by name."""

    def unpack(name: str) -> Path:
        target = tmp_path / f"{name}.git"
        git(tmp_path, "clone", "-q", "--mirror", str(SAMPLES / f"{name}.bundle"), str(target))
        return target

    return unpack


def order(source: Path, name: str, steps: dict[str, Path] | None = None) -> Order:
    return Order(source=source, name=Deployment("taken"), address=ADDRESSES[name], steps=steps or {})


def tree(data: Path) -> ReadView:
    return open_readonly(str(data / "repos" / "taken.git"), PublicKey.load(data / "keys" / "host.ed25519.pub"))


def reader(data: Path) -> Reader:
    return Reader(tree(data))


def events_of(found: Reader, run: str) -> list[ev.AnyEvent]:
    return [ev.decode(raw) for raw in found.page(RunId(run), after=0, limit=1 << 30).events]


def files_below(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def theirs(source: Path) -> Iterator[runs.RunFound]:
    opened = Source.open(source)
    top = opened.entries(opened.commit(opened.branches["main"]).tree)
    for entry in opened.entries(next(each.oid for each in top if each.name == "runs")):
        found = runs.look(opened, entry, Leaving())
        if found is not None:
            yield found


@pytest.mark.parametrize("name", ADDRESSES)
def test_every_event_and_every_file_of_a_run_is_taken_over(name: str, sample: Sample, tmp_path: Path) -> None:
    """One of ours for one of theirs, in order, with its hash; and every byte of the run's directory under its own."""
    source, data = sample(name), tmp_path / "data"
    before = files_below(source)
    done = carry_out(data, order(source, name))
    assert files_below(source) == before
    found = reader(data)
    named = {run.name: run.run for run in done.runs}
    for run in theirs(source):
        told = [told.raw for told in runs.events(Source.open(source), run)]
        events = events_of(found, named[run.name])
        assert [each.original for each in events if each.original] == [hashlib.sha256(raw).hexdigest() for raw in told]
        kept = [each for each in events if isinstance(each, ev.Foreign) and each.blob]
        blobs = {each.blob: found.blob(RunId(named[run.name]), str(each.blob)) for each in kept}
        log = [blobs[each.blob] for each in kept if each.was == "log"]
        assert b"".join(part or b"" for part in log) == b"".join(raw + b"\n" for raw in told)
        others = {each.about: blobs[each.blob] for each in kept if each.was == "file"}
        assert others == {path: Source.open(source).file(file.oid, 1 << 20) for path, file in run.others}
        assert isinstance(events[-1], ev.TERMINAL)
        assert events[-1].original or run.ended is False


@pytest.mark.parametrize("name", ADDRESSES)
def test_what_comes_of_it_is_sound(name: str, sample: Sample, tmp_path: Path) -> None:
    """For git, for whoever verifies, and for a start: a sealed repository of ours like any other."""
    data = tmp_path / "data"
    carry_out(data, order(sample(name), name))
    repository = data / "repos" / "taken.git"
    assert fsck(repository) == ""
    assert verb("fsck", data=data).out.count("clean") == 1
    assert verify(repository, PublicKey.load(data / "keys" / "host.ed25519.pub")).faults == ()
    assert runlog.run_ids(tree(data)) == []
    assert not (data / "importing").exists()


def test_what_has_no_place_here_is_listed_with_its_reason(sample: Sample, tmp_path: Path) -> None:
    """Nothing is dropped in silence; a dry run says the same of it and makes nothing."""
    source = sample("direct-run_alpha")
    asked = order(source, "direct-run_alpha", {"step1": sample("direct-agent-state-step1")})
    said = dry_run(asked)
    assert not (tmp_path / "data").exists()
    done = carry_out(tmp_path / "data", asked)
    assert [each.path for each in done.left] == [
        "main:agent-state/step1/turns.jsonl",
        "runs/run_eta",
        "events:addresses/run_alpha%2Btag%20%C3%BC%40bench.example/inbox/100-<noraw2@example.com>.json",
        "events:addresses/run_alpha%2Btag%20%C3%BC%40bench.example/inbox/99-<noraw@example.com>.json",
        "step1:state/grants.json",
        "events:addresses/run_alpha%40bench.example/consumed/<late@example.com>.json",
    ]
    assert said.left == done.left[:5]
    assert [(run.name, run.was_live) for run in said.runs] == [(run.name, run.was_live) for run in done.runs]
    assert (done.queued, done.held, done.filed, done.grants) == (3, 0, 2, ())
    assert "tool:posix" in done.left[4].why
    assert not tree(tmp_path / "data").entries(layout.GRANTS)


def test_the_runs_of_the_sample_end_as_they_ended_there_and_live_ones_say_so(sample: Sample, tmp_path: Path) -> None:
    """Completed, cancelled, crashed, and three that were live: nobody may take one of these for another."""
    done = carry_out(tmp_path / "data", order(sample("direct-run_alpha"), "direct-run_alpha"))
    found = reader(tmp_path / "data")
    ends = {run.name: events_of(found, run.run)[-1] for run in done.runs}
    assert isinstance(ends["run_alpha"], ev.RunCompleted)
    faults = {name: end.error.type for name, end in ends.items() if isinstance(end, ev.RunFailed)}
    live = {"run_beta": "Imported", "run_delta": "Imported", "run_zeta": "Imported"}
    assert faults == {"run_gamma": "Cancelled", "run_eps": "Error", **live}
    (beta,) = (run for run in done.runs if run.name == "run_beta")
    assert found.page(RunId(beta.run), after=0, limit=1).events[0].startswith(b'{"seq":1,"type":"RunStarted"')
    queue = [(line.entry.id, line.place) for line in found.queue(consumed=True)]
    assert ("<p1@example.com>", "consumed") in queue  # run_beta was given it: no other run may be
    waiting = [name for name, place in queue if place == "inbox"]
    assert waiting[:2] == ["<i1@example.com>", "<i2@example.com>"]


def test_mails_of_a_run_are_the_bytes_that_came_as_far_as_history_has_them(sample: Sample, tmp_path: Path) -> None:
    """The queue drops a message when it is consumed; the commits before that still hold it."""
    done: Imported = carry_out(tmp_path / "data", order(sample("e2e-longlived"), "e2e-longlived"))
    found = reader(tmp_path / "data")
    events = events_of(found, done.runs[0].run)
    mails = [each.mail for each in events if isinstance(each, ev.RunStarted | ev.SignalReceived) and each.mail]
    assert [mail.id for mail in mails] == [f"<u{number}@example.com>" for number in range(4)]
    raws = [found.mail(mail.arrival) for mail in mails]
    assert all(raw and b"X-Waypost-Rebuilt" not in raw for raw in raws)
    assert raws[2] is not None
    assert b"application/pdf" in raws[2]
    assert done.left == ()
