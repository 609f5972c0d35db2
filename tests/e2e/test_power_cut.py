"""The power goes while the disk is at work: nobody outside knows more than what the disk has kept."""

import random
import re
import shutil
import time
from pathlib import Path

import pytest

from waypost.host.reading.narrate import Narrator
from waypost.host.watching.timeline import short
from waypost.model import events as ev
from waypost.testing.claims import DEPLOYMENT, Scene, errands
from waypost.testing.disks import power_cut
from waypost.testing.driver import Played, live, play
from waypost.testing.evidence import Evidence, check_acknowledged
from waypost.testing.mortal import MortalHost
from waypost.testing.patience import PATIENCE

pytestmark = pytest.mark.e2e

HANG = 0.1
"""Seconds that the disk hangs before the cut: what doesn't wait for it gets out meanwhile, and is seen."""


def until_the_cut(here: Scene, record: Path, flush: int | str) -> Played:
    """Play until the power goes in the middle of a flush, by number or by what it brings; what the outside knows."""
    played = Played()
    moment = ("--die-before-sync", str(flush)) if isinstance(flush, int) else ("--die-before-sync-of", flush)
    options = ("--record", str(record), *moment, "--hang", f"{HANG:g}")
    host = MortalHost(here.place, options)
    try:
        if live(host, errands(), played, time.monotonic() + PATIENCE):
            assert isinstance(flush, int), f"no flush brought {flush!r}"
            host.kill()  # it came to the end with fewer flushes: then this is the moment
            host.end()
            played.lines.append(host.lines)
    finally:
        host.kill()
        host.end()
    return played


def after_the_cut(here: Scene, record: Path) -> Scene:
    """The same folder as it is when the power is back: of each journal only what had been synced."""
    there = Scene(here.folder.with_name(f"{here.folder.name}-after"), here.file)
    kept = shutil.ignore_patterns("host.sock", f"{DEPLOYMENT}.git")
    shutil.copytree(here.folder, there.folder, ignore=kept, symlinks=True)
    if here.data.repo(DEPLOYMENT).exists():
        power_cut(here.data.repo(DEPLOYMENT), record, there.data.repo(DEPLOYMENT))
    return there


def check_nothing_is_known_that_was_lost(there: Scene, played: Played) -> None:
    """Whatever is outside, books, mails, acknowledgements, lines of the timeline, is in the log that was left."""
    outside = (played.acknowledged, there.bodies, there.ledger, there.out)
    if not there.data.repo(DEPLOYMENT).exists():
        assert not any(outside)
        return
    found = there.evidence()
    by_run = {story.run: story for story in found.stories.values()}
    begun = {s.key(e.call) for s in by_run.values() for e in s.events if isinstance(e, ev.StepStarted)}
    assert {body.key for body in there.bodies} <= begun
    assert {key for key, _ in there.ledger} <= begun
    queued = {e.message_id for s in by_run.values() for e in s.events if isinstance(e, ev.MailQueued)}
    assert {message_id for message_id, _, _ in there.out} <= queued
    check_acknowledged(found, played.acknowledged.values())
    check_lines(found, [line for lines in played.lines for line in lines if "\t" in line])


def check_lines(found: Evidence, lines: list[str]) -> None:
    """Every line of the timeline tells of something that is there."""
    told = set()
    for story in found.stories.values():
        narrator = Narrator()
        told |= {f"{e.at}\t{DEPLOYMENT} {short(story.run)}  {narrator.tell(e)}" for e in story.events}
    for line in lines:
        if mail := re.search(r"  mail (\d+) from [^ ]+: ", line):
            assert int(mail[1]) in {queued.entry.arrival for queued in found.queue}, line
        elif state := re.search(rf"\t{DEPLOYMENT} is (?:running \(generation (\d+)\)|[a-z-]+)", line):
            assert int(state[1] or 0) <= found.generation, line
        else:
            assert line in told


def cut(here: Scene, undisturbed: dict[str, dict[str, object]], flush: int | str) -> None:
    """One cut, the look at what is left, and the rest of the play on it."""
    with here.explained(f"the power goes in flush {flush}"):
        record = here.folder / "record"
        played = until_the_cut(here, record, flush)
        there = after_the_cut(here, record)
        check_nothing_is_known_that_was_lost(there, played)
        play(there.place, errands(), played=played)
        there.check(undisturbed, played)


@pytest.mark.torture
@pytest.mark.parametrize("part", [2])
def test_after_a_power_cut_nothing_outside_tells_of_what_is_lost(scene, undisturbed, part: int) -> None:
    """Persist, then act: and what is left goes on to the same end. A random flush; torture and soak meet each."""
    length = undisturbed.flushes // 6
    cut(scene("cut"), undisturbed.outcomes, part * length + random.Random(part).randint(1, length))


@pytest.mark.parametrize(
    "what", ["queue outgoing mail 1 for", pytest.param("append StepStarted pay", marks=pytest.mark.torture)]
)
def test_a_cut_in_the_flush_that_would_let_something_out_leaves_nothing_outside(scene, undisturbed, what: str) -> None:
    """A mail, a body that pays: each waits for the very flush that it depends on, and random moments may miss that."""
    cut(scene("cut"), undisturbed.outcomes, what)


@pytest.mark.torture
@pytest.mark.parametrize("part", range(0, 8, 2))
def test_after_a_power_cut_in_every_other_flush_nothing_outside_tells_of_it(scene, undisturbed, part: int) -> None:
    """The same in the middle of every other flush; every eighth one in each part."""
    in_each(scene, undisturbed, part)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(1, 8, 2))
def test_after_a_power_cut_in_any_of_the_others_nothing_outside_tells_of_it(scene, undisturbed, part: int) -> None:
    """So that each single flush is met, and forty cuts are made at least."""
    in_each(scene, undisturbed, part)


def in_each(scene, undisturbed, part: int) -> None:
    """In every eighth flush, from this one on."""
    for n in range(part, max(40, undisturbed.flushes), 8):
        cut(scene(f"cut-{n}"), undisturbed.outcomes, n % undisturbed.flushes + 1)
