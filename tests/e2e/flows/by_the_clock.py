"""A workflow that the clock begins each minute; each of its runs writes its tick down, outside, once for each body."""

import os
from pathlib import Path

from waypost import Mail, Workflow, idempotency_key

minutes = Workflow("minutes", address="minutes@example.com", env=["BOOKS"])


@minutes.step
def note(due: str) -> str:
    """Write the tick down, with the key under which a repeat would be known."""
    with (Path(os.environ["BOOKS"]) / "ticks").open("a", encoding="utf-8") as book:
        book.write(f"{due} {idempotency_key()}\n")
    return due


@minutes.cron("* * * * *", name="minute", catch_up=100, overlap="queue")
@minutes.run
async def tick(mail: Mail) -> str:
    """One tick."""
    assert mail.tick is not None
    return await note(mail.tick.due.isoformat())
