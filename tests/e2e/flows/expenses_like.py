"""An expense claim, with every kind of call in it, and books that show to the outside what was done and how often.

The folder BOOKS holds ``bodies`` (one line each time a step's body begins: key, step, pid, Unix time in ms) and
``ledger`` (one line a payment: key, amount).
"""

import asyncio
import os
import time
from pathlib import Path

from waypost import Mail, Workflow, approve, idempotency_key, send, sleep

BOSS = "boss@example.com"
LIMIT = 100

claims = Workflow("claims", address="claims@example.com", mail_to=[BOSS], env=["BOOKS"])


def append(book: str, line: str) -> None:
    """Add a line in one write, so that a kill leaves it whole or leaves it out."""
    descriptor = os.open(Path(os.environ["BOOKS"]) / book, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def begun(step: str) -> str:
    """Note that a body begins; its key."""
    key = idempotency_key()
    append("bodies", f"{key} {step} {os.getpid()} {time.time_ns() // 1_000_000}")
    return key


@claims.step
def read_claim(mail: Mail) -> int:
    begun("read_claim")
    return int(mail.text.split()[1])


@claims.step(retries=2)
def look_up(amount: int) -> str:
    """Fail at first, as a service that was asked too early."""
    key = begun("look_up")
    try:
        (Path(os.environ["BOOKS"]) / f"asked-{key}").touch(exist_ok=False)
    except FileExistsError:
        return f"account {amount % 7}"
    raise ConnectionError("not yet")


@claims.step
async def check_budget(amount: int) -> bool:
    begun("check_budget")
    await asyncio.sleep(0)
    return amount < 1000


@claims.step
async def check_twice(amount: int) -> str:
    begun("check_twice")
    return f"{amount} is fine"


@claims.step
def pay(amount: int, account: str) -> str:
    """Pay once per key, as a bank would that knows the key."""
    key = begun("pay")
    ledger = Path(os.environ["BOOKS"]) / "ledger"
    if not ledger.exists() or key not in ledger.read_text(encoding="utf-8"):
        append("ledger", f"{key} {amount}")
    return f"{amount} paid to {account}"


@claims.run
async def expense(mail: Mail) -> str:
    amount = await read_claim(mail)
    account = await look_up(amount)
    await asyncio.gather(check_budget(amount), check_twice(amount))
    said = "at once"
    if amount >= LIMIT:
        verdict = await approve(f"Pay {amount}?", who=BOSS, deadline="3d")
        if not verdict.approved:
            return "rejected"
        said = f"approved by {verdict.via}"
    await sleep("20ms")
    paid = await pay(amount, account)
    await send(to=mail.sender, subject=f"Your claim of {amount}", text=f"{paid}, {said}", reply_to=mail)
    return f"{paid}, {said}"
