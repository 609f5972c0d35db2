"""The power goes while the disk is at work: nobody outside knows more than what the disk has kept."""

import random
import re
from dataclasses import dataclass, replace
from itertools import count

import pytest

from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.host.reading.narrate import Narrator
from waypost.host.watching.timeline import short
from waypost.model import events as ev
from waypost.testing.claims import DEPLOYMENT, Scene
from waypost.testing.driver import Played, play
from waypost.testing.evidence import Evidence, check_acknowledged, check_repository
from waypost.testing.snapshots import taken

pytestmark = pytest.mark.e2e

LETS_OUT = ("queue outgoing mail 1 for", "append StepStarted pay")
"""A mail, a body that pays: each waits for the very flush that it depends on, and random moments may miss that."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What the power leaves in the middle of one flush of a play, and what the outside knows by then."""

    there: Scene
    known: Played
    whole: Evidence
    """What the play came to, as its power didn't go."""

    def look(self) -> None:
        """Nothing is known that was lost; what is left begins as the whole, is sound, and the same when recovered."""
        with self.there.explained("the power goes here"):
            check_nothing_is_known_that_was_lost(self.there, self.known)
            repository = self.there.data.repo(DEPLOYMENT)
            if not repository.exists():
                return
            left = self.there.evidence()
            for mail, story in left.stories.items():
                whole = self.whole.stories[mail]
                assert story == replace(whole, events=whole.events[: len(story.events)])
            Store.open(repository, key=SigningKey.load(self.there.data.signing_key)).close()
            assert self.there.evidence() == left
            check_repository(self.there.data, DEPLOYMENT, self.there.key)

    def go_on(self) -> None:
        """The power is back: the same outside plays on, to the same end."""
        with self.there.explained("the power goes here, and comes back"):
            check_nothing_is_known_that_was_lost(self.there, self.known)
            play(self.there.place, self.there.errands, played=self.known)
            self.there.check(self.whole.outcomes, self.known)


def cuts(here: Scene, *options: str) -> list[Cut]:
    """One play, and what the power would have left of it at each of the flushes that the options name, or at all."""
    folder = here.folder.with_name(f"{here.folder.name}-cuts")
    words = ("--record", f"{here.folder}-durable", "--cuts", str(folder), *options)
    with here.explained(f"copied in the middle of flushes: {options}"):
        played = play(here.place, here.errands, lives=[words])
        whole = here.check(None, played)
    return [Cut(replace(here, folder=place), played.until(moment), whole) for _, moment, place in taken(folder)]


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


def test_after_a_power_cut_nothing_outside_tells_of_what_is_lost(scene) -> None:
    """Persist, then act. Six random moments and two narrow ones of one play; what one of them leaves plays on."""
    numbers = random.Random(20).sample(range(2, 36), 6)
    at = [word for number in numbers for word in ("--cut-at", str(number))]
    found = cuts(scene("play"), *at, *[word for text in LETS_OUT for word in ("--cut-of", text)])
    assert len(found) >= len(numbers)
    *others, last = found
    for cut in others:
        cut.look()
    last.go_on()


@pytest.mark.torture
def test_after_forty_power_cuts_nothing_outside_tells_of_what_is_lost(scene) -> None:
    """In every single flush, of one play after the other; of every fifth cut the rest is played on a host."""
    done = 0
    for each in count():
        for cut in cuts(scene(f"play-{each}")):
            done += 1
            if done % 5:
                cut.look()
            else:
                cut.go_on()
        if done >= 40:
            return
