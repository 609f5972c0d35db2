"""Every way of asyncio to wait for several things; values over the inline limit; a timeout that passes."""

import asyncio

from waypost import Mail, Workflow, receive, sleep

claims = Workflow("claims", address="claims@example.com")


@claims.step
def square(x: int) -> int:
    """A number."""
    return x * x


@claims.step
async def letters(count: int) -> str:
    """A large value."""
    await asyncio.sleep(0)
    return "x" * count


@claims.run
async def claim(mail: Mail) -> dict[str, int]:
    """Nothing here depends on which of several steps is quicker."""
    total = sum(await asyncio.gather(*map(square, range(5))))
    async with asyncio.TaskGroup() as group:
        long, longer = group.create_task(letters(70_000)), group.create_task(letters(300_000))
    for first in asyncio.as_completed([asyncio.create_task(square(n)) for n in range(3)]):
        total += await first
    try:
        async with asyncio.timeout(60):
            await receive()
    except TimeoutError:
        total += 1000
    late = await asyncio.wait_for(asyncio.shield(asyncio.create_task(square(9))), 30)
    await sleep("1h")
    return {"total": total, "letters": len(long.result()) + len(longer.result()), "late": late}
