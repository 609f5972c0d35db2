"""A run that waits for signals: two of one name, one of another type, one with a deadline that passes."""

import msgspec

from waypost import BadSignal, DeadlinePassed, Workflow, signal

signals = Workflow("signals", address="signals@example.com")


class Paid(msgspec.Struct):
    """What comes."""

    n: int


class Other(msgspec.Struct):
    """What doesn't come."""

    text: str


@signals.step
def add(numbers: list[int]) -> int:
    """Their sum."""
    return sum(numbers)


@signals.run
async def run() -> int:
    """Two, then one that doesn't fit, then one that doesn't come, then the sum."""
    first, second = await signal("paid", Paid), await signal("paid", Paid)
    late = 0
    try:
        await signal("paid", Other)
    except BadSignal:
        late += 1
    try:
        await signal("never", Paid, timeout="1h")
    except DeadlinePassed:
        late += 1
    return await add([first.n, second.n, late])
