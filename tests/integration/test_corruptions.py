"""Each seeded corruption is refused before it is written, and found when somebody has written it all the same."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from substrate import SigningKey
from substrate.checking.fsck import Finding, Looked, fsck
from substrate.rules import RULES, Ground, judge
from waypost.model.limits import DEFAULT
from waypost.testing.corrupted import Bad, World
from waypost.testing.corruptions import CORRUPTIONS, HISTORY, Corruption
from waypost.testing.desk import ADDRESS, REPOSITORY

KEY = SigningKey.generate()
UNWRITABLE = {"readable", "plain-file"}
"""Rules that no commit of plain files can break: objects are damaged, trees forged (see below)."""


@pytest.fixture(name="world", scope="module")
def _world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    world = World(tmp_path_factory.mktemp("world") / "r.git", KEY)
    yield world
    world.store.close()


def found(repository: Path, *, tip: bool = False) -> list[Finding]:
    """What is wrong with it."""
    return list(fsck(repository, Looked(), tip=tip))


def test_nothing_is_found_in_the_repository_that_all_of_them_start_from(world: World) -> None:
    """A check that cries wolf is switched off."""
    assert found(world.path) == found(world.path, tip=True) == []


def test_every_rule_has_a_corruption_that_breaks_it() -> None:
    """A rule that nothing breaks may be one that says nothing."""
    assert {each.rule for each in CORRUPTIONS} == RULES.keys() - UNWRITABLE


def test_what_only_history_shows_is_known_by_name() -> None:
    """A name that is no corruption's would excuse nothing."""
    assert {each.name for each in CORRUPTIONS} >= HISTORY


def refusals(bad: Bad, world: World) -> set[str]:
    """The rules by which the writer refuses it."""
    ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=DEFAULT)
    return {broken.rule for broken in judge(world.desk.index, bad.commit, ground).broken}


def test_a_bad_commit_is_refused_by_its_rule(world: World) -> None:
    """By the writer, before anything is written."""
    refused = {each.name: refusals(each.make(world), world) for each in CORRUPTIONS}
    assert {each.name: refused[each.name] for each in CORRUPTIONS if each.rule not in refused[each.name]} == {}


FIRST = {each.rule: each.name for each in reversed(CORRUPTIONS)}
"""A corruption for each rule; the others take the same way through a history, by the same rules."""


def spoilt(world: World, bad: Bad, folder: Path) -> Path:
    """A copy of the repository with the bad commit on top."""
    clone = folder / "clone.git"
    shutil.copytree(world.path, clone, ignore=shutil.ignore_patterns("waypost"))
    bad.write(clone)
    return clone


@pytest.mark.parametrize(
    "each",
    [
        pytest.param(each, id=each.name, marks=() if each.name == FIRST[each.rule] else pytest.mark.torture)
        for each in CORRUPTIONS
    ],
)
def test_a_bad_commit_is_found_by_its_rule(each: Corruption, world: World, tmp_path: Path) -> None:
    """By ``fsck``, and by what the writer would have refused it by; the commits before it stay clean."""
    bad = each.make(world)
    findings = found(spoilt(world, bad, tmp_path))
    assert {finding.rule for finding in findings} == refusals(bad, world)
    assert len({finding.commit for finding in findings}) == 1
    assert all(finding.advice and finding.value for finding in findings)


@pytest.mark.parametrize("each", CORRUPTIONS, ids=lambda each: each.name)
def test_what_a_tree_alone_shows_is_found_without_its_history(each: Corruption, world: World, tmp_path: Path) -> None:
    """Whoever has only the newest commit sees all but what is wrong by what was before."""
    assert bool(found(spoilt(world, each.make(world), tmp_path), tip=True)) == each.seen
