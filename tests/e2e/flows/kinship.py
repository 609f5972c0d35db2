"""A parent whose children do what its mail's subject says: crash, wait for a signal, or go over a bound."""

import asyncio
import os
import signal as signals
from typing import Any

from waypost import ChildRefused, Mail, Workflow, receive, signal

kin = Workflow("kin", address="kin@example.com", runs="thread")


@kin.step
def crash(number: int) -> int:
    """Ends its process where the number is 2."""
    if number == 2:
        os.kill(os.getpid(), signals.SIGSEGV)
    return number


@kin.child
async def crashes(number: int) -> int:
    """One of four, of which one is bad."""
    return await crash(number)


@kin.child
async def waits(number: int) -> str:
    """Goes on when somebody says so."""
    times: int = await signal("go", int)
    return "x" * times


@kin.child
async def deeper(level: int) -> str:
    """A child of a child of a child, as far as it may go."""
    try:
        return await deeper(level + 1)
    except ChildRefused as refused:
        return f"{level}: {refused.reason}"


@kin.child
async def keeps(text: str) -> int:
    """Has a long argument."""
    return len(text)


@kin.child
async def idles(number: int) -> None:
    """One of too many."""
    await receive()


async def refusal(child: Any, given: object) -> str:
    """Why it wasn't started."""
    try:
        await child(given)
    except ChildRefused as refused:
        return refused.reason
    return "started"


@kin.run
async def main(mail: Mail) -> Any:
    """As its mail says."""
    match mail.subject:
        case "crash" | "wait" as what:
            call: Any = crashes if what == "crash" else waits
            found = await asyncio.gather(*(call(number) for number in range(4)), return_exceptions=True)
            return [str(each) for each in found]
        case "deep":
            return await deeper(1)
        case "many":
            crowd = [asyncio.create_task(idles(number)) for number in range(256)]
            await asyncio.sleep(0)
            why = await refusal(idles, 256)
            for each in crowd:
                each.cancel()
            return why
        case "big":
            return await refusal(keeps, "x" * 1_100_000)
        case _:
            await receive()
            return await waits(1)
