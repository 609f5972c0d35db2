"""What a torture is made of: the workflow that it runs, the mails that are sent, and the tally of what has happened."""

from dataclasses import dataclass, field

LIMITS = (
    '{"backoff_first": 0.02, "backoff_cap": 0.02, "retry_first": 0.02, "retry_cap": 0.02, "seal_objects": 400, '
    '"attempts": 1000, "crash_exits": 1000000, "crash_total": 1000000}'
)
"""Short waits, small packs; and neither a mail whose child was killed nor the deployment is to blame, however often."""
FLOW = '''
import os
from pathlib import Path

from waypost import Mail, Workflow, idempotency_key, receive, signal, sleep

torture = Workflow("NAME", address="NAME@example.com", env=["BOOKS"])


@torture.step
def note(text: str) -> str:
    """Note it once per key, as a ledger would that knows the key."""
    line = f"{idempotency_key()} {text.split()[0]}\\n"
    ledger = Path(os.environ["BOOKS"]) / "ledger"
    if not ledger.exists() or line not in ledger.read_text(encoding="utf-8"):
        descriptor = os.open(ledger, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.write(descriptor, line.encode())
        os.close(descriptor)
    return "x" * (200_000 if "large" in text else 10)


@torture.run
async def go(mail: Mail) -> int:
    done = len(await note(mail.text))
    if "sleep" in mail.text:
        await sleep("20ms")
    if "wait" in mail.text:
        done += len(await note((await receive()).text))
    if "signal" in mail.text:
        done += len(await note(await signal("go", str)))
    return done
'''


@dataclass(frozen=True, slots=True)
class Sent:
    """A mail that was acknowledged, and as what."""

    name: str
    arrival: int
    run: str
    deployment: str


@dataclass(slots=True)
class Tally:
    """What has happened so far."""

    sent: list[Sent] = field(default_factory=list)
    """In no order; each was acknowledged, some more than once."""
    signalled: list[tuple[str, str]] = field(default_factory=list)
    """(run, word): signals that were acknowledged."""
    cancelled: set[str] = field(default_factory=set)
    """Runs of which a cancel was asked for, acknowledged or not."""
    steered: int = 0
    """What the operator has had done."""
    kills: int = 0
    child_kills: int = 0
    lives: int = 0
    full: int = 0
    gits: int = 0
    reads: int = 0
    cuts: int = 0
    broken: list[str] = field(default_factory=list)
    """What a reader or git found wrong on the way."""

    def __str__(self) -> str:
        """One line for people."""
        return (
            f"{len(self.sent)} acknowledgements, {self.kills} hosts and {self.child_kills} children killed, "
            f"{self.lives} lives, {self.full} times full, {self.gits} runs of git, {self.reads} looks from outside, "
            f"{self.cuts} power cuts, {len(self.signalled)} signals, {len(self.cancelled)} cancels, "
            f"{self.steered} drains and recycles"
        )


def mail(to: str, name: str, kind: str, *, answers: str | None = None) -> bytes:
    """A mail of this kind; the first word of its text is its name."""
    reply = "" if answers is None else f"In-Reply-To: <{answers}@x>\r\n"
    head = f"From: ann@example.com\r\nTo: {to}@example.com\r\nSubject: {name}\r\nMessage-ID: <{name}@x>\r\n{reply}"
    return f"{head}\r\n{name} {kind}\r\n".encode()
