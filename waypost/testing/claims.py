"""A scenario: three expense claims, one paid at once, one approved by the boss's mail, one by the operator.

The workflow's file is the caller's; it knows the folder BOOKS (``bodies``, ``ledger``; see ``tests/e2e/flows``).
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from substrate.signing.keys import PublicKey
from waypost.host.datadir.directory import DataDir
from waypost.testing import evidence as ev
from waypost.testing.driver import Errand, Played
from waypost.testing.errands import Decide, ReplyByMail, SendMail, delivered, mail
from waypost.testing.evidence import Evidence
from waypost.testing.mortal import Place

DEPLOYMENT = "claims"
ADDRESS = "claims@example.com"
BOSS = "boss@example.com"
AMOUNTS = (42, 412, 733)
LIMIT = 100
"""Claims from there on are asked about."""


def _errands(amounts: Sequence[int]) -> tuple[Errand, ...]:
    """Claims of these amounts, and the answers to them."""
    sent = tuple(
        SendMail(
            f"claim-{amount}",
            ADDRESS,
            mail(
                sender="ann@example.com",
                to=ADDRESS,
                subject=f"Claim {amount}",
                message_id=f"<claim-{amount}@example.com>",
                text=f"Amount: {amount}\n",
            ),
        )
        for amount in amounts
    )
    answers: dict[int, Errand] = {
        412: ReplyByMail("boss-412", ADDRESS, BOSS, "Pay 412?", "Yes."),
        733: Decide("operator-733", "claim-733"),
    }
    return (*sent, *(answers[amount] for amount in amounts if amount in answers))


@dataclass(frozen=True, slots=True)
class Scene:
    """One play's folder: the host's data, the books of the outside, and what was said on stderr."""

    folder: Path
    file: Path
    amounts: tuple[int, ...] = AMOUNTS
    """Of the claims."""

    @property
    def errands(self) -> tuple[Errand, ...]:
        """What is wanted of the host."""
        return _errands(self.amounts)

    @property
    def books(self) -> Path:
        """The ledger and the book of bodies."""
        return self.folder / "books"

    @property
    def place(self) -> Place:
        """For the driver."""
        environment = {**os.environ, "BOOKS": str(self.books)}
        return Place(self.folder / "data", self.file, environment, self.folder / "stderr")

    @property
    def data(self) -> DataDir:
        """The host's."""
        return DataDir(self.folder / "data")

    @property
    def key(self) -> PublicKey:
        """The host's."""
        return PublicKey.load(self.data.public_key)

    def prepare(self) -> "Scene":
        """Make the folders."""
        self.books.mkdir(parents=True)
        return self

    @contextmanager
    def explained(self, how: str) -> Iterator["Scene"]:
        """A block whose failure says how to repeat it, where its folder is, and what the hosts complained of."""
        try:
            yield self
        except BaseException as failure:
            said = self.place.complaints
            failure.add_note(f"{how}, in {self.folder}")
            failure.add_note(said.read_text(encoding="utf-8", errors="replace")[-4000:] if said.exists() else "")
            raise

    def evidence(self) -> Evidence:
        """What lies in the repository."""
        return Evidence.read(self.data.repo(DEPLOYMENT), self.key)

    @property
    def ledger(self) -> list[tuple[str, int]]:
        """(key, amount) of each payment, in order."""
        file = self.books / "ledger"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return [(key, int(amount)) for key, amount in map(str.split, lines)]

    @property
    def out(self) -> list[tuple[str, str, str]]:
        """The mails that were delivered."""
        return delivered(self.place.outgoing)

    @property
    def bodies(self) -> list[ev.Body]:
        """The bodies that began."""
        return ev.bodies(self.books / "bodies")

    def check(self, undisturbed: dict[str, dict[str, object]] | None, played: Played) -> Evidence:
        """All that must be true once every run has ended; ``undisturbed``: the outcomes of a play without kills."""
        found = self.evidence()
        if undisturbed is not None:
            assert found.outcomes == {mail: undisturbed[mail] for mail in found.stories}
        assert len(found.stories) == len(self.amounts)
        assert sorted(amount for _, amount in self.ledger) == sorted(self.amounts)
        subjects = [subject for _, _, subject in self.out]
        confirmations = [f"Your claim of {amount}" for amount in self.amounts]
        asked = [f"Pay {amount}?" for amount in self.amounts if amount >= LIMIT]
        assert subjects == sorted([*confirmations, *asked])
        ev.check_mail_out(found, self.out)
        ev.check_consumed_once(found)
        ev.check_acknowledged(found, played.acknowledged.values())
        ev.check_bodies(found, self.bodies)
        ev.check_repository(self.data, DEPLOYMENT, self.key)
        return found
