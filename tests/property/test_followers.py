"""Whoever follows runs is sent each event once and in order, as slow as he may be, and whatever passes him by."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.messages import Seen, WatchRun
from actors.watching import EVERYTHING, Asking, Sleeps
from substrate.messages import LogPage, Recorded
from waypost.acting import Tell
from waypost.host.watching import following
from waypost.host.watching.following import Follower, FollowersActor
from waypost.host.watching.following_logic import Ended, Follow, Following, HangUp, Hub, Over, advance
from waypost.model import events as ev
from waypost.model.errors import WaypostError
from waypost.model.ids import CallId, Deployment, RunId, run_id
from waypost.model.times import Now
from waypost.testing.clock import ManualClock

HERE, THERE = Deployment("here"), Deployment("there")
RUNS = tuple(run_id(number, b"12345678") for number in (1, 2, 3))
NOW = Now(0, 0.0)
AT = "2026-11-29T08:00:00.000Z"


def event(seq: int, *, last: bool = False) -> Recorded:
    """A stored event."""
    ended = ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"1")))
    made: ev.AnyEvent = ended if last else ev.TimerCancelled(call=CallId("r1#1"), timer="r1#1")
    return Recorded(*ev.stored(made, seq=seq, at=AT, prev="0" * 64))


class Somebody:
    """Stands for the hub's ref, and for a supervisor's: keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def tell(self, message: Any) -> None:
        """Keep it."""
        self.told.append(message)

    def is_alive(self) -> bool:
        """It is."""
        return True


def somebody() -> Any:
    """One of them; where a ref is wanted, it stands for one."""
    return Somebody()


class World:
    """Logs that grow, a follower, and a reader who reads when he likes."""

    def __init__(self, chance: Random, follower: Follower) -> None:
        self.chance, self.follower = chance, follower
        self.logs: dict[RunId, list[Recorded]] = {run: [] for run in RUNS}
        self.first: dict[RunId, int] = {}
        """The first event of a run that the follower was told of."""
        self.lines: list[dict[str, Any]] = []
        self.may_read = asyncio.Semaphore(0)
        self.broken = 0
        self.moved = asyncio.Event()

    def page(self, deployment: Deployment, run: RunId, after: int) -> LogPage | None:
        """As the repository answers, a few events at a time; sometimes it can't."""
        assert deployment == HERE
        if self.broken:
            self.broken -= 1
            raise WaypostError("it is being made anew")
        log = self.logs[run]
        return LogPage(run, tuple(each.raw for each in log[after : after + 3]), len(log)) if log else None

    async def read(self) -> None:
        """Read to the end, a line whenever it is allowed."""
        async for line in self.follower.lines(somebody(), self.page):
            if line.strip():
                self.lines.append(json.loads(line))
                self.moved.set()
            await self.may_read.acquire()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until enough was read."""
        while not holds():
            self.moved.clear()
            await self.moved.wait()

    def grow(self, *, told: bool = True) -> None:
        """A run goes on; the follower is told, or it passes him by."""
        run = self.chance.choice(RUNS)
        log = self.logs[run]
        log.append(event(len(log) + 1))
        if told:
            self.first.setdefault(run, len(log))
            self.follower.tell(Seen(HERE, run, log[-1]))

    def anew(self) -> None:
        """The crew is made anew: something may have passed him by, and he is told where it is."""
        for _ in range(self.chance.randrange(3)):
            self.grow(told=False)
        self.broken = self.chance.randrange(2)
        self.follower.tell(Asking(HERE, "", somebody()))

    def seqs(self, run: RunId) -> list[int]:
        """What was sent of a run."""
        return [line["event"]["seq"] for line in self.lines if line.get("run") == run]


async def play(seed: int, kept: int) -> None:
    """Anything, in any order; then all is quiet, and the last crew says where it is."""
    chance = Random(seed)
    world = World(chance, Follower(None, 0, None))
    reader = asyncio.create_task(world.read())
    await asyncio.sleep(0)
    for _ in range(40):
        match chance.randrange(5):
            case 0:
                world.anew()
            case 1:
                world.may_read.release()
            case _:
                world.grow()
        if chance.random() < 0.3:
            await asyncio.sleep(0)
        assert len(world.follower._waiting) <= len(RUNS)
        assert world.follower._kept <= kept
    for _ in range(1000):
        world.may_read.release()
    world.broken = 0
    world.follower.tell(Asking(HERE, "", somebody()))
    await world.until(lambda: all(world.seqs(run)[-1:] == [len(world.logs[run])] for run in world.first))
    for run, first in world.first.items():
        assert world.seqs(run) == list(range(first, len(world.logs[run]) + 1))
    world.follower.tell(Ended())
    await reader
    assert not world.follower.is_alive()


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32), kept=st.sampled_from([0, 2, 1000]))
def test_a_follower_is_sent_each_event_once_and_in_order(seed: int, kept: int) -> None:
    """However many are kept for him; the others come from the logs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(following, "KEPT", kept)
        within(play(seed, kept))


def test_a_run_is_sent_from_where_one_left_off_to_its_end_and_no_further() -> None:
    """What becomes of its mails after that is another matter."""

    async def one() -> list[int]:
        follower = Follower(RUNS[0], 2, HERE)
        world = World(Random(0), follower)
        world.logs[RUNS[0]] = [event(1), event(2), event(3), event(4, last=True), event(5)]
        world.may_read = asyncio.Semaphore(1000)
        await world.read()
        return world.seqs(RUNS[0])

    assert within(one()) == [3, 4]


