"""Random asyncio programs, outcomes in random order, killed at a random event and replayed: not one may go astray.

The programs use every way of asyncio to wait that a workflow may use. Replays with other object addresses must ask for
the same calls with the same arguments and end with the same result.
"""

# ruff: noqa: D102 - the blocks are named after what they use

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from waypost.authoring.requests import CallStep, Sleep, StepSpec
from waypost.authoring.scope import current
from waypost.child.loop import WorkflowLoop
from waypost.child.program import Asked, Finished, Gave, GaveUp, Outcome, Raised, Rest, Turn, Waiting
from waypost.model.ids import CallId
from waypost.model.values import Codec

SPEC = StepSpec(name="work", function=lambda: None, asynchronous=False, codec=Codec(int))


def mix(*parts: object) -> int:
    """A number that depends on everything and on no hash seed."""
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:6], 16)


class StepWentWrong(Exception):
    """What one step in eleven raises."""


# --- the random program ---------------------------------------------------------------------------------------------


class RandomProgram:
    """A workflow made of blocks, each of which waits in its own way; shared state makes every order visible."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.shared: list[int] = []
        self.blocks: tuple[Callable[[list[int], Callable[[int], Awaitable[int]]], Awaitable[int]], ...] = (
            self.gather,
            self.task_group,
            self.create_task,
            self.timeout,
            self.wait_for,
            self.shield,
            self.as_completed,
            self.wait_first,
            self.queue,
            self.semaphore,
            self.generator,
            self.cancel,
            self.append_shared,
            self.sleep,
        )

    async def main(self) -> int:
        rng = random.Random(self.seed)
        acc = 0
        for _ in range(rng.randint(1, 4)):
            acc = mix(acc, await self.block(rng.randrange(1 << 30), 0))
        return mix(acc, tuple(self.shared))

    async def step(self, tag: str) -> int:
        arguments = f"{tag}/{len(self.shared)}/{mix(tuple(self.shared))}"
        engine: Any = current()
        value: int = await engine.perform(lambda ask: ask(CallStep(SPEC, (), {}, arguments)))
        if value % 11 == 0:
            raise StepWentWrong(value)
        return value

    async def leaf(self, seed: int) -> int:
        rng = random.Random(seed)
        acc = 0
        for i in range(rng.randint(1, 3)):
            try:
                acc = mix(acc, await self.step(f"s{seed % 97}.{i}"))
            except StepWentWrong:
                acc = mix(acc, "err")
        return acc

    async def block(self, seed: int, depth: int) -> int:
        rng = random.Random(seed)
        kind = rng.choice(self.blocks)
        seeds = [rng.randrange(1 << 30) for _ in range(rng.randint(2, 4))]
        deeper = depth < 2 and rng.random() < 0.4
        return await kind(seeds, (lambda s: self.block(s, depth + 1)) if deeper else self.leaf)

    async def gather(self, seeds: list[int], kid: Any) -> int:
        return mix(await asyncio.gather(*map(kid, seeds)))

    async def task_group(self, seeds: list[int], kid: Any) -> int:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(kid(s)) for s in seeds]
        return mix([task.result() for task in tasks])

    async def create_task(self, seeds: list[int], kid: Any) -> int:
        task = asyncio.create_task(kid(seeds[0]))
        return mix(await kid(seeds[1]), await task)

    async def timeout(self, seeds: list[int], kid: Any) -> int:
        try:
            async with asyncio.timeout(seeds[0] % 30):
                found: int = await kid(seeds[0])
                return found
        except TimeoutError:
            return mix("late", await self.leaf(seeds[1]))

    async def wait_for(self, seeds: list[int], kid: Any) -> int:
        try:
            found: int = await asyncio.wait_for(kid(seeds[0]), 1 + seeds[0] % 30)
        except TimeoutError:
            return mix("late", await self.leaf(seeds[1]))
        return found

    async def shield(self, seeds: list[int], kid: Any) -> int:
        task = asyncio.ensure_future(kid(seeds[0]))
        try:
            async with asyncio.timeout(3):
                found: int = await asyncio.shield(task)
                return found
        except TimeoutError:
            return mix("late", await task)

    async def as_completed(self, seeds: list[int], kid: Any) -> int:
        acc = 0
        for first in asyncio.as_completed([asyncio.create_task(kid(s)) for s in seeds]):
            acc = mix(acc, await first)
            acc = mix(acc, await self.leaf(seeds[0] ^ acc))
        return acc

    async def wait_first(self, seeds: list[int], kid: Any) -> int:
        todo = {asyncio.create_task(kid(s)) for s in seeds}
        acc = 0
        while todo:
            done, todo = await asyncio.wait(todo, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                acc = mix(acc, task.result())
                acc = mix(acc, await self.leaf(acc))
        return acc

    async def queue(self, seeds: list[int], kid: Any) -> int:
        queue: asyncio.Queue[int] = asyncio.Queue()
        out: list[int] = []

        async def produce(seed: int) -> None:
            queue.put_nowait(await kid(seed))

        async def consume() -> None:
            for _ in seeds:
                value = await queue.get()
                out.append(mix(value, await self.leaf(value)))

        await asyncio.gather(consume(), *map(produce, seeds))
        return mix(out)

    async def semaphore(self, seeds: list[int], kid: Any) -> int:
        gate = asyncio.Semaphore(2)
        out: list[int] = []

        async def work(seed: int) -> None:
            await kid(seed)
            async with gate:
                out.append(await self.leaf(seed + 1))

        await asyncio.gather(*map(work, seeds))
        return mix(out)

    async def generator(self, seeds: list[int], kid: Any) -> int:
        async def values() -> Any:
            for seed in seeds:
                yield await kid(seed)

        acc = 0
        async with aclosing(values()) as found:
            async for value in found:
                acc = mix(acc, value)
                if value % 3 == 0:
                    break
        return acc

    async def cancel(self, seeds: list[int], kid: Any) -> int:
        task = asyncio.create_task(kid(seeds[0]))
        found = await self.leaf(seeds[1])
        task.cancel()
        try:
            return mix(found, await task)
        except asyncio.CancelledError:
            this = asyncio.current_task()
            assert this is not None
            if this.cancelling():
                raise  # the cancel was for us
            return mix(found, "cancelled", await self.leaf(seeds[1] + 1))

    async def append_shared(self, seeds: list[int], kid: Any) -> int:
        async def work(seed: int) -> int:
            self.shared.append(await kid(seed) % 1000)
            return await self.leaf(seed + 1)

        return mix(await asyncio.gather(*map(work, seeds)))

    async def sleep(self, seeds: list[int], kid: Any) -> int:
        async def after(seed: int) -> int:
            await asyncio.sleep(seed % 7)
            found: int = await kid(seed)
            return found

        return mix(await asyncio.gather(*map(after, seeds)))


# --- driving it -----------------------------------------------------------------------------------------------------

Entry = tuple[CallId, str, Outcome, float]


@dataclass
class Driven:
    """A program under way: what it has asked for, what is open, where it stands."""

    seed: int
    asked: dict[CallId, str] = field(default_factory=dict)
    open: dict[CallId, str] = field(default_factory=dict)
    due: dict[CallId, float] = field(default_factory=dict)
    now: float = 0.0
    rest: Rest = field(default_factory=Waiting)

    def __post_init__(self) -> None:
        self.loop = WorkflowLoop.create(RandomProgram(self.seed).main, self.take)
        self.loop.start(0.0)

    def take(self, turn: Turn) -> None:
        for command in turn.commands:
            match command:
                case Asked(call, CallStep() as step):
                    self.asked[call] = self.open[call] = step.digest
                case Asked(call, Sleep(delay)):
                    self.asked[call] = self.open[call] = "timer"
                    self.due[call] = self.now + delay
                case GaveUp(call):
                    self.open.pop(call, None)
                case _:
                    raise AssertionError(command)
        self.rest = turn.rest

    def deliver(self, entry: Entry) -> None:
        call, arguments, outcome, self.now = entry
        assert self.asked.get(call) == arguments, f"{call}: log has {arguments}, code asked {self.asked.get(call)}"
        self.open.pop(call, None)
        self.loop.deliver(call, outcome, self.now)

    def go_on(self, rng: random.Random, log: list[Entry], stop_after: int | None = None) -> None:
        """Answer open calls in random order until the program ends or the log has so many entries."""
        while not isinstance(self.rest, Finished) and len(log) != stop_after:
            call = rng.choice(sorted(self.open))
            arguments = self.open[call]
            now = max(self.now, self.due[call]) if arguments == "timer" else self.now + rng.random() * 3
            outcome = Gave(None) if arguments == "timer" else Gave(mix(arguments))
            log.append((call, arguments, outcome, now))
            self.deliver(log[-1])

    def result(self) -> object:
        assert isinstance(self.rest, Finished)
        match self.rest.outcome:
            case Gave(value):
                return value
            case Raised(error):
                return type(error).__name__


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32), junk=st.integers(0, 500), where=st.floats(0, 1, exclude_max=True))
def test_a_run_killed_at_any_event_goes_the_same_way_again(seed: int, junk: int, where: float) -> None:
    """The promise of replay: same calls, same arguments, same result, whatever order outcomes came in."""
    log: list[Entry] = []
    whole = Driven(seed)
    whole.go_on(random.Random(seed), log)

    addresses = [object() for _ in range(junk)]
    again = Driven(seed)
    for entry in log:
        again.deliver(entry)
    assert again.result() == whole.result()

    cut = int(where * (len(log) + 1))
    killed_log: list[Entry] = []
    killed = Driven(seed)
    killed.go_on(random.Random(seed), killed_log, stop_after=cut)
    resumed = Driven(seed)
    for entry in killed_log:
        resumed.deliver(entry)
    assert resumed.open == killed.open
    resumed.go_on(random.Random(seed + 1), killed_log)
    for driven in (whole, again, killed, resumed):
        driven.loop.drop()
    del addresses
