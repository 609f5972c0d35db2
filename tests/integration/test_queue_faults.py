"""Hold, rejection and notices, killed at every point of the disk; buckets that the writer drops by itself."""

import shutil
from pathlib import Path

import pytest

from substrate import Reader, layout, runlog, verify
from substrate.files.disk import Disk
from substrate.messages import (
    BeginGeneration,
    Claim,
    Enqueue,
    MailDelivered,
    Operation,
    Reject,
    RejectHeld,
    ReleaseHeld,
    TakeUp,
)
from substrate.operations.buckets import BUCKET_AGE, watermark
from substrate.storage.readview import open_readonly
from waypost.model.times import Now
from waypost.testing.clock import START
from waypost.testing.desk import ADDRESS, STARTED, message
from waypost.testing.disks import Died, DyingDisk
from waypost.testing.stores import fsck
from waypost.testing.writer_here import KEY, WriterHere

DAY = 86_400.0
OTHER = message("m1@x", text="other")
ACTS: tuple[Operation, ...] = (
    BeginGeneration(),
    Enqueue(message("m1@x")),
    Enqueue(OTHER),
    Enqueue(message("m1@x", text="a third")),
    ReleaseHeld(2),
    RejectHeld(3),
    MailDelivered(1),
    Claim(1),
    TakeUp(arrival=1, start=STARTED),
    Claim(2),
    BeginGeneration(),
    Claim(2),
    BeginGeneration(),
    Claim(2),
    BeginGeneration(),
    RejectHeld(2),
)
"""A clash that is let in and then ends its reader three times, and one that is rejected at once."""


def consume(host: WriterHere, name: str) -> None:
    """Accept a mail and be done with it."""
    arrival = host.done(Enqueue(message(name))).arrival
    host.done(Claim(arrival))
    host.done(Reject(arrival, "test"))


def places(path: Path) -> list[tuple[int, str]]:
    """Every mail by arrival, and where it is, as a reader sees it."""
    view = open_readonly(path, KEY.public)
    found: list[tuple[int, str]] = []
    for state in ("inbox", "processing", "hold"):
        for directory, name in runlog.leaves(view, layout.queue_dir(ADDRESS, state)):
            found.append((layout.place_of(f"{directory}/{name}").number or 0, state))
    found += [
        (line.entry.arrival, "consumed") for line in Reader(view).queue(consumed=True) if line.place == "consumed"
    ]
    return sorted(found)


def sound(path: Path) -> None:
    """For git and for us."""
    assert fsck(path) == ""
    assert verify(path, KEY.public).faults == ()


@pytest.mark.parametrize("stride", [9, pytest.param(1, marks=pytest.mark.torture)])
def test_every_move_of_a_mail_on_hold_survives_death_at_any_point(tmp_path: Path, stride: int) -> None:
    """What was acknowledged is there, each mail in one place; what wasn't is there whole or not at all."""
    whole = tmp_path / "whole.git"
    counting = Disk()
    host = WriterHere(whole, counting)
    after = [places(whole)]
    for act in ACTS:
        host.done(act)
        after.append(places(whole))
    assert after[-1] == [(1, "consumed"), (2, "consumed"), (3, "consumed")]
    host.writer.void("over")
    for at in range(25, counting.points + 1, stride):
        path = tmp_path / "r.git"
        done = 0
        with pytest.raises(Died):  # noqa: PT012 - it dies somewhere in here
            host = WriterHere(path, DyingDisk(at))
            for act in ACTS:
                host.done(act)
                done += 1
            raise Died("not before the end")
        again = WriterHere(path)
        assert places(path) in after[done : done + 2], f"at point {at}, after {done}"
        assert len(dict(places(path))) == len(places(path))
        again.writer.void("over")
        shutil.rmtree(path)


def aged(path: Path, days: int, more: int = 0) -> Now:
    """A mail a day, ``more`` on the first; the time after them."""
    now = Now(START, 0.0)
    host = WriterHere(path, now=now)
    host.done(BeginGeneration())
    for day in range(days):
        host.now = now = Now(START + day * BUCKET_AGE, day * DAY)
        consume(host, f"m{day}@x")
        for number in range(more if day == 0 else 0):
            consume(host, f"more{number}@x")
    host.hear(host.writer.close(now))
    return now


def test_old_buckets_go_by_themselves_a_days_at_a_start_and_a_days_in_24_hours(tmp_path: Path) -> None:
    """Nobody asks for it, and a clock that jumped has 24 hours to be put right."""
    path = tmp_path / "r.git"
    now = aged(path, 4)
    late = Now(now.wall + 100 * BUCKET_AGE, 0.0)
    host = WriterHere(path, now=late)
    host.rest()
    assert watermark(open_readonly(path, KEY.public), ADDRESS).first == 1
    host.done(Enqueue(message("now@x")))
    assert watermark(open_readonly(path, KEY.public), ADDRESS).first == 1
    host.now = Now(late.wall + BUCKET_AGE, DAY)
    host.done(Enqueue(message("tomorrow@x")))
    assert watermark(open_readonly(path, KEY.public), ADDRESS).first == 2
    assert host.done(Enqueue(message("m0@x"))).outcome == "enqueued"
    assert host.done(Enqueue(message("m2@x"))).outcome == "already-present"
    host.hear(host.writer.close(host.now))
    sound(path)


@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.torture)])
def test_a_bucket_is_dropped_whole_or_not_at_all_wherever_death_strikes(tmp_path: Path, stride: int) -> None:
    """The watermark says so in one commit; what files it leaves, the next start clears away."""
    made = tmp_path / "made.git"
    now = aged(made, 3, more=30)
    late = Now(now.wall + 100 * BUCKET_AGE, 0.0)
    whole = len(open_readonly(made, KEY.public).entries(layout.bucket_dir(ADDRESS, 0)))
    counting = Disk()
    trial = tmp_path / "trial.git"
    shutil.copytree(made, trial)
    host = WriterHere(trial, counting, now=late)
    host.rest()
    host.hear(host.writer.close(late))
    for at in range(1, counting.points + 1, stride):
        path = tmp_path / "r.git"
        shutil.copytree(made, path)
        with pytest.raises(Died):  # noqa: PT012 - it dies somewhere in here
            host = WriterHere(path, DyingDisk(at), now=late)
            host.rest()
            host.writer.seal(late)
            for effect in host.writer.close(late):
                del effect
            raise Died("not before the end")
        view = open_readonly(path, KEY.public)
        first = watermark(view, ADDRESS).first
        assert first in {0, 1}
        there = [len(view.entries(layout.bucket_dir(ADDRESS, bucket))) for bucket in range(3)]
        assert there[1:] == [1, 1]
        assert first or there[0] == whole
        again = WriterHere(path, now=Now(now.wall, 0.0))  # the clock has been put right
        again.rest()
        left = open_readonly(path, KEY.public).entries(layout.bucket_dir(ADDRESS, 0))
        assert len(left) == (0 if first else whole)
        again.writer.void("over")
        shutil.rmtree(path)
