"""A workflow whose one step lasts until somebody opens a gate, and which then waits for the next mail.

The folder BOOKS holds ``bodies`` (one line each time a step's body begins: key, pid) and the gates, which are FIFOs: a
body opens the one that its mail names, and goes on when the other end is opened, too. A mail that says "watch" begins a
step that never ends by itself.
"""

import asyncio
import os
from pathlib import Path

from waypost import Mail, Workflow, idempotency_key, receive

slow = Workflow("slow", address="slow@example.com", env=["BOOKS"])


@slow.step
def work(gate: str) -> str:
    books = Path(os.environ["BOOKS"])
    with (books / "bodies").open("a", encoding="utf-8") as bodies:
        bodies.write(f"{idempotency_key()} {os.getpid()}\n")
    (books / gate).read_bytes()
    return gate


@slow.step(on_drain="cancel")
async def watch(what: str) -> None:
    """Look at something that never happens."""
    await asyncio.sleep(3600)


@slow.run
async def run(mail: Mail) -> str:
    if mail.text.strip() == "watch":
        await watch("the horizon")
    done = await work(mail.text.strip())
    answer = await receive()
    return f"{done}, then {answer.text.strip()}"
