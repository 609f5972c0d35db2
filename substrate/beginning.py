"""What a run records of how it was begun. A record only; part of ``substrate.messages``."""

from dataclasses import dataclass

from waypost.model.grants import Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What RunStarted records beside the mail."""

    definition: str
    code: str
    python: str
    waypost: str
    distributions: str = ""
    mail_to: tuple[str, ...]
    """Whom the workflow may mail beside the sender of its first mail."""
    secrets: tuple[Asked, ...] = ()
    """What its steps ask for: no run begins without it being granted."""
