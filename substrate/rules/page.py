"""``docs/rules.md``: the rule book and the table of principals, as a page for people."""

from collections.abc import Iterator

from substrate.access import ACTIONS, VERBS
from substrate.principals import TABLE
from substrate.rules.queue import MOVES
from substrate.rules.table import ADVICE, BOOK, ELSEWHERE

_HEAD = """\
# The rules

Every commit is checked by these before it is written, whatever made it; `waypost fsck` checks a whole history by the
same. A refusal and a finding name the rule, the path and the value.

Made of `substrate/rules/table.py`, `substrate/rules/queue.py` and `substrate/principals.py`;
`python -m waypost.testing.diagrams docs` makes it anew.

## Asking

```
waypost fsck                             all deployments of the data directory, every commit, oldest first
waypost fsck DEPLOYMENT                  one of them; beside its host or without one, no byte is changed
waypost fsck PATH                        any repository, or a clone of one
waypost fsck DEPLOYMENT --tip            the newest commit alone, as a whole
waypost fsck DEPLOYMENT --json           one line of JSON
waypost fsck DEPLOYMENT --salvage DIR    copy out what is readable of a damaged one; DIR must not exist
```

It ends with 0 where nothing is found, 1 where something is (or something couldn't be salvaged), and 2 where it couldn't
look. What `--salvage` copies: `files/` (the newest tree that can be read), `logs/` (each run's log), `journals/` (those
that can't be read to their end, as they are) and `salvaged.json`, which says what was lost.
"""


def page() -> str:
    """The page, made of the tables."""
    return "\n".join((_HEAD.rstrip("\n"), *_rules(), *_authors(), *_moves(), *_elsewhere(), ""))


def _rules() -> Iterator[str]:
    for family, rules in BOOK.items():
        yield from ("", f"## {family}", "", f"To do: {ADVICE[family]}.", "")
        yield from ("| rule | says | agreed in |", "|---|---|---|")
        yield from (f"| `{rule.name}` | {rule.says} | {rule.source} |" for rule in rules)


def _authors() -> Iterator[str]:
    yield from ("", "## Who may write which event", "", "| event | by | through |", "|---|---|---|")
    for kind, rule in TABLE.items():
        yield f"| {kind.__name__} | {', '.join(sorted(rule.who))} | {', '.join(sorted(rule.doors))} |"
    yield from (
        "",
        "Everything else (queue, mail, outbox, counts, code, schedules, sealing) is the supervisor's and the hub's.",
    )
    yield from ("", "## Who may do what with a repository", "", "| who | may |", "|---|---|")
    for who, actions in ACTIONS.items():
        yield f"| {who} | {', '.join(action for action in VERBS if action in actions)} |"
    yield "| user | what the token claims, on references that match, until it expires, and where authorized |"


def _moves() -> Iterator[str]:
    yield from ("", "## How a mail may move", "", "| from | to | what may change in its entry |", "|---|---|---|")
    for (origin, place), fields in MOVES.items():
        yield f"| {origin} | {place} | {', '.join(sorted(fields)) or 'nothing, not one byte'} |"


def _elsewhere() -> Iterator[str]:
    yield from ("", "## Kept elsewhere", "", "| what | by |", "|---|---|")
    yield from (f"| {what} | {by} |" for what, by in ELSEWHERE)
