"""Steps that raise: retried, handled, declared; and a failure that ends the run."""

from waypost import Mail, StepError, Workflow, sleep

claims = Workflow("claims", address="claims@example.com")


class Declined(Exception):
    """An answer of the bank."""


@claims.step(retries=2)
def always_fails(what: str) -> int:
    """Three tries, three errors."""
    raise ValueError(f"no {what}")


@claims.step(raises=(Declined,))
def declines(amount: int) -> int:
    """Raises an answer."""
    raise Declined("limit", amount)


@claims.run
async def claim(mail: Mail) -> None:
    """Two errors are handled, the third isn't."""
    try:
        await always_fails("funds")
    except StepError as failure:
        await sleep(len(failure.reason))
    try:
        await declines(7)
    except Declined as answer:
        await sleep(answer.args[1])
    await always_fails(mail.subject)
