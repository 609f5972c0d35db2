"""Commits that went wrong in any way are refused, or leave a tree in which nothing is wrong.

Two independent readings are held against each other: the rules of a commit (``judge``), and the rules of a whole tree
(``whole``). What the one lets through on a clean tree, the other must find clean afterwards.
"""

import functools
import hashlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from substrate import layout
from substrate.messages import (
    Claim,
    LatchDeployment,
    MailDelivered,
    PutBlob,
    QueueMail,
    Reject,
    RejectHeld,
    Release,
    ReleaseHeld,
    ResetDeployment,
    TakeUp,
)
from substrate.operations import Change
from substrate.operations.buckets import BUCKET_AGE
from substrate.rules import Broken, Commit, Ground, judge, proposed
from substrate.rules.whole import whole
from substrate.rules.whole_runs import Counts
from waypost.model import events as ev
from waypost.testing.corrupted import NULL, VALUE, completed, started
from waypost.testing.desk import ADDRESS, BOSS, REPOSITORY, Desk, Files, call, first_files, message

Step = tuple[dict[str, bytes], Change]


class Recorder(Desk):
    """A desk that keeps each change with the files that it was made on."""

    def __init__(self) -> None:
        super().__init__(Files(first_files()))
        self.steps: list[Step] = []

    def _commit(self, change: Change) -> None:
        assert isinstance(self.tree, Files)
        self.steps.append((dict(self.tree.files), change))
        super()._commit(change)


@functools.cache
def story() -> tuple[Step, ...]:
    """Every kind of commit once, or more often."""
    desk = Recorder()
    by = desk.begin()
    run = desk.start(message("m1@x"))
    sha256 = hashlib.sha256(VALUE).hexdigest()
    desk.must(PutBlob(by=by, run=run, sha256=sha256, data=VALUE))
    desk.append(run, started(1), ev.StepCompleted(call=call(1), output=ev.Value(blob=sha256)))
    desk.append(run, started(2))
    desk.must(QueueMail(by=by, run=run, call=call(3), to=(BOSS,), subject="s", text="t"))
    desk.must(MailDelivered(1))
    desk.append(run, *[each for number in range(4, 36) for each in (started(number), completed(number))])
    desk.append(run, completed(2), ev.SignalAwaited(call=call(40), park="input", seen=60))
    answer = desk.enqueue(message("m2@x", answers="m1@x"))
    desk.must(Claim(answer))
    desk.must(TakeUp(arrival=answer, wait=call(40)))
    clash = desk.enqueue(message("m2@x", text="another"))
    other = desk.enqueue(message("m3@x"))
    desk.must(Claim(other))
    desk.must(Release(other))
    desk.must(ReleaseHeld(clash))
    again = desk.enqueue(message("m3@x", text="another"))
    desk.must(RejectHeld(again))
    desk.wall += BUCKET_AGE
    desk.must(Claim(other))
    desk.must(Reject(other, "test"))
    desk.must(Claim(clash))
    desk.append(run, ev.RunCompleted(result=NULL))
    desk.must(LatchDeployment(detail="3 exits within 60 s"))
    desk.must(ResetDeployment(by="ann"))
    desk.begin()
    while desk.fold_away() is not None:
        pass
    desk.wall += 8 * BUCKET_AGE
    desk.drop_old()
    return tuple(desk.steps)


def faults(files: dict[str, bytes]) -> list[Broken]:
    """What is wrong with a tree by itself."""
    return list(whole(Files(files), Counts()))


def after(files: dict[str, bytes], commit: Commit) -> dict[str, bytes]:
    """The tree with a commit made on it."""
    left = {
        path: raw
        for path, raw in files.items()
        if not any(path == gone or (gone.endswith("/") and path.startswith(gone)) for gone in commit.deletes)
    }
    return {**left, **commit.puts}


def test_every_step_of_the_story_is_clean() -> None:
    """Both readings of what is right agree."""
    for files, change in story():
        assert faults(after(files, proposed(change))) == [], change.subject


@pytest.mark.parametrize("author", ["reader", "workflow-process"])
def test_no_step_of_the_hosts_is_anybody_elses(author: str) -> None:
    """A child has events of its own run and no more; a reader has nothing."""
    for files, change in story():
        if change.author == author or (author == "workflow-process" and not change.puts):
            continue
        desk = Desk(Files(files))
        ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=desk.limits)
        commit = msgspec.structs.replace(proposed(change), author=author)
        rules = {each.rule for each in judge(desk.index, commit, ground).broken}
        assert rules & {"author", "fence"}, change.subject


@settings(max_examples=80)
@given(data=st.data())
def test_what_went_wrong_is_refused_or_does_no_harm(data: st.DataObject) -> None:
    """A file left out, put twice, put elsewhere, cut short, or mixed up with another; a delete too few or too many."""
    files, change = data.draw(st.sampled_from(story()))
    commit = proposed(change)
    for _ in range(data.draw(st.integers(1, 2))):
        commit = _mutated(data, files, commit)
    if any(path not in files for path in commit.deletes if not path.endswith("/")):
        return  # the store refuses to delete what isn't there
    desk = Desk(Files(files))
    ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=desk.limits)
    if not judge(desk.index, commit, ground).broken:
        assert faults(after(files, commit)) == [], (change.subject, sorted(commit.puts), commit.deletes)


def _mutated(data: st.DataObject, files: dict[str, bytes], commit: Commit) -> Commit:
    puts, deletes = dict(commit.puts), list(commit.deletes)
    kinds = ["delete", "overwrite", "copy"]
    kinds += ["drop", "cut", "empty", "swap", "elsewhere"] if puts else []
    kinds += ["keep"] if deletes else []
    there = st.sampled_from(sorted(files))
    match data.draw(st.sampled_from(kinds)):
        case "drop":
            del puts[data.draw(st.sampled_from(sorted(puts)))]
        case "cut":
            path = data.draw(st.sampled_from(sorted(puts)))
            puts[path] = puts[path][: len(puts[path]) // 2]
        case "empty":
            puts[data.draw(st.sampled_from(sorted(puts)))] = b"{}"
        case "swap":
            one, two = data.draw(st.sampled_from(sorted(puts))), data.draw(st.sampled_from(sorted(puts)))
            puts[one], puts[two] = puts[two], puts[one]
        case "elsewhere":
            path = data.draw(st.sampled_from(sorted(puts)))
            puts[_next_to(path)] = puts.pop(path)
        case "delete":
            deletes.append(data.draw(there))
        case "overwrite":
            puts[data.draw(there)] = files[data.draw(there)]
        case "copy":
            path = data.draw(there)
            puts[_next_to(path)] = files[path]
        case _:
            deletes.remove(data.draw(st.sampled_from(sorted(deletes))))
    return Commit(author=commit.author, puts=puts, deletes=tuple(dict.fromkeys(deletes)))


def _next_to(path: str) -> str:
    """The name beside this one: one further, where it ends in a number."""
    above, _, name = path.rpartition("/")
    digits = name[:10]
    if digits.isdecimal():
        return f"{above}/{layout.number(int(digits) + 1)}{name[10:]}"
    return f"{path}x"
