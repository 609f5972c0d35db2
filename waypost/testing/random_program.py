"""Random workflows that wait in every way that asyncio has, for tests of replay.

A program is its seed. Shared state makes every order of events visible in the arguments of its steps.
"""

# ruff: noqa: D102, PLR2004, S311 - the blocks are named after what they use, and chance is wanted repeatable

import asyncio
import hashlib
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec

from waypost.authoring.errors import ChildFailed
from waypost.authoring.requests import CallChild, CallStep, ChildSpec, StepSpec
from waypost.authoring.scope import current
from waypost.model.events import Fault
from waypost.model.values import Codec


def mix(*parts: object) -> int:
    """A number that depends on everything and on no hash seed."""
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:6], 16)


SPEC = StepSpec(name="work", function=mix, asynchronous=False, codec=Codec(int))
"""The one step: its value follows from its arguments."""


CHILD = ChildSpec(name="kin", function=mix, asynchronous=True, codec=Codec(int), parameters={"tag": Codec(str)})
"""The one child: its value follows from its arguments, too."""


def kin(raw: bytes) -> bytes | Fault:
    """What a child run comes to; one in eleven fails."""
    value = mix(msgspec.json.decode(raw)["tag"])
    return Fault(type="ValueError", message=f"{value}") if value % 11 == 0 else b"%d" % value


class StepWentWrong(Exception):
    """What one step in eleven leads to, and a child that failed."""


class RandomProgram:
    """A workflow made of blocks, each of which waits in its own way; shared state makes every order visible.

    ``children``: half of its steps are child runs, whose arguments begin with a ``^`` for each ``level``.
    """

    def __init__(self, seed: int, *, children: bool = False, level: int = 0) -> None:
        self.seed = seed
        self.children = children
        self.level = level
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
        value: int = await engine.perform(
            lambda ask: ask(CallStep(SPEC, (arguments,), {}, hashlib.sha256(arguments.encode()).hexdigest()))
        )
        if value % 11 == 0:
            raise StepWentWrong(value)
        return value

    async def child(self, tag: str) -> int:
        raw = msgspec.json.encode(
            {"tag": f"{'^' * (self.level + 1)}{tag}/{len(self.shared)}/{mix(tuple(self.shared))}"}
        )
        engine: Any = current()
        try:
            value: int = await engine.perform(lambda ask: ask(CallChild(CHILD, raw, hashlib.sha256(raw).hexdigest())))
        except ChildFailed as failed:
            raise StepWentWrong(failed.reason) from None
        return value

    async def leaf(self, seed: int) -> int:
        rng = random.Random(seed)
        acc = 0
        for i in range(rng.randint(1, 3)):
            call = self.child if self.children and mix(seed, i) % 2 else self.step
            try:
                acc = mix(acc, await call(f"s{seed % 97}.{i}"))
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
        async def values() -> AsyncGenerator[int, None]:
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
