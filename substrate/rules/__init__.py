"""Every write is checked before it is committed, by rules that stand in one table.

    table       the rule book: name, sentence, where it is agreed, what to do
    judge       one commit against all of them
    gate        between a decision and the disk
    commit      a commit's files, sorted by what they are
    plain       the short way of most commits
    logs        a run's events: numbers, chain, state machine, authors
    grants      what steps are granted
    runs        its grants and values; sealing
    queue       a mail's places, moves and effect; buckets
    outbox      mail that leaves
    children    child runs and their parents
    counts      ordinals, watermark, format
    schedules   how far each has come, and its ticks
    code        deployed trees, and the record of them
    page        all of it as docs/rules.md
    whole       a whole tree, as ``fsck --tip`` and the first commit need it

Pure: (the repository before, what is to be written) to what is broken. A decision of ``substrate.operations`` that one
of these refuses is a fault of ours, and never reaches the disk.
"""

from substrate.rules.commit import Before, Commit, Ground, proposed
from substrate.rules.gate import BrokenRule, Gate
from substrate.rules.judge import Verdict, judge
from substrate.rules.page import page
from substrate.rules.table import RULES, Broken, Rule, advice, broken

__all__ = [
    "RULES",
    "Before",
    "Broken",
    "BrokenRule",
    "Commit",
    "Gate",
    "Ground",
    "Rule",
    "Verdict",
    "advice",
    "broken",
    "judge",
    "page",
    "proposed",
]