def test_who_follows_one_deployment_or_one_run_hears_of_no_other() -> None:
    """And is told when everybody of whom he hears has begun to tell him."""

    async def two() -> tuple[list[dict[str, Any]], list[int]]:
        world = World(Random(0), Follower(None, 0, HERE))
        world.may_read = asyncio.Semaphore(1000)
        reader = asyncio.create_task(world.read())
        for message in (
            Following(frozenset((HERE,))),
            Seen(THERE, RUNS[1], event(1)),
            Asking(HERE, "", somebody()),
            Seen(HERE, RUNS[0], event(7)),
        ):
            world.follower.tell(message)
        await world.until(lambda: len(world.lines) == 2)
        world.follower.tell(Ended())
        await reader
        return [line for line in world.lines if "following" in line], world.seqs(RUNS[0])

    assert within(two()) == ([{"following": True}], [7])


def test_runs_beyond_what_may_wait_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader who doesn't read costs a bounded memory, and hears of it."""
    monkeypatch.setattr(following, "RUNS", 2)

    async def many() -> list[dict[str, Any]]:
        world = World(Random(0), Follower(None, 0, None))
        reader = asyncio.create_task(world.read())
        for number in range(5):
            world.follower.tell(Seen(HERE, run_id(number, b"12345678"), event(1)))
        await asyncio.sleep(0)
        world.may_read = asyncio.Semaphore(1000)
        await world.until(lambda: len(world.lines) == 3)
        world.follower.tell(Ended())
        await reader
        assert len(world.follower._known) <= 2
        return world.lines

    assert within(many())[-1] == {"left_out": 3}


def test_a_connection_whose_loop_has_ended_is_told_nothing_and_breaks_nobody() -> None:
    """A supervisor's actor tells it, and must not fail."""

    async def made() -> Follower:
        return Follower(None, 0, None)

    within(made()).tell(Ended())


def within(work: Coroutine[Any, Any, Any]) -> Any:
    """Run it to its end, which comes."""
    return asyncio.run(asyncio.wait_for(work, 30))


# --- the hub -------------------------------------------------------------------------------------------------------


def test_a_follower_is_passed_on_to_every_supervisor_there_is_and_to_each_that_comes() -> None:
    """Also to one that takes another one's place; not twice to the same, which passes on itself."""
    anne, ben, first, second = (somebody() for _ in range(4))
    state: Any = Hub()
    told: list[Any] = []
    for message in (
        Asking(HERE, "", first),
        Follow(anne),
        Follow(ben, THERE),
        Asking(HERE, "", first),
        Asking(HERE, "", second),
        Asking(THERE, "", first),
        HangUp(),
        Follow(ben),
    ):
        following_ = advance(state, message, NOW)
        state = following_.state
        told += [(effect.ref, effect.message) for effect in following_.effects if isinstance(effect, Tell)]
    assert told == [
        (anne, Following(frozenset((HERE,)))),
        (first, WatchRun(EVERYTHING, anne)),
        (ben, Following(frozenset())),
        (second, WatchRun(EVERYTHING, anne)),
        (first, WatchRun(EVERYTHING, anne)),
        (first, WatchRun(EVERYTHING, ben)),
        (anne, Ended()),
        (ben, Ended()),
        (ben, Ended()),
    ]
    assert state == Over()


def test_whoever_follows_one_that_sleeps_waits_for_no_word_of_it() -> None:
    """Neither who comes then, nor who was passed on to it just before; and it is told when somebody wakes it."""
    anne, ben, first, second = (somebody() for _ in range(4))
    sleeps = Sleeps(HERE, "")
    state: Any = Hub()
    told: list[Any] = []
    for message in (Asking(HERE, "", first), Follow(anne), sleeps, Follow(ben, HERE), Asking(HERE, "", second)):
        following_ = advance(state, message, NOW)
        state = following_.state
        told += [(effect.ref, effect.message) for effect in following_.effects if isinstance(effect, Tell)]
    assert told == [
        (anne, Following(frozenset((HERE,)))),
        (first, WatchRun(EVERYTHING, anne)),
        (anne, sleeps),
        (ben, Following(frozenset())),
        (second, WatchRun(EVERYTHING, anne)),
        (second, WatchRun(EVERYTHING, ben)),
    ]


def test_a_follower_of_one_that_has_fallen_asleep_is_told_that_it_hears_everything() -> None:
    """There is nothing to hear before it is woken."""

    async def one() -> list[dict[str, Any]]:
        world = World(Random(0), Follower(None, 0, HERE))
        world.may_read = asyncio.Semaphore(1000)
        reader = asyncio.create_task(world.read())
        for message in (Sleeps(HERE, ""), Following(frozenset((HERE,))), Sleeps(HERE, "")):
            world.follower.tell(message)
        await world.until(lambda: bool(world.lines))
        world.follower.tell(Ended())
        await reader
        return world.lines

    assert within(one()) == [{"following": True}]


def test_a_follower_that_is_gone_is_forgotten() -> None:
    """Whoever looks for a moment leaves nothing behind."""
    hub = FollowersActor.start(clock=ManualClock())
    gone = FollowersActor.start(clock=ManualClock())
    gone.stop()
    following_ = advance(Hub(followers=(Follow(gone),)), Asking(HERE, "", hub), NOW)
    assert following_.state == Hub(supervisors={HERE: hub})
    assert not following_.effects
    hub.stop()
