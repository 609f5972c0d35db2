"""Counts the characters of a mail, by a step, and ends: for tests that need a run and not its code."""

from waypost import Mail, Workflow

counting = Workflow("counting", address="counting@example.com")


@counting.step
def size(mail: Mail) -> int:
    """Count."""
    return len(mail.text)


@counting.run
async def count(mail: Mail) -> int:
    """Count."""
    return await size(mail)
