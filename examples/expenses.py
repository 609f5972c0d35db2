"""Expense claims by mail: small ones are paid at once, others when the boss has said yes.

Run as a script it shows itself: `python examples/expenses.py`. A host of yours has to open a folder for its ledger:
`EXPENSES_LEDGER=$PWD/books/ledger.jsonl waypost run examples/expenses.py --writes books`.
"""

import fcntl
import json
import os
import re
from decimal import Decimal
from pathlib import Path

import msgspec

from waypost import DeadlinePassed, Mail, Workflow, approve, idempotency_key, send

LEDGER = Path(os.environ.get("EXPENSES_LEDGER", Path(__file__).with_name("ledger.jsonl")))
BOSS = "boss@example.com"
SMALL = Decimal(50)

expenses = Workflow("expenses", address="expenses@example.com", mail_to=[BOSS], env=["EXPENSES_LEDGER"])


class Claim(msgspec.Struct):
    """What somebody wants back, and what for."""

    amount: Decimal
    purpose: str
    receipt: str


@expenses.step
def read_claim(mail: Mail) -> Claim:
    """Find the amount in the mail's text; the receipt is its attachment."""
    amount, purpose = re.findall(r"^(?:Amount|Purpose): *(.+?)\s*$", mail.text, re.MULTILINE)
    return Claim(Decimal(amount), purpose, mail.attachments[0].name)


@expenses.step(retries=3)
def pay(claim: Claim, claimant: str) -> None:
    """Append to the ledger, once per idempotency key: a step may be run again after a crash."""
    with LEDGER.open("a+", encoding="utf-8") as ledger:
        fcntl.flock(ledger, fcntl.LOCK_EX)
        ledger.seek(0)
        if any(json.loads(line)["key"] == idempotency_key() for line in ledger):
            return
        entry = {"key": idempotency_key(), "amount": str(claim.amount), "to": claimant, "purpose": claim.purpose}
        ledger.write(json.dumps(entry) + "\n")
        ledger.flush()
        os.fsync(ledger.fileno())


@expenses.run
async def expense(mail: Mail) -> str:
    """One claim, from its mail to its end."""
    claim = await read_claim(mail)
    if claim.amount > SMALL:
        question = f"Pay {claim.amount} to {mail.sender} for {claim.purpose}?"
        try:
            verdict = await approve(question, who=BOSS, deadline="3d", text=f"Receipt: {claim.receipt}")
        except DeadlinePassed:
            await send(
                to=mail.sender, subject="Not decided", text="Nobody decided in time; send it again.", reply_to=mail
            )
            return "not decided"
        if not verdict.approved:
            await send(to=mail.sender, subject="Not paid", text=f"{verdict.by}: {verdict.text}", reply_to=mail)
            return "rejected"
    await pay(claim, mail.sender)
    await send(to=mail.sender, subject=f"Paid: {claim.amount}", text=f"For {claim.purpose}.", reply_to=mail)
    return f"paid {claim.amount}"


if __name__ == "__main__":
    import runpy

    runpy.run_path(str(Path(__file__).with_name("show_expenses.py")), run_name="__main__")
