"""A ``def`` workflow: the same calls, one after another, written without types as a newcomer writes it."""

# mypy: ignore-errors

from waypost import Workflow, approve, sleep

claims = Workflow("claims", address="claims@example.com", mail_to=["boss@example.com"])


@claims.step
def words(text: str) -> list[str]:
    """The words of a text."""
    return text.split()


@claims.run
def claim(mail):
    """Top to bottom."""
    found = words(mail.text)
    sleep("10m")
    verdict = approve("Enough words?", who="boss@example.com")
    return [len(found), verdict.approved, verdict.text]
