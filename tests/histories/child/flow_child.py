"""A run that is a child: a function of its own with arguments, and a child that it has itself."""

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import msgspec

from waypost import Mail, Workflow

flow = Workflow("child", address="child@example.com")


class Line(msgspec.Struct):
    """An argument."""

    item: str
    amount: Decimal
    due: datetime


@flow.step
def late(line: Line) -> bool:
    """Whether it should have been paid."""
    return line.due < datetime(2026, 1, 1, tzinfo=UTC)


@flow.child
async def charge(amount: Decimal) -> dict[str, int]:
    """A child of the child."""
    return {"n": int(amount)}


@flow.child
async def pay(line: Line, grace: timedelta, tries: int = 2) -> str:
    """The one that runs."""
    await asyncio.sleep(grace.total_seconds())
    charged = await charge(line.amount)
    return f"{line.item}: {charged['n']}, {'late' if await late(line) else 'in time'}, {tries} tries"


@flow.run
async def main(mail: Mail) -> None:
    """Has no part in it."""
