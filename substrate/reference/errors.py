"""What can go wrong while a repository of the reference system is read."""

from collections.abc import Sequence
from dataclasses import dataclass

from substrate.errors import SubstrateError


class NotReference(SubstrateError):
    """There is no repository of the reference system at this path."""

    def __init__(self, path: str, why: str, *, hint: str = "check the path; nothing was changed") -> None:
        super().__init__(f"{path}: no repository to import: {why}", hint=hint)
        self.path = path
        self.why = why


class ManyAddresses(SubstrateError):
    """It has mail for several addresses, and a deployment has one."""

    SHOWN = 8

    def __init__(self, path: str, addresses: Sequence[str]) -> None:
        more = f" and {len(addresses) - self.SHOWN:,} more" if len(addresses) > self.SHOWN else ""
        super().__init__(
            f"{path}: it has mail for {', '.join(addresses[: self.SHOWN])}{more}",
            hint="say by --address whose mail is taken over; the others' is listed, and stays where it is",
        )
        self.path = path
        self.addresses = tuple(addresses)


class Unreadable(SubstrateError):
    """A file of it can't be read, is over a limit, or breaks a rule of its own system."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


@dataclass(frozen=True, slots=True)
class Left:
    """Something that isn't taken over: where it lies there (a branch's name stands before its paths), and why."""

    path: str
    why: str


class Leaving:
    """The list of what is left. At most ``MOST`` are named; the rest is counted."""

    MOST = 10_000

    def __init__(self) -> None:
        self.named: list[Left] = []
        self.more = 0

    def add(self, path: str, why: str) -> None:
        """One more. What can't be written as UTF-8 in a name there is shown as ``?``."""
        path, why = (text.encode("utf-8", "replace").decode() for text in (path, why))
        if len(self.named) < self.MOST:
            self.named.append(Left(path, why))
        else:
            self.more += 1
