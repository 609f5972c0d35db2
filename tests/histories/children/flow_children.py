"""Child runs beside one another: some complete, one fails, one is given up when its time is up."""

import asyncio

import msgspec

from waypost import ChildFailed, Mail, Workflow, receive

flow = Workflow("children", address="children@example.com")


class Counted(msgspec.Struct):
    """What a child gives back."""

    n: int


@flow.step
def note(what: str) -> str:
    """A step between them."""
    return what


@flow.child
async def count(names: set[str], *, twice: bool = False) -> Counted:
    """Its arguments are recorded in one order."""
    return Counted(len(names) * (1 + twice))


@flow.child
def fails(what: str) -> Counted:
    """Has no result."""
    raise ValueError(what)


@flow.child
async def never() -> Counted:
    """Waits for longer than anybody waits for it."""
    return Counted(len((await receive()).text))


@flow.run
async def main(mail: Mail) -> list[str]:
    """All of it."""
    found = []
    both = await asyncio.gather(count({"a", "b", "c"}), count({"d"}, twice=True), note("between"))
    found.append(f"{both[0].n} {both[1].n} {both[2]}")
    try:
        await fails("this")
    except ChildFailed as failed:
        found.append(f"{failed.workflow} {failed.outcome}: {failed.type}: {failed.reason}")
    try:
        async with asyncio.timeout(60):
            await never()
    except TimeoutError:
        found.append(await note("late"))
    return found
