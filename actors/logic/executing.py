"""What a run that executes is at, in words for people: for a drain that waits for it. Pure."""

from collections.abc import Iterable

from actors.draining import SHOWN, Executing
from waypost.model.run import Driven


def named(runs: Iterable[Driven]) -> tuple[tuple[Executing, ...], int]:
    """The longest at work, first, and how many more there are."""
    found = sorted(map(_one, runs), key=_since)
    return tuple(found[:SHOWN]), max(0, len(found) - SHOWN)


def _one(run: Driven) -> Executing:
    steps = run.ledger.steps.values()
    words = ", ".join(f"step {step.step}" for step in steps)
    return Executing(run.ledger.run, words or "between two steps", min((step.since for step in steps), default=""))


def _since(executing: Executing) -> tuple[bool, str]:
    return not executing.since, executing.since
