"""Who stands around a host in tests: a sender, a boss who answers by mail, an operator who answers on the command line.

Each tries until it is acknowledged, and each try is the same, byte for byte, as a mail server's would be.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from email import message_from_bytes, policy
from pathlib import Path

from waypost.cli.client import Client, Said
from waypost.host.answers.records import Answer, Answered, MailTaken, Problem
from waypost.testing.mortal import Place


@dataclass(frozen=True, slots=True)
class SendMail:
    """A mail that somebody sends; acknowledged by ``MailTaken``."""

    name: str
    address: str
    raw: bytes

    def attempt(self, client: Client, place: Place, done: Mapping[str, Answer]) -> Answer | None:  # noqa: ARG002 - Errand
        """Hand it in."""
        return client.post(MailTaken, "mail", self.address, body=self.raw, content_type="message/rfc822")


@dataclass(frozen=True, slots=True)
class ReplyByMail:
    """The boss's reply to the mail of this subject, once it lies in the outgoing Maildir."""

    name: str
    address: str
    boss: str
    subject: str
    words: str

    def attempt(self, client: Client, place: Place, done: Mapping[str, Answer]) -> Answer | None:  # noqa: ARG002 - Errand
        """Answer it when it has come."""
        for file in sorted(place.outgoing.glob("*")):
            asked = message_from_bytes(file.read_bytes(), policy=policy.default)
            if asked["To"] == self.boss and asked["Subject"] == self.subject:
                raw = mail(
                    sender=self.boss,
                    to=self.address,
                    subject=f"Re: {self.subject}",
                    message_id=f"<{self.name}@example.com>",
                    text=f"{self.words}\n",
                    extra=f"In-Reply-To: {asked['Message-ID']}\n",
                )
                return client.post(MailTaken, "mail", self.address, body=raw, content_type="message/rfc822")
        return None


@dataclass(frozen=True, slots=True)
class Decide:
    """The operator's answer to the run that the mail of the errand ``about`` has started."""

    name: str
    about: str

    def attempt(self, client: Client, place: Place, done: Mapping[str, Answer]) -> Answer | None:  # noqa: ARG002 - Errand
        """Approve. What was decided already (by this operator, whose acknowledgement got lost) is acknowledged."""
        started = done.get(self.about)
        if not isinstance(started, MailTaken):
            return None
        try:
            return client.post(Answered, "runs", started.run, "answer", body=b'{"approved":true}')
        except Said as said:
            if said.code == "already-decided":
                return Problem(code=said.code, message=said.message)
            raise


def mail(*, sender: str, to: str, subject: str, message_id: str, text: str, extra: str = "") -> bytes:
    """A plain mail."""
    head = f"From: {sender}\nTo: {to}\nSubject: {subject}\nMessage-ID: {message_id}\n{extra}"
    return f"{head}\n{text}".encode()


def delivered(maildir: Path) -> list[tuple[str, str, str]]:
    """What lies in a Maildir's ``new/``: (Message-ID, To, Subject) of each mail, sorted by subject."""
    found = [message_from_bytes(file.read_bytes(), policy=policy.default) for file in maildir.glob("*")]
    return sorted(((str(m["Message-ID"]), str(m["To"]), str(m["Subject"])) for m in found), key=lambda each: each[2])
