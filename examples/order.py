"""An order by mail, of many lines: each is a child run of its own, and they go on side by side.

A line that is dear waits for the buyer; the others don't wait for it. What can't be had is said, and costs the rest
nothing.

    waypost run examples/order.py
    waypost send orders@example.com --data examples/.waypost < examples/mail/order.eml
"""

import asyncio
import re

import msgspec

from waypost import ChildFailed, Mail, Workflow, approve, send

PRICES = {"desk": 420, "chair": 95, "lamp": 30}
BUYER = "buyer@example.com"
DEAR = 500

orders = Workflow("orders", address="orders@example.com", mail_to=[BUYER])


class Line(msgspec.Struct):
    """What is wanted, and how many of it."""

    item: str
    count: int


@orders.step
def read_order(mail: Mail) -> list[Line]:
    """Find the lines in the mail's text: a number and a thing."""
    found = re.findall(r"^(\d{1,6}) +(\w+)", mail.text, re.MULTILINE)
    return [Line(item, int(count)) for count, item in found]


@orders.step
def price(line: Line) -> int:
    """Look it up, once for each line: a step that is done isn't run again."""
    if line.item not in PRICES:
        raise LookupError(f"nobody sells a {line.item}")
    return PRICES[line.item] * line.count


@orders.child
async def buy(line: Line) -> int:
    """One line, from its price to its purchase. It has a log of its own, and waits by itself."""
    cost = await price(line)
    if cost > DEAR and not (await approve(f"Buy {line.count} {line.item} for {cost}?", who=BUYER)).approved:
        return 0
    return cost


@orders.run
async def order(mail: Mail) -> str:
    """All lines at once; then the sum, and what was wrong."""
    lines = await read_order(mail)
    costs = await asyncio.gather(*map(buy, lines), return_exceptions=True)
    failures = [each.reason for each in costs if isinstance(each, ChildFailed)]
    total = sum(cost for cost in costs if isinstance(cost, int))
    await send(to=mail.sender, subject=f"Bought for {total}", text="\n".join(failures) or "All of it.", reply_to=mail)
    return f"bought for {total}"
