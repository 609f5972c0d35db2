"""A claim that waits for a person: read, approve, pay, confirm."""

from decimal import Decimal

import msgspec

from waypost import Mail, Workflow, approve, idempotency_key, send


class Claim(msgspec.Struct):
    """What is asked for."""

    purpose: str
    amount: Decimal


claims = Workflow("claims", address="claims@example.com", mail_to=["boss@example.com"])


@claims.step
def read_claim(mail: Mail) -> Claim:
    """Take the subject apart."""
    purpose, amount = mail.subject.rsplit(maxsplit=1)
    return Claim(purpose, Decimal(amount))


@claims.step
async def pay(claim: Claim) -> str:
    """Would pay."""
    return f"{claim.amount} under {idempotency_key()[:8]}"


@claims.run
async def claim(mail: Mail) -> str:
    """The whole of it."""
    asked = await read_claim(mail)
    verdict = await approve(f"Pay {asked.amount} for {asked.purpose}?", who="boss@example.com", deadline="3d")
    paid = await pay(asked) if verdict.approved else "nothing"
    await send(to=mail.sender, subject=f"Re: {mail.subject}", text=f"paid: {paid}", reply_to=mail)
    return paid
