"""The rule book: everything that a repository's history must keep to, in one table (storage §1 to §5).

``rules.judge`` says of one commit which of these it breaks, ``rules.whole`` says it of a whole tree. The writer asks
before it writes anything; ``waypost fsck`` asks the same of every commit that was ever written. ``docs/rules.md`` is
made of this table.
"""

from dataclasses import dataclass
from typing import Literal

import msgspec

Family = Literal["names", "logs", "values", "sealing", "queue", "outbox", "counts", "authors"]

_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its name, what it says, and where it is agreed."""

    name: str
    says: str
    source: str


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A rule that isn't kept: its name, where, and the value that offends, beside what belongs there."""

    rule: str
    path: str
    value: str

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.rule}: {self.path or 'the commit'}: {self.value}"


def broken(rule: str, path: str, value: object) -> Broken:
    """A finding; a long value is cut. The rule must be in the book."""
    assert rule in RULES, rule
    text = str(value)
    return Broken(rule=rule, path=path, value=text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


BOOK: dict[Family, tuple[Rule, ...]] = {
    "names": (
        Rule("path", "Every path is one of the layout's, in its only spelling.", "storage §1"),
        Rule("readable", "Every object that a commit names is there, and can be read.", "storage §3"),
        Rule("plain-file", "A tree holds plain files and directories, each name once.", "storage §1"),
        Rule("bounded", "A directory has at most 256 entries, those below code/ excepted.", "storage §1"),
        Rule("record", "A file can be read, strictly, as what its name says that it is.", "storage §1"),
        Rule("name", "What a file says of itself is what its name says.", "storage §1"),
        Rule("missing", "The files that every repository and every run has are there.", "storage §1"),
        Rule("write-once", "Mail, grants, values, code, consumed entries: written once, then kept.", "storage §1, §4"),
    ),
    "logs": (
        Rule("sequence", "A run's events are numbered from 1 without a gap.", "storage §1"),
        Rule("chain", "prev is the SHA-256 of the event before; of seq 1, of the run's genesis.", "storage §1"),
        Rule("append-only", "A recorded event stays, byte for byte, and is at one place.", "storage §1"),
        Rule("terminal", "Nothing follows the end of a run but the fate of its mail.", "storage §1, §4"),
        Rule("legal", "An event may follow by the run's state machine.", "storage §4"),
        Rule("exits", "A step fails as child-crashed, a run is poison, where an exit is counted only.", "storage §5"),
        Rule("tail", "Segments hold 64 events each, in order; at most 64 lie in files of their own.", "storage §1"),
        Rule("event-size", "An event has at most 1 MiB.", "storage §4"),
        Rule("open-calls", "A child's run has at most 1,000 timers and 10,000 calls open.", "storage §4"),
    ),
    "values": (
        Rule("hash", "What is named by a hash has that hash, computed again.", "storage §1"),
        Rule("named", "What an event names is there, in the same commit or before it.", "storage §1, §4"),
        Rule("unnamed", "A value enters with the event that names it.", "storage §4"),
        Rule("value-size", "A value has at most 64 MiB, a mail at most 32 MiB.", "storage §4"),
    ),
    "sealing": (
        Rule("seal", "A run is sealed whole: ended, its mail gone, every file moved, byte for byte.", "storage §1"),
        Rule("sealed", "A sealed run never changes, and nothing is added to it.", "storage §1"),
    ),
    "queue": (
        Rule("one-place", "A mail, and a message id, is in one place of the queue only.", "storage §5"),
        Rule("lost", "A mail leaves a place of the queue only for another one.", "storage §5"),
        Rule("move", "A mail moves as the queue's table says, and keeps what it is.", "storage §5"),
        Rule("mail", "A mail's bytes come with its entry, and are those that the entry names.", "storage §1, §5"),
        Rule("effect", "A mail is consumed by the commit that holds the event it causes.", "storage §5"),
        Rule("bucket", "Consumed entries go to the open bucket, and leave with their bucket only.", "storage §5"),
        Rule("schedule", "A schedule is as the code declares it; it moves by ticks, each with its mail.", "storage §2"),
        Rule("child", "A child run has its mail, its parent, and an end that both know, by one commit.", "storage §4"),
        Rule("watermark", "The watermark rises, below the open bucket; when one closed stays recorded.", "storage §5"),
    ),
    "outbox": (
        Rule("outbox", "An outbox entry comes with MailQueued, and goes with MailSent or MailFailed.", "storage §1"),
    ),
    "counts": (
        Rule("ordinals", "Ordinals only rise, by as many as are given; none is given twice.", "storage §1"),
        Rule("generation", "A generation is the newest that was begun, and rises by one.", "storage §4"),
        Rule("latch", "A latch stays as it is until it is lifted; under one no generation begins.", "storage §1"),
        Rule("drain", "A drain stays as it is, but that its clock goes on, until it is lifted or held.", "storage §1"),
        Rule("format", "format.json stays, but for an epoch that begins, is recorded, and holds.", "storage §3"),
    ),
    "authors": (
        Rule("author", "Each principal writes what the table of principals lets it write.", "storage §4"),
        Rule("grants", "What a step is granted is in its one form, small, and of few steps.", "storage §1, §4"),
        Rule("fence", "A child writes to one live run, which its generation was given.", "storage §4"),
    ),
}  # fmt: skip
"""By family, in the order in which a reader wants them."""

RULES = {rule.name: rule for rules in BOOK.values() for rule in rules}
"""By name."""
_FAMILY: dict[str, Family] = {rule.name: family for family, rules in BOOK.items() for rule in rules}

ELSEWHERE = (
    ("256 requests of a child under way", "the actor that hears the child, which ends one that has more"),
    ("64 MiB of values that no event has named yet", "`PutBlob`: they are in memory, and no commit has them"),
    ("1,000 signals of a run that nobody has waited for, 1 MiB each", "the operation that records a signal"),
    ("128 KiB of an approval's snapshot", "`Append`, from a child"),
    ("whom a run may mail and ask, what it begins with", "`QueueMail`, `Append`, `TakeUp`, by the grants then"),
    ("which child runs it may start, how many, how deep, how large", "`SpawnChild`, by the code and the grants then"),
    ("a bucket goes after the horizon only", "the substrate's clock: the horizon is the host's, and no file has it"),
    ("signatures, flush numbers and hashes", "`waypost verify`"),
)  # fmt: skip
"""What is promised and can't be seen in a commit, and who sees to it."""

ADVICE: dict[Family, str] = {
    "names": "restore the repository from a backup of before this commit; keep a copy of the folder",
    "logs": "the run isn't what was recorded: restore a backup of before this commit, or take what `--salvage` finds",
    "values": "the value isn't the one that was recorded: take the file from a backup or a clone",
    "sealing": "take the run from a backup or a clone of before this commit",
    "queue": "look at the mail with `waypost queue`; restore from a backup of before this commit",
    "outbox": "look at what was sent before anything is sent again; restore from a backup of before this commit",
    "counts": "start nothing on this repository: ordinals could be given twice; restore from a backup",
    "authors": "find who wrote this commit (a push? other code under the host's key?) before anything else",
}
"""By family: what to do about a finding."""


def advice(rule: str) -> str:
    """What to do about a rule that a repository breaks."""
    return ADVICE[_FAMILY[rule]]
