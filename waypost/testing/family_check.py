"""What must be true of a deployment's runs and child runs when all have ended, however often it was killed.

Nothing here has a part in making it so: logs are read from the repository, effects from what steps left outside.
"""

from collections import Counter
from pathlib import Path

from msgspec import UNSET

from substrate import SigningKey, layout, runlog, verify
from substrate.checking.fsck import Looked, fsck
from substrate.storage.readview import open_readonly
from waypost.host.datadir.directory import DataDir
from waypost.model import events as ev
from waypost.model.ids import CallId, RunId
from waypost.model.run import outcome

Log = tuple[ev.AnyEvent, ...]


def logs(data: Path, deployment: str) -> dict[RunId, Log]:
    """Every run's events, from the repository; no host needs to run."""
    folder = DataDir(data)
    view = open_readonly(folder.repo(deployment), SigningKey.load(folder.signing_key).public)
    return {
        run: tuple(map(ev.decode, runlog.events(view, run)))
        for root in (layout.RUNS, layout.SEALED)
        for run in runlog.run_ids(view, root)
    }


def check_history(data: Path, deployment: str) -> None:
    """The history is sound: by every rule, and signature by signature."""
    folder = DataDir(data)
    found = list(fsck(folder.repo(deployment), Looked()))
    assert not found, found
    assert verify(folder.repo(deployment), SigningKey.load(folder.signing_key).public).faults == ()


def check_family(runs: dict[RunId, Log]) -> None:
    """Each call has one child and one outcome, which is the child's end; nobody is without the parent that has it."""
    for run, log in runs.items():
        assert any(isinstance(each, ev.TERMINAL) for each in log), f"{run} hasn't ended: {log[-1]}"
        spawned = {each.call: each for each in log if isinstance(each, ev.ChildSpawned)}
        came = Counter(each.call for each in log if isinstance(each, ev.ChildCompleted))
        assert set(came.values()) <= {1}, f"{run} was told twice of a child"
        assert len({each.child for each in spawned.values()}) == len(spawned)
        for call, child in spawned.items():
            assert _parent(runs[child.child]) == (run, call), f"{child.child} isn't the child of {run} at {call}"
            told = next((each for each in log if isinstance(each, ev.ChildCompleted) and each.call == call), None)
            if told is not None:
                _same_end(told, runs[child.child])
            else:
                assert _ended_before(log, runs[child.child]), f"{run} was never told of {child.child}"
    for run, log in runs.items():
        parent = _parent(log)
        if parent is not None:
            calls = {each.call: each.child for each in runs[parent[0]] if isinstance(each, ev.ChildSpawned)}
            assert calls.get(parent[1]) == run, f"{parent[0]} doesn't know {run}"


def check_effects(file: Path) -> dict[str, int]:
    """What steps did outside, and how often: each under one key of its own. A line is ``what key``."""
    keys: dict[str, set[str]] = {}
    times: Counter[str] = Counter()
    for line in file.read_text(encoding="utf-8").splitlines():
        what, key = line.split()
        keys.setdefault(what, set()).add(key)
        times[what] += 1
    twice = {what: found for what, found in keys.items() if len(found) > 1}
    assert not twice, f"the same was done under several keys: {twice}"
    assert len({key for found in keys.values() for key in found}) == len(keys), "one key for two things"
    return dict(times)


def _parent(log: Log) -> tuple[RunId, CallId] | None:
    started = log[0]
    assert isinstance(started, ev.RunStarted)
    return None if started.parent is UNSET else (started.parent.run, started.parent.call)


def _end(log: Log) -> ev.RunCompleted | ev.RunFailed | ev.RunCancelled:
    (end,) = (each for each in log if isinstance(each, ev.TERMINAL))
    return end


def _same_end(told: ev.ChildCompleted, child: Log) -> None:
    end = _end(child)
    assert told.outcome == outcome(end)
    if isinstance(end, ev.RunCompleted):
        assert told.result is not UNSET
        assert told.result == end.result
    elif isinstance(end, ev.RunFailed):
        assert told.error is not UNSET
        assert (told.error.type, told.error.message) == (end.error.type, end.error.message)


def _ended_before(parent: Log, child: Log) -> bool:
    """Whether the parent's end came first: then nobody was left to be told."""
    return _end(parent).at <= _end(child).at
