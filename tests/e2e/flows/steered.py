"""A workflow that is cancelled and signalled: the subject of its mail says what it does."""

import asyncio
import time
from pathlib import Path

import msgspec

from waypost import Mail, Workflow, approve, cancel, cancelled, signal, sleep

steered = Workflow("steered", address="steered@example.com", mail_to=["boss@example.com"], env=["LEDGER"])


class Paid(msgspec.Struct):
    """What the signal carries."""

    amount: int


@steered.step
def note(what: str) -> str:
    """Write it down."""
    import os

    with Path(os.environ["LEDGER"]).open("a") as ledger:
        ledger.write(f"{what}\n")
    return what


@steered.step
async def endless() -> None:
    """Wait until somebody stops it."""
    await asyncio.Event().wait()


@steered.step
def thread() -> str:
    """Look from time to time whether it should stop."""
    while not cancelled():
        time.sleep(0.01)
    return "stopped"


@steered.step
def deaf() -> None:
    """Never look."""
    time.sleep(600)


@steered.run
async def run(mail: Mail) -> str:
    """Do what the subject says."""
    try:
        match mail.subject:
            case "sleep":
                await sleep("30d")
            case "approval":
                await approve("Pay?", who="boss@example.com", snapshot={"amount": 420})
            case "endless":
                await endless()
            case "thread":
                await thread()
            case "deaf":
                await deaf()
            case "itself":
                await cancel("nothing to do")
            case "signal":
                await signal("go")
                paid = await signal("paid", Paid)
                return f"paid {paid.amount}"
            case _:
                pass
    finally:
        await note(f"cleaned up {mail.subject}")
    return "done"
