"""What ``waypost queue`` shows: mail that no run has, on hold or rejected, and poison runs; how a mail is named."""

from msgspec import UNSET

from substrate.messages import Kept, RunLine
from waypost.host.answers.records import KeptMail, KeptMails, KeptRun
from waypost.host.errors import AmbiguousMail, NotOnHold
from waypost.host.reading.narrate import printable
from waypost.host.reading.source import LIST, Source, readable

_BRIEF = 60
_WHOLE = 200


def mail_name(deployment: str, arrival: int) -> str:
    """A mail as people name it: ``expenses/3``."""
    return f"{deployment}/{arrival}"


def on_hold(source: Source) -> KeptMails:
    """The answer of ``waypost queue hold``, oldest first."""
    found, unread = readable(source, lambda name: (source.on_hold(name, LIST + 1), source.runs(name, LIST)))
    rows = [kept_mail(name, kept) for name, (mails, _) in found.items() for kept in mails]
    rows.sort(key=lambda row: row.since)
    runs = [_run(name, line) for name, (_, lines) in found.items() for line in lines if _is_poison(line)]
    runs.sort(key=lambda row: row.since)
    return KeptMails(mails=tuple(rows[:LIST]), runs=tuple(runs[:LIST]), more=len(rows) > LIST, unread=unread)


def _is_poison(line: RunLine) -> bool:
    return any(wait.kind == "poison" for wait in line.waiting)


def _run(deployment: str, line: RunLine) -> KeptRun:
    return KeptRun(
        run=line.run,
        deployment=deployment,
        why="poison",
        since=line.changed,
        subject=printable(line.subject, _BRIEF),
        detail=printable("; ".join(wait.detail for wait in line.waiting), _WHOLE),
    )


def rejected(source: Source) -> KeptMails:
    """The answer of ``waypost queue rejected``, newest first."""
    found, unread = readable(source, lambda name: rejected_of(source, name))
    rows = [row for mails, _ in found.values() for row in mails]
    rows.sort(key=lambda row: row.since, reverse=True)
    counted = sum(counted for _, counted in found.values())
    return KeptMails(mails=tuple(rows[:LIST]), more=len(rows) > LIST, counted=counted, unread=unread)


def rejected_of(source: Source, name: str) -> tuple[list[KeptMail], int]:
    """Those of one deployment, and how many there ever were."""
    page = source.rejected(name, None)
    rows = [kept_mail(name, kept) for kept in page.mails]
    while page.cursor is not None:
        page = source.rejected(name, page.cursor)
        rows += (kept_mail(name, kept) for kept in page.mails)
    return rows, page.counted


def named_on_hold(source: Source, text: str) -> tuple[str, int]:
    """The mail on hold that is meant by ``3`` or ``expenses/3``. Raises NotOnHold, AmbiguousMail."""
    name, _, number = text.rpartition("/")
    if not (number.isascii() and number.isdigit() and len(number) < 16):  # noqa: PLR2004 - any arrival fits
        raise NotOnHold(text)
    arrival = int(number)
    known = [situation.name for situation in source.situations() if name in {"", situation.name}]
    if name and known:
        return name, arrival
    # Not by the list, which may leave some out: one deployment needs none, and several are asked for all they have.
    found = known if len(known) == 1 else [each for each in known if _has(source, each, arrival)]
    match found:
        case []:
            raise NotOnHold(text)
        case [one]:
            return one, arrival
        case several:
            raise AmbiguousMail(text, tuple(mail_name(each, arrival) for each in several))


def _has(source: Source, deployment: str, arrival: int) -> bool:
    return any(kept.entry.arrival == arrival for kept in source.on_hold(deployment, _ALL))


_ALL = 1_000_000


def kept_mail(deployment: str, kept: Kept) -> KeptMail:
    """A mail that no run has, as it is told."""
    entry = kept.entry
    since = entry.consumed or entry.held or entry.received
    return KeptMail(
        mail=mail_name(deployment, entry.arrival),
        deployment=deployment,
        arrival=entry.arrival,
        why=printable(entry.rejected or entry.why or "", _BRIEF),
        since=since,
        received=entry.received,
        sender=printable(entry.sender, _WHOLE),
        subject=printable(kept.subject, _BRIEF),
        message_id=printable(kept.message_id, _WHOLE),
        clash=None if entry.clash is UNSET else mail_name(deployment, entry.clash),
    )
