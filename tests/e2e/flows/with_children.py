"""A parent with twenty children, each with a grandchild or two; every step leaves a line, under its key, in a file."""

import asyncio
import os
from pathlib import Path
from typing import Any

from waypost import ChildFailed, Mail, Workflow, idempotency_key, receive, sleep

family = Workflow("family", address="family@example.com", env=["EFFECTS"])


@family.step
def effect(what: str) -> str:
    """One line for each time that this body runs: what it did, and its key."""
    with Path(os.environ["EFFECTS"]).open("a", encoding="utf-8") as file:
        file.write(f"{what} {idempotency_key()}\n")
    return what


@family.child
async def grandchild(name: str) -> str:
    """Works once."""
    return await effect(f"grand-{name}")


@family.child
def plain(name: str) -> int:
    """A `def` child: a step, then it fails as its name says."""
    _ = effect(f"plain-{name}")
    if name.endswith("3"):
        raise ValueError(f"{name} fails")
    return len(name)


@family.child
async def child(number: int) -> dict[str, Any]:
    """Works, has a grandchild beside a timer, and a `def` one that may fail."""
    first = await effect(f"child-{number}")
    grand, _ = await asyncio.gather(grandchild(f"{number}"), sleep(0.01))
    try:
        length: Any = await plain(f"{number}")
    except ChildFailed as failed:
        length = f"{failed.type}: {failed.reason}"
    return {"first": first, "grand": grand, "length": length}


@family.child
async def waits() -> str:
    """Waits for a mail that never comes."""
    await effect("waits")
    try:
        return (await receive()).subject
    finally:
        await effect("waits-cleaned")


@family.run
async def main(mail: Mail) -> list[Any]:
    """As many children as the mail's subject says, and one that is given up."""
    found: list[Any] = []
    try:
        async with asyncio.timeout(0.5):
            await waits()
    except TimeoutError:
        found.append("given up")
    found += await asyncio.gather(*(child(number) for number in range(int(mail.subject))))
    return found
